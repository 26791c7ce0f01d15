//! Connections that wait to be accepted.

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use courser_base::Side;
use courser_transport::ConnectionError;
use courser_wire::ConnectionId;

use crate::config::ServerConfig;
use crate::connection::{Connecting, Connection, ConnectionRef};
use crate::endpoint::EndpointRef;
use crate::error::RetryError;

/// A client that wants to connect. No handshake work was done for it yet.
///
/// Awaiting it accepts it and completes the handshake. Dropping it refuses it.
#[derive(Debug)]
#[must_use = "the connection is refused when this is dropped"]
pub struct Incoming {
    inner: Option<courser_transport::Incoming>,
    endpoint: Arc<EndpointRef>,
}

impl Incoming {
    pub(crate) fn new(inner: courser_transport::Incoming, endpoint: Arc<EndpointRef>) -> Self {
        Self {
            inner: Some(inner),
            endpoint,
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
    /// # Errors
    /// When the client's first packet turns out to be unusable, or the endpoint is closed.
    pub fn accept(self) -> Result<Connecting, ConnectionError> {
        self.begin(None)
    }

    /// Begins the handshake with another configuration than the endpoint's.
    ///
    /// The choice may take its time and may be async: the client waits, and nobody else. It is made
    /// before the client's TLS messages are read, so by addresses only. What depends on the name
    /// that the client asks for is chosen by
    /// [`ServerConfig::with_async_certificates`](crate::ServerConfig::with_async_certificates).
    ///
    /// ```no_run
    /// # use courser::{Connection, Endpoint, ServerConfig};
    /// # async fn config_for(_: std::net::IpAddr) -> ServerConfig {
    /// #     ServerConfig::dev().expect("random numbers")
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
    /// As [`Incoming::accept`], and [`ConnectionError::TransportError`] when the configuration
    /// does not work.
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
        let shard = &self.endpoint.shard;
        let now = shard.now();
        let mut locked = shard.lock();
        if let Some(stopped) = &locked.stopped {
            return Err(stopped.clone());
        }
        if locked.is_closed {
            locked.endpoint.refuse(now, incoming);
            locked.flush();
            return Err(ConnectionError::LocallyClosed);
        }
        let accepted = locked.endpoint.accept_guarded(now, incoming, config);
        let key = accepted.map(|handle| locked.insert(handle));
        locked.flush();
        drop(locked);
        let connection = ConnectionRef::new(shard.clone(), key?, Side::Server);
        Ok(Connecting::new(connection))
    }

    /// Refuses the connection; the client is told.
    pub fn refuse(mut self) {
        self.give_back();
    }

    /// Asks the client to prove its address first. It comes back as another [`Incoming`].
    ///
    /// # Errors
    /// When it has proved its address already; the error gives this back.
    pub fn retry(mut self) -> Result<(), RetryError> {
        let incoming = self.take();
        let shard = self.endpoint.shard.clone();
        let mut locked = shard.lock();
        let result = locked.endpoint.retry(shard.now(), incoming);
        locked.flush();
        drop(locked);
        result.map_err(|incoming| {
            self.inner = Some(incoming);
            RetryError(Box::new(self))
        })
    }

    /// Forgets the connection without a word to the client.
    pub fn ignore(mut self) {
        let incoming = self.take();
        self.endpoint.shard.lock().endpoint.ignore(incoming);
    }

    /// The client's address. Anybody could claim it unless it
    /// [was validated](Incoming::remote_address_validated).
    pub fn remote_address(&self) -> SocketAddr {
        self.inner().peer()
    }

    /// Our address that the client sent to, where the system tells.
    pub fn local_ip(&self) -> Option<IpAddr> {
        self.inner().local_ip()
    }

    /// True if the client has proved that it receives at its address.
    pub fn remote_address_validated(&self) -> bool {
        self.inner().is_address_validated()
    }

    /// True if [`Incoming::retry`] is possible.
    pub fn may_retry(&self) -> bool {
        self.inner().may_retry()
    }

    /// The connection ID that the client chose for its first packet.
    pub fn orig_dst_cid(&self) -> ConnectionId {
        *self.inner().original_destination()
    }

    fn give_back(&mut self) {
        let Some(incoming) = self.inner.take() else {
            return;
        };
        let shard = &self.endpoint.shard;
        let mut locked = shard.lock();
        locked.endpoint.refuse(shard.now(), incoming);
        locked.flush();
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

/// The handshake of an accepted connection; resolves to the connection.
#[derive(Debug)]
pub struct IncomingFuture(Result<Connecting, Option<ConnectionError>>);

impl Future for IncomingFuture {
    type Output = Result<Connection, ConnectionError>;

    /// # Panics
    /// After it has resolved.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Ok(connecting) => Pin::new(connecting).poll(cx),
            Err(error) => Poll::Ready(Err(error.take().expect("not polled after it resolved"))),
        }
    }
}
