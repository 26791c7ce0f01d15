//! Ends whose windows are smaller than a header section, than SETTINGS, or than a frame header.

use courser::{TransportConfig, h3};
use futures_util::future::join_all;
use http::Response;

use super::{full, get, text, tower_of, within};
use crate::common::pair_between;

/// Returns settings with windows of one size that do not grow.
fn of(window: u64) -> TransportConfig {
    TransportConfig {
        receive_window: window,
        receive_window_max: window,
        stream_receive_window: window,
        stream_receive_window_max: window,
        ..TransportConfig::default()
    }
}

/// Sends a hundred requests at once and checks the content of each response.
async fn all_are_answered(of_client: TransportConfig, of_server: TransportConfig) {
    let pair = pair_between(of_client, of_server, |config| config);
    let (client, server) = pair.connect().await;
    let service = tower_of(|request| async move {
        let path = request.uri().path().to_owned();
        Response::new(full(format!("the answer to {path}")))
    });
    crate::common::spawn(async move { h3::serve(server, service).await });
    let client = h3::Client::new(client);
    let requests = (0..100).map(|number| {
        let client = &client;
        async move {
            let response = client.send(get(&format!("/{number}"))).await;
            let content = text(response.expect("answered")).await;
            assert_eq!(content, format!("the answer to /{number}"));
        }
    });
    within(join_all(requests)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_with_small_windows_get_every_answer() {
    for window in [1, 10, 100, 1000] {
        all_are_answered(of(window), TransportConfig::default()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_with_small_windows_answer_every_request() {
    for window in [1, 10, 100, 1000] {
        all_are_answered(TransportConfig::default(), of(window)).await;
    }
}

/// A client that leaves all content unread still receives every header section: content without
/// room in the window of its own stream takes none from others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_content_delays_no_other_response() {
    let of_client = TransportConfig {
        stream_receive_window: 100,
        stream_receive_window_max: 100,
        ..TransportConfig::default()
    };
    let pair = pair_between(of_client, TransportConfig::default(), |config| config);
    let (client, server) = pair.connect().await;
    let service = tower_of(|_| async { Response::new(full(vec![7; 3_000])) });
    crate::common::spawn(async move { h3::serve(server, service).await });
    let client = h3::Client::new(client);
    let requests = (0..100).map(|_| client.send(get("/")));
    let answers = within(join_all(requests)).await;
    let answers: Vec<_> = answers
        .into_iter()
        .map(|it| it.expect("answered"))
        .collect();
    // Read later, all of it is available.
    for answer in answers {
        assert_eq!(within(text(answer)).await.len(), 3_000);
    }
}
