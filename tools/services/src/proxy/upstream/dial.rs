//! Opening of connections to the upstream server.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Extensions, Uri};
use hyper_util::client::legacy::connect::{Connection, HttpInfo};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;
use tower::{Service, ServiceExt as _};

use super::socket::{ConnectionFacts, Counted, OpenConnections, Receiving};
use crate::body::BoxError;
use crate::proxy::failure::Failure;

/// Opens connections to a server.
pub trait Dial: Clone + Send + Sync + 'static {
    /// A byte stream to the server.
    type Io: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Opens a connection to the authority of `server`. Returns its address, if it has one.
    fn dial(
        &self,
        server: Uri,
    ) -> impl Future<Output = Result<(Self::Io, Option<SocketAddr>), BoxError>> + Send;
}

impl<S, T> Dial for S
where
    S: Service<Uri, Response = TokioIo<T>> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    TokioIo<T>: Connection,
{
    type Io = T;

    async fn dial(&self, server: Uri) -> Result<(T, Option<SocketAddr>), BoxError> {
        let io = self.clone().oneshot(server).await.map_err(Into::into)?;
        let mut extras = Extensions::new();
        io.connected().get_extras(&mut extras);
        let address = extras.get::<HttpInfo>().map(HttpInfo::remote_addr);
        Ok((io.into_inner(), address))
    }
}

/// Opens connections to the upstream server within a time limit, and counts those that are open.
#[derive(Clone, Debug)]
pub(in crate::proxy) struct Dialer<C> {
    connector: C,
    server: Uri,
    timeout: Duration,
    /// Largest number of open connections.
    most: usize,
    open: OpenConnections,
}

/// A new connection.
pub(super) type Dialed<C> = (Counted<<C as Dial>::Io>, Arc<ConnectionFacts>);

impl<C: Dial> Dialer<C> {
    pub(in crate::proxy) fn new(connector: C, server: Uri, timeout: Duration, most: usize) -> Self {
        Self {
            connector,
            server,
            timeout,
            most,
            open: OpenConnections::default(),
        }
    }

    pub(in crate::proxy) fn open(&self) -> &OpenConnections {
        &self.open
    }

    pub(in crate::proxy) const fn most(&self) -> usize {
        self.most
    }

    pub(super) const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Opens a connection.
    pub(super) async fn dial(&self) -> Result<Dialed<C>, Failure> {
        let began = Instant::now();
        let open = self.open.begin();
        let dialing = self.connector.dial(self.server.clone());
        let dialed = tokio::time::timeout(self.timeout, dialing).await;
        let late = || BoxError::from(io::Error::from(io::ErrorKind::TimedOut));
        let dialed = dialed.unwrap_or_else(|_| Err(late()));
        let (io, address) = dialed.map_err(Failure::connecting)?;
        let facts = ConnectionFacts::new(address, began.elapsed());
        let io = Counted::new(io, Receiving::new(facts.clone(), open));
        Ok((io, facts))
    }
}
