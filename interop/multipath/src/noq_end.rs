//! The ends of noq.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::ALPN;

/// Its default leaves a dead path in use for ever, so that each transfer ends with the idle timeout of the connection.
const PATH_IDLE: Duration = Duration::from_secs(5);

fn transport() -> Arc<noq::TransportConfig> {
    let mut config = noq::TransportConfig::default();
    config.max_concurrent_multipath_paths(4);
    config.default_path_max_idle_timeout(Some(PATH_IDLE));
    config.default_path_keep_alive_interval(Some(Duration::from_secs(1)));
    Arc::new(config)
}

fn certificate(folder: &Path) -> Result<CertificateDer<'static>> {
    Ok(CertificateDer::from_pem_file(folder.join("cert.pem"))?)
}

pub async fn serve(folder: &Path, address: SocketAddr) -> Result<()> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let key = PrivateKeyDer::from_pem_file(folder.join("key.pem"))?;
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate(folder)?], key)?;
    tls.alpn_protocols = vec![ALPN.into()];
    let tls = noq::crypto::rustls::QuicServerConfig::try_from(tls)?;
    let mut config = noq::ServerConfig::with_crypto(Arc::new(tls));
    config.transport_config(transport());
    let endpoint = noq::Endpoint::server(config, address)?;
    println!("{}", endpoint.local_addr()?);
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async move {
            let connection = incoming.await?;
            let (mut send, mut receive) = connection.accept_bi().await?;
            let mut wanted = [0; 8];
            receive.read_exact(&mut wanted).await?;
            let mut left = u64::from_be_bytes(wanted);
            let chunk = vec![7; 1 << 16];
            while left > 0 {
                let next = left.min(chunk.len() as u64) as usize;
                send.write_all(&chunk[..next]).await?;
                left -= next as u64;
            }
            send.finish()?;
            connection.closed().await;
            anyhow::Ok(())
        });
    }
    Ok(())
}

pub async fn receive(
    folder: &Path,
    server: SocketAddr,
    second: Option<&str>,
    bytes: u64,
) -> Result<()> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate(folder)?)?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![ALPN.into()];
    let tls = noq::crypto::rustls::QuicClientConfig::try_from(tls)?;
    let mut config = noq::ClientConfig::new(Arc::new(tls));
    config.transport_config(transport());
    let endpoint = noq::Endpoint::client(SocketAddr::from(([0, 0, 0, 0], 0)))?;
    endpoint.set_default_client_config(config);
    let connection = endpoint.connect(server, "localhost")?.await?;
    if let Some(second) = second {
        let (second, connection): (SocketAddr, _) = (second.parse()?, connection.clone());
        tokio::spawn(async move {
            // The connection IDs of the server arrive a round trip later.
            for _ in 0..100 {
                match connection
                    .open_path(second, noq::PathStatus::Available)
                    .await
                {
                    Ok(_) => return,
                    Err(error) => eprintln!("no second path: {error}"),
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
    }
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(&bytes.to_be_bytes()).await?;
    send.finish()?;
    let mut received = 0;
    while let Some(chunk) = receive.read_chunk(1 << 20).await? {
        received += chunk.len() as u64;
    }
    ensure!(received == bytes, "{received} bytes");
    connection.close(0_u32.into(), b"");
    endpoint.wait_idle().await;
    Ok(())
}
