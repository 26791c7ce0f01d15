//! Tokio as a runtime with objects, for programs that wrap its sockets.

use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use tokio::io::Interest;
use tokio::time::Sleep;
use udp::{RecvMeta, Transmit, UdpSocketState};

use super::traits::{AsyncTimer, AsyncUdpSocket, Runtime, UdpPoller};

/// Tokio. Endpoints with it use courser's own sockets and timers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TokioRuntime;

impl Runtime for TokioRuntime {
    fn new_timer(&self, deadline: Instant) -> Pin<Box<dyn AsyncTimer>> {
        Box::pin(tokio::time::sleep_until(deadline.into()))
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        tokio::spawn(future);
    }

    fn wrap_udp_socket(&self, socket: std::net::UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        let state = UdpSocketState::new((&socket).into())?;
        let socket = tokio::net::UdpSocket::from_std(socket)?;
        Ok(Arc::new(TokioSocket { socket, state }))
    }

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }

    fn is_tokio(&self) -> bool {
        true
    }
}

impl AsyncTimer for Sleep {
    fn reset(self: Pin<&mut Self>, deadline: Instant) {
        Self::reset(self, deadline.into());
    }

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Future::poll(self, cx)
    }
}

/// A socket of tokio.
#[derive(Debug)]
struct TokioSocket {
    socket: tokio::net::UdpSocket,
    state: UdpSocketState,
}

impl AsyncUdpSocket for TokioSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Writable {
            socket: self,
            waiting: None,
        })
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.socket.try_io(Interest::WRITABLE, || {
            self.state.send((&self.socket).into(), transmit)
        })
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.socket.poll_recv_ready(cx))?;
            let received = self.socket.try_io(Interest::READABLE, || {
                self.state.recv((&self.socket).into(), bufs, meta)
            });
            match received {
                // This call has cleared the readiness.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                received => return Poll::Ready(received),
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.state.gro_segments()
    }

    fn may_fragment(&self) -> bool {
        self.state.may_fragment()
    }
}

/// Waits until a socket is writable, with a waker of its own.
struct Writable {
    socket: Arc<TokioSocket>,
    waiting: Option<Waiting>,
}

type Waiting = Pin<Box<dyn Future<Output = io::Result<()>> + Send + Sync>>;

impl UdpPoller for Writable {
    fn poll_writable(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let waiting = this.waiting.get_or_insert_with(|| {
            let socket = this.socket.clone();
            Box::pin(async move { socket.socket.writable().await })
        });
        let result = ready!(waiting.as_mut().poll(cx));
        this.waiting = None;
        Poll::Ready(result)
    }
}

impl fmt::Debug for Writable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Writable").field(&self.socket).finish()
    }
}

/// Returns the runtime of the calling thread: tokio, if the thread is inside one.
pub fn default_runtime() -> Option<Arc<dyn Runtime>> {
    let inside = tokio::runtime::Handle::try_current();
    inside.is_ok().then(|| Arc::new(TokioRuntime) as _)
}
