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

/// An upstream server that accepts sessions and keeps the bytes of their CONNECT streams.
fn raw_upstream(seen: tokio::sync::mpsc::UnboundedSender<Vec<u8>>) -> (ServerHandle, Identity) {
    let identity = Identity::dev().expect("random numbers");
    let bound = server(&identity, any_origin());
    let handle = bound.handle();
    let service = tower::service_fn(move |mut request: Request<server::Body>| {
        let seen = seen.clone();
        async move {
            let upgrade = h3::upgrade(&mut request).expect("a CONNECT");
            tokio::spawn(async move {
                let mut stream = upgrade.await.expect("accepted");
                let mut content = Vec::new();
                while let Ok(Some(chunk)) = stream.read_chunk().await {
                    content.extend_from_slice(&chunk);
                }
                seen.send(content)
            });
            Ok::<_, std::convert::Infallible>(Response::new(h3::Empty::new()))
        }
    });
    let serving = bound.service(service);
    tokio::spawn(async move { serving.await });
    (handle, identity)
}

/// WT-h3-093: the capsules of flow control are those of a hop. What a client sends of them reaches the proxy, and its close
/// the server behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn capsules_of_flow_control_end_at_the_proxy() {
    let (sender, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let (far, identity) = raw_upstream(sender);
    let gate = Gate::to(far.local_addr(), &identity);
    let client = gate.client().await;
    let uri = format!("https://localhost:{}/any", client.port);
    let token = h3::Protocol::new("webtransport-h3").expect("a token");
    let request = Request::connect(uri)
        .extension(token)
        .body(())
        .expect("valid");
    let response = within(client.http3.connect(request))
        .await
        .expect("accepted");
    let mut stream = response.into_body();
    // A number that occurs nowhere else, far above the initial limits.
    let value = [0xc0, 0, 0x5a, 0xa5, 0x12, 0x34, 0x56, 0x78];
    // WT_MAX_DATA, WT_MAX_STREAMS in both directions, WT_DATA_BLOCKED, WT_STREAMS_BLOCKED in both.
    for kind in [
        0x190b_4d3d_u32,
        0x190b_4d3f,
        0x190b_4d40,
        0x190b_4d41,
        0x190b_4d43,
        0x190b_4d44,
    ] {
        let kind = (kind | 0x8000_0000).to_be_bytes();
        let capsule = [&kind[..], &[8], &value].concat();
        within(stream.write_chunk(capsule.into()))
            .await
            .expect("open");
    }
    // WT_CLOSE_SESSION with code 5.
    let close = [&[0x68, 0x43, 9, 0, 0, 0, 5][..], b"tired"].concat();
    within(stream.write_chunk(close.into()))
        .await
        .expect("open");
    within(tokio::io::AsyncWriteExt::shutdown(&mut stream))
        .await
        .expect("open");
    let content = within(seen.recv()).await.expect("an end");
    let has = |part: &[u8]| content.windows(part.len()).any(|it| it == part);
    assert!(has(b"tired"), "{content:x?}");
    assert!(!has(&value[1..]), "{content:x?}");
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
