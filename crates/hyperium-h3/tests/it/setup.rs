//! Endpoints and connections of courser and quinn.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use courser::{ClientConfig, Endpoint, Identity, ServerConfig, TransportConfig};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

pub fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// Awaits a future and panics after a minute, so that a hanging test fails.
pub async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future)
        .await
        .expect("not in time")
}

/// Returns a pattern of bytes that reveals misplaced chunks.
pub fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n ^ (n >> 8) ^ (n >> 16)) as u8).collect()
}

/// Two endpoints of courser, a server and a client.
pub struct Pair {
    pub server: Endpoint,
    pub client: Endpoint,
    pub certificate: CertificateDer<'static>,
}

impl Pair {
    pub fn new() -> Self {
        Self::with(TransportConfig::default())
    }

    /// Like [`new`](Self::new), with a transport configuration for the server.
    pub fn with(transport: TransportConfig) -> Self {
        let identity = Identity::dev().expect("random numbers");
        let certificate = identity.certificate();
        let config = ServerConfig::with_identity(&identity)
            .expect("own certificate")
            .alpn(["h3"])
            .transport_config(transport);
        let server = Endpoint::server(config, loopback()).expect("a port");
        let mut client = Endpoint::client(loopback()).expect("a port");
        let config = ClientConfig::with_roots([certificate.clone()]).expect("a certificate");
        client.set_default_client_config(config.alpn(["h3"]));
        Self {
            server,
            client,
            certificate,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.server.local_addr().expect("bound")
    }

    /// Establishes a connection and returns both ends, the client's first.
    pub async fn connect(&self) -> (courser::Connection, courser::Connection) {
        let connecting = self.client.connect(self.address(), "localhost");
        let connecting = connecting.expect("configured");
        let (client, server) = tokio::join!(connecting, self.accept());
        (client.expect("handshake"), server)
    }

    pub async fn accept(&self) -> courser::Connection {
        let incoming = self.server.accept().await.expect("open");
        incoming.await.expect("handshake")
    }
}

/// Connects a quinn client to `address`.
pub async fn quinn_client(
    address: SocketAddr,
    certificate: CertificateDer<'static>,
) -> (quinn::Endpoint, quinn::Connection) {
    let mut roots = RootCertStore::empty();
    roots.add(certificate).expect("a certificate");
    let mut tls = rustls::ClientConfig::builder_with_provider(courser::crypto_provider())
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let tls = QuicClientConfig::try_from(tls).expect("TLS 1.3");
    let mut endpoint = quinn::Endpoint::client(loopback()).expect("a port");
    endpoint.set_default_client_config(quinn::ClientConfig::new(Arc::new(tls)));
    let connecting = endpoint.connect(address, "localhost").expect("configured");
    let connection = connecting.await.expect("handshake");
    (endpoint, connection)
}

/// Creates a quinn server and a courser client that trusts its certificate.
pub fn quinn_server() -> (quinn::Endpoint, Endpoint) {
    let key = rcgen::KeyPair::generate().expect("random numbers");
    let params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    let certificate = params.self_signed(&key).expect("signed");
    let chain = vec![certificate.der().clone()];
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let mut tls = rustls::ServerConfig::builder_with_provider(courser::crypto_provider())
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(chain.clone(), key)
        .expect("own certificate");
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let tls = QuicServerConfig::try_from(tls).expect("TLS 1.3");
    let config = quinn::ServerConfig::with_crypto(Arc::new(tls));
    let server = quinn::Endpoint::server(config, loopback()).expect("a port");
    let mut client = Endpoint::client(loopback()).expect("a port");
    let config = ClientConfig::with_roots(chain).expect("a certificate");
    client.set_default_client_config(config.alpn(["h3"]));
    (server, client)
}
