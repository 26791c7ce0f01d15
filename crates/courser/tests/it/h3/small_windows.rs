//! Ends whose windows are smaller than a header section, than SETTINGS, or than a frame header.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use courser::{TransportConfig, h3};
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
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

/// Limit K430. Each response takes memory, so that requests of a client that takes none of them wait after a
/// hundred, until one has ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_wait_while_many_responses_are_unread() {
    const UNREAD: usize = 100;
    let of_client = TransportConfig {
        stream_receive_window: 100,
        stream_receive_window_max: 100,
        ..TransportConfig::default()
    };
    let of_server = TransportConfig {
        max_bidi_streams: 2 * UNREAD as u64,
        ..TransportConfig::default()
    };
    let pair = pair_between(of_client, of_server, |config| config);
    let (client, server) = pair.connect().await;
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let service = tower_of(move |_| {
        counted.fetch_add(1, SeqCst);
        async { Response::new(full(vec![7; 3_000])) }
    });
    crate::common::spawn(async move { h3::serve(server, service).await });
    let client = h3::Client::new(client);
    let mut requests: FuturesUnordered<_> =
        (0..2 * UNREAD).map(|_| client.send(get("/"))).collect();
    let mut unread = VecDeque::new();
    while unread.len() < UNREAD {
        let answer = within(requests.next()).await.expect("a request");
        unread.push_back(answer.expect("answered"));
    }
    for read in 0..2 * UNREAD {
        let answer = unread.pop_front().expect("a response");
        // With this window it takes thirty round trips, in which the server would call the service.
        assert_eq!(within(text(answer)).await.len(), 3_000);
        let calls = calls.load(SeqCst);
        assert!(calls <= UNREAD + read + 1, "{calls} after {read}");
        if let Some(answer) = within(requests.next()).await {
            unread.push_back(answer.expect("answered"));
        }
    }
    assert_eq!(calls.load(SeqCst), 2 * UNREAD);
}

/// Opens `number` requests whose header sections lack a byte, and completes all of them together. Returns how often the
/// service was called a while after `expected` calls, and the streams.
async fn complete_together<F>(
    number: u64,
    expected: usize,
    service: impl Fn() -> F + Clone + Send + 'static,
) -> (usize, impl Sized)
where
    F: Future<Output = super::Answer> + Send + 'static,
{
    let of_client = TransportConfig {
        stream_receive_window: 100,
        stream_receive_window_max: 100,
        ..TransportConfig::default()
    };
    let of_server = TransportConfig {
        max_bidi_streams: number,
        ..TransportConfig::default()
    };
    let pair = pair_between(of_client, of_server, |config| config);
    let (client, server) = pair.connect().await;
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let service = tower_of(move |_| {
        counted.fetch_add(1, SeqCst);
        service()
    });
    crate::common::spawn(async move { h3::serve(server, service).await });
    // HEADERS with GET https://localhost/.
    let head = b"\x01\x10\0\0\xd1\xd7\xc1\x50\x09localhost";
    let (last, most) = head.split_last().expect("bytes");
    let mut streams = Vec::new();
    for _ in 0..number {
        let (mut send, receive) = client.open_bi().await.expect("allowed");
        send.write_all(most).await.expect("open");
        streams.push((send, receive));
    }
    within(client.ping()).await.expect("open");
    for (send, _) in &mut streams {
        send.write_all(&[*last]).await.expect("open");
        send.finish().expect("open");
    }
    let pause = || tokio::time::sleep(std::time::Duration::from_millis(100));
    within(async {
        while calls.load(SeqCst) < expected {
            pause().await;
        }
    })
    .await;
    pause().await;
    (calls.load(SeqCst), (streams, pair, client))
}

/// Limit K430 holds for requests that were begun before any response had to wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_are_completed_together_wait_for_their_client() {
    let large = || async { Response::new(full(vec![7; 3_000])) };
    let (calls, _streams) = complete_together(250, 100, large).await;
    assert_eq!(calls, 100);
}

/// What waits for its service does not wait for its client: long polls may be as many as streams.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_wait_for_their_service_delay_no_others() {
    let (calls, _streams) = complete_together(250, 250, std::future::pending).await;
    assert_eq!(calls, 250);
}
