//! What another runtime has to bring.

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

/// Something that polls tasks and has a clock, timers and sockets.
///
/// It has to [`enter`](super::enter) itself whenever it polls or drops a task.
pub trait Runtime: fmt::Debug + Send + Sync + 'static {
    /// The time now. Never goes back.
    fn now(&self) -> Instant;

    /// The time of day, since the beginning of 1970 (UTC).
    fn unix_time(&self) -> Duration;

    /// Takes a task and polls it, but not before this call has returned. `origin` is the line
    /// that spawned it, to name it by.
    fn spawn(&self, task: Task, origin: &'static Location<'static>);

    /// Does work that may block, on a thread where that holds up no task. It is called by tasks
    /// that hold no lock.
    ///
    /// Unless it is implemented, the work is done at once by the caller: right for a world whose
    /// time stands still meanwhile.
    fn spawn_blocking(&self, work: Work) {
        work();
    }

    /// Makes a timer that has not been set.
    fn timer(&self) -> Box<dyn Timer>;

    /// Binds a UDP socket. Port 0 lets the runtime choose; `[::]` takes IPv4 as well.
    ///
    /// # Errors
    /// When the address is taken or not one of this machine.
    fn bind(&self, address: SocketAddr) -> io::Result<Box<dyn UdpSocket>>;

    /// 32 bytes for keys and connection IDs, other ones in each call.
    ///
    /// # Errors
    /// When there are none.
    fn random_seed(&self) -> io::Result<[u8; 32]>;

    /// True if a run can be repeated, because random numbers follow from a seed.
    ///
    /// Certificates made there have keys whose signatures are all of one length.
    fn is_repeatable(&self) -> bool {
        false
    }
}

/// One timer that is set again and again. Dropping it takes it back.
pub trait Timer: fmt::Debug + Send {
    /// Wakes the task at `deadline` instead of at the one before. Ready when that has passed.
    fn set(&mut self, deadline: Instant, cx: &mut Context<'_>) -> Poll<()>;

    /// True when the last deadline has passed and nobody will be woken any more, or none was set.
    fn is_elapsed(&self) -> bool;
}

/// A bound UDP socket that never blocks.
///
/// One task receives and waits until it can send; any may send.
pub trait UdpSocket: fmt::Debug + Send + Sync {
    /// Receives one batch: datagrams of equal length, but for the last, that have both addresses
    /// and the ECN mark in common. Otherwise wakes the task when there is one.
    ///
    /// `buffer` has 65 536 bytes. [`Received::segment_size`] is never 0.
    ///
    /// # Errors
    /// Those about one destination of earlier batches (`ConnectionRefused`, `HostUnreachable`,
    /// `NetworkUnreachable`) are passed over; others stop the endpoint.
    fn poll_receive(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<Received>>;

    /// True if there may be something to receive; otherwise wakes the task when there is.
    fn is_readable(&self, cx: &mut Context<'_>) -> bool;

    /// Sends as much of a batch as there is room for, in whole datagrams, and returns the bytes.
    ///
    /// # Errors
    /// `WouldBlock` when there is no room at all; as for receiving otherwise.
    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<usize>;

    /// Ready when another attempt to send makes sense; otherwise wakes the task then.
    ///
    /// # Errors
    /// When the socket is of no use any more.
    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// The address that it is bound to, with the port that was chosen.
    ///
    /// # Errors
    /// When the socket is of no use any more.
    fn local_addr(&self) -> io::Result<SocketAddr>;

    /// How large packets may be on the interface towards `peer`, IP header included; `None` when
    /// that is not known. The search for the path MTU tries this size first.
    fn interface_mtu(&self, _peer: SocketAddr) -> Option<u32> {
        None
    }

    /// What a router said of a datagram that was too large, each message once. Asked for whenever
    /// the task that receives has run: a socket that has something new wakes it.
    fn take_packet_too_big(&self) -> Option<PacketTooBig> {
        None
    }

    /// What the socket can do. Asked for once, and by users.
    fn capabilities(&self) -> Capabilities;

    /// What the socket has done so far.
    fn counters(&self) -> Counters;

    /// Returns how many received datagrams were dropped because the receive buffer was full;
    /// `None` when that is not known.
    fn receive_overflow(&self) -> Option<u64> {
        None
    }
}
