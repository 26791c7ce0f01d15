//! An HTTP client that reuses connections and selects the protocol.
//!
//! [`Client`] sends [`http::Request`]s over HTTP/3, HTTP/2 or HTTP/1.1. If an HTTPS record (RFC 9460) or an
//! `alt-svc` field (RFC 7838) announces HTTP/3 for an origin, QUIC is raced against TCP, and the first
//! connection carries the request. If TCP already serves the origin, a QUIC connection is opened in the background,
//! and later requests use it. The client remembers networks that drop UDP. HTTPS records are queried with
//! the feature `dns`; without it, HTTP/3 is discovered through `alt-svc` fields only. They do not change `http`
//! URLs to `https`. The features `brotli` and `zstd` add these content codings to gzip and deflate.
//!
//! ```no_run
//! # mod courser { pub use courser_quic::*; pub use courser_client::{self as client, Client}; }
//! use courser::Client;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::new()?;
//! let response = client.get("https://example.org/").await?.error_for_status()?;
//! println!("{} over {:?}", response.status(), response.version());
//! println!("{}", response.text().await?);
//! # Ok(()) }
//! ```
//!
//! Requests are built with [`Client::get`] and similar methods, or are any [`http::Request`] for [`Client::send`]. The
//! features `json`, `form`, `cookies` and `charset` add JSON, queries and forms, a cookie jar, and texts in charsets
//! other than UTF-8.
//!
//! A client is also a [`tower_service::Service`], so it can be wrapped in tower's layers. Each response has its
//! [`Timing`] in its extensions.
//!
//! The client repeats a request only if that is safe: if the server reported that it was not processed, or if
//! the method is idempotent and an idle connection was closed or its path became
//! [silent](courser_quic::Connection::is_path_silent). In the last case the first attempt continues, a new QUIC
//! connection and TCP are raced, and the first response is returned.

// Displays the feature that each item requires.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod alt_svc;
mod body;
mod builder;
mod coalescing;
mod connect;
mod cookies;
mod core;
mod early_data;
mod endpoints;
mod error;
mod exchange;
mod expectation;
mod family;
mod follow;
mod header_limits;
mod history;
#[doc(hidden)]
pub mod hooks;
mod interim;
mod lazy_platform;
mod link;
#[cfg(feature = "masque")]
mod masque_links;
mod masque_url;
mod move_permits;
mod moves;
pub mod multipart;
mod origin;
mod pinned;
mod pool;
mod preparation;
mod proxy;
mod race;
mod received;
mod redirect;
mod redirect_policy;
mod request_body;
mod request_builder;
mod request_head;
mod request_timeout;
mod resolve;
mod response;
mod retry;
mod second_lane;
mod sending;
mod serves;
mod timing;
mod tls;
mod token_file;
mod udp_memory;
mod url;
mod version;

use std::any::Any;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Content in memory.
#[doc(no_inline)]
pub use bytes::Bytes;
pub use courser_base::ScopedIp;
use courser_http3_tokio as h3;
/// The types of requests and responses.
#[doc(no_inline)]
pub use http;
use http::{Request, Uri, header};
use tower_http::decompression::Decompression;
use tower_service::Service;

/// Entry points of the fuzz targets, which are not part of the public API.
#[doc(hidden)]
pub mod fuzzing {
    pub use super::alt_svc::{announce, rewrite_file};
}

/// Parts of the cookie jar for tools that store cookies themselves, which are not part of the public API.
#[cfg(feature = "cookies")]
#[doc(hidden)]
pub mod cookie_parts {
    pub use super::cookies::cookie::*;
    pub use super::cookies::date::*;
    pub use super::cookies::jar::*;
}

pub use self::body::Body;
pub use self::builder::ClientBuilder;
pub use self::cookies::CookieStore;
#[cfg(feature = "cookies")]
pub use self::cookies::cookie::Cookie;
#[cfg(feature = "cookies")]
pub use self::cookies::{CookieJar, RefusedCookie};
pub use self::error::{Error, ErrorKind};
pub use self::family::Family;
pub use self::history::{History, Hop};
pub use self::origin::Origin;
pub use self::preparation::Prepared;
pub use self::proxy::{Proxy, ProxyFunction};
pub use self::race::Transport;
pub use self::redirect::Redirect;
pub use self::redirect_policy::{RedirectAction, RedirectAttempt, RedirectPolicy};
pub use self::request_builder::RequestBuilder;
pub use self::request_timeout::RequestTimeout;
#[cfg(feature = "dns")]
pub use self::resolve::DnsResolver;
pub use self::resolve::{Resolve, Resolving, ServiceRecord, SystemResolver};
pub use self::response::{BytesStream, Response};
pub use self::retry::RetryPolicy;
pub use self::timing::{Attempt, EarlyRequest, Outcome, Timing, TlsSummary};
pub use self::token_file::{FileTokenStore, TokenFileError, TokenFileReason};
pub use self::url::IntoUrl;
pub use self::version::{HttpVersion, TlsVersions};
/// URLs as browsers parse them, for [`IntoUrl`].
pub use ::url::Url;

use self::core::{Alive, Core};
use self::error::BoxError;
use self::request_body::RequestBody;

/// Sends requests. See the [module](self).
///
/// Clones share connections and learned information. When the last clone and the last response body
/// are dropped, the connections are closed.
#[derive(Clone, Debug)]
pub struct Client(
    Arc<Core>,
    #[expect(dead_code, reason = "only its end matters")] Arc<Alive>,
);

impl Client {
    /// Sends a request, follows redirects, and waits for the header section of the response. The request body is
    /// sent meanwhile, and may continue after the response has arrived.
    ///
    /// The URI must be absolute. A `content-length` is added if the body reports its exact size. The extensions
    /// of the request may contain [`OnInterim`](h3::OnInterim), [`Priority`](h3::Priority) and [`RequestTimeout`];
    /// those of the response contain its [`History`] and its [`Timing`]. `Response::from` adds the methods of
    /// [`client::Response`](self::Response).
    ///
    /// ```no_run
    /// # mod courser { pub use courser_quic::*; pub use courser_client::{self as client, Client}; }
    /// # async fn example(client: courser::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use bytes::Bytes;
    /// use http::Request;
    /// use http_body_util::Full;
    ///
    /// let request = Request::post("https://example.org/form")
    ///     .header("content-type", "application/json")
    ///     .body(Full::new(Bytes::from_static(b"{}")))?;
    /// let response = client.send(request).await?;
    /// # drop(response);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// See [`ErrorKind`]. A response with status 404 or 500 is not an error.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready cancels the request.
    pub async fn send<B>(&self, request: Request<B>) -> Result<http::Response<Body>, Error>
    where
        B: http_body::Body + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let mut request = request.map(request_body_of);
        let own_limit = request.extensions_mut().remove::<RequestTimeout>();
        let limit = own_limit.map(|limit| limit.0);
        let limit = limit.or(self.0.settings.total_timeout);
        // A limit beyond the clock is none.
        let deadline = limit.and_then(|limit| {
            let deadline = tokio::time::Instant::now().checked_add(limit)?;
            Some((limit, deadline))
        });
        // For the error of the deadline.
        let asked = deadline.map(|_| (request.method().clone(), request.uri().clone()));
        // Boxed, because its state is several kilobytes long, and callers move the future of this method.
        let following = Box::pin(follow::follow(&self.0, request));
        let mut response = match deadline.zip(asked) {
            None => following.await?,
            Some(((limit, deadline), (method, url))) => {
                tokio::time::timeout_at(deadline, following)
                    .await
                    .map_err(|_| no_response_within(limit).of_request(&method, &url))??
            }
        };
        let read_timeout = self.0.settings.read_timeout;
        response.body_mut().set_limits(read_timeout, deadline);
        if self.0.settings.decompresses {
            response = decode(response).await;
        }
        Ok(response)
    }

    /// Saves the alternatives to their [file](ClientBuilder::alt_svc_file), if one is set. Dropping the last
    /// clone of the client does the same but cannot report errors.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the file cannot be written.
    pub fn save_alt_svc(&self) -> Result<(), Error> {
        self.0.save_alt_svc()
    }

    /// Returns the open QUIC endpoints, at most one for each address family, for access to their counters and
    /// the capabilities of their sockets.
    pub fn endpoints(&self) -> Vec<courser_quic::Endpoint> {
        self.0.quic.open()
    }

    /// Reports that the network has changed and packets now have another source address. Open QUIC connections
    /// migrate to a new path at once if their servers allow it
    /// ([`Endpoint::network_changed`](courser_quic::Endpoint::network_changed)). TCP connections are not
    /// affected. The client discards what it learned about UDP in the previous network, and alternatives that do
    /// not persist (RFC 7838 §2.2).
    pub fn network_changed(&self) {
        self.0.on_network_changed();
        for endpoint in self.0.quic.open() {
            endpoint.network_changed();
        }
    }

    /// Connects to the server of `uri` and closes the connection, so that the next request to it can be sent in
    /// early data. Takes two round trips. Tickets of earlier connections of this client serve the same purpose.
    ///
    /// Returns [`Prepared::Ready`] even if the server issues no tickets for early data; [`Timing::early_data`]
    /// of the next request reports the result.
    ///
    /// ```no_run
    /// # mod courser { pub use courser_quic::*; pub use courser_client::{self as client, Client}; }
    /// # async fn example(client: courser::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let uri = "https://example.org/".parse()?;
    /// client.prepare_early_data(&uri).await?;
    /// // The next request to this server can leave in the first packets.
    /// let response = client.get("https://example.org/search").await?;
    /// # drop(response);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The errors of connecting, and [`ErrorKind::Url`] if `uri` has no host.
    ///
    /// # Cancel safety
    /// Dropping the future abandons the connection.
    pub async fn prepare_early_data(&self, uri: &Uri) -> Result<Prepared, Error> {
        preparation::prepare(&self.0, uri).await
    }

    /// Closes all QUIC connections and waits until the servers have been notified, which takes a round trip.
    /// Intended for processes that are about to exit; further requests open new sockets.
    pub async fn close(&self) {
        // Servers that never answered need no notification, which would take several timeouts.
        let waits = self.0.pool.has_quic();
        for endpoint in self.0.quic.open() {
            endpoint.close(courser_quic::VarInt::from(NO_ERROR), b"");
            if waits {
                endpoint.wait_idle().await;
            }
        }
    }
}

impl<B> Service<Request<B>> for Client
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = http::Response<Body>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Error>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let client = self.clone();
        Box::pin(async move { client.send(request).await })
    }
}

/// Decodes the content coding of a response if it is supported.
async fn decode(response: http::Response<Body>) -> http::Response<Body> {
    let is_coded = response.headers().contains_key(header::CONTENT_ENCODING);
    if !is_coded || http_body::Body::is_end_stream(response.body()) {
        return response;
    }
    let mut decompression = Decompression::new(Given(Some(response)));
    let decoded = decompression.call(Request::new(h3::Empty)).await;
    let Ok(response) = decoded;
    response.map(Body::decoded)
}

/// A service that returns a given response, because the decompression layer wraps a service.
struct Given(Option<http::Response<Body>>);

impl Service<Request<h3::Empty>> for Given {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<http::Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<h3::Empty>) -> Self::Future {
        let response = self.0.take();
        std::future::ready(Ok(response.expect("the service is called once")))
    }
}

/// Returns any body as that of a request. One of our own type with content in memory is not boxed.
fn request_body_of<B>(body: B) -> RequestBody
where
    B: http_body::Body + Send + 'static,
    B::Error: Into<BoxError>,
{
    let mut body = Some(body);
    let any: &mut dyn Any = &mut body;
    if let Some(own) = any.downcast_mut::<Option<Body>>()
        && let Some(own) = own.take()
    {
        return match own.into_memory() {
            Ok(data) => RequestBody::in_memory(data),
            Err(own) => RequestBody::new(own),
        };
    }
    body.map_or_else(RequestBody::empty, RequestBody::new)
}

fn no_response_within(limit: Duration) -> Error {
    Error::new(ErrorKind::Timeout, format!("no response within {limit:?}"))
}

/// RFC 9114 §8.1: H3_NO_ERROR.
const NO_ERROR: u32 = 0x100;
