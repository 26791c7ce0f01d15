//! Deadlines at both ends.

use std::time::{Duration, Instant};

use courser_client::HttpVersion;
use courser_grpc::ServerLayer;
use futures_util::stream;
use tonic::{Code, Request};

use super::common::{Client, channel, start, start_at, to, until, within};
use super::pb::{ResponseParameters, StreamingOutputCallRequest};

/// A response whose only message comes after an hour.
fn late() -> StreamingOutputCallRequest {
    StreamingOutputCallRequest {
        response_parameters: vec![ResponseParameters {
            size: 1,
            interval_us: i32::MAX,
            compressed: None,
        }],
        ..StreamingOutputCallRequest::default()
    }
}

/// The handler never answers, so only the channel knows the time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn call_ends_at_its_deadline_and_its_handler_is_dropped() {
    for version in [HttpVersion::Http3Only, HttpVersion::Http2PriorKnowledge] {
        let server = start();
        let channel = to(&server.uri())
            .version(version)
            .build()
            .expect("valid settings");
        channel.connect().await.expect("a server");
        let mut client = Client::new(channel);
        let began = Instant::now();
        let mut request = Request::new(stream::pending());
        request.set_timeout(Duration::from_millis(150));
        let error = within(client.streaming_input_call(request))
            .await
            .expect_err("too late");
        assert_eq!(error.code(), Code::DeadlineExceeded, "{version:?}: {error}");
        let took = began.elapsed();
        assert!(
            took >= Duration::from_millis(149) && took < Duration::from_secs(2),
            "{took:?}"
        );
        until(|| server.test.open() == 0).await;
    }
}

/// The header section of the response has arrived long before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stream_ends_at_its_deadline_and_is_dropped_at_the_server() {
    for version in [HttpVersion::Http3Only, HttpVersion::Http2PriorKnowledge] {
        let server = start();
        let channel = to(&server.uri())
            .version(version)
            .build()
            .expect("valid settings");
        let mut request = Request::new(late());
        request.set_timeout(Duration::from_millis(300));
        let response = within(Client::new(channel).streaming_output_call(request)).await;
        let mut messages = response.expect("started").into_inner();
        assert_eq!(server.test.open(), 1);
        let error = within(messages.message()).await.expect_err("too late");
        assert_eq!(error.code(), Code::DeadlineExceeded, "{version:?}: {error}");
        until(|| server.test.open() == 0).await;
    }
}

/// The client sets none, and the channel passes its own on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn default_timeout_of_a_channel_applies_unless_that_of_the_call_is_shorter() {
    let server = start();
    let limit = Duration::from_millis(200);
    let channel = to(&server.uri())
        .timeout(limit)
        .build()
        .expect("valid settings");
    let mut client = Client::new(channel);
    let call = client.streaming_input_call(stream::pending());
    let error = within(call).await.expect_err("too late");
    assert_eq!(error.code(), Code::DeadlineExceeded);
    assert!(error.message().contains("200ms"), "{error}");
    let mut request = Request::new(stream::pending());
    request.set_timeout(Duration::from_millis(20));
    let error = within(client.streaming_input_call(request))
        .await
        .expect_err("too late");
    assert!(error.message().contains("20ms"), "{error}");
}

/// The client is not ours to trust: the server enforces its own limit, and reports it as a status.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_ends_calls_of_clients_without_a_deadline() {
    let layer = ServerLayer::new().timeout(Duration::from_millis(100));
    let server = start_at("127.0.0.1:0".parse().expect("an address"), layer);
    let mut client = Client::new(channel(&server));
    let error = within(client.streaming_input_call(stream::pending()))
        .await
        .expect_err("too late");
    assert_eq!(error.code(), Code::DeadlineExceeded);
    assert!(
        error.message().contains("100ms"),
        "the text of the server: {error}"
    );
    let response = within(client.streaming_output_call(late()))
        .await
        .expect("started");
    let error = within(response.into_inner().message())
        .await
        .expect_err("too late");
    assert_eq!(error.code(), Code::DeadlineExceeded);
    until(|| server.test.open() == 0).await;
}

/// Nothing answers at the address, and connecting would take 20 seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deadline_includes_connecting() {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    let uri = format!(
        "https://localhost:{}",
        socket.local_addr().expect("bound").port()
    );
    let channel = to(&uri)
        .version(HttpVersion::Http3Only)
        .build()
        .expect("valid settings");
    let mut request = Request::new(super::pb::Empty {});
    request.set_timeout(Duration::from_millis(100));
    let error = within(Client::new(channel).empty_call(request))
        .await
        .expect_err("too late");
    assert_eq!(error.code(), Code::DeadlineExceeded, "{error}");
}
