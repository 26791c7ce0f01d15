//! Several servers, servers that end and come back, and names.

use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use courser_client::{HttpVersion, Resolve, Resolving, ScopedIp};
use courser_grpc::{Channel, ServerLayer};
use courser_quic::TransportConfig;
use tonic::{Code, Request};

use super::common::{Client, Server, channel, start, start_at, to, until, within};
use super::pb::Empty;

async fn call(channel: &Channel) -> Result<(), tonic::Status> {
    within(Client::new(channel.clone()).empty_call(Empty {}))
        .await
        .map(drop)
}

fn requests(server: &Server) -> u64 {
    let stats = server.handle.stats();
    courser_server::Protocol::ALL
        .iter()
        .map(|it| stats.of(*it).requests)
        .sum()
}

/// Makes calls until one succeeds.
async fn call_until_answered(channel: &Channel) {
    let end = Instant::now() + Duration::from_secs(20);
    while let Err(error) = call(channel).await {
        assert_eq!(error.code(), Code::Unavailable, "{error}");
        assert!(Instant::now() < end, "{error}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_take_turns_over_all_servers() {
    let servers = [start(), start(), start()];
    let channel = to(&servers[0].uri())
        .endpoint(servers[1].uri())
        .endpoint(servers[2].uri())
        .build()
        .expect("valid settings");
    call(&channel).await.expect("answered");
    until(|| channel.backends().iter().all(|it| it.is_ready)).await;
    let before: Vec<_> = servers.iter().map(requests).collect();
    for _ in 0..30 {
        call(&channel).await.expect("answered");
    }
    for (server, before) in servers.iter().zip(before) {
        assert_eq!(requests(server) - before, 10);
    }
}

/// One of two ends: no call fails, and the other one answers them all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drained_server_costs_no_call() {
    for version in [HttpVersion::Http3Only, HttpVersion::Http2PriorKnowledge] {
        let (first, second) = (start(), start());
        let channel = to(&first.uri())
            .endpoint(second.uri())
            .version(version)
            .build();
        let channel = channel.expect("valid settings");
        channel.connect().await.expect("a server");
        until(|| channel.backends().iter().all(|it| it.is_ready)).await;
        let calling = {
            let channel = channel.clone();
            tokio::spawn(async move {
                for number in 0..300 {
                    let called = call(&channel).await;
                    called.unwrap_or_else(|error| panic!("{version:?}: call {number}: {error}"));
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            })
        };
        tokio::time::sleep(Duration::from_millis(50)).await;
        first.drain().await;
        calling.await.expect("all answered");
        assert!(requests(&second) > 150);
        let alive: Vec<_> = channel.backends().iter().map(|it| it.is_ready).collect();
        assert_eq!(alive.iter().filter(|it| **it).count(), 1, "{alive:?}");
    }
}

/// Ends without a farewell and comes back on the same port.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn channel_connects_again_to_a_server_that_restarts() {
    for version in [
        HttpVersion::Http3Only,
        HttpVersion::Http3Or2,
        HttpVersion::Http2PriorKnowledge,
    ] {
        let server = start();
        let (uri, address) = (server.uri(), server.address);
        let channel = to(&uri).version(version).build().expect("valid settings");
        call(&channel).await.expect("answered");
        server.stop().await;
        let error = call(&channel).await.expect_err("nobody is there");
        assert_eq!(error.code(), Code::Unavailable, "{version:?}: {error}");
        let server = start_at(address, ServerLayer::new());
        call_until_answered(&channel).await;
        assert!(requests(&server) > 0);
    }
}

/// A server that crashes says nothing, and the one after it knows the connection no more. Without the question before
/// the call, the call itself would be answered by a stateless reset, which proves nothing about it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_call_after_a_crash_uses_a_new_connection() {
    for (probe_after, is_answered) in [(Duration::from_millis(50), true), (Duration::MAX, false)] {
        let (uri, address) = {
            let server = start();
            let at = (server.uri(), server.address);
            server.stop().await;
            at
        };
        // The key of its resets depends on the port, which the next server has as well.
        let server = start_at(address, ServerLayer::new());
        let nat = Nat::before(address).await;
        let uri = uri.replace(&address.port().to_string(), &nat.address.port().to_string());
        let channel = to(&uri)
            .version(HttpVersion::Http3Only)
            .probe_after(probe_after)
            .transport_config(TransportConfig {
                mtu_discovery: false, // its packets would find out too
                ..TransportConfig::default()
            })
            .build()
            .expect("valid settings");
        call(&channel).await.expect("answered");
        // Until all is acknowledged, and the connection is old enough to be replaced without a pause.
        tokio::time::sleep(Duration::from_millis(1200)).await;
        nat.cut();
        server.stop().await;
        let server = start_at(address, ServerLayer::new());
        nat.repair();
        let answer = call(&channel).await;
        match is_answered {
            true => answer.expect("answered over a new connection"),
            false => assert_eq!(answer.expect_err("lost").code(), Code::Unavailable),
        }
        assert_eq!(requests(&server), u64::from(is_answered));
    }
}

/// Forwards datagrams of one client after the other, unless it is cut.
struct Nat {
    address: SocketAddr,
    is_cut: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<()>,
}

impl Nat {
    async fn before(server: SocketAddr) -> Self {
        let socket = || tokio::net::UdpSocket::bind("127.0.0.1:0");
        let inside = socket().await.expect("a port");
        let outside = socket().await.expect("a port");
        let address = inside.local_addr().expect("bound");
        let is_cut = Arc::new(AtomicBool::new(false));
        let cut = is_cut.clone();
        let task = tokio::spawn(async move {
            let mut client = None;
            let (mut up, mut down) = (vec![0; 65_536], vec![0; 65_536]);
            loop {
                let (socket, datagram, to) = tokio::select! {
                    Ok((len, from)) = inside.recv_from(&mut up) => {
                        client = Some(from);
                        (&outside, &up[..len], Some(server))
                    }
                    Ok((len, _)) = outside.recv_from(&mut down) => (&inside, &down[..len], client),
                };
                if let (false, Some(to)) = (cut.load(Relaxed), to) {
                    let _ = socket.send_to(datagram, to).await;
                }
            }
        });
        Self {
            address,
            is_cut,
            task,
        }
    }

    fn cut(&self) {
        self.is_cut.store(true, Relaxed);
    }

    fn repair(&self) {
        self.is_cut.store(false, Relaxed);
    }
}

impl Drop for Nat {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// While a server is away, calls fail at once instead of connecting each time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_fail_fast_during_the_pause() {
    let server = start();
    let uri = server.uri();
    server.stop().await;
    let channel = to(&uri).build().expect("valid settings");
    call(&channel).await.expect_err("nobody is there");
    let failures = channel.backends()[0].failures;
    let began = Instant::now();
    let mut calls = 0;
    while began.elapsed() < Duration::from_millis(300) {
        let error = call(&channel).await.expect_err("nobody is there");
        assert_eq!(error.code(), Code::Unavailable);
        calls += 1;
    }
    assert!(calls > 50, "{calls}");
    assert_eq!(channel.backends()[0].failures, failures);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn call_that_waits_for_ready_is_answered_by_a_server_that_comes_later() {
    let server = start();
    let (uri, address) = (server.uri(), server.address);
    server.stop().await;
    let channel = to(&uri)
        .wait_for_ready(true)
        .build()
        .expect("valid settings");
    let waiting = {
        let channel = channel.clone();
        tokio::spawn(async move { call(&channel).await })
    };
    let mut request = Request::new(Empty {});
    request.set_timeout(Duration::from_millis(200));
    let error = within(Client::new(channel).empty_call(request))
        .await
        .expect_err("too late");
    assert_eq!(error.code(), Code::DeadlineExceeded);
    let _server = start_at(address, ServerLayer::new());
    waiting.await.expect("no panic").expect("answered");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_wait_for_their_turn_under_a_limit() {
    let server = start();
    let channel = to(&server.uri())
        .concurrency_limit(2)
        .build()
        .expect("valid settings");
    let open = || {
        let mut client = Client::new(channel.clone());
        tokio::spawn(async move {
            client
                .streaming_input_call(futures_util::stream::pending())
                .await
        })
    };
    let calls = [open(), open()];
    until(|| server.test.open() == 2).await;
    let third = {
        let channel = channel.clone();
        tokio::spawn(async move { call(&channel).await })
    };
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!third.is_finished(), "two calls are open");
    calls[0].abort();
    third.await.expect("no panic").expect("answered");
}

/// Answers with what the test has set.
#[derive(Clone, Default)]
struct Names(Arc<Mutex<Vec<IpAddr>>>);

impl Names {
    fn set(&self, addresses: &[[u8; 4]]) {
        let addresses = addresses.iter().map(|it| Ipv4Addr::from(*it).into());
        *self.0.lock().expect("no panic") = addresses.collect();
    }
}

impl Resolve for Names {
    fn addresses(&self, _host: &str) -> Resolving<Vec<ScopedIp>> {
        let found: Vec<ScopedIp> = self
            .0
            .lock()
            .expect("no panic")
            .iter()
            .map(|it| (*it).into())
            .collect();
        Box::pin(async move {
            match found.is_empty() {
                true => Err(io::Error::other("no such name")),
                false => Ok(found),
            }
        })
    }
}

/// Another address, at the same port.
fn beside(server: &Server, host: [u8; 4]) -> Server {
    start_at((host, server.address.port()).into(), ServerLayer::new())
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn name_is_resolved_again_and_its_new_addresses_are_used() {
    let first = start();
    let second = beside(&first, [127, 0, 0, 2]);
    let names = Names::default();
    names.set(&[[127, 0, 0, 1]]);
    let channel = to(&first.uri())
        .resolver(names.clone())
        .refresh(Duration::from_millis(50))
        .build()
        .expect("valid settings");
    call(&channel).await.expect("answered");
    names.set(&[[127, 0, 0, 2], [127, 0, 0, 1]]);
    while requests(&second) == 0 {
        call(&channel).await.expect("answered");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // The first is no longer among them, and a name that is lost keeps its addresses.
    names.set(&[[127, 0, 0, 2]]);
    until_backends(&channel, &[[127, 0, 0, 2]]).await;
    let before = requests(&first);
    names.set(&[]);
    for _ in 0..40 {
        call(&channel).await.expect("answered");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(requests(&first), before);
}

async fn until_backends(channel: &Channel, expected: &[[u8; 4]]) {
    let expected: HashSet<IpAddr> = expected
        .iter()
        .map(|it| Ipv4Addr::from(*it).into())
        .collect();
    within(async {
        loop {
            call(channel).await.expect("answered");
            let found: HashSet<_> = channel
                .backends()
                .iter()
                .map(|it| it.address.ip())
                .collect();
            if found == expected {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// A name with an address where nothing is: its neighbour answers.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn address_that_does_not_answer_costs_no_call() {
    let server = start();
    let names = Names::default();
    names.set(&[[127, 0, 0, 3], [127, 0, 0, 1]]);
    let channel = to(&server.uri())
        .resolver(names)
        .build()
        .expect("valid settings");
    for _ in 0..20 {
        call(&channel).await.expect("answered");
    }
    assert_eq!(channel.backends().len(), 2);
}

/// The addresses of a hostile name server: limit K540.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn addresses_are_limited() {
    let server = start();
    let names = Names::default();
    let many: Vec<_> = (1..=200).map(|last| [127, 0, 0, last]).collect();
    names.set(&many);
    let channel = to(&server.uri())
        .resolver(names)
        .build()
        .expect("valid settings");
    call(&channel).await.expect("answered");
    assert_eq!(channel.backends().len(), 64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn origin_replaces_the_authority_of_the_server() {
    let server = start();
    let uri = format!("https://127.0.0.1:{}", server.address.port());
    let channel = to(&uri)
        .origin("https://localhost")
        .build()
        .expect("valid settings");
    call(&channel).await.expect("a certificate for localhost");
}

#[test]
fn unusable_settings_are_refused_with_a_remedy() {
    let cases = [
        ("localhost:50051", "https://"),
        ("ftp://localhost", "https://"),
        ("https://", "URL"),
        ("https://localhost/prefix", "paths"),
        ("https://user:secret@localhost", "scheme, a host and a port"),
    ];
    for (uri, expected) in cases {
        let error = Channel::from_uri(uri).expect_err(uri).to_string();
        assert!(error.contains(expected), "{uri}: {error}");
    }
    let builder = || Channel::builder("https://localhost");
    assert!(builder().concurrency_limit(0).build().is_err());
    assert!(builder().user_agent("a\nb").build().is_err());
    assert!(builder().origin("http://localhost").build().is_err());
    let plain = Channel::builder("http://localhost").version(HttpVersion::Http3Only);
    assert!(
        plain
            .build()
            .expect_err("no encryption")
            .to_string()
            .contains("https://")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unused_channel_opens_no_connection() {
    let server = start();
    let channel = channel(&server);
    assert!(channel.backends().is_empty());
    drop(channel);
    assert_eq!(server.handle.open_connections(), 0);
}
