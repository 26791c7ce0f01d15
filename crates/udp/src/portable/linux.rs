//! Linux: one `sendmsg` with UDP_SEGMENT per outgoing batch, one `recvmsg` with UDP_GRO per
//! received batch.
//!
//! A send on a connected socket has neither an address nor any control message except UDP_SEGMENT.
//! Only then does the kernel (since 6.9) reuse the cached route, which saves a tenth of the call.
//! The ECN mark is an option of such a socket and is set when it changes, which is rare. On an
//! unconnected socket the kernel looks up the route anyway. There, each batch carries its own mark,
//! so that threads cannot mix up their marks.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use courser_base::Ecn;
use socket2::SockAddr;

use super::address::{canonical, for_socket, usable_source};
use super::offload::{Offload, uninterrupted};
use super::refusal::{Extras, Refusals, is_local};
use crate::Capabilities;
use crate::batch::{Received, Transmit};
use crate::counters::AtomicCounters;
use crate::is_transient;
use crate::too_big::PacketTooBig;
use crate::unreachable::UnreachableReport;
use cmsg::{Control, ControlBuffer};
use errqueue::ErrorQueue;
use options::Supported;

pub use adjtimex::clock_state;
pub(crate) use fcntl::adopt;
pub(crate) use former::has_only_connected;
pub(crate) use group::{share_port, steer, unshare_port};
pub use malloc_trim::release_unused_memory;

mod adjtimex;
mod cmsg;
mod errqueue;
mod fcntl;
mod former;
mod group;
mod gso;
mod malloc_trim;
mod options;
mod recvmsg;
mod sendmsg;
mod sockopt;
mod steering;
#[cfg(test)]
mod tests;

/// A socket with its options set and its peer stored.
#[derive(Debug)]
pub(crate) struct Socket {
    io: UdpSocket,
    is_ipv6: bool,
    bound: IpAddr,
    /// Set before the system call, so that only one of two concurrent callers connects.
    has_peer: AtomicBool,
    connected: OnceLock<Connected>,
    /// The current mark of the connected socket, or [`MARK_UNKNOWN`].
    mark: AtomicU8,
    offload: Offload,
    refusals: Refusals,
    supported: Supported,
    /// Boxed, to separate it from the fields that every batch needs.
    error_queue: Box<ErrorQueue>,
}

/// The two ends of a connected socket.
#[derive(Debug)]
struct Connected {
    peer: SocketAddr,
    local: IpAddr,
}

impl Socket {
    pub(crate) fn new(io: UdpSocket) -> io::Result<Self> {
        let local = io.local_addr()?;
        let supported = options::set_all(io.as_fd(), local);
        let socket = Self {
            is_ipv6: local.is_ipv6(),
            bound: local.ip().to_canonical(),
            has_peer: AtomicBool::new(false),
            connected: OnceLock::new(),
            mark: AtomicU8::new(MARK_UNKNOWN),
            offload: Offload::new(gso::segment_limit()),
            refusals: Refusals::default(),
            supported,
            error_queue: Box::default(),
            io,
        };
        if let Ok(peer) = socket.io.peer_addr() {
            socket.has_peer.store(true, Ordering::Release);
            socket.on_connected(peer)?;
        }
        Ok(socket)
    }

    pub(crate) fn connect(&self, peer: SocketAddr) -> io::Result<()> {
        if self.has_peer.swap(true, Ordering::AcqRel) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let result = uninterrupted(|| self.io.connect(for_socket(peer, self.is_ipv6)))
            .and_then(|()| self.on_connected(peer));
        if result.is_err() {
            self.has_peer.store(false, Ordering::Release);
        }
        result
    }

    fn on_connected(&self, peer: SocketAddr) -> io::Result<()> {
        let local = self.local_addr()?.ip();
        // From now on there is only one local address, so datagrams need not carry it.
        options::stop_pktinfo(self.io.as_fd(), self.is_ipv6);
        let connected = Connected {
            peer: canonical(peer),
            local,
        };
        self.connected
            .set(connected)
            .map_err(|_| io::ErrorKind::AlreadyExists.into())
    }

    pub(crate) fn io(&self) -> &UdpSocket {
        &self.io
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr().map(canonical)
    }

    pub(crate) fn peer_addr(&self) -> Option<SocketAddr> {
        self.connected.get().map(|connected| connected.peer)
    }

    pub(crate) fn gso_segments(&self) -> usize {
        self.offload.segments()
    }

    pub(crate) fn send(
        &self,
        transmit: &Transmit<'_>,
        counters: &AtomicCounters,
    ) -> io::Result<usize> {
        let destination = canonical(transmit.destination);
        let fd = self.io.as_fd();
        if self.peer_addr() == Some(destination) {
            self.apply_mark(fd, transmit.ecn, destination.is_ipv4(), counters);
            return self.offload.send(transmit, counters, |contents, segment| {
                let mut control = ControlBuffer::new();
                control.push_segment_size(segment);
                self.send_past_icmp_errors(counters, || {
                    sendmsg::sendmsg(fd, None, control.filled(), contents)
                })
            });
        }
        let name = SockAddr::from(for_socket(destination, self.is_ipv6));
        let extras = Extras {
            mark: transmit.ecn != Ecn::NotEct,
            source: self.source_of(transmit, destination),
        };
        self.offload.send(transmit, counters, |contents, segment| {
            self.refusals.send(extras, counters, is_local, |extras| {
                let mut control = ControlBuffer::new();
                self.push_mark(
                    &mut control,
                    transmit.ecn,
                    extras.mark,
                    destination.is_ipv4(),
                );
                if let Some(source) = extras.source {
                    control.push_source(source);
                }
                control.push_segment_size(segment);
                self.send_past_icmp_errors(counters, || {
                    sendmsg::sendmsg(fd, Some(&name), control.filled(), contents)
                })
            })
        })
    }

    pub(crate) fn can_mark(&self) -> bool {
        self.refusals.can_mark()
    }

    /// Sends even if the kernel reports an ICMP error of an earlier datagram instead. Such errors
    /// are recorded and the call is repeated. An error without an ICMP message in the queue
    /// concerns the datagrams of this call.
    fn send_past_icmp_errors<T>(
        &self,
        counters: &AtomicCounters,
        call: impl Fn() -> io::Result<T>,
    ) -> io::Result<T> {
        for _ in 1..SEND_TRIES {
            match call() {
                Err(error)
                    if is_transient(&error)
                        && self.error_queue.drain(self.io.as_fd(), counters) > 0 => {}
                result => return result,
            }
        }
        call()
    }

    /// Returns the source address for a batch that does not go to the connected peer.
    fn source_of(&self, transmit: &Transmit<'_>, destination: SocketAddr) -> Option<IpAddr> {
        let may_choose = self.bound.is_unspecified() && self.connected.get().is_none();
        let source = transmit.source.filter(|_| may_choose);
        usable_source(source, destination)
    }

    /// Appends the mark of a batch that does not go to the connected peer.
    fn push_mark(&self, control: &mut ControlBuffer, mark: Ecn, is_marked: bool, is_ipv4: bool) {
        // Without a control message the socket's own mark applies, which changes only on connected
        // sockets.
        if is_marked {
            control.push_mark(mark, is_ipv4);
        } else if self.connected.get().is_some() && self.refusals.can_mark() {
            control.push_mark(Ecn::NotEct, is_ipv4);
        }
    }

    /// Sets the mark of a connected socket if it differs from the last one.
    ///
    /// A failed call is not repeated: the datagrams leave without marks from then on.
    fn apply_mark(&self, fd: BorrowedFd<'_>, mark: Ecn, is_ipv4: bool, counters: &AtomicCounters) {
        let mark = if self.refusals.can_mark() {
            mark
        } else {
            Ecn::NotEct
        };
        let bits = mark.to_bits();
        if self.mark.load(Ordering::Relaxed) != bits {
            if options::set_mark(fd, mark, is_ipv4).is_err() && mark != Ecn::NotEct {
                self.refusals.on_mark_option_refused(counters);
            }
            self.mark.store(bits, Ordering::Relaxed);
        }
    }

    pub(crate) fn receive(
        &self,
        buffer: &mut [u8],
        counters: &AtomicCounters,
    ) -> io::Result<Received> {
        let mut control = ControlBuffer::new();
        let fd = self.io.as_fd();
        let filled = uninterrupted(|| recvmsg::recvmsg(fd, buffer, &mut control, 0));
        let filled = filled.inspect_err(|error| {
            if is_transient(error) {
                self.error_queue.drain(fd, counters);
            }
        })?;
        let control = Control::decode(control.filled());
        let peer = filled.peer.map(canonical).or_else(|| self.peer_addr());
        let missing = || io::Error::new(io::ErrorKind::InvalidData, "datagram without an address");
        Ok(Received {
            len: filled.len,
            segment_size: control.segment_size.unwrap_or(filled.len).max(1),
            peer: peer.ok_or_else(missing)?,
            local: control.local.or_else(|| self.known_local()),
            ecn: control.ecn,
            truncated: filled.flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0,
        })
    }

    /// Returns the local address if it is the same for all datagrams, so that the kernel need not
    /// report it.
    fn known_local(&self) -> Option<IpAddr> {
        match self.connected.get() {
            Some(connected) => Some(connected.local),
            None => Some(self.bound).filter(|ip| !ip.is_unspecified()),
        }
    }

    pub(crate) fn has_icmp_messages(&self) -> bool {
        self.error_queue.has_messages()
    }

    pub(crate) fn take_packet_too_big(&self) -> Option<PacketTooBig> {
        self.error_queue.too_big.take()
    }

    pub(crate) fn take_unreachable(&self) -> Option<UnreachableReport> {
        self.error_queue.unreachable.take()
    }

    pub(crate) fn receive_overflow(&self) -> Option<u64> {
        sockopt::dropped(self.io.as_fd()).ok().map(u64::from)
    }

    pub(crate) fn enlarge_buffers(&self, bytes: usize) {
        options::enlarge_buffers(self.io.as_fd(), bytes);
    }

    pub(crate) fn limit_buffers(&self, bytes: usize) {
        options::limit_buffers(self.io.as_fd(), bytes);
    }

    pub(crate) fn interface_mtu(&self, peer: SocketAddr) -> Option<u32> {
        let peer = canonical(peer);
        let local = self
            .known_local()
            .filter(|local| local.is_ipv4() == peer.is_ipv4());
        options::interface_mtu(local, peer).ok()
    }

    pub(crate) fn capabilities(&self) -> Capabilities {
        let Supported { gro, ecn, pktinfo } = self.supported;
        let ecn = ecn && self.can_mark();
        let pktinfo = pktinfo && self.refusals.can_choose_source();
        let (receive_buffer, send_buffer) = options::buffers(self.io.as_fd());
        Capabilities {
            gso_segments: self.gso_segments(),
            gro,
            ecn,
            pktinfo,
            receive_buffer,
            receive_buffer_wanted: crate::capabilities::BUFFER_WANTED,
            send_buffer,
            send_buffer_wanted: crate::capabilities::BUFFER_WANTED,
            warnings: Vec::new(),
        }
    }
}

/// A value that differs from every mark, so that the first send sets the mark.
const MARK_UNKNOWN: u8 = u8::MAX;

/// The maximum number of calls for one batch while the kernel reports errors of other batches. More
/// errors are a flood of ICMP messages, and the batch then counts as lost.
const SEND_TRIES: usize = 4;
