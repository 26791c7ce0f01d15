//! Access for crates that select the addresses of a server themselves, such as gRPC channels. Not part of the public
//! API.

use std::net::SocketAddr;
use std::sync::Arc;

use http::request::Parts;
use http::{Request, Response, Uri};

use super::Client;
use super::body::Body;
use super::core::Core;
use super::error::{Error, ErrorKind};
use super::origin::Origin;
use super::pool::Key;
use super::request_body::RequestBody as Content;
use super::request_head::header_for;
use super::sending::{obtain, send, take};
use super::timing::Timing;

pub use super::request_body::{Replay, RequestBody};

/// Parses the URL of a server.
///
/// # Errors
/// [`ErrorKind::Url`] with the text for its user.
pub fn parse_url(url: &str) -> Result<Uri, Error> {
    url.parse().map_err(|error| {
        let text = format!("'{url}' is not a URL: {error}");
        Error::new(ErrorKind::Url, text)
    })
}

/// Creates an error about a setting.
pub fn setting_error(text: impl Into<String>) -> Error {
    Error::new(ErrorKind::Config, text)
}

/// Resolves the host of an origin to at least one address, as the client would.
///
/// # Errors
/// [`ErrorKind::Resolve`] and [`ErrorKind::Connect`].
pub async fn lookup(client: &Client, origin: &Origin) -> Result<Vec<SocketAddr>, Error> {
    client.0.lookup(origin.host(), origin.port()).await
}

/// A server of an origin at one address. Its connections serve nothing else.
pub struct Destination {
    core: Arc<Core>,
    key: Key,
}

/// The outcome of [`Destination::send`].
pub enum Sent {
    /// There is no usable connection. Nothing was sent.
    NotConnected(RequestBody),
    /// The request failed.
    Failed(Error),
    /// The header section of the response has arrived.
    Answered(Response<Body>),
}

impl Destination {
    /// Creates the destination without connecting.
    pub fn new(client: &Client, origin: Origin, address: SocketAddr) -> Self {
        let key = Key {
            origin,
            proxy: None,
            address: Some(address),
            version: client.0.settings.version,
        };
        Self {
            core: client.0.clone(),
            key,
        }
    }

    /// Opens a connection unless there is a usable one.
    ///
    /// # Errors
    /// Those of connecting.
    ///
    /// # Cancel safety
    /// Dropping the future abandons all attempts.
    pub async fn connect(&self) -> Result<(), Error> {
        let mut timing = Timing::new();
        obtain(&self.core, &self.key, &mut timing).await.map(drop)
    }

    /// Asks the server of an open QUIC connection whether it still knows the connection. Completes when it has answered,
    /// the connection has ended, or its path is silent: then [`send`](Self::send) does not use it. Completes at once
    /// without a connection, and over TCP, where the system of the server reports a crash itself.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn probe(&self) {
        let established = take(&self.core, &self.key);
        if let Some(quic) = established.and_then(|it| it.link.quic()) {
            tokio::select! {
                _ = quic.ping() => {}
                _ = quic.path_silent() => {}
            }
        }
    }

    /// Sends a request on a connection that is open.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request.
    pub async fn send(&self, parts: &Parts, body: Content) -> Sent {
        let Some(established) = take(&self.core, &self.key) else {
            return Sent::NotConnected(body);
        };
        let head = match header_for(parts, &body, &self.key.origin, &established.facts) {
            Ok(head) => head,
            Err(error) => return Sent::Failed(error),
        };
        let mut timing = Timing::new();
        established.facts.add_to(&mut timing, true);
        timing.request_started = Some(timing.elapsed());
        let request = Request::from_parts(head, body);
        match send(&self.core, &self.key, established, request, &mut timing).await {
            Ok(response) => Sent::Answered(response),
            Err(error) => Sent::Failed(error.with_timing(timing)),
        }
    }
}
