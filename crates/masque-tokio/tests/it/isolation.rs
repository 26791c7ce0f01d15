//! Tunnels, clients and targets that harm no others.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::Poll;

use courser_masque_tokio::{Client, Denied, Ended};

use super::*;

async fn bound() -> (UdpSocket, String) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.expect("bound");
    let address = socket.local_addr().expect("bound").to_string();
    (socket, address)
}

/// Receives one packet, and returns its sender.
async fn sender_of(target: &UdpSocket) -> SocketAddr {
    let mut buffer = [0; 100];
    let received = within(target.recv_from(&mut buffer)).await;
    received.expect("received").1
}

async fn exchange(socket: &Socket) {
    socket.send(b"hello").expect("open");
    assert_eq!(within(socket.recv()).await.expect("open"), "hello");
}

/// Limit K626: packets that nobody reads are dropped, instead of waiting in the credit of a connection that others use.
#[tokio::test(flavor = "multi_thread")]
async fn a_tunnel_that_nobody_reads_stops_no_other_one() {
    let proxy = open_proxy();
    let started = start(proxy.clone()).await;
    let client = started.client(Carrier::Http2).await;
    let echo = echo().await.to_string();
    let other = within(client.open(&echo)).await.expect("accepted");
    exchange(&other).await;
    let mut unread = Vec::new();
    for _ in 0..3 {
        let (target, address) = bound().await;
        let socket = within(client.open(&address)).await.expect("accepted");
        socket.send(b"begin").expect("open");
        let from = sender_of(&target).await;
        // More than the client keeps and gives credit for.
        for number in 0..12_000_u32 {
            target.send_to(&[7; 1000], from).await.expect("sent");
            if number % 50 == 0 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
        unread.push((target, socket));
    }
    exchange(&other).await;
    exchange(&within(client.open(&echo)).await.expect("accepted")).await;
    let passed = proxy.stats().from_targets;
    assert!(passed > 24_000, "{passed} of 36 000 packets");
    for (_, socket) in &unread {
        until(|| socket.stats().dropped_receiving > 5_000).await;
        // What was kept is there.
        let mut kept = 0;
        while let Poll::Ready(Ok(_)) = poll_once(socket).await {
            kept += 1;
        }
        assert!((1000..=1024).contains(&kept), "{kept}");
    }
}

/// Polls for a packet without waiting.
async fn poll_once(socket: &Socket) -> Poll<Result<bytes::Bytes, Ended>> {
    std::future::poll_fn(|cx| Poll::Ready(socket.poll_recv(cx))).await
}

/// Limit K624: a client whose names are never resolved.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_with_slow_names_leaves_lookups_to_others() {
    let target = echo().await;
    let begun = Arc::new(AtomicUsize::new(0));
    let count = begun.clone();
    let proxy = UdpProxy::new(local())
        .authenticate(|request| match request.headers.get("proxy-authorization") {
            Some(name) => Ok(Client::new(name.to_str().unwrap_or_default())),
            None => Err(Denied::challenge("Basic")),
        })
        .resolver(move |name, _| {
            count.fetch_add(1, Relaxed);
            Box::pin(async move {
                match name.as_str() {
                    "slow.example" => std::future::pending().await,
                    _ => Ok(vec![target]),
                }
            })
        });
    let started = start(proxy).await;
    let client = |name| {
        let builder = started
            .builder(Carrier::Http3)
            .header("proxy-authorization", name);
        within(builder.expect("valid").connect())
    };
    let slow = client("mallory").await.expect("connected");
    for _ in 0..90 {
        let slow = slow.clone();
        tokio::spawn(async move { slow.open("slow.example:443").await });
    }
    until(|| begun.load(Relaxed) >= 16).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let other = client("alice").await.expect("connected");
    let name = format!("echo.example:{}", target.port());
    exchange(&within(other.open(&name)).await.expect("resolved")).await;
}

/// RFC 9298 §3.1, RFC 8085 §5.2: a target that has answered may be silent for a moment, and anybody who knows the
/// addresses can forge an ICMP message about it.
#[tokio::test(flavor = "multi_thread")]
async fn a_target_that_restarts_keeps_its_tunnel() {
    let started = start(open_proxy()).await;
    for carrier in ALL {
        let (target, address) = bound().await;
        let socket = started.open(carrier, &address).await;
        socket.send(b"first").expect("open");
        let from = sender_of(&target).await;
        target.send_to(b"answer", from).await.expect("sent");
        assert_eq!(within(socket.recv()).await.expect("open"), "answer");
        drop(target);
        for _ in 0..3 {
            socket.send(b"lost").expect("open");
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
        let target = UdpSocket::bind(&address).await.expect("free again");
        socket.send(b"second").expect("open");
        assert_eq!(sender_of(&target).await, from, "{carrier:?}");
        drop(target);
        // One that does not come back ends the tunnel.
        let ended = async {
            while socket.send(b"lost").is_ok() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            socket.closed().await
        };
        assert!(!matches!(within(ended).await, Ended::Closed), "{carrier:?}");
    }
}

/// Datagrams that have arrived before the end of the stream are not lost with it.
#[tokio::test(flavor = "multi_thread")]
async fn packets_before_the_end_are_received() {
    let identity = Identity::dev().expect("an identity");
    let mut settings = h3::Config::new(Side::Server);
    courser_masque_tokio::enable(&mut settings, Side::Server);
    let server = courser_server::serve("127.0.0.1:0", identity.clone())
        .config(settings)
        .bind()
        .expect("a free port");
    let address = server.local_addr();
    let service = tower::service_fn(
        |mut request: http::Request<courser_server::Body>| async move {
            let upgrade = h3::upgrade(&mut request).expect("a CONNECT");
            tokio::spawn(async move {
                let stream = upgrade.await.expect("accepted");
                let datagrams = stream.datagrams().cloned().expect("datagrams");
                datagrams.negotiated().await;
                for number in 0..3 {
                    datagrams.send(&[0, number]).expect("open");
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            });
            Ok::<_, std::convert::Infallible>(http::Response::new(h3::Empty))
        },
    );
    tokio::spawn(server.service(service).into_future());
    let started = Started { address, identity };
    let socket = started.open(Carrier::Http3, "192.0.2.1:443").await;
    assert_eq!(within(socket.closed()).await, Ended::ByPeer);
    for number in 0..3 {
        assert_eq!(within(socket.recv()).await.expect("kept"), vec![number]);
    }
    assert_eq!(within(socket.recv()).await, Err(Ended::ByPeer));
}

/// Addresses to which the system does not send are no lack of room.
#[tokio::test(flavor = "multi_thread")]
async fn addresses_of_broadcasts_are_prohibited() {
    let started = start(open_proxy()).await;
    let client = started.client(Carrier::Http3).await;
    let error = within(client.open("127.255.255.255:9"))
        .await
        .expect_err("refused");
    let reported = error.reported().map(|reported| reported.error.as_str());
    assert_eq!(reported, Some("destination_ip_prohibited"));
}
