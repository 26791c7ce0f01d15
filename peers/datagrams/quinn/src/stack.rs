//! quinn, with the names of courser that the programs use.

use std::net::SocketAddr;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use peers_common::settings::SERVER_NAME;
use peers_common::{Failure, sockets, tls};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Endpoint, EndpointConfig, ServerConfig, TokioRuntime};

use crate::program::Counts;

pub use quinn::{SendDatagramError, VarInt};

/// A connection, which sends datagrams with options.
#[derive(Clone, Debug)]
pub struct Connection(quinn::Connection);

impl Connection {
    /// Sends a datagram. The oldest ones are dropped if the queue is full.
    ///
    /// # Errors
    /// Those of quinn.
    pub fn send_datagram_with(
        &self,
        data: Bytes,
        _options: DatagramOptions,
    ) -> Result<(), SendDatagramError> {
        self.0.send_datagram(data)
    }
}

impl Deref for Connection {
    type Target = quinn::Connection;

    fn deref(&self) -> &quinn::Connection {
        &self.0
    }
}

/// Options of a datagram. quinn has none: its datagrams wait until they are sent or too many wait.
#[derive(Clone, Copy, Debug, Default)]
pub struct DatagramOptions(());

impl DatagramOptions {
    /// Returns options without effect.
    pub fn new() -> Self {
        Self(())
    }

    /// Does nothing.
    #[must_use]
    pub fn max_age(self, _age: Duration) -> Self {
        self
    }
}

/// An endpoint, which is to live as long as its connections.
pub(crate) type Endpoints = Endpoint;

pub(crate) fn server(
    listen: SocketAddr,
    identity: &Path,
    alpn: &[u8],
) -> Result<Endpoint, Failure> {
    let tls = tls::server(identity, &[alpn])?;
    let config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    endpoint(Some(config), listen)
}

pub(crate) async fn accept(endpoint: &Endpoint) -> Result<Connection, Failure> {
    let incoming = endpoint.accept().await.ok_or("the endpoint is closed")?;
    Ok(Connection(incoming.await?))
}

pub(crate) async fn connect(
    local: SocketAddr,
    server: SocketAddr,
    identity: &Path,
    alpn: &[u8],
) -> Result<(Endpoint, Connection), Failure> {
    let tls = tls::client(identity, &[alpn])?;
    let mut endpoint = endpoint(None, local)?;
    let config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    endpoint.set_default_client_config(config);
    let connection = endpoint.connect(server, SERVER_NAME)?.await?;
    Ok((endpoint, Connection(connection)))
}

pub(crate) fn counts(connection: &Connection) -> Counts {
    let stats = connection.stats();
    Counts {
        datagrams: stats.frame_tx.datagram,
        packets: stats.path.sent_packets,
        packets_lost: stats.path.lost_packets,
    }
}

/// Binds a socket with the buffers that courser gives its own.
fn endpoint(server: Option<ServerConfig>, address: SocketAddr) -> Result<Endpoint, Failure> {
    let socket = sockets::udp(address)?;
    let config = EndpointConfig::default();
    Ok(Endpoint::new(
        config,
        server,
        socket,
        Arc::new(TokioRuntime),
    )?)
}
