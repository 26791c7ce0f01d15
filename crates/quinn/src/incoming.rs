//! Clients that wait to be accepted.

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use courser_quic as quic;

use crate::{Connecting, Connection, ConnectionError, ConnectionId, EndpointConfig, ServerConfig};

/// A client that wants to connect, before the handshake. Dropping it refuses the client.
#[derive(Debug)]
#[must_use = "the client is refused when this is dropped"]
pub struct Incoming {
    inner: quic::Incoming,
    /// The settings of its endpoint, for other settings of the server.
    endpoint: Arc<EndpointConfig>,
}

impl Incoming {
    pub(crate) fn new(inner: quic::Incoming, endpoint: Arc<EndpointConfig>) -> Self {
        Self { inner, endpoint }
    }

    /// Begins the handshake.
    ///
    /// # Errors
    /// Returns an error if the client's first packet is invalid, or the endpoint is closed.
    pub fn accept(self) -> Result<Connecting, ConnectionError> {
        let connecting = self.inner.accept()?;
        Ok(Connecting::new(connecting, quic::Side::Server))
    }

    /// Begins the handshake with a configuration other than that of the endpoint.
    ///
    /// # Errors
    /// Returns the errors of [`Incoming::accept`].
    pub fn accept_with(
        self,
        server_config: Arc<ServerConfig>,
    ) -> Result<Connecting, ConnectionError> {
        let config = server_config.build(&self.endpoint);
        let connecting = self.inner.accept_with(config)?;
        Ok(Connecting::new(connecting, quic::Side::Server))
    }

    /// Refuses the client with CONNECTION_REFUSED.
    pub fn refuse(self) {
        self.inner.refuse();
    }

    /// Sends a Retry packet, so that the client validates its address and connects again.
    ///
    /// # Errors
    /// Returns this value if the client has proved its address by a Retry packet already.
    pub fn retry(self) -> Result<(), RetryError> {
        let endpoint = self.endpoint;
        self.inner.retry().map_err(|error| {
            RetryError(Box::new(Self {
                inner: error.into_incoming(),
                endpoint,
            }))
        })
    }

    /// Drops the client without an answer.
    pub fn ignore(self) {
        self.inner.ignore();
    }

    /// Returns the local address that the client sent to, if the system reports it.
    pub fn local_ip(&self) -> Option<IpAddr> {
        self.inner.local_ip()
    }

    /// Returns the address of the client, which may be forged unless it was validated.
    pub fn remote_address(&self) -> SocketAddr {
        self.inner.remote_address()
    }

    /// Returns true if the address of the client is validated.
    pub fn remote_address_validated(&self) -> bool {
        self.inner.remote_address_validated()
    }

    /// Returns true if [`Incoming::retry`] is possible.
    pub fn may_retry(&self) -> bool {
        self.inner.may_retry()
    }

    /// Returns the connection ID that the client chose for its first packet.
    pub fn orig_dst_cid(&self) -> ConnectionId {
        self.inner.orig_dst_cid().into()
    }
}

impl IntoFuture for Incoming {
    type Output = Result<Connection, ConnectionError>;
    type IntoFuture = IncomingFuture;

    fn into_future(self) -> IncomingFuture {
        IncomingFuture(self.inner.into_future())
    }
}

/// The handshake of an accepted client. Resolves to the connection.
#[derive(Debug)]
pub struct IncomingFuture(quic::IncomingFuture);

impl Future for IncomingFuture {
    type Output = Result<Connection, ConnectionError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let connected = Pin::new(&mut self.0).poll(cx);
        connected.map(|result| Ok(Connection::new(result?)))
    }
}

/// An error for a client whose address is already validated.
#[derive(Debug, thiserror::Error)]
#[error("the address of the client is validated already")]
pub struct RetryError(Box<Incoming>);

impl RetryError {
    /// Returns the client, to be accepted or refused.
    pub fn into_incoming(self) -> Incoming {
        *self.0
    }
}
