//! Requests for sessions that the application of a server decides about.

use std::net::SocketAddr;
use std::sync::Arc;

use courser_http3_tokio::{Datagrams, Extension, OnUpgrade, SessionStreams};
use courser_quic::runtime;
use courser_webtransport::{Dialect, NotOffered, Opening, Protocols, Refusal, SessionId};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri};

use crate::driver;
use crate::monitor::{Place, RefusalKind};
use crate::refusal::{answer, refuse};
use crate::session::Session;
use crate::shared::{Origin, Shared};
use crate::table::Table;

/// A request for a session that has passed all checks, as [`Upgrade::check`](crate::Upgrade::check) returns it. Dropping it
/// refuses the session.
#[derive(Debug)]
#[must_use = "the session is refused when this is dropped"]
pub struct IncomingSession {
    pub(crate) head: Request<()>,
    pub(crate) opening: Opening,
    pub(crate) protocol: Option<String>,
    /// Further fields of the response.
    pub(crate) headers: HeaderMap,
    pub(crate) place: Place,
    pub(crate) streams: SessionStreams,
    pub(crate) datagrams: Datagrams,
    pub(crate) on_upgrade: OnUpgrade,
    pub(crate) undecided: Undecided,
}

impl IncomingSession {
    /// Returns the URI of the request, with the path of the resource.
    pub fn uri(&self) -> &Uri {
        self.head.uri()
    }

    /// Returns the fields of the request.
    pub fn headers(&self) -> &HeaderMap {
        self.head.headers()
    }

    /// Returns the `Origin` field, if there is one. The origin is allowed.
    pub const fn origin(&self) -> Option<&HeaderValue> {
        self.opening.origin.as_ref()
    }

    /// Returns the application protocols that the client offers, empty if it offers none.
    pub const fn protocols(&self) -> &Protocols {
        &self.opening.protocols
    }

    /// Returns the dialect of the connection.
    pub const fn dialect(&self) -> Dialect {
        self.opening.dialect
    }

    /// Returns the current address of the client.
    pub fn remote_address(&self) -> SocketAddr {
        self.undecided.group.quic().remote_address()
    }

    /// Chooses an application protocol instead of that of [`Upgrade::protocols`](crate::Upgrade::protocols).
    ///
    /// # Errors
    /// Returns an error for a protocol that the client has not offered.
    pub fn choose(&mut self, protocol: &str) -> Result<(), NotOffered> {
        self.opening.response_headers(Some(protocol))?;
        self.protocol = Some(protocol.to_owned());
        Ok(())
    }

    /// Returns the fields of the response for changes. Those of WebTransport are added later.
    pub const fn response_headers_mut(&mut self) -> &mut HeaderMap {
        &mut self.headers
    }

    /// Accepts the session, and runs `serve` with it in a task of its own, once the returned response is sent.
    pub fn accept<B, F, S>(self, serve: F) -> Response<B>
    where
        B: Default,
        F: FnOnce(Session) -> S + Send + 'static,
        S: Future + Send + 'static,
        S::Output: Send,
    {
        let stream = self.datagrams.stream();
        let (group, monitor) = (
            self.undecided.group.clone(),
            self.undecided.table.monitor.clone(),
        );
        match self.establish() {
            Ok((headers, accepted)) => {
                runtime::spawn(accepted.run(serve));
                let mut response = Response::new(B::default());
                *response.headers_mut() = headers;
                response
            }
            Err(refusal) => {
                monitor.on_refused(&refusal);
                refuse(&group, stream, &refusal);
                answer(&refusal)
            }
        }
    }

    /// Refuses the session. Returns a response with this status, to which the application may add fields and content.
    pub fn refuse<B: Default>(self, status: StatusCode) -> Response<B> {
        let monitor = &self.undecided.table.monitor;
        monitor.count_refusal(RefusalKind::Application);
        let mut response = Response::new(B::default());
        *response.status_mut() = status;
        response
    }

    fn establish(self) -> Result<(HeaderMap, Accepted), Box<Refusal>> {
        let Self {
            head,
            opening,
            protocol,
            headers: mut all,
            place,
            streams,
            datagrams,
            on_upgrade,
            mut undecided,
        } = self;
        let headers = opening.response_headers(protocol.as_deref());
        all.extend(headers.map_err(|_| Box::new(Refusal::no_protocol()))?);
        let id = undecided.id;
        let accepted = undecided.table.with(|sessions| {
            let agreement = *sessions.agreement()?;
            Some((sessions.accept(id)?, agreement))
        });
        let (session, agreement) = accepted.ok_or_else(|| Box::new(Refusal::no_sessions_here()))?;
        undecided.is_accepted = true;
        let origin = Origin {
            agreement,
            protocol,
            uri: head.uri().clone(),
            page: opening.origin,
            place,
            streams,
            datagrams,
            table: undecided.table.clone(),
        };
        let accepted = Accepted {
            shared: Shared::new(session, id, origin),
            on_upgrade,
        };
        Ok((all, accepted))
    }
}

/// A session that is refused unless the application accepts it.
#[derive(Debug)]
pub(crate) struct Undecided {
    pub(crate) group: Extension,
    pub(crate) table: Arc<Table>,
    pub(crate) id: SessionId,
    pub(crate) is_accepted: bool,
}

impl Drop for Undecided {
    fn drop(&mut self) {
        if !self.is_accepted {
            self.table.with(|sessions| sessions.refuse(self.id));
        }
    }
}

/// A session whose response is on its way.
struct Accepted {
    shared: Arc<Shared>,
    on_upgrade: OnUpgrade,
}

impl Accepted {
    async fn run<F, S>(self, serve: F)
    where
        F: FnOnce(Session) -> S,
        S: Future,
    {
        match self.on_upgrade.await {
            Ok(stream) => {
                let session = Session::new(self.shared.clone());
                driver::start(self.shared, stream);
                serve(session).await;
            }
            Err(_) => self
                .shared
                .update(|session, now| session.on_connection_lost(now)),
        }
    }
}
