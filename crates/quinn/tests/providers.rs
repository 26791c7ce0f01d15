//! Programs whose dependencies enable both providers of rustls, as those of these tests do. A test binary of its
//! own, because the default provider belongs to the process.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::rustls::crypto::{CryptoProvider, aws_lc_rs, ring};
use quinn::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use quinn::rustls::{self, RootCertStore};
use quinn::{ClientConfig, Endpoint, ServerConfig};

const LOOPBACK: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));

struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    fn new() -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        Self {
            certificate: made.cert.der().clone(),
            key: PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into()),
        }
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        roots
    }
}

/// Connects two ends and sends a message.
async fn connect(server: ServerConfig, client: ClientConfig) {
    let server = Endpoint::server(server, LOOPBACK).unwrap();
    let mut endpoint = Endpoint::client(LOOPBACK).unwrap();
    endpoint.set_default_client_config(client);
    let connecting = endpoint.connect(server.local_addr().unwrap(), "localhost");
    let accepting = async { server.accept().await.unwrap().await };
    let (client, server) = tokio::try_join!(connecting.unwrap(), accepting).unwrap();
    let mut send = client.open_uni().await.unwrap();
    send.write_all(b"hello").await.unwrap();
    send.finish().unwrap();
    let mut receive = server.accept_uni().await.unwrap();
    assert_eq!(receive.read_to_end(10).await.unwrap(), b"hello");
}

/// Returns settings of both ends by the builders of rustls, with these providers.
fn explicit(server: CryptoProvider, client: CryptoProvider) -> (ServerConfig, ClientConfig) {
    let identity = Identity::new();
    let roots = identity.roots();
    let server = rustls::ServerConfig::builder_with_provider(Arc::new(server))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![identity.certificate], identity.key)
        .unwrap();
    let client = rustls::ClientConfig::builder_with_provider(Arc::new(client))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let server = QuicServerConfig::try_from(server).unwrap();
    let client = QuicClientConfig::try_from(client).unwrap();
    (
        ServerConfig::with_crypto(Arc::new(server)),
        ClientConfig::new(Arc::new(client)),
    )
}

/// All in one test: the default provider is set once for the process.
#[tokio::test]
async fn both_providers_of_rustls_can_be_in_one_program() {
    // quinn's own constructors work before the program has chosen, and choose nothing.
    let identity = Identity::new();
    let roots = Arc::new(identity.roots());
    let server = ServerConfig::with_single_cert(vec![identity.certificate], identity.key).unwrap();
    connect(server, ClientConfig::with_root_certificates(roots).unwrap()).await;
    assert!(
        CryptoProvider::get_default().is_none(),
        "left to the program"
    );

    for (server, client) in [
        (ring::default_provider(), ring::default_provider()),
        (aws_lc_rs::default_provider(), ring::default_provider()),
        (ring::default_provider(), aws_lc_rs::default_provider()),
    ] {
        let (server, client) = explicit(server, client);
        connect(server, client).await;
    }

    // The program chooses, as it must with quinn too.
    ring::default_provider().install_default().unwrap();
    let identity = Identity::new();
    let roots = identity.roots();
    let server = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![identity.certificate], identity.key)
        .unwrap();
    let client = rustls::ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let server = QuicServerConfig::try_from(server).unwrap();
    let client = QuicClientConfig::try_from(client).unwrap();
    let server = ServerConfig::with_crypto(Arc::new(server));
    connect(server, ClientConfig::new(Arc::new(client))).await;
}
