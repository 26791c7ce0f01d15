//! Clients and upstream servers that do what they should not.

use super::*;

/// A253 with the proxy in the middle: an end that never reads gets no credit, and its close arrives all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn close_passes_a_proxy_whose_streams_are_full() {
    let (sender, mut seen) = tokio::sync::mpsc::unbounded_channel();
    // The upstream server accepts no stream and reads nothing.
    let far = Accepting::start(move |session| {
        let sender = sender.clone();
        async move { drop(sender.send(session.closed().await)) }
    });
    let gate = Gate::to(far.0.local_addr(), &far.1);
    let client = gate.client().await;
    let session = client.open("/any").await;
    let (mut send, _receive) = within(session.open_bi()).await.expect("open");
    let flood = async {
        let chunk = vec![0; 1 << 20];
        loop {
            if send.write_all(&chunk).await.is_err() {
                return;
            }
        }
    };
    // Until the windows of both hops are full.
    assert!(timeout(Duration::from_secs(2), flood).await.is_err());
    session.close(5, "tired");
    let closed = within(seen.recv()).await.expect("an end");
    assert_eq!(
        closed.to_string(),
        "the peer has closed the session with code 5: tired"
    );
}

/// A391: what a slow upstream server does not read stays with the client, and other sessions are not slower.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_receivers_hold_their_sender_back_and_nobody_else() {
    let far = Accepting::start(|session| async move { drop(session.closed().await) });
    let gate = Gate::to(far.0.local_addr(), &far.1);
    let slow = gate.client().await;
    let session = slow.open("/any").await;
    let mut sent = 0u64;
    let mut streams = Vec::new();
    // Writes on many streams until nothing is accepted for a while.
    let flood = async {
        loop {
            let (mut send, receive) = session.open_bi().await.expect("open");
            for _ in 0..16 {
                send.write_all(&[0; 65_536]).await.expect("open");
                sent += 65_536;
            }
            streams.push((send, receive));
        }
    };
    assert!(timeout(Duration::from_secs(3), flood).await.is_err());
    // The windows of both connections, and one chunk of each stream in the proxy.
    assert!(sent < 200 << 20, "{sent} bytes were accepted");
    // Another client of the same proxy, whose server reads.
    let upstream = Upstream::start(any_origin());
    let other = Gate::to(upstream.handle.local_addr(), &upstream.identity);
    let quick = other.client().await.open("/echo").await;
    echoes(&quick, &vec![1; 1_000_000]).await;
    // A second session of the slow client itself, on the same connection.
    let second = slow.open("/any").await;
    second.datagrams().send(b"x").expect("sent");
    assert!(second.close_reason().is_none());
}

/// A reset of a stream that waits for a receiver which never reads arrives there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resets_overtake_bytes_that_wait() {
    let (sender, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let far = Accepting::start(move |session| {
        let sender = sender.clone();
        async move {
            let Ok((_send, mut receive)) = session.accept_bi().await else {
                return;
            };
            let _ = sender.send(receive.was_reset().await);
        }
    });
    let gate = Gate::to(far.0.local_addr(), &far.1);
    let session = gate.client().await.open("/any").await;
    let (mut send, _receive) = within(session.open_bi()).await.expect("open");
    let chunk = vec![0; 1 << 20];
    let flood = async { while send.write_all(&chunk).await.is_ok() {} };
    assert!(timeout(Duration::from_secs(2), flood).await.is_err());
    send.reset(77).expect("open");
    let code = within(seen.recv()).await.expect("a reset");
    assert_eq!(code, Some(ApplicationCode(77)));
}

/// A392: datagrams to a receiver that takes none are dropped, the newest arrive, and streams continue.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floods_of_datagrams_leave_streams_alone() {
    let upstream = Upstream::start(any_origin());
    let gate = Gate::to(upstream.handle.local_addr(), &upstream.identity);
    let session = gate.client().await.open("/echo").await;
    for number in 0..20_000u32 {
        session
            .datagrams()
            .send(&number.to_be_bytes())
            .expect("sent");
        if number % 100 == 0 {
            tokio::task::yield_now().await;
        }
    }
    echoes(&session, &vec![1; 500_000]).await;
    let mut last = None;
    while let Ok(Some(datagram)) =
        timeout(Duration::from_millis(500), session.datagrams().receive()).await
    {
        last = Some(datagram);
    }
    assert!(last.is_some());
}
