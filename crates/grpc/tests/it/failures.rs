//! The status of each failure.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use courser_client::HttpVersion;
use courser_grpc::Channel;
use courser_http3_tokio as h3;
use courser_quic::{Endpoint, ServerConfig};
use futures_util::stream;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use tonic::Code;

use super::common::{Client, IDENTITY, channel, start, to, until, within};
use super::pb::{Empty, StreamingInputCallRequest};

/// Starts a server that answers every request so.
async fn answering(
    status: u16,
    fields: &'static [(&'static str, &'static str)],
    content: &'static str,
) -> Channel {
    let service = tower::service_fn(move |_: Request<courser_server::Body>| async move {
        let mut response = Response::builder().status(status);
        for (name, value) in fields {
            response = response.header(*name, *value);
        }
        response.body(Full::new(bytes::Bytes::from(content)))
    });
    let bound = courser_server::serve("127.0.0.1:0", &*IDENTITY)
        .bind()
        .expect("a port");
    let uri = format!("https://localhost:{}", bound.local_addr().port());
    tokio::spawn(bound.service(service).into_future());
    to(&uri).build().expect("valid settings")
}

async fn failure(channel: Channel) -> tonic::Status {
    within(Client::new(channel).empty_call(Empty {}))
        .await
        .expect_err("no gRPC server")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statuses_of_http_have_their_codes() {
    let cases = [
        (400, Code::Internal),
        (401, Code::Unauthenticated),
        (403, Code::PermissionDenied),
        (404, Code::Unimplemented),
        (429, Code::Unavailable),
        (502, Code::Unavailable),
        (503, Code::Unavailable),
        (504, Code::Unavailable),
        (500, Code::Unknown),
        (418, Code::Unknown),
        (200, Code::Unknown),
    ];
    for (status, expected) in cases {
        let channel = answering(status, &[("content-type", "text/html")], "<h1>sorry</h1>").await;
        let error = failure(channel).await;
        assert_eq!(error.code(), expected, "{status}: {error}");
        let name = StatusCode::from_u16(status).expect("valid").to_string();
        assert!(error.message().contains(&name), "{error}");
        assert!(error.message().contains("text/html"), "{error}");
    }
}

/// The status counts, whatever the rest of the response is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn status_of_grpc_precedes_that_of_http() {
    let fields = &[("grpc-status", "8"), ("grpc-message", "full%20house")];
    let error = failure(answering(503, fields, "").await).await;
    assert_eq!(
        (error.code(), error.message()),
        (Code::ResourceExhausted, "full house")
    );
}

/// tonic 0.14 alone would panic in the task of the caller.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_details_of_a_status_are_ignored() {
    for details in ["%%%", "A", "AB=C", "QUJD*"] {
        let fields: &'static [_] = Vec::leak(vec![
            ("content-type", "application/grpc"),
            ("grpc-status", "9"),
            ("grpc-status-details-bin", details),
        ]);
        let error = failure(answering(200, fields, "").await).await;
        assert_eq!(error.code(), Code::FailedPrecondition, "{details}");
        assert!(error.details().is_empty());
    }
    let fields = &[
        ("content-type", "application/grpc"),
        ("grpc-status", "9"),
        ("grpc-status-details-bin", "QUI"),
    ];
    let error = failure(answering(200, fields, "").await).await;
    assert_eq!(
        error.details(),
        b"AB",
        "valid ones are kept, without padding too"
    );
}

/// Nothing listens on the port.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_connection_is_unavailable() {
    for version in [
        HttpVersion::Http3Only,
        HttpVersion::Http3Or2,
        HttpVersion::Http2PriorKnowledge,
    ] {
        let server = start();
        let uri = server.uri();
        server.stop().await;
        let channel = to(&uri).version(version).build().expect("valid settings");
        let error = failure(channel).await;
        assert_eq!(error.code(), Code::Unavailable, "{version:?}: {error}");
        let source = std::error::Error::source(&error).expect("the cause");
        assert!(source.is::<courser_client::Error>(), "{source:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_host_and_untrusted_certificate_are_unavailable() {
    let channel = Channel::from_uri("https://host.invalid:1").expect("valid");
    assert_eq!(failure(channel).await.code(), Code::Unavailable);
    let server = start();
    let other = courser_quic::Identity::dev().expect("random numbers");
    let builder = Channel::builder(server.uri())
        .root(other.certificate())
        .configure(|client| client.platform_roots(false));
    let error = failure(builder.build().expect("valid settings")).await;
    assert_eq!(error.code(), Code::Unavailable);
    assert!(error.message().contains("certificate"), "{error}");
}

/// Calls in progress when the server disappears.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_connection_is_unavailable() {
    for version in [HttpVersion::Http3Only, HttpVersion::Http2PriorKnowledge] {
        let server = start();
        let channel = to(&server.uri())
            .version(version)
            .build()
            .expect("valid settings");
        let mut client = Client::new(channel);
        let call =
            tokio::spawn(async move { client.streaming_input_call(stream::pending()).await });
        until(|| server.test.open() == 1).await;
        server.stop().await;
        let error = within(call).await.expect("no panic").expect_err("lost");
        assert_eq!(error.code(), Code::Unavailable, "{version:?}: {error}");
    }
}

/// The reset of a stream by a server, with each code of HTTP/3 (gRFC G2).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn codes_of_http3_resets_are_mapped() {
    let cases = [
        (h3::Code::NO_ERROR, Code::Internal),
        (h3::Code::GENERAL_PROTOCOL_ERROR, Code::Internal),
        (h3::Code::INTERNAL_ERROR, Code::Internal),
        (h3::Code::EXCESSIVE_LOAD, Code::ResourceExhausted),
        (h3::Code::REQUEST_REJECTED, Code::Unavailable),
        (h3::Code::REQUEST_CANCELLED, Code::Cancelled),
        (h3::Code::REQUEST_INCOMPLETE, Code::Internal),
        (h3::Code::MESSAGE_ERROR, Code::Internal),
        (h3::Code::VERSION_FALLBACK, Code::Internal),
    ];
    let config = ServerConfig::with_identity(&IDENTITY)
        .expect("valid")
        .alpn([h3::ALPN]);
    let endpoint = Endpoint::server(config, "127.0.0.1:0".parse().expect("valid")).expect("a port");
    let uri = format!(
        "https://localhost:{}",
        endpoint.local_addr().expect("bound").port()
    );
    let (codes, mut next) = tokio::sync::mpsc::unbounded_channel::<h3::Code>();
    tokio::spawn(async move {
        let connection = endpoint
            .accept()
            .await
            .expect("a client")
            .await
            .expect("connected");
        let mut control = connection.open_uni().await.expect("open");
        // A control stream with empty SETTINGS.
        control.write_all(&[0, 4, 0]).await.expect("open");
        let mut code = h3::Code::NO_ERROR;
        while let Ok((mut send, mut receive)) = connection.accept_bi().await {
            // A call that was rejected comes again.
            while let Ok(after) = next.try_recv() {
                code = after;
            }
            let value = courser_quic::VarInt::from_u64(code.value()).expect("small");
            let _ = send.reset(value);
            let _ = receive.stop(value);
        }
    });
    let channel = to(&uri)
        .version(HttpVersion::Http3Only)
        .build()
        .expect("valid settings");
    for (code, expected) in cases {
        codes.send(code).expect("open");
        let error = failure(channel.clone()).await;
        assert_eq!(error.code(), expected, "{code}: {error}");
    }
}

/// Limit K543.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_call_is_sent_again_once() {
    let config = ServerConfig::with_identity(&IDENTITY)
        .expect("valid")
        .alpn([h3::ALPN]);
    let endpoint = Endpoint::server(config, "127.0.0.1:0".parse().expect("valid")).expect("a port");
    let port = endpoint.local_addr().expect("bound").port();
    let requests = Arc::new(AtomicUsize::new(0));
    let count = requests.clone();
    tokio::spawn(async move {
        let connection = endpoint.accept().await.expect("a client");
        let connection = connection.await.expect("connected");
        let mut control = connection.open_uni().await.expect("open");
        control.write_all(&[0, 4, 0]).await.expect("open");
        while let Ok((mut send, mut receive)) = connection.accept_bi().await {
            count.fetch_add(1, Ordering::SeqCst);
            let value = courser_quic::VarInt::from_u64(h3::Code::REQUEST_REJECTED.value());
            let value = value.expect("small");
            let _ = send.reset(value);
            let _ = receive.stop(value);
        }
    });
    let channel = to(&format!("https://localhost:{port}")).version(HttpVersion::Http3Only);
    let channel = channel.build().expect("valid settings");
    for calls in 1..=3 {
        let error = failure(channel.clone()).await;
        assert_eq!(error.code(), Code::Unavailable, "{error}");
        assert_eq!(requests.load(Ordering::SeqCst), 2 * calls);
    }
}

/// A client that gives up in the middle of its stream.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_call_ends_its_handler() {
    for version in [HttpVersion::Http3Only, HttpVersion::Http2PriorKnowledge] {
        let server = start();
        let channel = to(&server.uri())
            .version(version)
            .build()
            .expect("valid settings");
        let mut client = Client::new(channel);
        let call =
            tokio::spawn(async move { client.streaming_input_call(stream::pending()).await });
        until(|| server.test.open() == 1).await;
        call.abort();
        until(|| server.test.open() == 0).await;
    }
}

/// The handler that reads a stream of requests sees that its client has gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stream_of_a_cancelled_client_has_the_status_cancelled() {
    use tower_layer::Layer as _;
    use tower_service::Service as _;

    let (report, mut reports) = tokio::sync::mpsc::unbounded_channel();
    let service = tower::service_fn(
        move |request: Request<courser_grpc::RequestBody<courser_server::Body>>| {
            let report = report.clone();
            async move {
                // A task of its own outlives the call.
                tokio::spawn(async move {
                    let end = request.into_body().collect().await.map(|_| ());
                    let _ = report.send(end.map_err(|status| status.code()));
                });
                std::future::pending::<Result<Response<Full<bytes::Bytes>>, std::io::Error>>().await
            }
        },
    );
    let service = courser_grpc::ServerLayer::new().layer(service);
    let bound = courser_server::serve("127.0.0.1:0", &*IDENTITY)
        .bind()
        .expect("a port");
    let uri = format!("https://localhost:{}", bound.local_addr().port());
    tokio::spawn(bound.service(service).into_future());
    let mut channel = to(&uri)
        .version(HttpVersion::Http3Only)
        .build()
        .expect("valid settings");
    let (feed, body) =
        tokio::sync::mpsc::channel::<Result<http_body::Frame<bytes::Bytes>, std::io::Error>>(1);
    let body = http_body_util::StreamBody::new(stream::unfold(body, |mut it| async {
        Some((it.recv().await?, it))
    }));
    let request = Request::post("/any")
        .header("content-type", "application/grpc")
        .body(body)
        .expect("valid");
    let call = tokio::spawn(channel.call(request));
    feed.send(Ok(http_body::Frame::data(bytes::Bytes::from_static(
        &[0; 5],
    ))))
    .await
    .expect("open");
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    call.abort();
    assert_eq!(within(reports.recv()).await, Some(Err(Code::Cancelled)));
    drop(feed);
}

/// The limit of tonic, which is 4 MiB by default.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_above_the_limit_of_tonic_are_out_of_range() {
    let server = start();
    let request = |size| {
        stream::iter([StreamingInputCallRequest {
            payload: Some(super::pb::Payload {
                r#type: 0,
                body: vec![0; size],
            }),
            expect_compressed: None,
        }])
    };
    let mut client = Client::new(channel(&server));
    let fits = within(client.streaming_input_call(request((4 << 20) - 100))).await;
    assert_eq!(
        fits.expect("answered").get_ref().aggregated_payload_size,
        (4 << 20) - 100
    );
    let error = within(client.streaming_input_call(request(4 << 20))).await;
    assert_eq!(error.expect_err("too large").code(), Code::OutOfRange);
}
