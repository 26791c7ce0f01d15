//! Sockets and runtimes of programs, and clients that move.

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Instant;

use quinn::udp::{RecvMeta, Transmit};
use quinn::{
    AsyncTimer, AsyncUdpSocket, Endpoint, EndpointConfig, Runtime, TokioRuntime, UdpPoller,
    default_runtime,
};

use crate::{LOOPBACK, Pair, configs};

#[tokio::test]
async fn rebound_client_keeps_its_connection() {
    let pair = Pair::new().await;
    let before = pair.server.remote_address();
    // The handshake is confirmed, so that the client may move.
    exchange(&pair).await;
    let socket = UdpSocket::bind(LOOPBACK).unwrap();
    let after = socket.local_addr().unwrap();
    pair.client_endpoint.rebind(socket).unwrap();
    assert_eq!(pair.client_endpoint.local_addr().unwrap(), after);
    exchange(&pair).await;
    for _ in 0..1000 {
        if pair.server.remote_address() == after {
            break;
        }
        exchange(&pair).await;
    }
    assert_ne!(before, after);
    assert_eq!(pair.server.remote_address(), after);
}

#[tokio::test]
async fn socket_of_the_program_carries_all_datagrams() {
    let (server, client) = configs();
    let runtime = default_runtime().unwrap();
    let wrap = |socket: UdpSocket| {
        Arc::new(Counting {
            inner: TokioRuntime.wrap_udp_socket(socket).unwrap(),
            sent: AtomicUsize::new(0),
            received: AtomicUsize::new(0),
        })
    };
    let socket = wrap(UdpSocket::bind(LOOPBACK).unwrap());
    let mut endpoint = Endpoint::new_with_abstract_socket(
        EndpointConfig::default(),
        None,
        socket.clone(),
        runtime,
    )
    .unwrap();
    endpoint.set_default_client_config(client);
    let pair = Pair::of(endpoint, Endpoint::server(server, LOOPBACK).unwrap()).await;
    exchange(&pair).await;
    assert!(socket.sent.load(Relaxed) > 0 && socket.received.load(Relaxed) > 0);
    let second = wrap(UdpSocket::bind(LOOPBACK).unwrap());
    pair.client_endpoint
        .rebind_abstract(second.clone())
        .unwrap();
    exchange(&pair).await;
    assert!(second.sent.load(Relaxed) > 0, "the connection has moved");
}

#[tokio::test]
async fn runtime_of_the_program_polls_tasks_and_timers() {
    let (server, client) = configs();
    let runtime = Arc::new(Wrapped::default());
    let socket = UdpSocket::bind(LOOPBACK).unwrap();
    let mut endpoint =
        Endpoint::new(EndpointConfig::default(), None, socket, runtime.clone()).unwrap();
    endpoint.set_default_client_config(client);
    let pair = Pair::of(endpoint, Endpoint::server(server, LOOPBACK).unwrap()).await;
    exchange(&pair).await;
    let socket = UdpSocket::bind(LOOPBACK).unwrap();
    pair.client_endpoint.rebind(socket).unwrap();
    exchange(&pair).await;
    assert!(runtime.spawned.load(Relaxed) > 0 && runtime.timers.load(Relaxed) > 0);
    assert_eq!(runtime.sockets.load(Relaxed), 2);
}

#[test]
fn endpoint_outside_of_tokio_is_an_error() {
    let error = Endpoint::client(LOOPBACK).expect_err("no runtime");
    assert_eq!(error.kind(), io::ErrorKind::Other);
    assert!(default_runtime().is_none());
}

/// Sends a message to the server and back.
async fn exchange(pair: &Pair) {
    let (mut send, mut receive) = pair.client.open_bi().await.unwrap();
    send.write_all(b"ping").await.unwrap();
    send.finish().unwrap();
    let (mut back, mut from) = pair.server.accept_bi().await.unwrap();
    let text = from.read_to_end(10).await.unwrap();
    back.write_all(&text).await.unwrap();
    back.finish().unwrap();
    assert_eq!(receive.read_to_end(10).await.unwrap(), b"ping");
}

/// Counts calls to another socket.
#[derive(Debug)]
struct Counting {
    inner: Arc<dyn AsyncUdpSocket>,
    sent: AtomicUsize,
    received: AtomicUsize,
}

impl AsyncUdpSocket for Counting {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        self.inner.clone().create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.sent.fetch_add(1, Relaxed);
        self.inner.try_send(transmit)
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let received = self.inner.poll_recv(cx, bufs, meta);
        self.received
            .fetch_add(usize::from(received.is_ready()), Relaxed);
        received
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }
}

/// Counts the calls of tokio's runtime.
#[derive(Debug, Default)]
struct Wrapped {
    spawned: AtomicUsize,
    timers: AtomicUsize,
    sockets: AtomicUsize,
}

impl Runtime for Wrapped {
    fn new_timer(&self, deadline: Instant) -> Pin<Box<dyn AsyncTimer>> {
        self.timers.fetch_add(1, Relaxed);
        TokioRuntime.new_timer(deadline)
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.spawned.fetch_add(1, Relaxed);
        TokioRuntime.spawn(future);
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        self.sockets.fetch_add(1, Relaxed);
        TokioRuntime.wrap_udp_socket(socket)
    }
}

/// A socket whose device loses its first batch, and which reports afterwards that it cannot segment.
#[derive(Debug)]
struct StopsSegmenting {
    inner: Arc<dyn AsyncUdpSocket>,
    segments: AtomicUsize,
    lost: AtomicUsize,
}

impl AsyncUdpSocket for StopsSegmenting {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        self.inner.clone().create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        if transmit
            .segment_size
            .is_some_and(|size| size < transmit.contents.len())
        {
            self.segments.store(1, Relaxed);
            self.lost.fetch_add(1, Relaxed);
            return Ok(());
        }
        self.inner.try_send(transmit)
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.inner.poll_recv(cx, bufs, meta)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.segments.load(Relaxed)
    }

    fn may_fragment(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn batches_end_when_the_device_does_not_segment_and_fragments_are_avoided() {
    const LEN: usize = 1_000_000;
    let (server, client) = configs();
    let runtime = default_runtime().unwrap();
    // It reaches IPv4 by mapped addresses.
    let socket = UdpSocket::bind("[::]:0").unwrap();
    let socket = Arc::new(StopsSegmenting {
        inner: runtime.wrap_udp_socket(socket).unwrap(),
        segments: AtomicUsize::new(10),
        lost: AtomicUsize::new(0),
    });
    let mut endpoint = Endpoint::new_with_abstract_socket(
        EndpointConfig::default(),
        None,
        socket.clone(),
        runtime,
    )
    .unwrap();
    endpoint.set_default_client_config(client);
    let pair = Pair::of(endpoint, Endpoint::server(server, LOOPBACK).unwrap()).await;
    let sending = async {
        let mut send = pair.client.open_uni().await.unwrap();
        send.write_all(&vec![7; LEN]).await.unwrap();
        send.finish().unwrap();
    };
    let receiving = async {
        let mut receive = pair.server.accept_uni().await.unwrap();
        receive.read_to_end(LEN).await.unwrap().len()
    };
    let ((), received) = tokio::join!(sending, receiving);
    assert_eq!(received, LEN);
    assert_eq!(socket.lost.load(Relaxed), 1);
    let mtu = pair.client.stats().path.current_mtu;
    assert!(mtu <= 1280, "{mtu} may be fragments");
}
