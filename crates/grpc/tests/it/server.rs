//! What services find behind the layer, and services of other crates.

use courser_client::HttpVersion;
use courser_grpc::{Channel, Deadline, ServerLayer, peer_certs};
use courser_quic::rustls::pki_types::PrivatePkcs8KeyDer;
use courser_quic::{ClientAuthentication, Identity};
use courser_server::serve;
use tonic::codec::CompressionEncoding;
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tower_layer::Layer as _;

use super::common::{Client, IDENTITY, channel, start, to, within};
use super::pb::test_service_server::TestServiceServer;
use super::pb::{Empty, SimpleRequest};
use super::service::Test;

/// What an interceptor of the server sees.
#[derive(Clone, Debug)]
struct Seen {
    remote: Option<std::net::SocketAddr>,
    local: Option<std::net::SocketAddr>,
    certificates: Option<Vec<Vec<u8>>>,
    has_deadline: bool,
    user_agent: Option<String>,
}

type Reports = tokio::sync::mpsc::UnboundedReceiver<Seen>;

/// Starts a server whose interceptor reports each request, and refuses those without a token.
fn guarded(policy: ClientAuthentication) -> (String, Reports) {
    let (report, reports) = tokio::sync::mpsc::unbounded_channel();
    let guard = move |request: Request<()>| {
        let certificates = peer_certs(&request);
        let agent = request.metadata().get("user-agent");
        let seen = Seen {
            remote: request.remote_addr(),
            local: request.local_addr(),
            certificates: certificates.map(|chain| chain.iter().map(|it| it.to_vec()).collect()),
            has_deadline: Deadline::of(&request).is_some(),
            user_agent: agent.and_then(|it| it.to_str().ok()).map(str::to_owned),
        };
        report.send(seen).expect("the test runs");
        match request.metadata().get("token") {
            Some(token) if token == "7" => Ok(request),
            _ => Err(Status::unauthenticated("no token")),
        }
    };
    let service = TestServiceServer::with_interceptor(Test::default(), guard);
    let bound = serve("127.0.0.1:0", &*IDENTITY)
        .client_authentication(policy)
        .bind()
        .expect("a port");
    let uri = format!("https://localhost:{}", bound.local_addr().port());
    tokio::spawn(
        bound
            .service(ServerLayer::new().layer(service))
            .into_future(),
    );
    (uri, reports)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn services_see_addresses_and_interceptors_of_both_ends_run() {
    for version in [HttpVersion::Http3Only, HttpVersion::Http2PriorKnowledge] {
        let (uri, mut reports) = guarded(ClientAuthentication::Off);
        let channel = to(&uri)
            .version(version)
            .user_agent("shop/2")
            .build()
            .expect("valid settings");
        let error = within(Client::new(channel.clone()).empty_call(Empty {}))
            .await
            .expect_err("no token");
        assert_eq!(
            (error.code(), error.message()),
            (Code::Unauthenticated, "no token")
        );
        let seen = reports.recv().await.expect("a request");
        assert!(seen.remote.expect("known").ip().is_loopback(), "{seen:?}");
        if let Some(local) = seen.local {
            assert!(uri.ends_with(&format!(":{}", local.port())), "{seen:?}");
        }
        assert_eq!((seen.certificates, seen.has_deadline), (None, false));
        let agent = seen.user_agent.expect("always sent");
        assert!(agent.starts_with("shop/2 grpc-rust-courser/"), "{agent}");
        let add = |mut request: Request<()>| {
            request
                .metadata_mut()
                .insert("token", "7".parse().expect("a value"));
            request.set_timeout(std::time::Duration::from_secs(20));
            Ok(request)
        };
        let mut client =
            super::pb::test_service_client::TestServiceClient::with_interceptor(channel, add);
        within(client.empty_call(Empty {})).await.expect("a token");
        assert!(reports.recv().await.expect("a request").has_deadline);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_of_a_client_reach_the_service() {
    let create = || rcgen::generate_simple_self_signed(["client".to_owned()]).expect("a key");
    // The second one is not needed, but a client may present what it likes behind its own.
    let (own, other) = (create(), create());
    let chain = [&own, &other].map(|it| it.cert.der().clone());
    let expected: Vec<_> = chain.iter().map(|it| it.to_vec()).collect();
    let key = own.signing_key.serialize_der();
    let identity = || {
        let key = PrivatePkcs8KeyDer::from(key.clone());
        Identity::new(chain.to_vec(), key.into())
    };
    let mut roots = courser_quic::rustls::RootCertStore::empty();
    roots.add(own.cert.der().clone()).expect("valid");
    for version in [HttpVersion::Http3Only, HttpVersion::Http2PriorKnowledge] {
        let policy = ClientAuthentication::Required(roots.clone());
        let (uri, mut reports) = guarded(policy);
        let to = || to(&uri).version(version);
        let channel = to().identity(identity()).build();
        let mut client = Client::new(channel.expect("valid settings"));
        // The second call is on a connection that exists.
        for _ in 0..2 {
            let error = within(client.empty_call(Empty {}))
                .await
                .expect_err("no token");
            assert_eq!(error.code(), Code::Unauthenticated, "{error}");
            let seen = reports.recv().await.expect("a request");
            assert_eq!(seen.certificates.as_ref(), Some(&expected), "{version:?}");
        }
        // Without a certificate there is no connection.
        let error = within(Client::new(to().build().expect("valid")).empty_call(Empty {})).await;
        assert_eq!(error.expect_err("refused").code(), Code::Unavailable);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_is_served_and_watched() {
    let (reporter, health) = tonic_health::server::health_reporter();
    reporter
        .set_service_status("shop", tonic_health::ServingStatus::Serving)
        .await;
    let routes = tonic::service::Routes::new(health).add_service(Test::default().service());
    let bound = serve("127.0.0.1:0", &*IDENTITY).bind().expect("a port");
    let uri = format!("https://localhost:{}", bound.local_addr().port());
    tokio::spawn(
        bound
            .service(ServerLayer::new().layer(routes.prepare()))
            .into_future(),
    );
    let channel: Channel = to(&uri).build().expect("valid settings");
    let mut client = HealthClient::new(channel.clone());
    let request = |service: &str| HealthCheckRequest {
        service: service.to_owned(),
    };
    let response = within(client.check(request("shop"))).await.expect("known");
    assert_eq!(response.get_ref().status(), ServingStatus::Serving);
    let error = within(client.check(request("bank")))
        .await
        .expect_err("unknown");
    assert_eq!(error.code(), Code::NotFound);
    let mut changes = within(client.watch(request("shop")))
        .await
        .expect("known")
        .into_inner();
    let mut next = async || {
        within(changes.message())
            .await
            .expect("open")
            .expect("a change")
            .status()
    };
    assert_eq!(next().await, ServingStatus::Serving);
    reporter
        .set_service_status("shop", tonic_health::ServingStatus::NotServing)
        .await;
    assert_eq!(next().await, ServingStatus::NotServing);
    // Both services are behind one set of routes.
    within(Client::new(channel).empty_call(Empty {}))
        .await
        .expect("answered");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_are_compressed_with_zstd_and_unknown_codings_are_refused() {
    let service = TestServiceServer::new(Test::default())
        .accept_compressed(CompressionEncoding::Zstd)
        .send_compressed(CompressionEncoding::Zstd);
    let bound = serve("127.0.0.1:0", &*IDENTITY).bind().expect("a port");
    let uri = format!("https://localhost:{}", bound.local_addr().port());
    tokio::spawn(
        bound
            .service(ServerLayer::new().layer(service))
            .into_future(),
    );
    let channel = to(&uri).build().expect("valid settings");
    let request = || SimpleRequest {
        response_size: 1_000_000,
        response_compressed: Some(super::pb::BoolValue { value: true }),
        ..SimpleRequest::default()
    };
    let mut client = Client::new(channel.clone())
        .send_compressed(CompressionEncoding::Zstd)
        .accept_compressed(CompressionEncoding::Zstd);
    let response = within(client.unary_call(request()))
        .await
        .expect("answered");
    assert_eq!(
        response.get_ref().payload.as_ref().map(|it| it.body.len()),
        Some(1_000_000)
    );
    let mut client = Client::new(channel).send_compressed(CompressionEncoding::Gzip);
    let error = within(client.unary_call(request()))
        .await
        .expect_err("gzip is off");
    assert_eq!(error.code(), Code::Unimplemented, "{error}");
}

/// What grpcurl and other tools ask first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reflection_lists_services() {
    use tonic_reflection::pb::v1::ServerReflectionRequest;
    use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
    use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
    use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
        .expect("valid descriptors");
    let bound = serve("127.0.0.1:0", &*IDENTITY).bind().expect("a port");
    let uri = format!("https://localhost:{}", bound.local_addr().port());
    tokio::spawn(
        bound
            .service(ServerLayer::new().layer(reflection))
            .into_future(),
    );
    let channel = to(&uri).build().expect("valid settings");
    let request = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let requests = futures_util::stream::iter([request]);
    let mut client = ServerReflectionClient::new(channel);
    let response = within(client.server_reflection_info(requests)).await;
    let mut responses = response.expect("started").into_inner();
    let response = within(responses.message()).await.expect("no error");
    let Some(MessageResponse::ListServicesResponse(list)) =
        response.and_then(|it| it.message_response)
    else {
        panic!("the services are listed");
    };
    let names: Vec<_> = list.service.iter().map(|it| it.name.as_str()).collect();
    assert!(names.contains(&"grpc.health.v1.Health"), "{names:?}");
}

/// As in tonic.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_timeout_is_ignored() {
    let server = start();
    let mut request = Request::new(Empty {});
    request
        .metadata_mut()
        .insert("grpc-timeout", "soon".parse().expect("a value"));
    within(Client::new(channel(&server)).empty_call(request))
        .await
        .expect("answered");
}
