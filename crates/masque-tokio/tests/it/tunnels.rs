//! Packets through tunnels.

use courser_masque_tokio::{Ended, SendError};

use super::*;

/// MQ-udp-003, MQ-udp-012, MQ-udp-013.
#[tokio::test(flavor = "multi_thread")]
async fn packets_pass_over_every_version() {
    let started = start(open_proxy()).await;
    let target = echo().await;
    for carrier in ALL {
        let socket = started.open(carrier, &target.to_string()).await;
        assert_eq!(socket.carrier(), carrier);
        // Lengths that QUIC DATAGRAM frames carry everywhere; an empty payload is a packet too (MQ-udp-020).
        for len in [0, 1, 100, 1000] {
            let payload = vec![len as u8; len];
            socket.send(&payload).expect("open");
            let answer = within(socket.recv()).await.expect("open");
            assert_eq!(answer, payload, "{carrier:?}");
        }
        socket.close();
        assert_eq!(within(socket.recv()).await, Err(Ended::Closed));
        assert_eq!(socket.send(b"late"), Err(SendError::Ended(Ended::Closed)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_arrive_whole() {
    let started = start(open_proxy()).await;
    let target = echo().await;
    for carrier in ALL {
        let socket = started.open(carrier, &target.to_string()).await;
        let contents: Vec<u8> = (0..20 * 500 + 123).map(|at| (at / 500) as u8).collect();
        socket.send_batch(&contents, 500).expect("open");
        let mut received = Vec::new();
        for _ in 0..21 {
            received.push(within(socket.recv()).await.expect("open"));
        }
        // The loopback interface may exchange what the target returns, if it moves to another core meanwhile.
        received.sort_by_key(|payload| payload[0]);
        assert_eq!(received.concat(), contents, "{carrier:?}");
        assert_eq!(socket.stats().received, 21);
    }
}

/// MQ-udp-008: the socket of the proxy is connected to its target.
#[tokio::test(flavor = "multi_thread")]
async fn packets_of_others_do_not_enter_a_tunnel() {
    let started = start(open_proxy()).await;
    let target = UdpSocket::bind("127.0.0.1:0").await.expect("bound");
    let other = UdpSocket::bind("127.0.0.1:0").await.expect("bound");
    let address = target.local_addr().expect("bound");
    let socket = started.open(Carrier::Http3, &address.to_string()).await;
    socket.send(b"who").expect("open");
    let mut buffer = [0; 100];
    let (_, proxy) = within(target.recv_from(&mut buffer))
        .await
        .expect("received");
    for number in 0..20 {
        other.send_to(&[number], proxy).await.expect("sent");
    }
    target.send_to(b"me", proxy).await.expect("sent");
    assert_eq!(within(socket.recv()).await.expect("open"), "me");
}

/// MQ-udp-009.
#[tokio::test(flavor = "multi_thread")]
async fn a_closed_port_of_the_target_ends_the_tunnel() {
    let started = start(open_proxy()).await;
    let closed = UdpSocket::bind("127.0.0.1:0").await.expect("bound");
    let address = closed.local_addr().expect("bound");
    drop(closed);
    for carrier in ALL {
        let socket = started.open(carrier, &address.to_string()).await;
        socket.send(b"anybody?").expect("open");
        assert!(
            !matches!(within(socket.closed()).await, Ended::Closed),
            "{carrier:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_resolved_by_the_proxy() {
    let target = echo().await;
    let proxy = open_proxy().resolver(move |name, _| {
        assert_eq!(name, "echo.example");
        // An address that is not allowed stands first, with another port.
        let answers = vec!["10.0.0.1:1".parse().expect("valid"), target];
        Box::pin(async move { Ok(answers) })
    });
    let started = start(proxy).await;
    let socket = started
        .open(Carrier::Http3, &format!("echo.example:{}", target.port()))
        .await;
    socket.send(b"by name").expect("open");
    assert_eq!(within(socket.recv()).await.expect("open"), "by name");
    assert_eq!(socket.peer_addr(), ([192, 0, 2, 1], target.port()).into());
}

/// The tunnels of one client share its connection over HTTP/2 and HTTP/3.
#[tokio::test(flavor = "multi_thread")]
async fn many_tunnels_keep_their_packets_apart() {
    let proxy = open_proxy();
    let started = start(proxy.clone()).await;
    let target = echo().await;
    for carrier in ALL {
        let client = started.client(carrier).await;
        let mut sockets = Vec::new();
        for number in 0..20_u8 {
            let socket = within(client.open(&target.to_string()))
                .await
                .expect("accepted");
            socket.send(&[number; 50]).expect("open");
            sockets.push(socket);
        }
        for (number, socket) in sockets.iter().enumerate() {
            assert_eq!(
                within(socket.recv()).await.expect("open"),
                vec![number as u8; 50]
            );
        }
        assert_eq!(proxy.stats().open, 20, "{carrier:?}");
        drop(sockets);
        until(|| proxy.stats().open == 0).await;
    }
    assert_eq!(proxy.stats().opened, 60);
}

#[tokio::test(flavor = "multi_thread")]
async fn payloads_above_the_size_of_the_path_are_errors() {
    let started = start(open_proxy()).await;
    let target = echo().await;
    let socket = started.open(Carrier::Http3, &target.to_string()).await;
    let size = socket.max_size() + 1;
    let error = socket.send(&vec![0; size]).expect_err("too large");
    // The path MTU may grow meanwhile.
    assert!(
        matches!(error, SendError::TooLarge { size: found, .. } if found == size),
        "{error}"
    );
    socket.send(b"still open").expect("open");
    assert_eq!(within(socket.recv()).await.expect("open"), "still open");
}

/// MQ-udp-011, MQ-udp-026. The interface of loopback carries 65 536 bytes, and a payload of 65 527 with its headers is longer.
#[tokio::test(flavor = "multi_thread")]
async fn packets_to_targets_have_no_ecn_mark_and_are_not_fragmented() {
    let proxy = open_proxy();
    let started = start(proxy.clone()).await;
    let target =
        courser_udp::UdpSocket::bind("127.0.0.1:0".parse().expect("valid")).expect("bound");
    let address = target.local_addr().expect("bound").to_string();
    let socket = started.open(Carrier::Http2, &address).await;
    socket.send(&vec![1; 65_527]).expect("open");
    socket.send(&[2; 100]).expect("open");
    let mut buffer = vec![0; 65_536];
    let received = within(async {
        loop {
            match target.try_receive(&mut buffer) {
                Ok(received) => return received,
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    })
    .await;
    assert_eq!(
        (received.len, received.ecn),
        (100, courser_quic::runtime::Ecn::NotEct)
    );
    assert_eq!((proxy.stats().to_targets, proxy.stats().dropped), (1, 1));
}
