use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use bytes::Bytes;
use courser::server::{Protocol, Server};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use tokio::sync::Notify;

use super::client::{BoxBody, BoxError, Client, text};
use super::{Running, start_with, within};
use crate::common::relay::Relay;
use crate::common::until;

/// Returns an application whose responses begin at once, and end when `resume` is notified.
fn paused_response(resume: &Arc<Notify>) -> Router {
    let resume = resume.clone();
    let paused = move || {
        let resume = resume.clone();
        async move {
            let begin = Ok::<_, BoxError>(Frame::data(Bytes::from_static(b"begin")));
            let end = async move {
                resume.notified().await;
                Ok(Frame::data(Bytes::from_static(b" end")))
            };
            let first = futures_util::stream::iter([begin]);
            let frames = futures_util::StreamExt::chain(first, futures_util::stream::once(end));
            Body::new(StreamBody::new(frames))
        }
    };
    Router::new()
        .route("/paused", get(paused))
        .route("/", get(|| async { "quick" }))
}

/// Returns a response whose first part has arrived.
async fn partial_response(
    running: &Running,
    protocol: Protocol,
) -> (Client, http::Response<BoxBody>) {
    let address = running.handle.local_addr();
    let client = Client::connect(protocol, address, &running.identity).await;
    let mut client = client.expect("a server");
    let mut response = within(client.get("/paused")).await.expect("an answer");
    let frame = within(response.body_mut().frame()).await;
    let data = frame.expect("a frame").expect("no error").into_data();
    assert_eq!(data.expect("data"), "begin");
    (client, response)
}

fn start(change: impl FnOnce(Server) -> Server) -> (Running, Arc<Notify>) {
    let resume = Arc::new(Notify::new());
    (start_with(paused_response(&resume), change), resume)
}

async fn finishes(protocol: Protocol) {
    let (running, resume) = start(|server| server);
    let (_client, response) = partial_response(&running, protocol).await;
    let (handle, identity) = (running.handle.clone(), running.identity.clone());
    assert!(handle.stats().ready);
    handle.drain();
    until(|| handle.stats().draining).await;
    assert!(!handle.stats().ready);
    let is_refused = || async {
        let late = Client::connect(protocol, handle.local_addr(), &identity);
        // TCP's backlog may have accepted it, or the UDP address was left to the next process, of which there is none.
        // Then there is no response.
        match tokio::time::timeout(Duration::from_secs(5), late).await {
            Ok(Ok(mut late)) => late.get("/").await.is_err(),
            Ok(Err(_)) | Err(_) => true,
        }
    };
    // The task that accepts clients stops a moment later.
    let mut served = 0;
    while !within(is_refused()).await {
        served += 1;
        assert!(served < 20, "{protocol}: new connections are served");
    }
    resume.notify_one();
    assert_eq!(within(text(response)).await, " end", "{protocol}");
    let drained = running.drained().await;
    let cut = (drained.cut, drained.connections_cut);
    assert_eq!(cut, (0, 0), "{protocol}: {drained}");
    let counts = 1..=1 + served;
    assert!(counts.contains(&drained.finished), "{protocol}: {drained}");
    let connections = drained.connections;
    assert!(counts.contains(&connections), "{protocol}: {drained}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http1_responses_are_finished() {
    finishes(Protocol::Http1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http2_responses_are_finished() {
    finishes(Protocol::Http2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http3_responses_are_finished() {
    finishes(Protocol::Http3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deadline_cuts_the_remaining_requests() {
    for protocol in Protocol::ALL {
        let (running, _resume) = start(|server| server.deadline(Duration::from_millis(300)));
        let (_client, response) = partial_response(&running, protocol).await;
        let drained = running.drained().await;
        assert_eq!(
            (drained.finished, drained.cut),
            (0, 1),
            "{protocol}: {drained}"
        );
        assert_eq!(drained.connections_cut, 1, "{protocol}: {drained}");
        assert!(
            drained.took >= Duration::from_millis(300),
            "{protocol}: {drained}"
        );
        let rest = within(response.into_body().collect()).await;
        assert!(
            rest.is_err(),
            "{protocol}: the client believes that it has all"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connections_end_at_once() {
    let (running, _resume) = start(|server| server);
    let mut clients = Vec::new();
    for protocol in Protocol::ALL {
        let address = running.handle.local_addr();
        let client = Client::connect(protocol, address, &running.identity).await;
        let mut client = client.expect("a server");
        assert_eq!(within(client.text("/")).await, "quick");
        clients.push(client);
    }
    let drained = running.drained().await;
    assert_eq!((drained.finished, drained.cut), (0, 0), "{drained}");
    assert_eq!(
        (drained.connections, drained.connections_cut),
        (3, 0),
        "{drained}"
    );
    assert!(drained.took < Duration::from_secs(10), "{drained}");
}

/// Load balancers see that the server is not ready while it still serves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readiness_turns_false_before_clients_are_refused() {
    let (running, _resume) = start(|server| server.ready_delay(Duration::from_secs(3600)));
    running.handle.drain();
    assert!(!running.handle.stats().ready);
    for protocol in Protocol::ALL {
        let address = running.handle.local_addr();
        let client = Client::connect(protocol, address, &running.identity).await;
        let text = within(client.expect("still served").text("/")).await;
        assert_eq!(text, "quick", "{protocol}");
    }
    assert!(!running.handle.stats().draining);
    running.handle.cut();
    within(running.task).await.expect("no panic");
}

/// A client that remembers Alt-Svc would try a closed port.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alt_svc_is_withdrawn_while_draining() {
    let (arrived, resume) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (arrives, resumed) = (arrived.clone(), resume.clone());
    let late = move || {
        let (arrives, resumed) = (arrives.clone(), resumed.clone());
        async move {
            arrives.notify_one();
            resumed.notified().await;
            "late"
        }
    };
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let app = Router::new().route("/", get(late.clone()));
        let running = start_with(app, |server| server);
        let address = running.handle.local_addr();
        let client = Client::connect(protocol, address, &running.identity).await;
        let mut client = client.expect("a server");
        let asking = crate::common::spawn(async move { client.get("/").await });
        within(arrived.notified()).await;
        running.handle.drain();
        until(|| running.handle.stats().draining).await;
        // The response begins when the server is draining.
        resume.notify_one();
        let response = within(asking).await.expect("no panic").expect("answered");
        assert_eq!(response.headers()["alt-svc"], "clear", "{protocol}");
        assert_eq!(within(text(response)).await, "late");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_server_cuts_everything() {
    let (running, _resume) = start(|server| server);
    let mut open = Vec::new();
    for protocol in Protocol::ALL {
        open.push((protocol, partial_response(&running, protocol).await));
    }
    running.task.abort();
    for (protocol, (_client, response)) in open {
        let rest = within(response.into_body().collect()).await;
        assert!(rest.is_err(), "{protocol}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signal_future_drains() {
    let signal = Arc::new(Notify::new());
    let signalled = signal.clone();
    let (running, _resume) =
        start(|server| server.drain(async move { signalled.notified().await }));
    signal.notify_one();
    let drained = within(running.task).await.expect("no panic");
    assert_eq!(drained.connections, 0);
}

/// Requests in all shards finish, later clients reach none of them, and what each has counted is summed.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_shards_drain() {
    let (running, resume) = start(|server| server.shards(4));
    let mut clients = Vec::new();
    for _ in 0..16 {
        clients.push(partial_response(&running, Protocol::Http3).await);
    }
    let handle = running.handle.clone();
    let endpoint = handle.endpoints().pop().expect("one address");
    let used = endpoint.shard_stats().into_iter();
    let used = used.filter(|stats| stats.accepted > 0).count();
    assert!(endpoint.shard_count() == 4 && used > 1, "{used} shards");
    let stats = handle.stats().listeners[0].quic.expect("QUIC");
    assert_eq!((stats.accepted, stats.connections), (16, 16));
    handle.drain();
    until(|| handle.stats().draining).await;
    let late = || Client::connect(Protocol::Http3, handle.local_addr(), &running.identity);
    // The task that accepts clients stops a moment later.
    while within(late()).await.is_ok() {}
    // Nobody is at the address, which a client finds out after seconds.
    let all = futures_util::future::join_all((0..8).map(|_| late()));
    let all = within(all).await;
    assert!(all.iter().all(Result::is_err), "no shard accepts");
    for (client, response) in clients {
        let mut rest = std::pin::pin!(response.into_body().collect());
        let rest = async {
            loop {
                tokio::select! {
                    rest = &mut rest => break rest,
                    () = tokio::task::yield_now() => resume.notify_waiters(),
                }
            }
        };
        let rest = within(rest).await.expect("the rest");
        assert_eq!(rest.to_bytes(), " end");
        drop(client);
    }
}

/// A client that has crashed says nothing, and its response has no end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_that_is_gone_does_not_hold_the_drain() {
    let (running, _resume) = start(|server| server.deadline(Duration::from_secs(600)));
    let relay = Relay::new(running.handle.local_addr());
    let client = Client::connect(Protocol::Http3, relay.address, &running.identity).await;
    let mut client = client.expect("a server");
    let response = within(client.get("/paused")).await.expect("an answer");
    // Nothing passes any more, in both directions.
    relay.hold_answers();
    relay.hold_finished();
    running.handle.drain();
    let drained = crate::common::within(120, running.task).await;
    let drained = drained.expect("no panic");
    assert!(
        drained.took >= Duration::from_secs(10) && drained.took < Duration::from_secs(25),
        "before the idle timeout of 30 s, after a silence that a living client may have: {drained}"
    );
    drop((client, response));
}

/// Someone who reads the reason must not look for a limit that was reached.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_that_comes_during_the_drain_learns_that_the_server_shuts_down() {
    let (running, resume) = start(|server| server);
    let (_client, response) = partial_response(&running, Protocol::Http3).await;
    let address = running.handle.local_addr();
    running.handle.drain();
    until(|| running.handle.stats().draining).await;
    let refused = Client::connect(Protocol::Http3, address, &running.identity).await;
    let error = refused.err().expect("the server drains").to_string();
    assert!(error.contains("the server is shutting down"), "{error}");
    resume.notify_one();
    assert_eq!(within(text(response)).await, " end");
    within(running.task).await.expect("no panic");
}
