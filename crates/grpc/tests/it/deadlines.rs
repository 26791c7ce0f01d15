//! Deadlines at both ends.

use std::time::{Duration, Instant};

use courser_client::HttpVersion;
use courser_grpc::ServerLayer;
use futures_util::stream;
use tonic::{Code, Request};

use super::common::{Client, channel, start, start_at, to, until, within};
use super::pb::{ResponseParameters, StreamingInputCallRequest, StreamingOutputCallRequest};

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

/// The handler never answers. The time of a call takes the place of that of the channel, shorter or longer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn timeout_of_a_channel_applies_to_calls_without_one_only() {
    for version in [HttpVersion::Http3Only, HttpVersion::Http2PriorKnowledge] {
        let server = start();
        let channel = to(&server.uri())
            .version(version)
            .timeout(Duration::from_millis(200))
            .build()
            .expect("valid settings");
        let mut client = Client::new(channel);
        for (own, expected) in [(None, 200), (Some(20), 20), (Some(700), 700)] {
            let mut request = Request::new(stream::pending());
            if let Some(own) = own {
                request.set_timeout(Duration::from_millis(own));
            }
            let began = Instant::now();
            let call = client.streaming_input_call(request);
            let error = within(call).await.expect_err("too late");
            assert_eq!(error.code(), Code::DeadlineExceeded);
            assert!(began.elapsed() >= Duration::from_millis(expected - 1));
            // A server that is a little earlier reports the same time.
            let text = format!("within {expected}ms");
            assert!(error.message().contains(&text), "{version:?}: {error}");
            until(|| server.test.open() == 0).await;
        }
    }
}

/// A unary call whose answer comes after the channel's timeout, but within its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn longer_timeout_of_a_call_is_answered_after_that_of_the_channel() {
    let server = start();
    let channel = to(&server.uri())
        .timeout(Duration::from_millis(50))
        .build()
        .expect("valid settings");
    let mut client = Client::new(channel);
    let slow = || {
        stream::once(async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            StreamingInputCallRequest::default()
        })
    };
    let error = within(client.streaming_input_call(slow())).await;
    assert_eq!(error.expect_err("too late").code(), Code::DeadlineExceeded);
    let mut request = Request::new(slow());
    request.set_timeout(Duration::from_secs(20));
    within(client.streaming_input_call(request))
        .await
        .expect("its own time is longer");
}

/// The response of the stream begins in time, and its messages come later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stream_that_has_begun_outlasts_the_timeout_of_its_channel() {
    for version in [HttpVersion::Http3Only, HttpVersion::Http2PriorKnowledge] {
        let server = start();
        let limit = Duration::from_millis(400);
        let channel = to(&server.uri())
            .version(version)
            .timeout(limit)
            .build()
            .expect("valid settings");
        channel.connect().await.expect("a server");
        let mut request = late();
        request.response_parameters[0].interval_us = 900_000;
        let began = Instant::now();
        let response = within(Client::new(channel).streaming_output_call(request)).await;
        let mut messages = response.expect("started").into_inner();
        let message = within(messages.message()).await.expect("no deadline");
        assert!(message.is_some() && began.elapsed() > limit, "{version:?}");
    }
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
