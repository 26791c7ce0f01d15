//! The limits of a proxy.

use courser_masque_tokio::{Ended, Limits, LostStream};

use super::*;

fn limited(change: impl FnOnce(&mut Limits)) -> UdpProxy {
    let mut limits = Limits::default();
    change(&mut limits);
    open_proxy().limits(limits)
}

/// Limit K621, attack A353. The clients of `courser::serve` are told apart by their addresses.
#[cfg(feature = "server")]
#[tokio::test(flavor = "multi_thread")]
async fn tunnels_of_a_client_are_limited() {
    let proxy = limited(|limits| limits.tunnels_per_client = 3);
    let started = start(proxy.clone()).await;
    let target = echo().await.to_string();
    let client = started.client(Carrier::Http3).await;
    let mut sockets = Vec::new();
    for _ in 0..3 {
        sockets.push(within(client.open(&target)).await.expect("room"));
    }
    // Another connection of the same client, over another version.
    let other = started.client(Carrier::Http2).await;
    let error = within(other.open(&target)).await.expect_err("full");
    assert_eq!(error.status().map(|status| status.as_u16()), Some(429));
    sockets.pop();
    until(|| proxy.stats().open == 2).await;
    within(other.open(&target)).await.expect("room again");
    assert_eq!(proxy.stats().refused, 1);
}

/// Limit K621.
#[tokio::test(flavor = "multi_thread")]
async fn tunnels_of_all_clients_are_limited() {
    let started = start(limited(|limits| limits.tunnels = 1)).await;
    let target = echo().await.to_string();
    let client = started.client(Carrier::Http3).await;
    let _socket = within(client.open(&target)).await.expect("room");
    let error = within(client.open(&target)).await.expect_err("full");
    assert_eq!(error.status().map(|status| status.as_u16()), Some(503));
    assert_eq!(
        error.reported().map(|reported| reported.error.as_str()),
        Some("connection_limit_reached")
    );
}

/// Limit K621, MQ-udp-010.
#[tokio::test(flavor = "multi_thread")]
async fn idle_tunnels_end_and_busy_ones_do_not() {
    let proxy = limited(|limits| limits.idle = Duration::from_millis(400));
    let started = start(proxy.clone()).await;
    let target = echo().await.to_string();
    for carrier in ALL {
        let socket = started.open(carrier, &target).await;
        for _ in 0..8 {
            socket.send(b"busy").expect("open");
            within(socket.recv()).await.expect("open");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(within(socket.closed()).await, Ended::ByPeer, "{carrier:?}");
    }
    until(|| proxy.stats().open == 0).await;
}

/// Limit K623, attack A352, MQ-udp-030.
#[tokio::test(flavor = "multi_thread")]
async fn a_target_that_never_answers_gets_few_bytes() {
    let proxy = open_proxy();
    let started = start(proxy.clone()).await;
    let silent = UdpSocket::bind("127.0.0.1:0").await.expect("bound");
    let address = silent.local_addr().expect("bound").to_string();
    let socket = started.open(Carrier::Http2, &address).await;
    for _ in 0..500 {
        socket.send(&[0; 1000]).expect("open");
    }
    until(|| {
        let stats = proxy.stats();
        stats.to_targets + stats.dropped == 500
    })
    .await;
    let sent = proxy.stats().to_targets;
    assert!((60..=80).contains(&sent), "{sent} packets of 1000 bytes");
    // With its answer it is a peer.
    let mut buffer = [0; 2000];
    let (_, from) = within(silent.recv_from(&mut buffer))
        .await
        .expect("received");
    silent.send_to(b"hello", from).await.expect("sent");
    assert_eq!(within(socket.recv()).await.expect("open"), "hello");
    for _ in 0..100 {
        socket.send(&[0; 1000]).expect("open");
    }
    until(|| proxy.stats().to_targets == sent + 100).await;
}

/// Limit K565, attack A352: whoever opens a tunnel again has no more bytes than before.
#[tokio::test(flavor = "multi_thread")]
async fn a_target_that_never_answers_gets_few_bytes_from_all_tunnels_of_a_client() {
    let proxy = open_proxy();
    let started = start(proxy.clone()).await;
    let silent = UdpSocket::bind("127.0.0.1:0").await.expect("bound");
    let address = silent.local_addr().expect("bound").to_string();
    for opened in 1..=4 {
        let socket = started.open(Carrier::Http2, &address).await;
        for _ in 0..200 {
            socket.send(&[0; 1000]).expect("open");
        }
        until(|| {
            let stats = proxy.stats();
            stats.to_targets + stats.dropped == 200 * opened
        })
        .await;
        drop(socket);
        until(|| proxy.stats().open == 0).await;
    }
    let sent = proxy.stats().to_targets;
    assert!((60..=90).contains(&sent), "{sent} packets of 1000 bytes");
}

/// Limit K567: a client that sends nothing does not keep a proxy that wants to end.
#[tokio::test(flavor = "multi_thread")]
async fn idle_tunnels_of_a_proxy_that_drains_end() {
    let proxy = open_proxy();
    let started = start(proxy.clone()).await;
    let target = echo().await.to_string();
    let busy = started.open(Carrier::Http3, &target).await;
    let idle = started.open(Carrier::Http3, &target).await;
    // A target that goes on to send is no client.
    let talkative = UdpSocket::bind("127.0.0.1:0").await.expect("bound");
    let address = talkative.local_addr().expect("bound").to_string();
    let listener = started.open(Carrier::Http3, &address).await;
    listener.send(b"begin").expect("open");
    let mut buffer = [0; 10];
    let (_, from) = within(talkative.recv_from(&mut buffer))
        .await
        .expect("received");
    let talking = tokio::spawn(async move {
        while talkative.send_to(b"more", from).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    proxy.gate().drain(Duration::from_millis(600));
    let keep = async {
        loop {
            busy.send(b"busy").expect("open");
            within(busy.recv()).await.expect("open");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        () = keep => {}
        ended = within(idle.closed()) => assert_eq!(ended, Ended::ByPeer),
    }
    tokio::select! {
        ended = within(listener.closed()) => assert_eq!(ended, Ended::ByPeer),
        () = async {
            loop {
                busy.send(b"busy").expect("open");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        } => {}
    }
    talking.abort();
    until(|| proxy.stats().open == 1).await;
    proxy.gate().close();
    let ended = within(busy.closed()).await;
    let reset = LostStream::Reset(h3::Code::CONNECT_ERROR);
    assert_eq!(ended, Ended::Lost(reset));
    until(|| proxy.stats().open == 0).await;
    let client = started.client(Carrier::Http3).await;
    let error = within(client.open(&target))
        .await
        .expect_err("it has ended");
    assert_eq!(error.status().map(|status| status.as_u16()), Some(503));
}

/// Limit K622, MQ-udp-022: datagrams that arrive while the name is resolved.
#[tokio::test(flavor = "multi_thread")]
async fn early_datagrams_wait_for_their_target() {
    let target = echo().await;
    let (resolve, resolved) = tokio::sync::watch::channel(false);
    let proxy = open_proxy().resolver(move |_, _| {
        let mut resolved = resolved.clone();
        Box::pin(async move {
            let _ = resolved.wait_for(|is_resolved| *is_resolved).await;
            Ok(vec![target])
        })
    });
    let started = start(proxy).await;
    let link = started.client(Carrier::Http3).await;
    let client = link.http3().expect("HTTP/3").clone();
    let uri = format!(
        "https://localhost/.well-known/masque/udp/late.example/{}/",
        target.port()
    );
    let request = http::Request::connect(uri)
        .extension(h3::Protocol::new("connect-udp").expect("a token"))
        .body(())
        .expect("a URI");
    // The first request of the connection has this stream; the datagrams go there before its response.
    let connecting = tokio::spawn({
        let client = client.clone();
        async move { client.connect(request).await }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    for number in 0..20_u8 {
        // Quarter stream ID 0, context 0, one byte.
        client
            .quic()
            .send_datagram(vec![0, 0, number].into())
            .expect("room");
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    resolve.send_replace(true);
    let response = within(connecting)
        .await
        .expect("no panic")
        .expect("accepted");
    let stream = response.into_body();
    let datagrams = stream.datagrams().cloned().expect("datagrams");
    let mut first = Vec::new();
    while first.len() < 8 {
        let answer = within(datagrams.receive()).await.expect("open");
        first.push(answer[1]);
    }
    // The newest eight, in order.
    assert_eq!(first, (12..20).collect::<Vec<_>>());
}
