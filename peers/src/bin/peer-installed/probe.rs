//! Handshakes that show whether a server answers.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use peers::installed::Protocol;
use peers::{Failure, settings, tls};
use quinn::crypto::rustls::QuicClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// Makes one connection with the protocol and closes it. Tries again until `deadline`, as long as
/// `is_running` says so.
pub(crate) async fn wait(
    identity: &Path,
    protocol: Protocol,
    address: SocketAddr,
    deadline: Instant,
    mut is_running: impl FnMut() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut patience = FIRST_PATIENCE;
    loop {
        is_running()?;
        let attempt = async {
            match protocol {
                Protocol::H3 => over_quic(identity, address).await,
                Protocol::H1 | Protocol::H2 => over_tcp(identity, protocol, address).await,
            }
        };
        let failure: Failure = match timeout(patience, attempt).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(failure)) => failure,
            Err(_) => "no answer".into(),
        };
        if Instant::now() >= deadline {
            return Err(failure);
        }
        tokio::time::sleep(PAUSE).await;
        patience = (patience * 2).min(MOST_PATIENCE);
    }
}

async fn over_quic(identity: &Path, address: SocketAddr) -> Result<(), Failure> {
    let tls = tls::client(identity, &[Protocol::H3.alpn()])?;
    let config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    let endpoint = quinn::Endpoint::client((Ipv4Addr::LOCALHOST, 0).into())?;
    let connection = endpoint
        .connect_with(config, address, settings::SERVER_NAME)?
        .await?;
    connection.close(H3_NO_ERROR, b"");
    endpoint.wait_idle().await;
    Ok(())
}

async fn over_tcp(identity: &Path, protocol: Protocol, address: SocketAddr) -> Result<(), Failure> {
    let tls = tls::client(identity, &[protocol.alpn()])?;
    let name = ServerName::try_from(settings::SERVER_NAME)?;
    let stream = TcpStream::connect(address).await?;
    let stream = TlsConnector::from(Arc::new(tls))
        .connect(name, stream)
        .await?;
    let agreed = stream.get_ref().1.alpn_protocol();
    // HTTP/1.1 needs no agreement.
    if agreed == Some(protocol.alpn()) || (agreed.is_none() && protocol == Protocol::H1) {
        Ok(())
    } else {
        Err(format!("the server does not agree to {}", protocol.name()).into())
    }
}

/// RFC 9114 §8.1.
const H3_NO_ERROR: quinn::VarInt = quinn::VarInt::from_u32(0x100);

/// A first packet that came before the server is sent again after a second only: a new attempt is
/// sooner.
const FIRST_PATIENCE: Duration = Duration::from_millis(100);
const MOST_PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(10);
