//! Endpoints of both stacks that trust one certificate.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use courser::rustls;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::common::loopback;

/// The application protocol of all tests.
pub const PROTOCOL: &[u8] = b"interop";

/// The settings of the four endpoints. Tests change fields before they start.
pub struct World {
    pub chain: Vec<CertificateDer<'static>>,
    pub key: PrivateKeyDer<'static>,
    pub courser: courser::TransportConfig,
    pub quinn: quinn::TransportConfig,
    pub client_protocol: &'static [u8],
    pub server_protocol: &'static [u8],
    /// The features of quinn's TLS.
    pub provider: CryptoProvider,
}

/// A client of one stack connected to a server of the other.
pub struct Pair<C, S, CE, SE> {
    pub client: C,
    pub server: S,
    pub client_endpoint: CE,
    pub server_endpoint: SE,
}

pub type CourserClient =
    Pair<courser::Connection, quinn::Connection, courser::Endpoint, quinn::Endpoint>;
pub type CourserServer =
    Pair<quinn::Connection, courser::Connection, quinn::Endpoint, courser::Endpoint>;

impl Default for World {
    fn default() -> Self {
        let names = vec!["localhost".to_owned()];
        let generated = rcgen::generate_simple_self_signed(names).expect("random numbers");
        let key = PrivatePkcs8KeyDer::from(generated.signing_key.serialize_der());
        let mut quinn = quinn::TransportConfig::default();
        // Machines under load are slow, but do not lose packets.
        quinn.max_idle_timeout(Some(Duration::from_secs(30).try_into().expect("fits")));
        Self {
            chain: vec![generated.cert.into()],
            key: key.into(),
            courser: courser::TransportConfig::default(),
            quinn,
            client_protocol: PROTOCOL,
            server_protocol: PROTOCOL,
            provider: aws_lc_rs::default_provider(),
        }
    }
}

impl World {
    pub fn courser_server_config(&self) -> courser::ServerConfig {
        courser::ServerConfig::with_single_cert(self.chain.clone(), self.key.clone_key())
            .expect("matching key")
            .alpn([self.server_protocol])
            .transport_config(self.courser.clone())
    }

    pub fn courser_client_config(&self) -> courser::ClientConfig {
        courser::ClientConfig::with_roots([self.chain[0].clone()])
            .expect("valid roots")
            .alpn([self.client_protocol])
            .transport_config(self.courser.clone())
    }

    /// Returns a server's TLS configuration with all features of this provider.
    pub fn server_tls(&self, provider: CryptoProvider) -> rustls::ServerConfig {
        let mut tls = rustls::ServerConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("has TLS 1.3")
            .with_no_client_auth()
            .with_single_cert(self.chain.clone(), self.key.clone_key())
            .expect("matching key");
        tls.alpn_protocols = vec![self.server_protocol.to_vec()];
        tls
    }

    /// Takes quinn's settings, which cannot be cloned, so this works once.
    pub fn quinn_server_config(&mut self) -> quinn::ServerConfig {
        let tls = self.server_tls(self.provider.clone());
        let tls = QuicServerConfig::try_from(tls).expect("has TLS 1.3");
        let mut config = quinn::ServerConfig::with_crypto(Arc::new(tls));
        config.transport_config(Arc::new(std::mem::take(&mut self.quinn)));
        config
    }

    /// Like [`World::quinn_server_config`], for the client.
    pub fn quinn_client_config(&mut self) -> quinn::ClientConfig {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.chain[0].clone()).expect("valid root");
        let mut tls = rustls::ClientConfig::builder_with_provider(Arc::new(self.provider.clone()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("has TLS 1.3")
            .with_root_certificates(roots)
            .with_no_client_auth();
        tls.alpn_protocols = vec![self.client_protocol.to_vec()];
        let tls = QuicClientConfig::try_from(tls).expect("has TLS 1.3");
        let mut config = quinn::ClientConfig::new(Arc::new(tls));
        config.transport_config(Arc::new(std::mem::take(&mut self.quinn)));
        config
    }

    pub fn courser_server(&self) -> courser::Endpoint {
        courser::Endpoint::server(self.courser_server_config(), loopback()).expect("a port")
    }

    pub fn courser_client(&self) -> courser::Endpoint {
        let mut endpoint = courser::Endpoint::client(loopback()).expect("a port");
        endpoint.set_default_client_config(self.courser_client_config());
        endpoint
    }

    pub fn quinn_server(&mut self) -> quinn::Endpoint {
        quinn::Endpoint::server(self.quinn_server_config(), loopback()).expect("a port")
    }

    pub fn quinn_client(&mut self) -> quinn::Endpoint {
        let mut endpoint = quinn::Endpoint::client(loopback()).expect("a port");
        endpoint.set_default_client_config(self.quinn_client_config());
        endpoint
    }

    /// Connects courser's client to quinn's server.
    pub async fn courser_to_quinn(self) -> CourserClient {
        self.courser_to_quinn_via(|server| server).await
    }

    /// Connects through the relay that `route` places in front of the server's address.
    pub async fn courser_to_quinn_via(
        mut self,
        route: impl FnOnce(SocketAddr) -> SocketAddr,
    ) -> CourserClient {
        let (client, server) = (self.courser_client(), self.quinn_server());
        let address = route(server.local_addr().expect("bound"));
        connect_courser(client, server, address).await
    }

    /// Connects quinn's client to courser's server.
    pub async fn quinn_to_courser(self) -> CourserServer {
        self.quinn_to_courser_via(|server| server).await
    }

    /// Connects through the relay that `route` places in front of the server's address.
    pub async fn quinn_to_courser_via(
        mut self,
        route: impl FnOnce(SocketAddr) -> SocketAddr,
    ) -> CourserServer {
        let (client, server) = (self.quinn_client(), self.courser_server());
        let address = route(server.local_addr().expect("bound"));
        connect_quinn(client, server, address).await
    }
}

/// Connects two endpoints.
pub async fn connect_courser(
    client_endpoint: courser::Endpoint,
    server_endpoint: quinn::Endpoint,
    address: SocketAddr,
) -> CourserClient {
    let connecting = client_endpoint
        .connect(address, "localhost")
        .expect("configured");
    let accept = async {
        server_endpoint
            .accept()
            .await
            .expect("open")
            .await
            .expect("server's handshake")
    };
    let (client, server) = tokio::join!(connecting, accept);
    let client = client.expect("client's handshake");
    Pair {
        client,
        server,
        client_endpoint,
        server_endpoint,
    }
}

/// Connects two endpoints.
pub async fn connect_quinn(
    client_endpoint: quinn::Endpoint,
    server_endpoint: courser::Endpoint,
    address: SocketAddr,
) -> CourserServer {
    let connecting = client_endpoint
        .connect(address, "localhost")
        .expect("configured");
    let accept = async {
        server_endpoint
            .accept()
            .await
            .expect("open")
            .await
            .expect("server's handshake")
    };
    let (client, server) = tokio::join!(connecting, accept);
    let client = client.expect("client's handshake");
    Pair {
        client,
        server,
        client_endpoint,
        server_endpoint,
    }
}

/// Binds a socket to a port chosen by the system.
pub fn socket() -> UdpSocket {
    UdpSocket::bind(loopback()).expect("a port")
}
