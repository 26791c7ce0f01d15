//! An endpoint whose socket has something to receive at every call, on a runtime that counts calls.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use courser::runtime::{self, Ecn, Received, Runtime, Task, Timer, Transmit, UdpSocket};
use courser::{ClientConfig, Endpoint, Identity, RetryPolicy, ServerConfig};

/// The results of the socket while the flood lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flood {
    EmptyDatagrams,
    TruncatedDatagrams,
    Errors(i32),
    Hello,
}

struct BenchState {
    flood: Flood,
    left: AtomicUsize,
    received: AtomicUsize,
    sent: AtomicUsize,
    /// Number of lookups of the interface of a peer.
    asked: AtomicUsize,
    /// The datagram that [`Flood::Hello`] delivers.
    hello: Vec<u8>,
    has_random_numbers: bool,
    tasks: Mutex<Vec<Task>>,
    clock: Mutex<Instant>,
    alarm: Mutex<Option<Instant>>,
}

impl std::fmt::Debug for BenchState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.flood)
    }
}

/// A runtime that polls no task on its own: the test polls them.
#[derive(Debug)]
struct Bench(Arc<BenchState>);

#[derive(Debug)]
struct Socket(Arc<BenchState>);

#[derive(Debug)]
struct Alarm(Arc<BenchState>);

/// Never fires: the test moves the clock to the last deadline.
impl Timer for Alarm {
    fn set(&mut self, deadline: Instant, _: &mut Context<'_>) -> Poll<()> {
        *self.0.alarm.lock().expect("no panic") = Some(deadline);
        Poll::Pending
    }

    fn is_elapsed(&self) -> bool {
        false
    }
}

impl Runtime for Bench {
    fn now(&self) -> Instant {
        *self.0.clock.lock().expect("no panic")
    }

    fn unix_time(&self) -> Duration {
        Duration::from_secs(1_700_000_000)
    }

    fn spawn(&self, task: Task, _: &'static Location<'static>) {
        self.0.tasks.lock().expect("no panic").push(task);
    }

    fn timer(&self) -> Box<dyn Timer> {
        Box::new(Alarm(self.0.clone()))
    }

    fn bind(&self, _: SocketAddr) -> io::Result<Box<dyn UdpSocket>> {
        Ok(Box::new(Socket(self.0.clone())))
    }

    fn random_seed(&self) -> io::Result<[u8; 32]> {
        if self.0.has_random_numbers {
            Ok([7; 32])
        } else {
            Err(io::Error::other("no entropy"))
        }
    }
}

impl UdpSocket for Socket {
    fn poll_receive(&self, _: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<Received>> {
        self.0.received.fetch_add(1, SeqCst);
        let taken = self
            .0
            .left
            .fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1));
        if taken.is_err() {
            return Poll::Pending;
        }
        let hello = &self.0.hello;
        let (is_truncated, len) = match self.0.flood {
            Flood::Errors(code) => return Poll::Ready(Err(io::Error::from_raw_os_error(code))),
            Flood::EmptyDatagrams => (false, 0),
            Flood::TruncatedDatagrams => (true, 1200),
            Flood::Hello => {
                buffer[..hello.len()].copy_from_slice(hello);
                (false, hello.len())
            }
        };
        Poll::Ready(Ok(Received {
            len,
            segment_size: 1200,
            peer: SocketAddr::from(([192, 0, 2, 9], 9999)),
            local: None,
            ecn: Ecn::NotEct,
            truncated: is_truncated,
        }))
    }

    fn is_readable(&self, _: &mut Context<'_>) -> bool {
        self.0.left.load(SeqCst) > 0
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<usize> {
        self.0.sent.fetch_add(1, SeqCst);
        Ok(transmit.contents.len())
    }

    fn poll_writable(&self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(SocketAddr::from(([192, 0, 2, 1], 4433)))
    }

    fn interface_mtu(&self, _: SocketAddr) -> Option<u32> {
        self.0.asked.fetch_add(1, SeqCst);
        None
    }

    fn capabilities(&self) -> courser::Capabilities {
        courser::Capabilities::default()
    }

    fn counters(&self) -> courser::Counters {
        courser::Counters::default()
    }
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, SeqCst);
    }
}

fn bench(flood: Flood, has_random_numbers: bool) -> (Arc<Bench>, Arc<BenchState>) {
    bench_with(flood, FLOOD, Vec::new(), has_random_numbers)
}

fn bench_with(
    flood: Flood,
    left: usize,
    hello: Vec<u8>,
    has_random_numbers: bool,
) -> (Arc<Bench>, Arc<BenchState>) {
    let state = Arc::new(BenchState {
        flood,
        left: AtomicUsize::new(left),
        received: AtomicUsize::new(0),
        sent: AtomicUsize::new(0),
        asked: AtomicUsize::new(0),
        hello,
        has_random_numbers,
        tasks: Mutex::default(),
        clock: Mutex::new(Instant::now()),
        alarm: Mutex::default(),
    });
    (Arc::new(Bench(state.clone())), state)
}

/// Receive calls for which the socket has a result.
const FLOOD: usize = 8000;
/// Receive calls of a turn (limit K31).
const CALLS: usize = 8;

/// Asserts that each turn makes as many receive calls as it may, and then sends and lets other
/// tasks run. After the flood nothing wakes the driver any more.
fn flooded(flood: Flood) {
    let (bench, state) = bench(flood, true);
    let _entered = runtime::enter(bench);
    let endpoint = Endpoint::client(SocketAddr::from(([192, 0, 2, 1], 0))).expect("a socket");
    let mut driver = state.tasks.lock().expect("no panic").remove(0);
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(woken.clone());
    let mut cx = Context::from_waker(&waker);
    let mut turns = 0;
    let mut turn = || {
        turns += 1;
        woken.0.store(false, SeqCst);
        let before = state.received.load(SeqCst);
        assert!(driver.as_mut().poll(&mut cx).is_pending(), "{flood:?}");
        let calls = state.received.load(SeqCst) - before;
        assert!(calls <= CALLS, "{flood:?}: {calls} calls in a turn");
        woken.0.load(SeqCst)
    };
    assert!(turn(), "there is more");

    // Actions of the application during the flood take effect.
    let identity = Identity::dev().expect("random numbers");
    let config = ClientConfig::with_roots([identity.certificate()]).expect("a certificate");
    let peer = SocketAddr::from(([192, 0, 2, 2], 4433));
    let connecting = endpoint.connect_with(config.alpn(["test"]), peer, "localhost");
    let _connecting = connecting.expect("configured");
    assert!(turn(), "there is more");
    assert_ne!(state.sent.load(SeqCst), 0, "{flood:?}: the hello has left");

    while turn() {}
    assert_eq!(state.left.load(SeqCst), 0, "{flood:?}");
    assert!(turns <= FLOOD / CALLS + 2, "{flood:?}: {turns} turns");
}

/// A98, and CVE-2026-11352 of another client, which received them in an endless loop.
#[test]
fn empty_datagrams_end_each_turn_after_eight_calls() {
    flooded(Flood::EmptyDatagrams);
}

#[test]
fn truncated_datagrams_end_each_turn_after_eight_calls() {
    flooded(Flood::TruncatedDatagrams);
}

/// F40: errors about one destination, and of devices. Turns end after eight calls, and receiving
/// pauses for up to a second while only errors occur; sending continues.
#[cfg(target_os = "linux")]
#[test]
fn persistent_receive_errors_make_the_driver_pause() {
    const ECONNREFUSED: i32 = 111;
    const EHOSTUNREACH: i32 = 113;
    const EIO: i32 = 5;
    for code in [ECONNREFUSED, EHOSTUNREACH, EIO] {
        failing(code);
    }
}

#[cfg(target_os = "linux")]
fn failing(code: i32) {
    let (bench, state) = bench(Flood::Errors(code), true);
    let _entered = runtime::enter(bench);
    let endpoint = Endpoint::client(SocketAddr::from(([192, 0, 2, 1], 0))).expect("a socket");
    let mut driver = state.tasks.lock().expect("no panic").remove(0);
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(woken.clone());
    let mut cx = Context::from_waker(&waker);
    let begin = *state.clock.lock().expect("no panic");
    let elapsed = || *state.clock.lock().expect("no panic") - begin;
    let mut turn = || {
        woken.0.store(false, SeqCst);
        let before = state.received.load(SeqCst);
        assert!(driver.as_mut().poll(&mut cx).is_pending(), "{code}");
        let calls = state.received.load(SeqCst) - before;
        assert!(calls <= CALLS, "{code}: {calls} calls in a turn");
        if !woken.0.load(SeqCst) {
            let alarm = state.alarm.lock().expect("no panic").take();
            let mut clock = state.clock.lock().expect("no panic");
            // Without an alarm another task has to wake the driver; here the test does.
            *clock = alarm.map_or(*clock + Duration::from_secs(1), |alarm| alarm.max(*clock));
        }
    };
    while elapsed() < Duration::from_secs(60) {
        turn();
        let calls = state.received.load(SeqCst);
        assert!(calls < 1000, "{code}: {calls} calls in {:?}", elapsed());
    }
    assert_ne!(endpoint.stats().receive_pauses, 0, "{code}");

    // During a pause, data of the application is sent at once.
    let identity = Identity::dev().expect("random numbers");
    let config = ClientConfig::with_roots([identity.certificate()]).expect("a certificate");
    let peer = SocketAddr::from(([192, 0, 2, 2], 4433));
    let connecting = endpoint.connect_with(config.alpn(["test"]), peer, "localhost");
    let _connecting = connecting.expect("configured");
    turn();
    assert_ne!(state.sent.load(SeqCst), 0, "{code}: the hello has left");

    // A socket that works again is read within a second.
    state.left.store(0, SeqCst);
    let calls = state.received.load(SeqCst);
    let recovered = elapsed();
    while state.received.load(SeqCst) == calls {
        turn();
        assert!(elapsed() <= recovered + Duration::from_secs(2), "{code}");
    }
}

/// F61: predictable keys are worse than none.
#[test]
fn without_random_numbers_no_endpoint_starts() {
    let (bench, state) = bench(Flood::EmptyDatagrams, false);
    let _entered = runtime::enter(bench);
    let error = Endpoint::client(SocketAddr::from(([192, 0, 2, 1], 0))).expect_err("no keys");
    assert!(error.to_string().contains("no entropy"), "{error}");
    assert!(state.tasks.lock().expect("no panic").is_empty());
}

/// Returns the first datagram of a client.
async fn hello() -> Vec<u8> {
    let silent = tokio::net::UdpSocket::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let address = silent.local_addr().expect("bound");
    let identity = Identity::dev().expect("random numbers");
    let config = ClientConfig::with_roots([identity.certificate()]).expect("a certificate");
    let endpoint = Endpoint::client(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
    let connecting = endpoint.connect_with(config.alpn(["test"]), address, "localhost");
    let _connecting = connecting.expect("configured");
    let mut datagram = vec![0; 2000];
    let len = silent.recv(&mut datagram).await.expect("sent");
    datagram.truncate(len);
    datagram
}

/// A client whose address may be forged causes only the system calls that answer it.
#[tokio::test]
async fn interface_of_a_peer_is_looked_up_after_the_handshake() {
    let (bench, state) = bench_with(Flood::Hello, 1, hello().await, true);
    let _entered = runtime::enter(bench);
    let identity = Identity::dev().expect("random numbers");
    let config = ServerConfig::with_identity(&identity).expect("a certificate");
    let address = SocketAddr::from(([192, 0, 2, 1], 4433));
    let endpoint = Endpoint::server(config.alpn(["test"]), address).expect("a socket");
    let mut driver = state.tasks.lock().expect("no panic").remove(0);
    let waker = Waker::from(Arc::new(Woken::default()));
    let mut cx = Context::from_waker(&waker);
    assert!(driver.as_mut().poll(&mut cx).is_pending());
    let mut accept = std::pin::pin!(endpoint.accept());
    let Poll::Ready(Some(incoming)) = accept.as_mut().poll(&mut cx) else {
        panic!("a client waits")
    };
    let _connecting = incoming.accept().expect("a ClientHello");
    assert!(driver.as_mut().poll(&mut cx).is_pending());
    assert_ne!(state.sent.load(SeqCst), 0, "the client is answered");
    assert_eq!(state.asked.load(SeqCst), 0);
}

/// Answers without a connection are all sent, although no further arrival wakes the driver.
#[tokio::test]
async fn every_client_of_a_storm_is_answered() {
    // Each turn takes some more clients than it answers.
    const CLIENTS: usize = 9900;
    let (bench, state) = bench_with(Flood::Hello, CLIENTS, hello().await, true);
    let _entered = runtime::enter(bench);
    let identity = Identity::dev().expect("random numbers");
    let config = ServerConfig::with_identity(&identity).expect("a certificate");
    let config = config.alpn(["test"]).retry(RetryPolicy::Always);
    let address = SocketAddr::from(([192, 0, 2, 1], 4433));
    let endpoint = Endpoint::server(config, address).expect("a socket");
    let mut driver = state.tasks.lock().expect("no panic").remove(0);
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(woken.clone());
    let mut cx = Context::from_waker(&waker);
    woken.0.store(true, SeqCst);
    let mut turns = 0;
    while woken.0.swap(false, SeqCst) {
        turns += 1;
        assert!(driver.as_mut().poll(&mut cx).is_pending());
    }
    assert_eq!(endpoint.stats().retries_sent, CLIENTS as u64);
    assert_eq!(state.sent.load(SeqCst), CLIENTS, "after {turns} turns");
    assert!((30..60).contains(&turns), "{turns} turns");
}

/// F61: HTTP/3 draws random numbers of its own when a connection starts.
#[cfg(feature = "http3")]
#[tokio::test]
async fn without_random_numbers_no_exchange_starts() {
    use courser::h3;

    let pair = super::common::pair();
    let (client, server) = pair.connect().await;
    let (bench, _) = bench(Flood::EmptyDatagrams, false);
    let client = {
        let _entered = runtime::enter(bench);
        h3::Client::new(client)
    };
    let request =
        http::Request::get("https://localhost/").body(http_body_util::Empty::<bytes::Bytes>::new());
    client
        .send(request.expect("a request"))
        .await
        .expect_err("no random numbers");
    let error = server.closed().await;
    let courser::ConnectionError::ApplicationClosed { code, .. } = &error else {
        panic!("{error:?}")
    };
    assert_eq!(code.0, 0x102, "H3_INTERNAL_ERROR");
}
