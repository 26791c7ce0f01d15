//! Streams beside requests, beside those of other sessions, and of sessions that never begin.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::Poll;
use std::time::Duration;

use courser_http3_tokio as h3;
use courser_quic::{ReadError, TransportConfig};
use courser_webtransport_tokio::{self as webtransport, Config, ConnectError, Session, upgrade};
use http::{Method, Request, Response, StatusCode};
use tokio::sync::{Semaphore, mpsc};

use crate::{Pair, serve, serve_on, session, wish, within};

/// K591. The connection allows a thousand streams for its session, and no more requests than before.
#[tokio::test]
async fn requests_beside_sessions_are_as_many_as_quic_allows_without() {
    let transport = TransportConfig {
        max_bidi_streams: 4,
        ..TransportConfig::default()
    };
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let gate = Arc::new(Semaphore::new(0));
    let service = {
        let (running, most, gate) = (running.clone(), most.clone(), gate.clone());
        move |mut request: Request<h3::Body>| {
            let (running, most, gate) = (running.clone(), most.clone(), gate.clone());
            async move {
                if request.method() == Method::CONNECT {
                    return upgrade(&mut request).accept(echo).await;
                }
                most.fetch_max(running.fetch_add(1, Relaxed) + 1, Relaxed);
                gate.acquire().await.expect("never closed").forget();
                running.fetch_sub(1, Relaxed);
                Response::new(h3::Empty)
            }
        }
    };
    let configs = [Config::new(), Config::new()];
    let (pair, _) = serve_on(transport, configs, service, std::future::pending()).await;
    let near = within(webtransport::connect(&pair.client, wish())).await;
    let near = near.expect("accepted");
    let mut requests = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let client = pair.client.clone();
        let request = Request::get("https://localhost/").body(h3::Empty);
        requests.spawn(async move { client.send(request.expect("valid")).await });
    }
    let until = async || {
        while running.load(Relaxed) < 3 {
            tokio::task::yield_now().await;
        }
    };
    within(until()).await;
    // Streams of the session pass those that wait.
    for _ in 0..50 {
        let (mut send, mut receive) = within(near.open_bi()).await.expect("open");
        send.write_all(b"hello").await.expect("open");
        send.finish().expect("open");
        let echoed = within(receive.read_to_end(10)).await.expect("whole");
        assert_eq!(echoed, b"hello");
    }
    assert_eq!(running.load(Relaxed), 3, "the session is a request too");
    gate.add_permits(20);
    while let Some(answered) = within(requests.join_next()).await {
        let response = answered.expect("no panic").expect("answered");
        assert_eq!(response.status(), 200);
    }
    assert_eq!(most.load(Relaxed), 3);
}

async fn echo(session: Session) {
    while let Ok((mut send, mut receive)) = session.accept_bi().await {
        let all = receive.read_to_end(1000).await.expect("whole");
        send.write_all(&all).await.expect("open");
        send.finish().expect("open");
    }
}

/// K593, A331. Both sessions have as many streams as a session may have.
#[tokio::test]
async fn session_that_keeps_its_streams_leaves_as_many_to_another() {
    let pair = serve([Config::new(), Config::new()], |mut request| async move {
        let accepted = upgrade(&mut request).accept(|session| async move {
            let mut kept = Vec::new();
            while let Ok((mut send, receive)) = session.accept_bi().await {
                send.write_all(b"x").await.expect("open");
                kept.push((send, receive));
            }
        });
        accepted.await
    })
    .await;
    let mut sessions = Vec::new();
    for _ in 0..2 {
        let session = within(webtransport::connect(&pair.client, wish())).await;
        sessions.push(session.expect("accepted"));
    }
    let mut kept = Vec::new();
    for session in &sessions {
        for at in 0..1024 {
            let opened = tokio::time::timeout(Duration::from_secs(10), session.open_bi()).await;
            let (mut send, mut receive) = opened.unwrap_or_else(|_| panic!("{at}")).expect("open");
            send.write_all(b"x").await.expect("open");
            let answer = within(receive.read_chunk(1)).await;
            assert!(matches!(answer, Ok(Some(_))), "{at}: {answer:?}");
            kept.push((send, receive));
        }
    }
    // There are streams for requests too.
    let request = Request::get("https://localhost/").body(h3::Empty);
    let response = within(pair.client.send(request.expect("valid"))).await;
    let status = response.expect("answered").status();
    assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
}

/// The server opens streams at once, more than K17 tolerates if they were useless.
async fn eager(opened: mpsc::UnboundedSender<()>) -> Pair {
    serve([Config::new(), Config::new()], move |mut request| {
        let opened = opened.clone();
        async move {
            let upgrade = upgrade(&mut request);
            let accepted = upgrade.accept(|session| async move {
                let mut streams = Vec::new();
                while streams.len() < 700
                    && let Ok(mut send) = session.open_uni().await
                {
                    if send.write_all(b"x").await.is_err() {
                        break;
                    }
                    streams.push(send);
                }
                opened.send(()).expect("open");
                session.closed().await;
            });
            accepted.await
        }
    })
    .await
}

#[tokio::test]
async fn streams_of_a_session_with_the_wrong_protocol_are_no_fault_of_the_server() {
    let (sender, mut opened) = mpsc::unbounded_channel();
    let pair = eager(sender).await;
    for _ in 0..3 {
        let request = wish().protocols(webtransport::Protocols::new(["one"]).expect("valid"));
        let request = request.require_protocol();
        let error = within(webtransport::connect(&pair.client, request)).await;
        let error = error.expect_err("the server chooses none");
        assert!(matches!(error, ConnectError::WrongProtocol), "{error}");
        within(opened.recv()).await.expect("accepted");
    }
    let session = within(webtransport::connect(&pair.client, wish())).await;
    session.expect("the connection is open");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_of_a_request_that_was_given_up_are_no_fault_of_the_server() {
    let (sender, mut opened) = mpsc::unbounded_channel();
    let pair = eager(sender).await;
    within(pair.client.settings()).await.expect("open");
    for _ in 0..3 {
        let mut connecting = Box::pin(webtransport::connect(&pair.client, wish()));
        // The request is sent, and its response waits with the streams when it is given up.
        let once = std::future::poll_fn(|cx| {
            let polled = connecting.as_mut().poll(cx);
            Poll::Ready(polled.is_pending())
        });
        assert!(once.await, "no response yet");
        within(opened.recv()).await.expect("accepted");
        drop(connecting);
    }
    let session = within(webtransport::connect(&pair.client, wish())).await;
    session.expect("the connection is open");
}

/// RFC 9000 §16: integers of a peer may be longer than necessary.
#[tokio::test]
async fn headers_of_any_length_are_not_content() {
    let (pair, near, far) = session().await;
    let quic = pair.client.quic();
    let (mut send, _receive) = within(quic.open_bi()).await.expect("open");
    // The signal 0x41 in eight bytes, and the session 0 in four.
    let header = [0xc0, 0, 0, 0, 0, 0, 0, 0x41, 0x80, 0, 0, 0];
    send.write_all(&header).await.expect("open");
    send.write_all(b"content").await.expect("open");
    send.finish().expect("open");
    let (_send, mut receive) = within(far.accept_bi()).await.expect("open");
    let all = within(receive.read_to_end(100)).await.expect("whole");
    assert_eq!(
        (all.as_slice(), receive.final_size()),
        (&b"content"[..], Some(7))
    );
    let mut send = within(quic.open_uni()).await.expect("open");
    let header = [0x80, 0, 0, 0x54, 0xc0, 0, 0, 0, 0, 0, 0, 0];
    for byte in header {
        send.write_all(&[byte]).await.expect("open");
        tokio::task::yield_now().await;
    }
    send.write_all(b"more").await.expect("open");
    send.finish().expect("open");
    let mut receive = within(far.accept_uni()).await.expect("open");
    let all = within(receive.read_to_end(100)).await.expect("whole");
    assert_eq!(
        (all.as_slice(), receive.final_size()),
        (&b"more"[..], Some(4))
    );
    drop(near);
}

/// The beginning of a request may arrive in pieces beside streams of sessions.
#[tokio::test]
async fn requests_may_begin_with_a_part_of_their_first_integer() {
    let (pair, _near, _far) = session().await;
    let quic = pair.client.quic();
    let (mut send, mut receive) = within(quic.open_bi()).await.expect("open");
    // HEADERS with the type in two bytes: GET https://localhost/ without a dynamic table.
    let head = [0x40, 0x01, 0x10, 0, 0, 0xd1, 0xd7, 0x50, 9];
    for bytes in [&head[..1], &head[1..], b"localhost", &[0xc1]] {
        send.write_all(bytes).await.expect("open");
        // Each leaves alone.
        within(send.acknowledged()).await.expect("open");
    }
    send.finish().expect("open");
    let first = within(receive.read_chunk(1)).await;
    let first = first.expect("answered").expect("a response");
    assert_eq!(first.as_ref(), [0x01], "HEADERS");
    // A reset before the first byte is that of a request.
    let (mut send, mut receive) = within(quic.open_bi()).await.expect("open");
    send.write_all(&[0x40]).await.expect("open");
    within(send.acknowledged()).await.expect("open");
    send.reset(0x10c_u32.into()).expect("open");
    let reset = within(receive.read_chunk(1)).await;
    assert!(matches!(reset, Err(ReadError::Reset(_))), "{reset:?}");
    assert_eq!(quic.close_reason(), None);
}

/// K594: the bytes of streams that nobody has accepted stay in the windows of QUIC.
#[tokio::test]
async fn streams_that_wait_give_no_credit_for_what_they_bring() {
    const WINDOW: u64 = 200_000;
    let transport = TransportConfig {
        receive_window: WINDOW,
        receive_window_max: WINDOW,
        ..TransportConfig::default()
    };
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let service = move |mut request| {
        let sender = sender.clone();
        async move {
            let upgrade = upgrade(&mut request);
            let accepted = upgrade.accept(|session| async move { sender.send(session).is_ok() });
            accepted.await
        }
    };
    let configs = [Config::new(), Config::new()];
    let (pair, _) = serve_on(transport, configs, service, std::future::pending()).await;
    let near = within(webtransport::connect(&pair.client, wish())).await;
    let near = near.expect("accepted");
    let far = within(receiver.recv()).await.expect("accepted");
    let arrived = Arc::new(AtomicUsize::new(0));
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let (near, arrived) = (near.clone(), arrived.clone());
        writers.spawn(async move {
            let mut send = near.open_uni().await.expect("open");
            send.write_all(&[7; 20_000]).await.expect("open");
            send.finish().expect("open");
            send.acknowledged().await.expect("open");
            arrived.fetch_add(1, Relaxed);
        });
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let waiting = arrived.load(Relaxed) as u64;
    assert!(
        waiting * 20_000 <= 2 * WINDOW,
        "{waiting} streams have arrived"
    );
    for _ in 0..100 {
        let mut receive = within(far.accept_uni()).await.expect("open");
        writers.spawn(async move {
            let all = receive.read_to_end(20_000).await.expect("whole");
            assert_eq!(all.len(), 20_000);
        });
    }
    while let Some(written) = within(writers.join_next()).await {
        written.expect("no panic");
    }
}
