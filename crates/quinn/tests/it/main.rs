//! Programs that use the API of quinn, on loopback.

#![expect(clippy::unwrap_used, reason = "tests")]

mod endings;
#[cfg(target_os = "linux")]
#[path = "../../../courser/tests/it/namespace.rs"]
mod namespace;
mod settings;
mod sockets;
mod streams;
mod tokens;
#[cfg(target_os = "linux")]
mod zones;

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;

use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::PrivateKeyDer;
use quinn::{ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig};

const LOOPBACK: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));

/// Returns settings of a server, and of a client that trusts it.
fn configs() -> (ServerConfig, ClientConfig) {
    let generated = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = generated.cert.der().clone();
    let key = PrivateKeyDer::Pkcs8(generated.signing_key.serialize_der().into());
    let server = ServerConfig::with_single_cert(vec![certificate.clone()], key).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let client = ClientConfig::with_root_certificates(Arc::new(roots)).unwrap();
    (server, client)
}

/// Two endpoints with a connection between them.
struct Pair {
    client: Connection,
    server: Connection,
    client_endpoint: Endpoint,
    server_endpoint: Endpoint,
}

impl Pair {
    async fn new() -> Self {
        Self::with(&TransportConfig::default()).await
    }

    /// Connects with the same settings at both ends.
    async fn with(transport: &TransportConfig) -> Self {
        let (mut server, mut client) = configs();
        let transport = Arc::new(transport.clone());
        server.transport_config(transport.clone());
        client.transport_config(transport);
        let server = Endpoint::server(server, LOOPBACK).unwrap();
        let mut endpoint = Endpoint::client(LOOPBACK).unwrap();
        endpoint.set_default_client_config(client);
        Self::of(endpoint, server).await
    }

    /// Connects two endpoints.
    async fn of(client_endpoint: Endpoint, server_endpoint: Endpoint) -> Self {
        let address = server_endpoint.local_addr().unwrap();
        let connecting = client_endpoint.connect(address, "localhost").unwrap();
        let accepting = async { server_endpoint.accept().await.unwrap().await };
        let (client, server) = tokio::try_join!(connecting, accepting).unwrap();
        Self {
            client,
            server,
            client_endpoint,
            server_endpoint,
        }
    }
}
