//! The traits that programs implement.

use std::fmt::Debug;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use udp::{RecvMeta, Transmit};

/// A runtime: polls tasks, and has timers and sockets.
///
/// courser runs on [`TokioRuntime`](crate::TokioRuntime) directly. Any other implementation is adapted, at the cost of a dynamic call
/// for each batch of datagrams.
pub trait Runtime: Send + Sync + Debug + 'static {
    /// Creates a timer that expires at `deadline`.
    fn new_timer(&self, deadline: Instant) -> Pin<Box<dyn AsyncTimer>>;

    /// Polls a future until it is ready.
    #[track_caller]
    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>);

    /// Adopts a socket of the system.
    ///
    /// # Errors
    /// Returns an error if the socket cannot be used.
    fn wrap_udp_socket(&self, socket: std::net::UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>>;

    /// Returns the present time. The default reads the system's clock.
    fn now(&self) -> Instant {
        Instant::now()
    }

    /// Returns true for [`TokioRuntime`](crate::TokioRuntime), in place of which courser uses tokio directly.
    #[doc(hidden)]
    fn is_tokio(&self) -> bool {
        false
    }
}

/// A timer that can be set again.
pub trait AsyncTimer: Send + Debug + 'static {
    /// Sets the deadline instead of the previous one.
    fn reset(self: Pin<&mut Self>, deadline: Instant);

    /// Returns `Ready` if the deadline has passed; otherwise wakes the task then.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()>;
}

/// A bound socket that never blocks.
pub trait AsyncUdpSocket: Send + Sync + Debug + 'static {
    /// Creates an object that waits until the socket is writable.
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>>;

    /// Sends a batch of datagrams.
    ///
    /// # Errors
    /// Returns `WouldBlock` if the buffer is full, and other errors of the system.
    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()>;

    /// Receives batches into `bufs`, describes them in `meta` and returns their number. If there are none, wakes
    /// the task when one arrives. courser passes one buffer.
    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>>;

    /// Returns the address that it is bound to.
    ///
    /// # Errors
    /// Returns an error if the socket is no longer usable.
    fn local_addr(&self) -> io::Result<SocketAddr>;

    /// Returns the maximum of datagrams in one batch that is sent.
    fn max_transmit_segments(&self) -> usize {
        1
    }

    /// Returns the maximum of datagrams in one batch that is received.
    fn max_receive_segments(&self) -> usize {
        1
    }

    /// Returns true if routers may fragment datagrams.
    fn may_fragment(&self) -> bool {
        true
    }
}

/// Waits until a socket is writable.
pub trait UdpPoller: Send + Sync + Debug + 'static {
    /// Returns `Ready` when another attempt to send makes sense; otherwise wakes the task then.
    fn poll_writable(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
}
