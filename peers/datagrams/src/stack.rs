//! courser, with its own settings.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use courser::{ClientConfig, Connection, Endpoint, RetryPolicy, ServerConfig};
use peers_common::settings::SERVER_NAME;
use peers_common::{Failure, tls};

use crate::program::Counts;

/// An endpoint, which is to live as long as its connections.
pub(crate) type Endpoints = Endpoint;

/// Creates a server without Retry, which quinn does not send either.
pub(crate) fn server(
    listen: SocketAddr,
    identity: &Path,
    alpn: &[u8],
) -> Result<Endpoint, Failure> {
    let tls = tls::server(identity, &[alpn])?;
    let config = ServerConfig::with_rustls(Arc::new(tls)).retry(RetryPolicy::Never);
    Ok(Endpoint::server(config, listen)?)
}

pub(crate) async fn accept(endpoint: &Endpoint) -> Result<Connection, Failure> {
    let incoming = endpoint.accept().await.ok_or("the endpoint is closed")?;
    Ok(incoming.await?)
}

pub(crate) async fn connect(
    local: SocketAddr,
    server: SocketAddr,
    identity: &Path,
    alpn: &[u8],
) -> Result<(Endpoint, Connection), Failure> {
    let tls = tls::client(identity, &[alpn])?;
    let endpoint = Endpoint::client(local)?;
    let config = ClientConfig::with_rustls(Arc::new(tls));
    let connection = endpoint.connect_with(config, server, SERVER_NAME)?.await?;
    Ok((endpoint, connection))
}

pub(crate) fn counts(connection: &Connection) -> Counts {
    let stats = connection.stats();
    Counts {
        datagrams: stats.datagrams.sent,
        packets: stats.packets_sent,
        packets_lost: stats.packets_lost,
    }
}
