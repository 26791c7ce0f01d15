//! Sessions of servers.

use std::sync::Arc;

use courser_http3_tokio::{self as h3, Code, Datagrams, EarlyData, Extension, OnUpgrade, Protocol};
use courser_webtransport::{Admission, Origins, Refusal, SessionId, is_session_request};
use http::header::ALLOW;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};

use crate::incoming::{IncomingSession, Undecided};
use crate::refusal::{answer, refuse};
use crate::session::Session;
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
        origins: None,
    }
}

/// A request that may become a session. See [`upgrade`].
///
/// With the feature `axum` it is an extractor, an argument of handlers:
///
#[cfg_attr(feature = "axum", doc = "```")]
#[cfg_attr(not(feature = "axum"), doc = "```ignore")]
/// # mod courser { pub use courser_webtransport_tokio as webtransport; }
/// use axum::response::Response;
/// use axum::{Router, routing::any};
/// use courser::webtransport::{Session, Upgrade};
///
/// async fn echo(upgrade: Upgrade) -> Response {
///     upgrade.accept(|session: Session| async move {
///         let (mut send, mut receive) = session.accept_bi().await?;
///         tokio::io::copy(&mut receive, &mut send).await?;
///         send.finish()?;
///         session.closed().await;
///         Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
///     }).await
/// }
///
/// let app: Router = Router::new().route("/echo", any(echo));
/// ```
#[derive(Debug)]
#[must_use = "the session is refused when this is dropped"]
pub struct Upgrade {
    head: Request<()>,
    /// `None` for requests that cannot become sessions.
    offer: Option<Offer>,
    protocols: Vec<String>,
    origins: Option<Origins>,
}

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

    /// Narrows the origins that [`Config::origins`](crate::Config::origins) allows for this resource: a page must be
    /// allowed by both.
    pub fn origins(mut self, origins: Origins) -> Self {
        self.origins = Some(origins);
        self
    }

    /// Accepts the session, and runs `serve` with it in a task of its own, once the returned response is sent.
    ///
    /// Waits for the settings of the client. The response has status 200 for a session. Otherwise it has 400 without a
    /// common application protocol, 403 for an origin that [`Config::origins`](crate::Config::origins) does not
    /// allow, 405 for requests for something else than a session, 425 for early data, 429 for too many requests, and
    /// 501 if the connection does not carry sessions. The reason is in
    /// the extensions of the response, as [`Refused`](crate::Refused), for logs.
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
        match self.check().await {
            Ok(incoming) => incoming.accept(serve),
            Err(response) => response,
        }
    }

    /// Checks the request like [`accept`](Self::accept), and leaves the decision to the application. Streams and
    /// datagrams of the client wait meanwhile.
    ///
    /// # Errors
    /// Returns the response of a request for which there is no session.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready refuses the session.
    pub async fn check<B: Default>(self) -> Result<IncomingSession, Response<B>> {
        let Some(offer) = self.offer else {
            return Err(answer(&without_session(&self.head)));
        };
        let stream = offer.datagrams.stream();
        let (group, monitor) = (offer.group.clone(), offer.table.monitor.clone());
        let checked = offer.check(self.head, &self.protocols, self.origins);
        checked.await.map_err(|refusal| {
            monitor.on_refused(&refusal);
            refuse(&group, stream, &refusal);
            answer(&refusal)
        })
    }
}

impl Offer {
    async fn check(
        self,
        head: Request<()>,
        protocols: &[String],
        origins: Option<Origins>,
    ) -> Result<IncomingSession, Refusal> {
        let Self {
            group,
            table,
            datagrams,
            on_upgrade,
            is_early,
        } = self;
        let stream = datagrams.stream();
        let id = SessionId::new(stream.value()).map_err(|_| Refusal::no_sessions_here())?;
        table.on_client(&group, &datagrams).await;
        let admission = table.with(|sessions| {
            let now = table.now();
            sessions.on_request(now, id, &head, is_early)
        });
        if let Admission::Refuse(refusal) = admission {
            return Err(refusal);
        }
        // Refuses the session unless it is accepted.
        let undecided = Undecided {
            group,
            table,
            id,
            is_accepted: false,
        };
        let Admission::Open(opening) = admission else {
            // The connection has ended before the settings of the client.
            return Err(Refusal::no_sessions_here());
        };
        if let (Some(origins), Some(authority)) = (origins, head.uri().authority()) {
            let checked = origins.check(head.headers(), authority);
            checked.map_err(|error| status(StatusCode::FORBIDDEN, error.to_string()))?;
        }
        let protocol = opening.protocols.select(protocols).map(ToOwned::to_owned);
        if protocol.is_none() && !protocols.is_empty() && !opening.protocols.is_empty() {
            return Err(Refusal::no_protocol());
        }
        let place = undecided.table.monitor.take_place();
        let place = place.map_err(|limit| Refusal::Reset {
            code: Code::REQUEST_REJECTED,
            reason: format!("the server has {limit} sessions, as many as allowed"),
        })?;
        // From here on, early streams wait for the session within the credit of the client.
        let streams = undecided.group.session(stream);
        let streams = streams.ok_or_else(Refusal::no_sessions_here)?;
        datagrams.accept();
        Ok(IncomingSession {
            head,
            opening,
            protocol,
            headers: HeaderMap::new(),
            place,
            streams,
            datagrams,
            on_upgrade,
            undecided,
        })
    }
}

fn status(status: StatusCode, reason: String) -> Refusal {
    Refusal::Status {
        status,
        headers: HeaderMap::new(),
        reason,
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
