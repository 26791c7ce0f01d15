//! Client certificates and local addresses.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use courser::client::{Body, HttpVersion, Proxy};
use courser::rustls::RootCertStore;
use courser::server::Peer;
use courser::{
    Client, ClientAuthentication, Cryptography, Endpoint, HandshakeFailureKind, Identity,
    KeyExchange, ServerConfig, h3,
};
use http::{Request, Response};
use http_body_util::Full;
use tower::Service as _;

use super::server::{Protocols, Server, echo};
use super::{builder, text, timing, within};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_certificate_is_sent_on_request() {
    let identity = Identity::dev().expect("random numbers");
    let ours = Identity::dev().expect("random numbers");
    let mut clients = RootCertStore::empty();
    clients.add(ours.certificate()).expect("a certificate");
    let config = ServerConfig::with_client_auth(&identity, clients)
        .expect("valid roots")
        .alpn([h3::ALPN]);
    let address = "127.0.0.1:0".parse().expect("an address");
    let endpoint = Endpoint::server(config, address).expect("a port");
    let url = format!("https://{}/", endpoint.local_addr().expect("bound"));
    crate::common::spawn(async move {
        while let Some(incoming) = endpoint.accept().await {
            let Ok(connection) = incoming.await else {
                continue;
            };
            let known = connection.peer_identity().is_some();
            let service = tower::service_fn(move |_: Request<h3::Body>| async move {
                let body = Full::<bytes::Bytes>::from(format!("known: {known}"));
                Ok::<_, Infallible>(Response::new(body))
            });
            crate::common::spawn(h3::serve(connection, service).into_future());
        }
    });
    let builder = || {
        Client::builder()
            .version(HttpVersion::Http3Only)
            .platform_roots(false)
            .proxy(Proxy::Direct)
            .root(identity.certificate())
    };
    let known = builder().identity(ours).build().expect("a client");
    let response = within(known.get(&url)).await.expect("accepted");
    assert_eq!(text(response).await, "known: true");
    let unknown = builder().build().expect("a client");
    assert!(within(unknown.get(&url)).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_certificate_is_visible_to_services_over_all_protocols() {
    let identity = Identity::dev().expect("random numbers");
    let ours = Identity::dev().expect("random numbers");
    let mut clients = RootCertStore::empty();
    clients.add(ours.certificate()).expect("a certificate");
    let refused = Arc::new(Mutex::new(Vec::new()));
    let listener = refused.clone();
    let bound = courser::serve("127.0.0.1:0", &identity)
        .client_authentication(ClientAuthentication::Required(clients))
        .cryptography(Cryptography::default().groups([KeyExchange::X25519]))
        .on_event(move |event| listener.lock().expect("no panic").push(event.to_string()))
        .bind()
        .expect("a port");
    let url = format!("https://{}/", bound.handle().local_addr());
    let service = tower::service_fn(|request: Request<courser::server::Body>| async move {
        let peer = request.extensions().get::<Peer>().expect("always present");
        let chain = &peer.tls().client_certificates;
        let group = peer.tls().key_exchange.as_deref().unwrap_or("none");
        let body = format!("{group} {}", chain.first().map_or(0, |first| first.len()));
        Ok::<_, Infallible>(Response::new(Full::<bytes::Bytes>::from(body)))
    });
    crate::common::spawn(bound.service(service).into_future());
    for version in [
        HttpVersion::Http3Only,
        HttpVersion::Http2,
        HttpVersion::Http1,
    ] {
        let builder = || {
            Client::builder()
                .version(version)
                .platform_roots(false)
                .proxy(Proxy::Direct)
                .root(identity.certificate())
        };
        let known = builder().identity(ours.clone()).build().expect("a client");
        let response = within(known.get(&url)).await.expect("accepted");
        let expected = format!("X25519 {}", ours.certificate().len());
        assert_eq!(text(response).await, expected, "{version:?}");
        let unknown = builder().build().expect("a client");
        let error = within(unknown.get(&url)).await.expect_err("no certificate");
        // Over TCP, the alert is lost if the request reaches a socket that is closed.
        if version == HttpVersion::Http3Only {
            let failure = error.handshake_failure().expect("an alert");
            let kind = HandshakeFailureKind::ClientCertificateRequired;
            assert_eq!(failure.kind(), kind, "{error}");
            assert!(error.is_tls() && !error.is_connect(), "{error:?}");
            assert!(error.connection_error().is_some() && !error.is_retryable());
        }
    }
    // One of three, because there may be many.
    let events = refused.lock().expect("no panic").clone();
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(events[0].starts_with("refused 127.0.0.1:"), "{events:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_come_from_the_address_that_was_chosen() {
    let server = Server::start(Protocols::Both, echo()).await;
    let local: std::net::IpAddr = [127, 0, 0, 9].into();
    for version in [HttpVersion::Http3Only, HttpVersion::Http2] {
        let client = builder(&server)
            .version(version)
            .local_address(local)
            .build()
            .expect("a client");
        let response = within(client.get(server.url("/"))).await.expect("answered");
        let seen = timing(&response).local.map(|local| local.ip());
        assert_eq!(seen, Some(local), "{version:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connect_to_changes_the_address_but_not_the_name() {
    let server = Server::start(Protocols::Both, echo()).await;
    let port = server.address.port();
    let client = builder(&server)
        .connect_to(
            (Some("example.test"), Some(443)),
            (Some("127.0.0.1"), Some(port)),
        )
        .build()
        .expect("a client");
    let response = within(client.get("https://example.test/a"))
        .await
        .expect("answered");
    assert_eq!(timing(&response).remote, Some(server.address));
    assert_eq!(text(response).await, "HTTP/2.0 GET /a");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_is_a_service() {
    let server = Server::start(Protocols::Both, echo()).await;
    let mut client = super::client(&server);
    let request = Request::get(server.url("/"))
        .body(h3::Empty)
        .expect("a request");
    let ready = tower::ServiceExt::<Request<h3::Empty>>::ready(&mut client)
        .await
        .expect("always present");
    let response: Response<Body> = within(ready.call(request)).await.expect("answered");
    assert_eq!(response.status(), 200);
}
