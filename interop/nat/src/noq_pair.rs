//! courser and noq in both roles: each reports the address of the other, and a direct path opens beside the one of the
//! handshake. The server listens at all addresses of loopback: 127.0.0.1 stands for the relay, 127.0.0.2 is direct.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use courser::{AddressObservations, ClientConfig, Endpoint, Identity, ServerConfig};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::transport;

/// Bytes of an echo.
const BYTES: usize = 1_000_000;

/// A certificate and its key.
#[derive(Clone)]
struct Own {
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

impl Own {
    fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::Pkcs8(self.key.clone().into())
    }
}

pub async fn run() -> Result<()> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let own = Own {
        certificate: made.cert.der().clone(),
        key: made.signing_key.serialize_der(),
    };
    for _ in 0..3 {
        let after = server_of_courser(&own).await?;
        println!("PASSED courser server, noq client: a direct path after {after:?}");
        let after = client_of_courser(&own).await?;
        println!("PASSED noq server, courser client: a direct path after {after:?}");
    }
    Ok(())
}

fn relayed(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn direct(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 2], port))
}

fn anywhere() -> SocketAddr {
    SocketAddr::from(([0, 0, 0, 0], 0))
}

fn noq_transport() -> Arc<noq::TransportConfig> {
    let mut config = noq::TransportConfig::default();
    config.max_concurrent_multipath_paths(4);
    config.max_remote_nat_traversal_addresses(8);
    config.send_observed_address_reports(true);
    config.receive_observed_address_reports(true);
    Arc::new(config)
}

fn noq_client(own: &Own) -> Result<noq::Endpoint> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(own.certificate.clone())?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"nat".to_vec()];
    let tls = noq::crypto::rustls::QuicClientConfig::try_from(tls)?;
    let mut config = noq::ClientConfig::new(Arc::new(tls));
    config.transport_config(noq_transport());
    let endpoint = noq::Endpoint::client(anywhere())?;
    endpoint.set_default_client_config(config);
    Ok(endpoint)
}

fn noq_server(own: &Own) -> Result<noq::Endpoint> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![own.certificate.clone()], own.key())?;
    tls.alpn_protocols = vec![b"nat".to_vec()];
    let tls = noq::crypto::rustls::QuicServerConfig::try_from(tls)?;
    let mut config = noq::ServerConfig::with_crypto(Arc::new(tls));
    config.transport_config(noq_transport());
    Ok(noq::Endpoint::server(config, anywhere())?)
}

/// Waits for a condition, for five seconds at most.
async fn until(what: &str, mut holds: impl FnMut() -> bool) -> Result<()> {
    let begin = Instant::now();
    while !holds() {
        ensure!(begin.elapsed() < Duration::from_secs(5), "never: {what}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

async fn server_of_courser(own: &Own) -> Result<Duration> {
    let identity = Identity::new(vec![own.certificate.clone()], own.key());
    let config = ServerConfig::with_identity(&identity)?
        .alpn(["nat"])
        .transport_config(transport(AddressObservations::Both));
    let endpoint = Endpoint::server(config, anywhere())?;
    let port = endpoint.local_addr()?.port();
    let client = noq_client(own)?;
    let connecting = client.connect(relayed(port), "localhost")?;
    let accept = async { anyhow::Ok(endpoint.accept().await.context("closed")?.await?) };
    let (connection, accepted) = tokio::join!(connecting, accept);
    let (connection, accepted) = (connection?, accepted?);
    let own_port = client.local_addr()?.port();
    until("observed addresses", || {
        let seen = connection.observed_external_addr().get();
        seen == Some(relayed(own_port)) && accepted.observed_address() == Some(relayed(port))
    })
    .await?;
    accepted.offer_candidate(direct(port))?;
    connection.add_nat_traversal_address(relayed(own_port))?;
    until("ADD_ADDRESS", || {
        let known = connection.get_remote_nat_traversal_addresses();
        known.is_ok_and(|known| known == [direct(port)])
    })
    .await?;
    let begin = Instant::now();
    connection.initiate_nat_traversal_round()?;
    until("a direct path", || {
        let paths = accepted.paths();
        paths.iter().filter(|path| path.is_validated).count() == 2
    })
    .await?;
    let after = begin.elapsed();
    let echo = async {
        let (mut send, mut receive) = accepted.accept_bi().await?;
        send.write_all(&receive.read_to_end(BYTES).await?).await?;
        send.finish()?;
        anyhow::Ok(send)
    };
    let ask = async {
        let (mut send, mut receive) = connection.open_bi().await?;
        send.write_all(&vec![7; BYTES]).await?;
        send.finish()?;
        anyhow::Ok(receive.read_to_end(BYTES).await?)
    };
    let (echo, answer) = tokio::join!(echo, ask);
    ensure!(echo.is_ok() && answer? == vec![7; BYTES], "the echo differs");
    Ok(after)
}

async fn client_of_courser(own: &Own) -> Result<Duration> {
    let endpoint = noq_server(own)?;
    let port = endpoint.local_addr()?.port();
    let config = ClientConfig::with_roots([own.certificate.clone()])?
        .alpn(["nat"])
        .transport_config(transport(AddressObservations::Both));
    let client = Endpoint::client(anywhere())?;
    let connecting = client.connect_with(config, relayed(port), "localhost")?;
    let accept = async { anyhow::Ok(endpoint.accept().await.context("closed")?.await?) };
    let (connection, accepted) = tokio::join!(connecting, accept);
    let (connection, accepted) = (connection?, accepted?);
    let own_port = client.local_addr()?.port();
    until("observed addresses", || {
        let seen = accepted.observed_external_addr().get();
        seen == Some(relayed(port)) && connection.observed_address() == Some(relayed(own_port))
    })
    .await?;
    connection.offer_candidate(relayed(own_port))?;
    let begin = Instant::now();
    accepted.add_nat_traversal_address(direct(port))?;
    tokio::time::timeout(Duration::from_secs(5), connection.direct_path()).await??;
    let after = begin.elapsed();
    until("the direct path is preferred", || {
        connection.direct_addresses().iter().any(|it| it.is_preferred)
    })
    .await?;
    let echo = async {
        let (mut send, mut receive) = accepted.accept_bi().await?;
        send.write_all(&receive.read_to_end(BYTES).await?).await?;
        send.finish()?;
        anyhow::Ok(send)
    };
    let ask = async {
        let (mut send, mut receive) = connection.open_bi().await?;
        send.write_all(&vec![7; BYTES]).await?;
        send.finish()?;
        anyhow::Ok(receive.read_to_end(BYTES).await?)
    };
    let (echo, answer) = tokio::join!(echo, ask);
    ensure!(echo.is_ok() && answer? == vec![7; BYTES], "the echo differs");
    Ok(after)
}
