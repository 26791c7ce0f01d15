//! Shards whose sockets are lost one after the other.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Waker};

use courser_transport::EndpointConfig;
use courser_udp::{Received, Transmit};

use super::*;
use crate::error::ConnectError;
use crate::runtime::{Socket, UdpSocket};
use crate::{ClientConfig, Endpoint, Identity, ServerConfig, SocketEvent};

/// A socket that works until its descriptor is gone.
#[derive(Debug, Default)]
struct Fragile {
    is_gone: AtomicBool,
    reader: Mutex<Option<Waker>>,
}

impl Fragile {
    fn lose(&self) {
        self.is_gone.store(true, Relaxed);
        let reader = self.reader.lock().expect("no thread has panicked").take();
        reader.expect("the driver waits to receive").wake();
    }

    fn result(&self) -> io::Result<()> {
        match self.is_gone.load(Relaxed) {
            false => Ok(()),
            true => Err(io::Error::from_raw_os_error(if cfg!(windows) {
                6
            } else {
                9
            })),
        }
    }
}

#[derive(Debug)]
struct Handle(Arc<Fragile>);

impl UdpSocket for Handle {
    fn poll_receive(&self, cx: &mut Context<'_>, _: &mut [u8]) -> Poll<io::Result<Received>> {
        *self.0.reader.lock().expect("no thread has panicked") = Some(cx.waker().clone());
        match self.0.result() {
            Ok(()) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    fn is_readable(&self, cx: &mut Context<'_>) -> bool {
        *self.0.reader.lock().expect("no thread has panicked") = Some(cx.waker().clone());
        self.0.is_gone.load(Relaxed)
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<usize> {
        self.0.result().map(|()| transmit.contents.len())
    }

    fn poll_writable(&self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.0.result())
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(SocketAddr::from(([192, 0, 2, 1], 4433)))
    }
}

/// A shard that has lost its socket ends alone: its connections report the reason, and the endpoint continues with the
/// others. The socket is closed, so that the system gives its datagrams to others.
#[tokio::test]
async fn shard_that_loses_its_socket_ends_alone() {
    let runtime = Current::require().expect("tokio is running");
    let sockets: [Arc<Fragile>; 2] = Default::default();
    let each = sockets.each_ref().map(|it| {
        let transport: Box<dyn UdpSocket> = Box::new(Handle(it.clone()));
        Socket::of_runtime(transport)
    });
    let of_endpoint = ShardSockets {
        each: each.into(),
        rule: None,
        note: None,
    };
    let identity = Identity::dev().expect("the system provides random numbers");
    let server = ServerConfig::with_identity(&identity)
        .expect("the certificate matches its key")
        .alpn(["test"]);
    let config = EndpointConfig::from_seed([1; 32]);
    let endpoint = Endpoint::start(&runtime, config, Some(server), of_endpoint)
        .expect("the configuration is valid");
    let client = ClientConfig::with_roots([identity.certificate()])
        .expect("the root certificate is valid")
        .alpn(["test"]);
    let connect = || {
        let peer = SocketAddr::from(([192, 0, 2, 2], 4433));
        endpoint.connect_with(client.clone(), peer, "localhost")
    };
    let (first, second) = (connect().expect("is open"), connect().expect("is open"));
    tokio::task::yield_now().await;

    let watched: [Weak<Fragile>; 2] = sockets.each_ref().map(Arc::downgrade);
    let [lost, other] = sockets;
    lost.lose();
    drop(lost);
    let failed = endpoint.socket_event().await.expect("an event");
    assert!(matches!(failed, SocketEvent::Failed { .. }), "{failed}");
    let stopped = endpoint.socket_event().await.expect("an event");
    assert!(matches!(stopped, SocketEvent::Stopped { .. }), "{stopped}");
    assert!(watched[0].upgrade().is_none(), "the socket is closed");
    let error = first.await.expect_err("its socket is lost").to_string();
    assert!(error.contains("the endpoint has stopped"), "{error}");

    // The other shard gets all new connections, and clients can connect.
    let more: Vec<_> = (0..6)
        .map(|_| connect().expect("a shard is left"))
        .collect();
    let states = endpoint.shard_stats();
    assert_eq!(
        states.iter().map(|it| it.connected).collect::<Vec<_>>(),
        [1, 7]
    );
    let mut accepting = std::pin::pin!(endpoint.accept());
    let mut events = std::pin::pin!(endpoint.socket_event());
    let mut cx = Context::from_waker(Waker::noop());
    assert!(accepting.as_mut().poll(&mut cx).is_pending());
    assert!(events.as_mut().poll(&mut cx).is_pending());
    assert_eq!(endpoint.local_addr().expect("an address").port(), 4433);

    // The last one ends the endpoint.
    other.lose();
    let error = second.await.expect_err("its socket is lost").to_string();
    assert!(error.contains("the endpoint has stopped"), "{error}");
    assert!(accepting.await.is_none());
    while events.as_mut().await.is_some() {
        events.set(endpoint.socket_event());
    }
    assert!(matches!(connect(), Err(ConnectError::EndpointStopping)));
    drop(more);
    endpoint.wait_idle().await;
}
