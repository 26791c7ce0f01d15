//! The traits that another runtime must implement.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use courser_udp::{Capabilities, Counters, PacketTooBig, Received, Transmit, UnreachableReport};

use super::system;

/// A task that is ready to be polled on any thread.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Work that may block its thread.
pub type Work = Box<dyn FnOnce() + Send>;

/// A runtime: polls tasks, and has a clock, timers and sockets.
///
/// It must [`enter`](super::enter) itself whenever it polls or drops a task, which
/// [`within`](super::within) does for one future.
pub trait Runtime: fmt::Debug + Send + Sync + 'static {
    /// Returns the present time, which never goes back. The default reads the system's clock.
    fn now(&self) -> Instant {
        Instant::now()
    }

    /// Returns the time of day, since the beginning of 1970 (UTC). The default is the system's.
    fn unix_time(&self) -> Duration {
        system::unix_time()
    }

    /// Accepts a task and polls it, but not before this call has returned. `origin` is the line
    /// that spawned it, which can serve as its name.
    fn spawn(&self, task: Task, origin: &'static Location<'static>);

    /// Runs work that may block, on a thread where it delays no task. Callers hold no lock.
    ///
    /// The default runs the work at once, which suits a world whose time does not advance.
    fn spawn_blocking(&self, work: Work) {
        work();
    }

    /// Creates a timer that has not been set.
    fn timer(&self) -> Box<dyn Timer>;

    /// Binds a UDP socket. Port 0 lets the runtime choose; `[::]` accepts IPv4 as well.
    ///
    /// # Errors
    /// Returns an error if the address is in use or does not belong to this machine.
    fn bind(&self, address: SocketAddr) -> io::Result<Box<dyn UdpSocket>>;

    /// Adopts a bound socket of the operating system, for [`Endpoint::new`](crate::Endpoint::new) and
    /// [`Endpoint::rebind`](crate::Endpoint::rebind).
    ///
    /// # Errors
    /// Returns an error if the socket cannot be used. The default is for runtimes whose sockets do not
    /// come from the operating system, and returns `Unsupported`.
    fn adopt(&self, socket: std::net::UdpSocket) -> io::Result<Box<dyn UdpSocket>> {
        let _ = socket;
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "a socket of the system was given, but the current runtime has its own: \
             use Endpoint::bind with an address",
        ))
    }

    /// Returns 32 random bytes for keys and connection IDs, different ones in each call. The default takes
    /// them from the system.
    ///
    /// # Errors
    /// Returns an error if there are none.
    fn random_seed(&self) -> io::Result<[u8; 32]> {
        system::random_seed()
    }

    /// Returns true if runs can be repeated, because random numbers are derived from a seed.
    ///
    /// Certificates made there have keys whose signatures are all of one length.
    fn is_repeatable(&self) -> bool {
        false
    }
}

/// A timer that can be set again. Dropping it cancels it.
pub trait Timer: fmt::Debug + Send {
    /// Wakes the task at `deadline` instead of the previous one. `Ready` if it has passed.
    fn set(&mut self, deadline: Instant, cx: &mut Context<'_>) -> Poll<()>;

    /// Returns true if the last deadline has passed and no wakeup is due, or none was set.
    fn is_elapsed(&self) -> bool;
}

/// Carries the datagrams of an endpoint: a bound socket that never blocks, or any other transport.
///
/// [`Runtime::bind`] returns one, and a user may give an endpoint one of their own
/// ([`EndpointBuilder::transport`](crate::EndpointBuilder::transport),
/// [`Endpoint::rebind_transport`](crate::Endpoint::rebind_transport)): a relay, a tunnel, a channel
/// inside the process. A transport needs four methods. The others have defaults.
///
/// # Batches
/// A batch is a number of datagrams of the same length, one directly after the other; only the last
/// may be shorter. `try_send` is given at most [`Capabilities::gso_segments`] of them, one by default.
/// It takes datagrams from the front and returns the bytes of those that it has taken, so that
/// a transport with room for two of five returns twice the segment size and is given the other three
/// later. It may put each datagram into a packet of its own; the peer does not see batches.
///
/// # Sizes
/// QUIC needs datagrams of 1200 bytes (RFC 9000 §14), and none is larger than 65 507 bytes. A transport
/// that adds a header returns a smaller [`interface_mtu`](UdpSocket::interface_mtu), which no datagram
/// exceeds. A transport that still cannot carry a datagram drops it, or returns an error: probes
/// of the path MTU are meant to be lost where they are too large (RFC 8899).
///
/// # ECN
/// A transport without a way to carry marks ignores [`Transmit::ecn`], returns
/// [`Ecn::NotEct`](super::Ecn::NotEct) and leaves [`Capabilities::ecn`] false. Connections notice that
/// marks are missing and stop setting them (RFC 9000 §13.4.2). A transport must not invent marks.
///
/// # Wakers
/// `poll_receive`, `is_readable` and `poll_writable` are called by one task at a time. Each remembers
/// the waker of its last call; receiving and sending have a waker each. Waking without a cause is
/// allowed, and costs a poll.
///
/// # Locks
/// `try_send`, `counters` and `receive_overflow` are called under the lock of the endpoint, from any task. No
/// method may block, or call methods of the same endpoint, its connections and its streams, which panic then.
/// The transport is dropped when no lock is held.
///
/// # Errors
/// | error | effect |
/// |---|---|
/// | `WouldBlock` | sending resumes after `poll_writable`; receiving: the same as `Pending` |
/// | the system's codes `EBADF`, `ENOTSOCK` and `EFAULT` | the socket is lost. One that [`Runtime::bind`] returned is bound again; otherwise its shard ends, and its connections report this error. A socket that was replaced is given up instead |
/// | any other | the batch counts as lost on the path, and connections continue |
///
/// If receiving returns nothing but errors, it pauses for up to a second (limit K31). If every send fails
/// for two seconds with `BrokenPipe`, `NotConnected` or an error that no system documents, a socket of
/// [`Runtime::bind`] is bound again (limit K290). [`Endpoint::socket_event`](crate::Endpoint::socket_event)
/// reports errors, and [`Endpoint::socket_counters`](crate::Endpoint::socket_counters) counts them. A
/// transport that has ended for good is closed with its endpoint.
///
/// # Cancel safety
/// All methods return at once. A datagram that `poll_receive` has returned belongs to the endpoint; one
/// that it has not returned stays with the transport. The transport is dropped when no connection needs
/// it any more, on a thread of the runtime.
///
/// # Faults
/// The endpoint corrects impossible results. A batch longer than the buffer is dropped, as are
/// datagrams from port 0 and from addresses that cannot send. A segment size of 0 is taken for one
/// datagram, a count of sent bytes is rounded to whole datagrams of the batch. A transport that is
/// writable but accepts nothing loses the batch after 16 attempts in a row (limit K191), and one that
/// returns 16 384 empty or impossible batches in a row is read again after a pause (limit K192).
pub trait UdpSocket: fmt::Debug + Send + Sync + 'static {
    /// Receives one batch: datagrams with the same addresses, the same ECN mark and, except for the
    /// last, the same length. If there is none, wakes the task when one arrives.
    ///
    /// `buffer` has 65 536 bytes. [`Received::segment_size`] is never 0.
    ///
    /// # Errors
    /// Most report a batch that was sent earlier, and are counted only; see the table above.
    fn poll_receive(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<Received>>;

    /// Returns true if there may be something to receive; otherwise wakes the task when there is.
    ///
    /// The default returns true, which costs a call of `poll_receive` now and then.
    fn is_readable(&self, cx: &mut Context<'_>) -> bool {
        let _ = cx;
        true
    }

    /// Sends as many whole datagrams of a batch as there is room for, and returns the bytes sent.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room at all; otherwise as for receiving.
    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<usize>;

    /// Returns `Ready` when another attempt to send makes sense; otherwise wakes the task then.
    ///
    /// Called only after `try_send` has returned `WouldBlock`.
    ///
    /// # Errors
    /// Returns an error if it cannot report readiness: `try_send` is then called ten times a second.
    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Returns the address that it is bound to, with the port that was chosen. A transport without
    /// addresses of its own returns one whose family is that of its peers.
    ///
    /// # Errors
    /// Returns an error if the socket is no longer usable.
    fn local_addr(&self) -> io::Result<SocketAddr>;

    /// Returns the MTU of the interface towards `peer` in bytes, IP and UDP headers included (28 bytes for
    /// IPv4, 48 for IPv6); `None` if it is unknown. It is the first size that the search for the path MTU
    /// tries, and the largest. Values that leave less than 1200 bytes are ignored.
    fn interface_mtu(&self, _peer: SocketAddr) -> Option<u32> {
        None
    }

    /// Returns true once after [`interface_mtu`](UdpSocket::interface_mtu) has changed, for a transport inside of which
    /// another connection searches for its path MTU. Connections then ask for it again: they send no larger datagrams, and
    /// probe this size next. Called like [`take_packet_too_big`](Self::take_packet_too_big).
    fn take_interface_change(&self) -> bool {
        false
    }

    /// Returns the next ICMP Packet Too Big message. Called whenever the receiving task has run: a
    /// socket with a new message wakes it.
    fn take_packet_too_big(&self) -> Option<PacketTooBig> {
        None
    }

    /// Returns the next ICMP message that a datagram did not reach its destination. Called like
    /// [`take_packet_too_big`](Self::take_packet_too_big).
    fn take_unreachable(&self) -> Option<UnreachableReport> {
        None
    }

    /// Returns the capabilities of the socket. Called once, and by users. By default, a call sends one
    /// datagram without an ECN mark.
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    /// Returns false once ECN marks turn out to be impossible: connections then stop setting them at once.
    /// Called after each batch with marks.
    fn can_mark(&self) -> bool {
        true
    }

    /// Returns the counters that only the socket knows: `gso_fallbacks`, `mark_fallbacks`,
    /// `source_fallbacks`, `path_errors` and `packets_too_big`. The endpoint counts calls, datagrams, bytes
    /// and errors itself.
    fn counters(&self) -> Counters {
        Counters::default()
    }

    /// Returns how many received datagrams were dropped because the receive buffer was full; `None`
    /// if that is unknown.
    fn receive_overflow(&self) -> Option<u64> {
        None
    }
}
