//! The network stack of a machine: the sockets that packets belong to, and packets to be sent.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::task::Waker;
use std::time::Duration;

use bytes::Bytes;
use courser::runtime::{PacketTooBig, Transmit};
use courser_base::{ScopedIp, Time};
use courser_crypto::Rng;

use super::bound::{Bound, DATAGRAM_OVERHEAD};
use super::socket_faults::{FaultState, SendOutcome, SocketFaults};
use crate::packet::{Packet, TooBig};

/// Maximum number of datagrams in one send call, as on Linux.
pub(super) const GSO_SEGMENTS: usize = 64;
/// The default size of receive buffers, and the size of the send buffer of the machine, in bytes.
/// Courser requests the same size from operating systems.
pub(super) const DEFAULT_BUFFER: usize = 7 << 20;
/// The ports for sockets bound to port 0: the range of RFC 6335 §6.
const EPHEMERAL_PORTS: std::ops::RangeInclusive<u16> = 49_152..=65_535;
/// The delay of packets of a machine to itself. It is above zero, so that two ends on one machine
/// cannot exchange packets endlessly without time passing.
const LOOPBACK_DELAY: Duration = Duration::from_micros(10);

/// Counters of packets on a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct NetworkCounters {
    /// Datagrams that sockets have sent, including those to the machine itself.
    pub sent: u64,
    /// Datagrams delivered to a socket.
    pub received: u64,
    /// Datagrams dropped because a socket's receive buffer was full.
    pub dropped_buffer_full: u64,
    /// Datagrams dropped because no socket is bound to their destination.
    pub dropped_no_socket: u64,
}

/// The ID of a bound socket, which is never reused.
pub(super) type SocketId = u64;

/// The sockets of a machine.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) addresses: Vec<IpAddr>,
    pub(super) receive_buffer: usize,
    pub(super) counters: NetworkCounters,
    sockets: BTreeMap<SocketId, Bound>,
    by_address: BTreeMap<SocketAddr, SocketId>,
    opened: u64,
    next_port: u16,
    outgoing: VecDeque<Packet>,
    outgoing_held: usize,
    pub(super) faults: FaultState,
    /// Ordered by time, since all have the same delay.
    loopback: VecDeque<(Time, Packet)>,
}

impl Network {
    pub(super) fn new(addresses: Vec<IpAddr>, faults: FaultState) -> Self {
        Self {
            addresses,
            receive_buffer: DEFAULT_BUFFER,
            counters: NetworkCounters::default(),
            sockets: BTreeMap::new(),
            by_address: BTreeMap::new(),
            opened: 0,
            next_port: *EPHEMERAL_PORTS.start(),
            outgoing: VecDeque::new(),
            outgoing_held: 0,
            faults,
            loopback: VecDeque::new(),
        }
    }

    pub(super) fn bind(&mut self, address: SocketAddr) -> io::Result<SocketId> {
        let ip = address.ip().to_canonical();
        if !ip.is_unspecified() && !self.is_own(ip) {
            let text = format!(
                "{ip} is not an address of this machine, it has {:?}",
                self.addresses
            );
            return Err(io::Error::new(ErrorKind::AddrNotAvailable, text));
        }
        if is_in_other_zone(address) {
            let text = format!("{address} is in a zone that this machine does not have");
            return Err(io::Error::new(ErrorKind::AddrNotAvailable, text));
        }
        let local = on_link(ip, self.free_port(ip, address.port())?);
        self.opened += 1;
        let socket = Bound::new(local, self.receive_buffer);
        self.sockets.insert(self.opened, socket);
        self.by_address.insert(local, self.opened);
        Ok(self.opened)
    }

    /// Removes a socket with its received datagrams. The caller must drop the result after
    /// releasing the lock.
    #[must_use]
    pub(super) fn close(&mut self, id: SocketId) -> Option<Bound> {
        let socket = self.sockets.remove(&id)?;
        self.by_address.remove(&socket.local);
        Some(socket)
    }

    pub(super) fn socket(&mut self, id: SocketId) -> io::Result<&mut Bound> {
        self.sockets.get_mut(&id).ok_or_else(|| {
            io::Error::new(
                ErrorKind::NotConnected,
                "the machine of the socket was dropped",
            )
        })
    }

    /// Delivers a packet to its socket. The caller must wake the returned waker after releasing the
    /// lock.
    #[must_use]
    pub(super) fn deliver(&mut self, now: Time, packet: Packet) -> Option<Waker> {
        if self.faults.is_unreachable(now) {
            self.counters.dropped_no_socket += 1;
            return None;
        }
        let Some(id) = self.receiver_of(packet.destination) else {
            self.counters.dropped_no_socket += 1;
            return None;
        };
        let socket = self.sockets.get_mut(&id)?;
        if !socket.enqueue(packet) {
            self.counters.dropped_buffer_full += 1;
            return None;
        }
        self.counters.received += 1;
        socket.receiver.take()
    }

    /// Delivers a router's report to the socket that sent the packet. The caller must wake the
    /// returned waker after releasing the lock.
    #[must_use]
    pub(super) fn on_packet_too_big(&mut self, message: &TooBig) -> Option<Waker> {
        let id = self.receiver_of(message.packet.source)?;
        let destination = message.packet.destination;
        let report = PacketTooBig::new(destination, message.mtu, message.quote());
        let socket = self.sockets.get_mut(&id)?;
        socket.store_report(report);
        socket.receiver.take()
    }

    /// Removes and returns the next packet of the machine to itself that arrives by `now`.
    pub(super) fn take_loopback(&mut self, now: Time) -> Option<Packet> {
        self.loopback.front().filter(|(due, _)| *due <= now)?;
        self.loopback.pop_front().map(|(_, packet)| packet)
    }

    pub(super) fn next_loopback(&self) -> Option<Time> {
        self.loopback.front().map(|(due, _)| *due)
    }

    /// Splits a batch into packets. Returns the number of bytes taken.
    pub(super) fn send(
        &mut self,
        id: SocketId,
        now: Time,
        transmit: &Transmit<'_>,
    ) -> io::Result<usize> {
        let local = self.socket(id)?.local;
        if is_in_other_zone(transmit.destination) {
            return Err(unreachable_from(local.ip(), transmit.destination.ip()));
        }
        let ip = transmit.destination.ip().to_canonical();
        let destination = on_link(ip, transmit.destination.port());
        let source = self.source_of(local, transmit.source, destination)?;
        if self.outgoing_held >= DEFAULT_BUFFER {
            return Err(ErrorKind::WouldBlock.into());
        }
        let len = transmit.contents.len();
        let segment = transmit.segment_size.unwrap_or(len).max(1);
        let count = len.div_ceil(segment);
        let most = match self.faults.on_send(now, count, segment.min(len)) {
            SendOutcome::AtMost(most) => most.min(GSO_SEGMENTS),
            SendOutcome::Error(error) => return Err(error),
        };
        let taken = len.min(segment.saturating_mul(most));
        let batch = Bytes::copy_from_slice(&transmit.contents[..taken]);
        let mut datagrams = 0;
        let mut begin = 0;
        // An empty datagram is sent as well.
        while begin < taken || datagrams == 0 {
            let end = taken.min(begin + segment);
            self.emit(
                now,
                Packet {
                    source,
                    destination,
                    ecn: transmit.ecn,
                    payload: batch.slice(begin..end),
                },
            );
            datagrams += 1;
            begin = end;
        }
        self.counters.sent += datagrams;
        let counters = &mut self.socket(id)?.counters;
        counters.send_calls += 1;
        counters.sent_datagrams += datagrams;
        counters.sent_bytes += taken as u64;
        Ok(taken)
    }

    pub(super) fn is_writable(&self, now: Time) -> bool {
        self.outgoing_held < DEFAULT_BUFFER && !self.faults.is_full(now)
    }

    /// Returns the next packet for the world.
    pub(super) fn transmit(&mut self) -> Option<Packet> {
        let packet = self.outgoing.pop_front()?;
        self.outgoing_held -= packet.payload.len() + DATAGRAM_OVERHEAD;
        Some(packet)
    }

    /// Removes and returns the wakers of tasks that wait to send, in the order of their sockets,
    /// once there is room.
    pub(super) fn take_senders(&mut self, now: Time) -> Vec<Waker> {
        if !self.is_writable(now) {
            return Vec::new();
        }
        let sockets = self.sockets.values_mut();
        sockets.filter_map(|socket| socket.sender.take()).collect()
    }

    /// Removes all sockets and packets. The caller must drop the result after releasing the lock.
    #[must_use]
    pub(super) fn take_all(&mut self) -> Self {
        let addresses = self.addresses.clone();
        let faults = FaultState::new(SocketFaults::default(), Rng::new([0; 32]));
        std::mem::replace(self, Self::new(addresses, faults))
    }

    fn emit(&mut self, now: Time, packet: Packet) {
        if self.is_own(packet.destination.ip()) {
            self.loopback.push_back((now + LOOPBACK_DELAY, packet));
            return;
        }
        self.outgoing_held += packet.payload.len() + DATAGRAM_OVERHEAD;
        self.outgoing.push_back(packet);
    }

    fn is_own(&self, ip: IpAddr) -> bool {
        ip.is_loopback() || self.addresses.contains(&ip)
    }

    /// Returns the socket with the most specific binding for this address.
    fn receiver_of(&self, destination: SocketAddr) -> Option<SocketId> {
        let ip = destination.ip().to_canonical();
        if !self.is_own(ip) {
            return None;
        }
        let any_v4 = IpAddr::from(Ipv4Addr::UNSPECIFIED);
        let any = IpAddr::from(Ipv6Addr::UNSPECIFIED);
        let candidates = if ip.is_ipv4() {
            [Some(ip), Some(any_v4), Some(any)]
        } else {
            [Some(ip), Some(any), None]
        };
        let port = destination.port();
        let find = |ip| self.by_address.get(&on_link(ip, port)).copied();
        candidates.into_iter().flatten().find_map(find)
    }

    /// Returns the source address of a socket.
    fn source_of(
        &self,
        local: SocketAddr,
        requested: Option<IpAddr>,
        destination: SocketAddr,
    ) -> io::Result<SocketAddr> {
        let to = destination.ip();
        let has_family = |ip: &IpAddr| ip.is_ipv4() == to.is_ipv4();
        if destination.port() == 0 || to.is_unspecified() {
            let text = format!("{destination} is no destination");
            return Err(io::Error::new(ErrorKind::InvalidInput, text));
        }
        if !local.ip().is_unspecified() {
            let is_reachable =
                has_family(&local.ip()) && (self.is_own(to) || !local.ip().is_loopback());
            return if is_reachable {
                Ok(local)
            } else {
                Err(unreachable_from(local.ip(), to))
            };
        }
        if local.is_ipv4() && to.is_ipv6() {
            return Err(unreachable_from(local.ip(), to));
        }
        let requested = requested.map(|ip| ip.to_canonical());
        if let Some(ip) = requested
            && !self.is_own(ip)
        {
            let text = format!("{ip} is not an address of this machine to send from");
            return Err(io::Error::new(ErrorKind::AddrNotAvailable, text));
        }
        let to_self = self.is_own(to).then_some(to);
        let first = self.addresses.iter().copied().find(has_family);
        let ip = requested
            .filter(has_family)
            .or(to_self)
            .or(first)
            .ok_or_else(|| unreachable_from(local.ip(), to))?;
        Ok(on_link(ip, local.port()))
    }

    /// Returns the requested port, or a free one for port 0.
    fn free_port(&mut self, ip: IpAddr, requested: u16) -> io::Result<u16> {
        if requested != 0 {
            return if self.is_free(ip, requested) {
                Ok(requested)
            } else {
                let text = format!("port {requested} of {ip} is taken on this machine");
                Err(io::Error::new(ErrorKind::AddrInUse, text))
            };
        }
        for _ in EPHEMERAL_PORTS {
            let port = self.next_port;
            self.next_port = port.checked_add(1).unwrap_or(*EPHEMERAL_PORTS.start());
            if self.is_free(ip, port) {
                return Ok(port);
            }
        }
        let text = format!("all ports of {ip} from {EPHEMERAL_PORTS:?} are taken on this machine");
        Err(io::Error::new(ErrorKind::AddrInUse, text))
    }

    /// Returns true if a socket may bind the port. A wildcard and an address that it covers cannot
    /// share a port.
    fn is_free(&self, ip: IpAddr, port: u16) -> bool {
        let covers = |one: IpAddr, other: IpAddr| match one {
            IpAddr::V4(one) => one.is_unspecified() && other.is_ipv4(),
            IpAddr::V6(one) => one.is_unspecified(),
        };
        if !ip.is_unspecified() {
            return self.receiver_of(on_link(ip, port)).is_none();
        }
        let mut locals = self.by_address.keys().filter(|local| local.port() == port);
        !locals.any(|local| covers(ip, local.ip()) || covers(local.ip(), ip))
    }
}

/// Returns a socket address, with the zone of the machine's link if it is link-local.
fn on_link(ip: IpAddr, port: u16) -> SocketAddr {
    match ip {
        IpAddr::V6(ip) => ScopedIp::new(ip, ZONE).with_port(port),
        IpAddr::V4(ip) => SocketAddr::from((ip, port)),
    }
}

/// Returns true for a link-local address on another link than the machine's.
fn is_in_other_zone(address: SocketAddr) -> bool {
    !matches!(ScopedIp::of(address).scope_id(), 0 | ZONE)
}

/// The zone of link-local addresses: a simulated machine has one link.
const ZONE: u32 = 1;

fn unreachable_from(local: IpAddr, to: IpAddr) -> io::Error {
    let text = format!("{to} cannot be reached from {local}");
    io::Error::new(ErrorKind::NetworkUnreachable, text)
}
