//! The traits that another runtime must implement.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use courser_udp::{Capabilities, Counters, PacketTooBig, Received, Transmit};

/// A task that is ready to be polled on any thread.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Work that may block its thread.
pub type Work = Box<dyn FnOnce() + Send>;

/// A runtime: polls tasks, and has a clock, timers and sockets.
///
/// It must [`enter`](super::enter) itself whenever it polls or drops a task.
pub trait Runtime: fmt::Debug + Send + Sync + 'static {
    /// Returns the present time, which never goes back.
    fn now(&self) -> Instant;

    /// Returns the time of day, since the beginning of 1970 (UTC).
    fn unix_time(&self) -> Duration;

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

    /// Returns 32 random bytes for keys and connection IDs, different ones in each call.
    ///
    /// # Errors
    /// Returns an error if there are none.
    fn random_seed(&self) -> io::Result<[u8; 32]>;

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

/// A bound UDP socket that never blocks.
///
/// One task receives and waits until it can send; any task may send.
pub trait UdpSocket: fmt::Debug + Send + Sync {
    /// Receives one batch: datagrams with the same addresses, the same ECN mark and, except for the
    /// last, the same length. If there is none, wakes the task when one arrives.
    ///
    /// `buffer` has 65 536 bytes. [`Received::segment_size`] is never 0.
    ///
    /// # Errors
    /// Errors about one destination of earlier batches (`ConnectionRefused`, `HostUnreachable`,
    /// `NetworkUnreachable`) are ignored; others stop the endpoint.
    fn poll_receive(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<Received>>;

    /// Returns true if there may be something to receive; otherwise wakes the task when there is.
    fn is_readable(&self, cx: &mut Context<'_>) -> bool;

    /// Sends as many whole datagrams of a batch as there is room for, and returns the bytes sent.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room at all; otherwise as for receiving.
    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<usize>;

    /// Returns `Ready` when another attempt to send makes sense; otherwise wakes the task then.
    ///
    /// # Errors
    /// Returns an error if the socket is no longer usable.
    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Returns the address that it is bound to, with the port that was chosen.
    ///
    /// # Errors
    /// Returns an error if the socket is no longer usable.
    fn local_addr(&self) -> io::Result<SocketAddr>;

    /// Returns the MTU of the interface towards `peer`, IP header included; `None` if it is
    /// unknown. The search for the path MTU tries this size first.
    fn interface_mtu(&self, _peer: SocketAddr) -> Option<u32> {
        None
    }

    /// Returns the next ICMP Packet Too Big message. Called whenever the receiving task has run: a
    /// socket with a new message wakes it.
    fn take_packet_too_big(&self) -> Option<PacketTooBig> {
        None
    }

    /// Returns the capabilities of the socket. Called once, and by users.
    fn capabilities(&self) -> Capabilities;

    /// Returns the counters of the socket.
    fn counters(&self) -> Counters;

    /// Returns how many received datagrams were dropped because the receive buffer was full; `None`
    /// if that is unknown.
    fn receive_overflow(&self) -> Option<u64> {
        None
    }
}
