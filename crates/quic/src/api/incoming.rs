//! Connections that wait to be accepted.

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use courser_base::{Side, foreign};
use courser_transport::ConnectionError;
use courser_wire::ConnectionId;

use crate::api::connecting::Connecting;
use crate::api::connection::Connection;
use crate::api::handles::{ConnectionRef, EndpointRef};
use crate::config::ServerConfig;
use crate::shard::lock::{Locked, Shard};

/// A client that wants to connect, before any handshake work.
///
/// Awaiting it accepts it and completes the handshake. Dropping it refuses it.
#[derive(Debug)]
#[must_use = "the connection is refused when this is dropped"]
pub struct Incoming {
    inner: Option<courser_transport::Incoming>,
    shard: Arc<Shard>,
    /// Kept alive: after its last handle an endpoint refuses clients.
    _endpoint: Arc<EndpointRef>,
}

impl Incoming {
    pub(crate) fn new(
        inner: courser_transport::Incoming,
        shard: Arc<Shard>,
        endpoint: Arc<EndpointRef>,
    ) -> Self {
        Self {
            inner: Some(inner),
            shard,
            _endpoint: endpoint,
        }
    }

    fn inner(&self) -> &courser_transport::Incoming {
        self.inner
            .as_ref()
            .expect("taken only by methods that consume self")
    }

    fn take(&mut self) -> courser_transport::Incoming {
        self.inner
            .take()
            .expect("taken only by methods that consume self")
    }

    /// Begins the handshake.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = endpoints()?;
    /// # let connecting = client.connect(server.local_addr()?, "localhost")?;
    /// # let connecting = tokio::spawn(async move { connecting.await });
    /// let incoming = server.accept().await.expect("the endpoint is open");
    ///
    /// let connection = incoming.accept()?.await?;
    /// # drop(connecting);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error if the client's first packet is invalid, or the endpoint is closed.
    pub fn accept(self) -> Result<Connecting, ConnectionError> {
        self.begin(None)
    }

    /// Begins the handshake with a configuration other than the endpoint's.
    ///
    /// The choice may take time and may be async, because only this client waits. It precedes the
    /// client's TLS messages, so it can depend only on addresses. For a choice by the requested
    /// name, use
    /// [`ServerConfig::with_async_certificates`](crate::ServerConfig::with_async_certificates).
    ///
    /// ```no_run
    /// # extern crate courser_quic as courser;
    /// # use courser::{Connection, Endpoint, ServerConfig};
    /// # async fn config_for(_: std::net::IpAddr) -> ServerConfig {
    /// #     ServerConfig::dev().expect("the system provides random numbers")
    /// # }
    /// # async fn serve(_: Connection) {}
    /// # async fn accept(endpoint: Endpoint) {
    /// while let Some(incoming) = endpoint.accept().await {
    ///     tokio::spawn(async move {
    ///         let config = config_for(incoming.remote_address().ip()).await;
    ///         if let Ok(connecting) = incoming.accept_with(config)
    ///             && let Ok(connection) = connecting.await
    ///         {
    ///             serve(connection).await;
    ///         }
    ///     });
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`Incoming::accept`], and [`ConnectionError::TransportError`] if the
    /// configuration is invalid.
    pub fn accept_with(self, config: ServerConfig) -> Result<Connecting, ConnectionError> {
        match config.build() {
            Ok(config) => self.begin(Some(config)),
            Err(error) => Err(courser_transport::TransportError::new(
                courser_wire::TransportErrorCode::INTERNAL_ERROR,
                error.to_string(),
            )
            .into()),
        }
    }

    fn begin(
        mut self,
        config: Option<Arc<courser_transport::ServerConfig>>,
    ) -> Result<Connecting, ConnectionError> {
        let incoming = self.take();
        let shard = &self.shard;
        // Its last handle, with hooks of users, must not be dropped under the lock.
        let _kept = config.clone();
        let mut locked = shard.lock();
        if let Some(stopped) = &locked.stopped {
            return Err(stopped.clone());
        }
        if locked.is_closed {
            locked.change(|state, now| state.endpoint.refuse(now, incoming));
            return Err(ConnectionError::LocallyClosed);
        }
        let accepted = locked.change(|state, now| {
            let handle = state.endpoint.accept_guarded(now, incoming, config)?;
            Ok::<_, ConnectionError>((handle, state.insert(handle)))
        });
        drop(locked);
        let (handle, silence) = accepted?;
        let connection = ConnectionRef::new(shard.clone(), handle, silence, Side::Server);
        Ok(Connecting::new(connection))
    }

    /// Refuses the connection and sends CONNECTION_CLOSE to the client.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = endpoints()?;
    /// # let connecting = client.connect(server.local_addr()?, "localhost")?;
    /// # let connecting = tokio::spawn(async move { connecting.await });
    /// let incoming = server.accept().await.expect("the endpoint is open");
    ///
    /// incoming.refuse();
    /// assert!(connecting.await?.is_err());
    /// # Ok(()) }
    /// ```
    pub fn refuse(mut self) {
        self.give_back();
    }

    /// Sends a Retry, so that the client validates its address and returns as another [`Incoming`].
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = endpoints()?;
    /// # let connecting = client.connect(server.local_addr()?, "localhost")?;
    /// # let connecting = tokio::spawn(async move { connecting.await });
    /// let incoming = server.accept().await.expect("the endpoint is open");
    ///
    /// if incoming.may_retry() {
    ///     incoming.retry()?;
    /// }
    /// // The client comes back with a token that proves its address.
    /// let incoming = server.accept().await.expect("the endpoint is open");
    /// assert!(incoming.remote_address_validated());
    /// # let _connection = incoming.await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error with this value if the address of the client is already validated.
    pub fn retry(mut self) -> Result<(), RetryError> {
        let incoming = self.take();
        let shard = self.shard.clone();
        let mut locked = shard.lock();
        let result = locked.change(|state, now| {
            let result = state.endpoint.retry(now, incoming);
            result.map_err(Box::new)
        });
        drop(locked);
        result.map_err(|incoming| {
            self.inner = Some(*incoming);
            RetryError(Box::new(self))
        })
    }

    /// Drops the connection without any answer to the client.
    pub fn ignore(mut self) {
        let incoming = self.take();
        self.shard.lock().endpoint.ignore(incoming);
    }

    /// Returns the client's address, which may be forged unless it [was
    /// validated](Incoming::remote_address_validated).
    pub fn remote_address(&self) -> SocketAddr {
        self.inner().peer()
    }

    /// Returns the local address that the client sent to, if the system reports it.
    pub fn local_ip(&self) -> Option<IpAddr> {
        self.inner().local_ip()
    }

    /// Returns true if the client is known to receive at its address.
    pub fn remote_address_validated(&self) -> bool {
        self.inner().is_address_validated()
    }

    /// Returns true if [`Incoming::retry`] is possible.
    pub fn may_retry(&self) -> bool {
        self.inner().may_retry()
    }

    /// Returns the connection ID that the client chose for its first packet.
    pub fn orig_dst_cid(&self) -> ConnectionId {
        *self.inner().original_destination()
    }

    fn give_back(&mut self) {
        let Some(incoming) = self.inner.take() else {
            return;
        };
        let refuse = move |locked: &mut Locked<'_>| {
            locked.change(|state, now| state.endpoint.refuse(now, incoming));
        };
        if self.shard.is_held_here() {
            // A hook has dropped it.
            let shard = self.shard.clone();
            return foreign::run(move || refuse(&mut shard.lock()));
        }
        refuse(&mut self.shard.lock());
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl IntoFuture for Incoming {
    type Output = Result<Connection, ConnectionError>;
    type IntoFuture = IncomingFuture;

    fn into_future(self) -> IncomingFuture {
        IncomingFuture(self.accept().map_err(Some))
    }
}

/// The handshake of an accepted connection. Resolves to the connection.
#[derive(Debug)]
pub struct IncomingFuture(Result<Connecting, Option<ConnectionError>>);

impl Future for IncomingFuture {
    type Output = Result<Connection, ConnectionError>;

    /// # Panics
    /// Panics if polled after it has resolved.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Ok(connecting) => Pin::new(connecting).poll(cx),
            Err(error) => {
                let error = error.take();
                Poll::Ready(Err(error.expect("it is not polled after it has resolved")))
            }
        }
    }
}

/// An error for a client whose address is already validated.
#[derive(Debug, thiserror::Error)]
#[error("the client's address is already validated")]
pub struct RetryError(Box<Incoming>);

impl RetryError {
    /// Returns the incoming connection, to be accepted or refused.
    pub fn into_incoming(self) -> Incoming {
        *self.0
    }
}
