//! quinn as a peer of `courser interop matrix`: `interop_peer_quinn server|client`.
//!
//! It has the variables of the runner and those of `courser interop`. HTTP/3 is not part of quinn.

use std::collections::HashSet;
use std::env;
use std::error::Error;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{Connection, Endpoint, Incoming, RecvStream, SendStream, TransportConfig};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, KeyLogFile, SignatureScheme};
use tokio::task::JoinSet;
use url::Url;

type Result<T = ()> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const ALPN: &[u8] = b"hq-interop";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode> {
    let test = env::var("TESTCASE")?;
    let supported = HashSet::from([
        "handshake",
        "transfer",
        "chacha20",
        "multiconnect",
        "retry",
        "resumption",
        "zerortt",
        "keyupdate",
        "ecn",
    ]);
    let is_server = env::args().nth(1).as_deref() == Some("server");
    // Clients of quinn stay at the address that they connected to.
    let is_preferred = is_server && test == "connectionmigration";
    if !supported.contains(test.as_str()) && !is_preferred {
        return Ok(ExitCode::from(127));
    }
    if is_server {
        serve(&test).await?;
    } else {
        fetch(&test).await?;
    }
    Ok(ExitCode::SUCCESS)
}

fn transport(test: &str) -> Result<Arc<TransportConfig>> {
    let mut config = TransportConfig::default();
    config.max_idle_timeout(Some(Duration::from_secs(60).try_into()?));
    if test == "zerortt" {
        // Probes of the path MTU count as data in 1-RTT packets.
        config.mtu_discovery_config(None);
    }
    Ok(Arc::new(config))
}

async fn serve(test: &str) -> Result {
    let certificates = PathBuf::from(env::var("CERTS")?);
    let chain: std::result::Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(certificates.join("cert.pem"))?.collect();
    let key = PrivateKeyDer::from_pem_file(certificates.join("priv.key"))?;
    let mut tls = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain?, key)?;
    tls.alpn_protocols = vec![ALPN.to_vec()];
    tls.key_log = Arc::new(KeyLogFile::new());
    tls.max_early_data_size = u32::MAX;
    let crypto = QuicServerConfig::try_from(tls)?;
    let mut config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(transport(test)?);
    if let Ok(preferred) = env::var("PREFERRED") {
        config.preferred_address_v4(Some(preferred.parse()?));
    }
    let endpoint = Endpoint::server(config, env::var("LISTEN")?.parse()?)?;
    let root: Arc<Path> = PathBuf::from(env::var("WWW")?).into();
    while let Some(incoming) = endpoint.accept().await {
        if test == "retry" && !incoming.remote_address_validated() {
            incoming.retry()?;
            continue;
        }
        tokio::spawn(serve_connection(incoming, root.clone()));
    }
    Ok(())
}

async fn serve_connection(incoming: Incoming, root: Arc<Path>) -> Result {
    // Requests of 0-RTT are answered before the handshake is complete.
    let connection = match incoming.accept()?.into_0rtt() {
        Ok((connection, _)) => connection,
        Err(connecting) => connecting.await?,
    };
    loop {
        let (send, receive) = connection.accept_bi().await?;
        let root = root.clone();
        tokio::spawn(async move { answer(send, receive, &root).await });
    }
}

async fn answer(mut send: SendStream, mut receive: RecvStream, root: &Path) -> Result {
    let request = receive.read_to_end(4096).await?;
    let request = std::str::from_utf8(&request)?;
    let path = request.trim_end().strip_prefix("GET /").ok_or("no GET")?;
    send.write_all(&tokio::fs::read(root.join(path)).await?)
        .await?;
    send.finish()?;
    send.stopped().await?;
    Ok(())
}

async fn fetch(test: &str) -> Result {
    let urls: std::result::Result<Vec<Url>, _> = env::var("REQUESTS")?
        .split_whitespace()
        .map(Url::parse)
        .collect();
    let urls = urls?;
    let address = urls[0].socket_addrs(|| Some(443))?[0];
    let local = if address.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    let mut endpoint = Endpoint::client(local.parse()?)?;
    let mut config = quinn::ClientConfig::new(Arc::new(client_tls(test)?));
    config.transport_config(transport(test)?);
    endpoint.set_default_client_config(config);
    match test {
        "multiconnect" => {
            for url in &urls {
                connect_and_download(&endpoint, address, std::slice::from_ref(url)).await?;
            }
        }
        "resumption" => {
            connect_and_download(&endpoint, address, &urls[..1]).await?;
            connect_and_download(&endpoint, address, &urls[1..]).await?;
        }
        "zerortt" => {
            connect_and_download(&endpoint, address, &urls[..1]).await?;
            let connecting = endpoint.connect(address, "localhost")?;
            let connection = match connecting.into_0rtt() {
                Ok((connection, _)) => connection,
                Err(_) => return Err("no 0-RTT keys".into()),
            };
            download(&connection, &urls[1..], false).await?;
        }
        _ => {
            let connection = endpoint.connect(address, "localhost")?.await?;
            download(&connection, &urls, test == "keyupdate").await?;
        }
    }
    endpoint.close(0u32.into(), b"");
    endpoint.wait_idle().await;
    Ok(())
}

fn client_tls(test: &str) -> Result<QuicClientConfig> {
    let mut provider = aws_lc_rs::default_provider();
    if test == "chacha20" {
        provider.cipher_suites = vec![aws_lc_rs::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256];
    }
    let provider = Arc::new(provider);
    let mut tls = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyServer(provider.clone())))
        .with_no_client_auth();
    tls.alpn_protocols = vec![ALPN.to_vec()];
    tls.key_log = Arc::new(KeyLogFile::new());
    tls.enable_early_data = true;
    if test == "chacha20" {
        // Initial packets have the suite of RFC 9001 §5, which the client does not offer.
        let initial = aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256
            .tls13()
            .and_then(rustls::Tls13CipherSuite::quic_suite)
            .ok_or("no suite for Initial packets")?;
        return Ok(QuicClientConfig::with_initial(Arc::new(tls), initial)?);
    }
    Ok(QuicClientConfig::try_from(tls)?)
}

async fn connect_and_download(endpoint: &Endpoint, address: SocketAddr, urls: &[Url]) -> Result {
    let connection = endpoint.connect(address, "localhost")?.await?;
    download(&connection, urls, false).await?;
    connection.close(0u32.into(), b"");
    Ok(())
}

async fn download(connection: &Connection, urls: &[Url], updates_keys: bool) -> Result {
    let folder: Arc<Path> = PathBuf::from(env::var("DOWNLOADS")?).into();
    let mut downloads = JoinSet::new();
    for url in urls {
        let (connection, url, folder) = (connection.clone(), url.clone(), folder.clone());
        downloads.spawn(async move { get(&connection, &url, &folder, updates_keys).await });
    }
    while let Some(done) = downloads.join_next().await {
        done??;
    }
    Ok(())
}

async fn get(connection: &Connection, url: &Url, folder: &Path, updates_keys: bool) -> Result {
    let (mut send, mut receive) = connection.open_bi().await?;
    let path = url.path();
    send.write_all(format!("GET {path}\r\n").as_bytes()).await?;
    send.finish()?;
    let mut content = Vec::new();
    while let Some(chunk) = receive.read_chunk(usize::MAX, true).await? {
        if updates_keys && content.is_empty() {
            connection.force_key_update();
        }
        content.extend_from_slice(&chunk.bytes);
    }
    tokio::fs::write(folder.join(path.trim_start_matches('/')), content).await?;
    Ok(())
}

/// Accepts every certificate, as the runner's root is not known to the system.
#[derive(Debug)]
struct AnyServer(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
