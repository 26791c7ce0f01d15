//! Requests with only a header section, which are sent in one step if possible.

use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use courser::h3::Priority;
use courser::{ConnectionError, ReadError, ReadToEndError, TransportConfig, h3};
use http::{Request, Response, StatusCode};

use super::{Answer, full, get, serve, text, tower_of, within};
use crate::common::{pair_with, until};

/// Creates a client of a server that answers with the length of the longest value.
async fn measured(transport: TransportConfig) -> (super::Pair, h3::Client) {
    let pair = pair_with(transport, |config| config);
    let (client, server) = pair.connect().await;
    let service = tower_of(|request: Request<h3::Body>| async move {
        let longest = request.headers().values().map(http::HeaderValue::len).max();
        answer(longest.unwrap_or(0))
    });
    crate::common::spawn(async move { h3::serve(server, service).await });
    (pair, h3::Client::new(client))
}

fn answer(number: usize) -> Answer {
    Response::new(full(number.to_string()))
}

/// Returns settings with little room for unsent data.
fn with_little_room() -> TransportConfig {
    TransportConfig {
        unsent_limit: 4096,
        ..TransportConfig::default()
    }
}

/// Returns a request with a value that the Huffman code does not shorten.
fn with_value(len: usize) -> Request<h3::Empty> {
    let mut request = get("/");
    let value = "~".repeat(len).parse().expect("a value");
    request.headers_mut().insert("x-long", value);
    request
}

/// The rest of the request waits for room, and its end for the rest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_larger_than_the_send_buffer_is_sent_in_pieces() {
    let (_pair, client) = measured(with_little_room()).await;
    for len in [10, 4000, 4096, 4200, 8192, 12_000] {
        let response = within(client.send(with_value(len)))
            .await
            .expect("answered");
        assert_eq!(within(text(response)).await, len.to_string());
    }
}

/// The server reads nothing, so that there is never room for the rest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_cancelled_half_way_is_reset() {
    let window = 3000;
    let transport = TransportConfig {
        stream_receive_window: window,
        stream_receive_window_max: window,
        ..with_little_room()
    };
    let pair = pair_with(transport, |config| config);
    let (client, server) = pair.connect().await;
    let client = h3::Client::new(client);
    let sending = client.send(with_value(12_000));
    let result = tokio::time::timeout(Duration::from_millis(200), sending).await;
    assert!(result.is_err(), "half of it cannot be answered");
    let (_send, mut receive) = within(server.accept_bi()).await.expect("a stream");
    let error = within(receive.read_to_end(20_000))
        .await
        .expect_err("reset");
    let ReadToEndError::Read(ReadError::Reset(code)) = error else {
        panic!("{error}");
    };
    assert_eq!(code.into_inner(), h3::Code::REQUEST_CANCELLED.value());
}

/// The error contains the reason of the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_after_the_close_reports_the_reason() {
    let (_pair, client) = measured(TransportConfig::default()).await;
    within(client.send(get("/"))).await.expect("answered");
    client.close();
    let reason = expect_reason(&client).await;
    assert_eq!(reason, ConnectionError::LocallyClosed);

    let transport = TransportConfig {
        max_idle_timeout: Some(Duration::from_millis(100)),
        ..TransportConfig::default()
    };
    let (_pair, client) = measured(transport).await;
    let reason = expect_reason(&client).await;
    // The time of the server may end first, and its endpoint answers the next packet with a reset.
    let expected = matches!(reason, ConnectionError::TimedOut | ConnectionError::Reset);
    assert!(expected, "{reason:?}");
}

/// Returns why the connection ended, which is also the error of a later request.
async fn expect_reason(client: &h3::Client) -> ConnectionError {
    let reason = within(client.quic().closed()).await;
    let error = within(client.send(get("/"))).await.expect_err("ended");
    assert!(
        matches!(&error, h3::Error::Connection(found) if *found == reason),
        "{error:?}"
    );
    reason
}

/// RFC 9204 §4.4.1: also by a client that sends no further requests.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn response_that_uses_the_dynamic_table_is_acknowledged() {
    let pair = pair_with(TransportConfig::default(), |config| config);
    let (client, server) = pair.connect().await;
    let client = h3::Client::new(client);
    let answering = crate::common::spawn(async move {
        let mut control = server.open_uni().await.expect("open");
        control.write_all(&[0x00, 0x04, 0x00]).await.expect("open");
        let mut encoder = server.open_uni().await.expect("open");
        // A capacity of 4096 bytes, and the entry `k: v`.
        let instructions = [0x02, 0x3f, 0xe1, 0x1f, 0x41, b'k', 1, b'v'];
        encoder.write_all(&instructions).await.expect("open");
        let (mut send, mut receive) = server.accept_bi().await.expect("a request");
        receive.read_to_end(10_000).await.expect("a header section");
        // A HEADERS frame: `:status: 200`, and the entry.
        let head = [0x01, 4, 2, 0, 0xd9, 0x80];
        send.write_all(&head).await.expect("open");
        send.finish().expect("open");
        // The one before it may never carry any bytes.
        let control_of_client = server.accept_uni().await.expect("a stream");
        let encoder_of_client = server.accept_uni().await.expect("a stream");
        let mut decoder = server.accept_uni().await.expect("a stream");
        let others = [control_of_client, encoder_of_client];
        let mut kind = [0];
        decoder.read_exact(&mut kind).await.expect("a type");
        assert_eq!(kind, [0x03]);
        let mut instruction = [0];
        while instruction != [0x80] {
            decoder
                .read_exact(&mut instruction)
                .await
                .expect("an acknowledgement");
        }
        (server, control, encoder, others)
    });
    let response = within(client.send(get("/"))).await.expect("answered");
    assert_eq!(response.headers()["k"], "v");
    within(answering).await.expect("acknowledged");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_beyond_the_stream_limit_wait() {
    let transport = TransportConfig {
        max_bidi_streams: 2,
        ..TransportConfig::default()
    };
    let (_pair, client) = measured(transport).await;
    let requests = (0..50).map(|_| async {
        let response = client.send(get("/")).await.expect("answered");
        assert_eq!(response.status(), StatusCode::OK);
        text(response).await
    });
    let answers = within(futures_util::future::join_all(requests)).await;
    assert!(answers.iter().all(|answer| answer == "0"));
}

/// The first read of the stream is skipped. A response that arrives before the second must not be
/// missed, whichever task is woken for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn response_is_received_without_its_own_wakeup() {
    let (_pair, client) = measured(TransportConfig::default()).await;
    for is_there in [false, true, true] {
        let before = client.quic().stats().data_received;
        let mut sending = pin!(client.send(get("/")));
        let poll = sending
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        assert!(poll.is_pending(), "nothing can be there yet");
        if is_there {
            until(|| client.quic().stats().data_received > before).await;
        }
        let response = within(sending).await.expect("answered");
        assert_eq!(within(text(response)).await, "0");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn priority_is_sent() {
    let (_pair, client) = serve(|request| async move {
        let priority = request.headers().get("priority").cloned();
        Response::new(full(priority.map_or_else(String::new, |priority| {
            priority.to_str().expect("text").to_owned()
        })))
    })
    .await;
    let mut request = get("/");
    request
        .extensions_mut()
        .insert(Priority::parse(b"u=1").expect("a priority"));
    let response = within(client.send(request)).await.expect("answered");
    assert_eq!(within(text(response)).await, "u=1");
    let response = within(client.send(get("/"))).await.expect("answered");
    assert_eq!(within(text(response)).await, "");
}
