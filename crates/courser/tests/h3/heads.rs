//! Requests that are nothing but a head, which leave in one step where they can.

use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use courser::h3::Priority;
use courser::{TransportConfig, h3};
use http::{Request, Response, StatusCode};

use super::common::pair_with;
use super::{Answer, full, get, serve, text, tower_of, within};

/// A client of a server that answers with the length of the longest value.
async fn measured(transport: TransportConfig) -> (super::Pair, h3::Client) {
    let pair = pair_with(transport, |config| config);
    let (client, server) = pair.connect().await;
    let service = tower_of(|request: Request<h3::Body>| async move {
        let longest = request.headers().values().map(http::HeaderValue::len).max();
        answer(longest.unwrap_or(0))
    });
    tokio::spawn(async move { h3::serve(server, service).await });
    (pair, h3::Client::new(client))
}

fn answer(number: usize) -> Answer {
    Response::new(full(number.to_string()))
}

/// The rest of it waits for credit, and the end for the rest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_larger_than_the_window_is_sent_in_pieces() {
    let window = 3000;
    let transport = TransportConfig {
        stream_receive_window: window,
        stream_receive_window_max: window,
        ..TransportConfig::default()
    };
    let (_pair, client) = measured(transport).await;
    for len in [10, 2900, 3000, 3100, 12_000] {
        let mut request = get("/");
        let value = "v".repeat(len).parse().expect("a value");
        request.headers_mut().insert("x-long", value);
        let response = within(client.send(request)).await.expect("answered");
        assert_eq!(within(text(response)).await, len.to_string());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_beyond_the_limit_of_streams_wait() {
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

/// The first look at the stream is skipped; what comes before the second must not be missed, whoever
/// is woken for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_is_seen_though_nobody_was_woken_for_it() {
    let (_pair, client) = measured(TransportConfig::default()).await;
    for pause in [0, 1, 100] {
        let mut sending = pin!(client.send(get("/")));
        let poll = sending
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        assert!(poll.is_pending(), "nothing can be there yet");
        tokio::time::sleep(Duration::from_millis(pause)).await;
        let response = within(sending).await.expect("answered");
        assert_eq!(within(text(response)).await, "0");
    }
}

/// The field, and the place of the stream on our side.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_priority_is_said() {
    let (_pair, client) = serve(|request| async move {
        let said = request.headers().get("priority").cloned();
        Response::new(full(said.map_or_else(String::new, |said| {
            said.to_str().expect("text").to_owned()
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
