//! An echo of WebTransport sessions beside a site, and a page that tests it in a visitor's browser.
//!
//! A client sends streams and datagrams to the [path](Echo::path) of the echo and gets them back: a bidirectional
//! stream on itself, a unidirectional one on a new stream of the server. If the client resets its stream, the echo is
//! reset with the same code, and if it stops reading, its own stream is stopped with the same code. Parameters of the
//! query ask for what only the server can begin.

mod page;
mod session;
mod wishes;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use courser::server;
use courser::webtransport::{self, Origins, Protocols};
use http::header::{self, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use serde_json::json;
use tokio::sync::watch;

use self::wishes::Wishes;
use crate::body::{Body, explained, typed, without_content};

/// An echo of sessions, and its test page at [`Echo::PAGE`].
///
/// The server must announce WebTransport ([`Server::webtransport`](courser::Server::webtransport)).
#[derive(Clone, Debug)]
pub struct Echo(Arc<Inner>);

struct Inner {
    path: String,
    origins: Origins,
    hash: Hash,
    /// True once the server drains.
    drains: watch::Sender<bool>,
}

type Hash = Box<dyn Fn() -> Option<[u8; 32]> + Send + Sync>;

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// A resource of the echo.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Resource {
    Session,
    /// The facts that the page needs, as JSON.
    Facts,
    /// A file of the page.
    File(page::File),
}

impl Echo {
    /// The default path of the sessions.
    pub const PATH: &str = "/.well-known/courser/echo";
    /// The path of the page.
    pub const PAGE: &str = "/webtransport";

    /// Creates an echo at a path. `hash` returns the SHA-256 of the certificate if browsers have to trust it by its
    /// hash (`serverCertificateHashes`), and `None` if they trust it anyway.
    pub fn new(
        path: impl Into<String>,
        hash: impl Fn() -> Option<[u8; 32]> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Inner {
            path: path.into(),
            origins: Origins::any(),
            hash: Box::new(hash),
            drains: watch::Sender::new(false),
        }))
    }

    /// Narrows the origins whose pages may use the echo, of those that the server allows. All by default.
    ///
    /// # Panics
    /// Panics if the echo was cloned before.
    #[must_use]
    pub fn origins(mut self, origins: Origins) -> Self {
        let inner = Arc::get_mut(&mut self.0).expect("the echo was cloned before");
        inner.origins = origins;
        self
    }

    /// Returns the path of the sessions.
    pub fn path(&self) -> &str {
        &self.0.path
    }

    /// Asks the clients of all sessions to end them, and closes the sessions that remain after a second. Without this
    /// call, sessions delay the end of a server until its time limit.
    pub fn drain(&self) {
        self.0.drains.send_replace(true);
    }

    /// Returns the resource at a path, or `None` if it belongs to the site.
    pub(crate) fn resource(&self, path: &str) -> Option<Resource> {
        if path == self.0.path {
            return Some(Resource::Session);
        }
        let rest = path.strip_prefix(Self::PAGE)?;
        match rest {
            "/facts.json" => Some(Resource::Facts),
            rest => page::File::named(rest).map(Resource::File),
        }
    }

    pub(crate) async fn answer(
        &self,
        resource: Resource,
        mut request: Request<server::Body>,
    ) -> Response<Body> {
        if resource == Resource::Session {
            return self.open(&mut request).await;
        }
        if ![Method::GET, Method::HEAD].contains(request.method()) {
            let mut response = explained(StatusCode::METHOD_NOT_ALLOWED, "use GET");
            let allow = HeaderValue::from_static("GET, HEAD");
            response.headers_mut().insert(header::ALLOW, allow);
            return response;
        }
        let response = match resource {
            Resource::File(file) => file.response(),
            _ => self.facts(),
        };
        match *request.method() {
            Method::HEAD => without_content(response),
            _ => response,
        }
    }

    fn facts(&self) -> Response<Body> {
        let hash = (self.0.hash)();
        let facts = json!({"path": self.0.path, "certificate_sha256": hash.map(Vec::from)});
        let mut response = typed(StatusCode::OK, "application/json", facts.to_string());
        let fresh = HeaderValue::from_static("no-store");
        response.headers_mut().insert(header::CACHE_CONTROL, fresh);
        response
    }

    async fn open(&self, request: &mut Request<server::Body>) -> Response<Body> {
        if request.method() != Method::CONNECT {
            let reason = "sessions of WebTransport are opened here, over HTTP/3; \
                          'courser webtransport URL' is a client, and /webtransport a test page";
            let mut response = explained(StatusCode::METHOD_NOT_ALLOWED, reason);
            let allow = HeaderValue::from_static("CONNECT");
            response.headers_mut().insert(header::ALLOW, allow);
            return response;
        }
        let wishes = match Wishes::parse(request.uri().query().unwrap_or_default()) {
            Ok(wishes) => wishes,
            Err(reason) => return explained(StatusCode::BAD_REQUEST, &reason),
        };
        let protocols = Protocols::offered(request.headers());
        let first = protocols.iter().take(1).map(str::to_owned);
        let upgrade = webtransport::upgrade(request)
            .protocols(first)
            .origins(self.0.origins.clone());
        let mut drains = self.0.drains.subscribe();
        let accepted = upgrade.accept::<(), _, _>(move |session| async move {
            tokio::select! {
                () = session::serve(&session, wishes) => {}
                _ = session.closed() => {}
                () = drained(&mut drains, &session) => {}
            }
        });
        accepted.await.map(|()| Body::empty())
    }
}

/// Waits until the server drains, and asks the peer to end the session. Returns when it has to be over.
async fn drained(drains: &mut watch::Receiver<bool>, session: &webtransport::Session) {
    // The sender lives as long as the service.
    if drains.wait_for(|is_on| *is_on).await.is_err() {
        std::future::pending::<()>().await;
    }
    session.drain();
    tokio::time::sleep(DRAIN_TIME).await;
    session.close(0, "the server ends");
    session.closed().await;
}

/// Time for the client to end its session while the server drains (limit K562).
const DRAIN_TIME: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
