//! Servers at two ports of one host. One issues tickets that the other cannot use, and makes a
//! client guess wrong about key shares. Offering both is an error.

use std::convert::Infallible;
use std::sync::Arc;

use courser::client::HttpVersion;
use courser::rustls::crypto::aws_lc_rs::{cipher_suite, default_provider, kx_group};
use courser::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use courser::{Endpoint, ServerConfig, h3, rustls};
use http::Response;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::server::{Protocols, Server, echo, full};
use super::{builder, text, within};

/// Returns the configuration of such a server, and its certificate.
fn other(protocols: &[&str]) -> (Arc<rustls::ServerConfig>, CertificateDer<'static>) {
    let names = ["localhost".to_owned()];
    let generated = rcgen::generate_simple_self_signed(names).expect("a certificate");
    let mut provider = default_provider();
    provider.cipher_suites = vec![
        cipher_suite::TLS13_AES_256_GCM_SHA384,
        // QUIC protects its first packets with it.
        cipher_suite::TLS13_AES_128_GCM_SHA256,
    ];
    provider.kx_groups = vec![kx_group::X25519];
    let key = PrivatePkcs8KeyDer::from(generated.signing_key.serialize_der());
    let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![generated.cert.der().clone()], key.into())
        .expect("matching key");
    config.ignore_client_order = true;
    config.alpn_protocols = protocols
        .iter()
        .map(|name| name.as_bytes().into())
        .collect();
    (Arc::new(config), generated.cert.der().clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tickets_of_another_port_are_not_offered_over_tcp() {
    let (config, certificate) = other(&[]);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let acceptor = tokio_rustls::TlsAcceptor::from(config);
    crate::common::spawn(async move {
        let (stream, _) = listener.accept().await.expect("a client");
        let mut stream = acceptor.accept(stream).await.expect("trusted");
        let mut request = [0; 1000];
        let _ = stream.read(&mut request).await.expect("a request");
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nother";
        stream.write_all(answer).await.expect("open");
        // The client closes it, not the server.
        let _ = stream.read(&mut request).await;
    });
    let server = Server::start(Protocols::Tcp, echo()).await;
    let client = builder(&server).root(certificate).build();
    let client = client.expect("a client");
    let response = within(client.get(format!("https://localhost:{port}/"))).await;
    assert_eq!(text(response.expect("answered")).await, "other");
    let response = within(client.get(server.url("/a"))).await;
    assert_eq!(text(response.expect("answered")).await, "HTTP/2.0 GET /a");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tickets_of_another_port_are_not_offered_over_quic() {
    let (config, certificate) = other(&["h3"]);
    let address = "127.0.0.1:0".parse().expect("an address");
    let endpoint = Endpoint::server(ServerConfig::with_rustls(config), address);
    let endpoint = endpoint.expect("a port");
    let port = endpoint.local_addr().expect("bound").port();
    crate::common::spawn(async move {
        let connection = endpoint.accept().await.expect("open").await;
        let service =
            tower::service_fn(|_| async { Ok::<_, Infallible>(Response::new(full("other"))) });
        let _ = h3::serve(connection.expect("trusted"), service).await;
    });
    let server = Server::start(Protocols::Quic, echo()).await;
    let client = builder(&server)
        .root(certificate)
        .version(HttpVersion::Http3Only)
        .build();
    let client = client.expect("a client");
    let response = within(client.get(format!("https://localhost:{port}/"))).await;
    assert_eq!(text(response.expect("answered")).await, "other");
    // The tickets have arrived: CRYPTO frames precede the response.
    let response = within(client.get(server.url("/a"))).await;
    assert_eq!(text(response.expect("answered")).await, "HTTP/3.0 GET /a");
}
