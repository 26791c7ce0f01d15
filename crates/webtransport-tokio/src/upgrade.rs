//! Sessions of servers.

use std::sync::Arc;

use courser_http3_tokio::{self as h3, Datagrams, EarlyData, Extension, OnUpgrade, Protocol};
use courser_quic::hooks::ConnectionHooks as _;
use courser_quic::{StreamId, runtime};
use courser_webtransport::{Admission, Agreement, Refusal, SessionId, is_session_request};
use http::header::ALLOW;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};

use crate::driver;
use crate::error::var_int;
use crate::session::Session;
use crate::shared::{Origin, Shared};
use crate::table::Table;

/// Begins to accept a session at the resource of this request, in any service over HTTP/3.
///
/// The request is checked by [`Upgrade::accept`], which also answers requests for which there is no session.
pub fn upgrade<B>(request: &mut Request<B>) -> Upgrade {
    let mut head = Request::new(());
    *head.method_mut() = request.method().clone();
    *head.uri_mut() = request.uri().clone();
    *head.headers_mut() = request.headers().clone();
    let extensions = request.extensions();
    if let Some(protocol) = extensions.get::<Protocol>() {
        head.extensions_mut().insert(protocol.clone());
    }
    let is_early = extensions.get::<EarlyData>().is_some();
    let datagrams = extensions.get::<Datagrams>().cloned();
    let table = extensions.get::<Extension>().and_then(Table::of);
    let offer = match (table, datagrams) {
        (Some((group, table)), Some(datagrams)) if is_session_request(&head) => {
            h3::upgrade(request).map(|on_upgrade| Offer {
                group,
                table,
                datagrams,
                on_upgrade,
                is_early,
            })
        }
        _ => None,
    };
    Upgrade {
        head,
        offer,
        protocols: Vec::new(),
    }
}

/// A request that may become a session. See [`upgrade`].
#[derive(Debug)]
#[must_use = "the session is refused when this is dropped"]
pub struct Upgrade {
    head: Request<()>,
    /// `None` for requests that cannot become sessions.
    offer: Option<Offer>,
    protocols: Vec<String>,
}

/// The reason why [`Upgrade::accept`] has refused a session, in the extensions of its response.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused(pub String);

#[derive(Debug)]
struct Offer {
    group: Extension,
    table: Arc<Table>,
    datagrams: Datagrams,
    on_upgrade: OnUpgrade,
    is_early: bool,
}

impl Upgrade {
    /// Sets the application protocols of this resource. The first of the client that is among them is chosen; a
    /// client that offers none of them, but others, is refused with 400.
    pub fn protocols<P: Into<String>>(mut self, protocols: impl IntoIterator<Item = P>) -> Self {
        self.protocols = protocols.into_iter().map(Into::into).collect();
        self
    }

    /// Accepts the session, and runs `serve` with it in a task of its own, once the returned response is sent.
    ///
    /// Waits for the settings of the client. The response has status 200 for a session. Otherwise it has 400 without a
    /// common application protocol, 403 for an origin that [`Config::origins`](crate::Config::origins) does not
    /// allow, 405 for requests for something else than a session, 425 for early data, 429 for too many requests, and
    /// 501 if the connection does not carry sessions. The reason is in
    /// the extensions of the response, as [`Refused`], for logs.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready refuses the session.
    pub async fn accept<B, F, S>(self, serve: F) -> Response<B>
    where
        B: Default,
        F: FnOnce(Session) -> S + Send + 'static,
        S: Future + Send + 'static,
        S::Output: Send,
    {
        let Self {
            head,
            offer,
            protocols,
        } = self;
        let Some(offer) = offer else {
            return answer(&without_session(&head));
        };
        let stream = offer.datagrams.stream();
        let group = offer.group.clone();
        match offer.admit(&head, &protocols).await {
            Ok((headers, accepted)) => {
                runtime::spawn(accepted.run(serve));
                let mut response = Response::new(B::default());
                *response.headers_mut() = headers;
                response
            }
            Err(refusal) => {
                refuse(&group, stream, &refusal);
                answer(&refusal)
            }
        }
    }
}

impl Offer {
    async fn admit(
        self,
        head: &Request<()>,
        protocols: &[String],
    ) -> Result<(HeaderMap, Accepted), Refusal> {
        let stream = self.datagrams.stream();
        let id = SessionId::new(stream.value()).map_err(|_| Refusal::no_sessions_here())?;
        self.table.on_client(&self.group, &self.datagrams).await;
        let admission = self.table.with(|sessions| {
            let now = self.table.now();
            sessions.on_request(now, id, head, self.is_early)
        });
        let opening = match admission {
            Admission::Open(opening) => opening,
            Admission::Refuse(refusal) => return Err(refusal),
            // The connection has ended before the settings of the client.
            Admission::Hold => {
                self.table.with(|sessions| sessions.refuse(id));
                return Err(Refusal::no_sessions_here());
            }
        };
        let refused = |refusal| {
            self.table.with(|sessions| sessions.refuse(id));
            refusal
        };
        let protocol = opening.protocols.select(protocols).map(ToOwned::to_owned);
        if protocol.is_none() && !protocols.is_empty() && !opening.protocols.is_empty() {
            return Err(refused(Refusal::no_protocol()));
        }
        let headers = opening.response_headers(protocol.as_deref());
        let headers = headers.map_err(|_| refused(Refusal::no_protocol()))?;
        let accepted = self.table.with(|sessions| {
            let agreement: Agreement = *sessions.agreement()?;
            Some((sessions.accept(id)?, agreement))
        });
        let (Some((session, agreement)), Some(streams)) = (accepted, self.group.session(stream))
        else {
            return Err(refused(Refusal::no_sessions_here()));
        };
        let origin = Origin {
            agreement,
            protocol,
            streams,
            datagrams: self.datagrams,
            table: self.table,
        };
        let accepted = Accepted {
            shared: Shared::new(session, id, origin),
            on_upgrade: self.on_upgrade,
        };
        Ok((headers, accepted))
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

/// Refuses the streams of a session that does not exist, and resets its request if the refusal is no response.
fn refuse(group: &Extension, stream: StreamId, refusal: &Refusal) {
    group.refuse_session(stream);
    if let Refusal::Reset { code, .. } = refusal {
        group.quic().abort_stream(stream, var_int(*code));
    }
}

fn without_session(head: &Request<()>) -> Refusal {
    if is_session_request(head) {
        return Refusal::Status {
            status: StatusCode::NOT_IMPLEMENTED,
            headers: HeaderMap::new(),
            reason: "the connection does not carry sessions".to_owned(),
        };
    }
    let mut headers = HeaderMap::new();
    headers.insert(ALLOW, HeaderValue::from_static("CONNECT"));
    Refusal::Status {
        status: StatusCode::METHOD_NOT_ALLOWED,
        headers,
        reason: "only sessions of WebTransport are served here".to_owned(),
    }
}

fn answer<B: Default>(refusal: &Refusal) -> Response<B> {
    let mut response = Response::new(B::default());
    match refusal {
        Refusal::Status {
            status, headers, ..
        } => {
            *response.status_mut() = *status;
            *response.headers_mut() = headers.clone();
        }
        // The stream is reset, and nothing of the response is sent.
        Refusal::Reset { .. } => *response.status_mut() = StatusCode::BAD_REQUEST,
    }
    let reason = Refused(refusal.reason().to_owned());
    response.extensions_mut().insert(reason);
    response
}
