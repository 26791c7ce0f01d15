//! NATs of five kinds in front of a machine, and a relay between two machines behind them.
//!
//! A [`Behind`] has the public address in the world, and its machine a private one. Kinds are those of RFC 4787: which
//! destinations share a mapping, and from where packets are let in.

use std::collections::{BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};

use courser_base::Time;
use courser_link::seed::mix;

use crate::node::Node;
use crate::packet::{Packet, TooBig};

/// The kind of a NAT. RFC 4787 §4, §5.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NatKind {
    /// There is none: the machine has the public address.
    None,
    /// One mapping for all destinations, through which packets from everywhere are let in.
    FullCone,
    /// One mapping for all destinations. Packets are let in from addresses to which the machine has sent.
    AddressRestricted,
    /// One mapping for all destinations. Packets are let in from addresses and ports to which the machine has sent.
    PortRestricted,
    /// A mapping with a random port for each destination, through which packets are let in from there alone.
    Symmetric,
}

impl NatKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [
        Self::None,
        Self::FullCone,
        Self::AddressRestricted,
        Self::PortRestricted,
        Self::Symmetric,
    ];
}

/// A machine behind a NAT of its own.
#[derive(Debug)]
pub struct Behind<N> {
    inner: N,
    gateway: Gateway,
}

impl<N: Node> Behind<N> {
    /// Puts a machine with private addresses behind a NAT with the public address.
    pub fn new(inner: N, kind: NatKind, public: IpAddr, seed: u64) -> Self {
        let gateway = Gateway {
            kind,
            public,
            state: seed,
            mappings: Vec::new(),
            dropped: 0,
        };
        Self { inner, gateway }
    }

    /// Returns the machine.
    pub fn inner(&self) -> &N {
        &self.inner
    }

    /// Returns the number of packets that were not let in.
    pub fn dropped(&self) -> u64 {
        self.gateway.dropped
    }
}

impl<N: Node> Node for Behind<N> {
    fn receive(&mut self, now: Time, mut packet: Packet) {
        if self.gateway.inbound(&mut packet) {
            self.inner.receive(now, packet);
        }
    }

    fn packet_too_big(&mut self, now: Time, message: &TooBig) {
        let mut message = message.clone();
        if let Some(inside) = self.gateway.inside_of(message.packet.source) {
            message.packet.source = inside;
            self.inner.packet_too_big(now, &message);
        }
    }

    fn run(&mut self, now: Time) {
        self.inner.run(now);
    }

    fn transmit(&mut self, now: Time) -> Option<Packet> {
        let mut packet = self.inner.transmit(now)?;
        self.gateway.outbound(&mut packet);
        Some(packet)
    }

    fn next_timeout(&self) -> Option<Time> {
        self.inner.next_timeout()
    }
}

/// The translation of a NAT.
#[derive(Debug)]
struct Gateway {
    kind: NatKind,
    public: IpAddr,
    /// The state of the random ports.
    state: u64,
    mappings: Vec<Mapping>,
    dropped: u64,
}

#[derive(Debug)]
struct Mapping {
    inside: SocketAddr,
    port: u16,
    /// The only destination, with a symmetric NAT.
    destination: Option<SocketAddr>,
    /// The destinations so far.
    talked: BTreeSet<SocketAddr>,
}

impl Gateway {
    fn outbound(&mut self, packet: &mut Packet) {
        if self.kind == NatKind::None {
            return;
        }
        let (inside, to) = (packet.source, packet.destination);
        let destination = (self.kind == NatKind::Symmetric).then_some(to);
        let is_same = |it: &Mapping| it.inside == inside && it.destination == destination;
        let at = match self.mappings.iter().position(is_same) {
            Some(at) => at,
            None => {
                let port = self.free_port(inside);
                self.mappings.push(Mapping {
                    inside,
                    port,
                    destination,
                    talked: BTreeSet::new(),
                });
                self.mappings.len() - 1
            }
        };
        let mapping = &mut self.mappings[at];
        mapping.talked.insert(to);
        packet.source = SocketAddr::from((self.public, mapping.port));
    }

    fn inbound(&mut self, packet: &mut Packet) -> bool {
        if self.kind == NatKind::None {
            return true;
        }
        let (from, port) = (packet.source, packet.destination.port());
        let mapping = self.mappings.iter().find(|it| it.port == port);
        let mapping = mapping.filter(|it| match self.kind {
            NatKind::None | NatKind::FullCone => true,
            NatKind::AddressRestricted => it.talked.iter().any(|to| to.ip() == from.ip()),
            NatKind::PortRestricted | NatKind::Symmetric => it.talked.contains(&from),
        });
        match mapping {
            Some(mapping) => packet.destination = mapping.inside,
            None => self.dropped += 1,
        }
        mapping.is_some()
    }

    fn inside_of(&self, public: SocketAddr) -> Option<SocketAddr> {
        if self.kind == NatKind::None {
            return Some(public);
        }
        let mut mappings = self.mappings.iter();
        let mapping = mappings.find(|it| it.port == public.port());
        mapping.map(|it| it.inside)
    }

    /// Returns a port that no mapping has: that of the machine if possible, or a random one with a symmetric NAT.
    fn free_port(&mut self, inside: SocketAddr) -> u16 {
        let mut port = inside.port();
        let mut is_chosen = self.kind != NatKind::Symmetric;
        while !is_chosen || self.mappings.iter().any(|it| it.port == port) {
            self.state = mix(self.state);
            port = u16::try_from(FIRST_PORT + self.state % PORTS).unwrap_or(u16::MAX);
            is_chosen = true;
        }
        port
    }
}

/// The lowest random port, above those of services.
const FIRST_PORT: u64 = 20_000;
const PORTS: u64 = 40_000;

/// A relay between a client and a server, each of which sends to a port of its own. It forwards the datagrams of each to the
/// other, from the port to which the other sends.
#[derive(Debug)]
pub struct Relay {
    client_port: SocketAddr,
    server_port: SocketAddr,
    client: Option<SocketAddr>,
    server: Option<SocketAddr>,
    outgoing: VecDeque<Packet>,
    forwarded: u64,
}

impl Relay {
    /// Creates a relay at these two addresses.
    pub fn new(client_port: SocketAddr, server_port: SocketAddr) -> Self {
        Self {
            client_port,
            server_port,
            client: None,
            server: None,
            outgoing: VecDeque::new(),
            forwarded: 0,
        }
    }

    /// Returns the bytes of UDP payload that were forwarded, in both directions.
    pub fn forwarded(&self) -> u64 {
        self.forwarded
    }
}

impl Node for Relay {
    fn receive(&mut self, _now: Time, packet: Packet) {
        let (from, next) = if packet.destination == self.client_port {
            self.client = Some(packet.source);
            (self.server_port, self.server)
        } else {
            self.server = Some(packet.source);
            (self.client_port, self.client)
        };
        if let Some(to) = next {
            self.forwarded += packet.payload.len() as u64;
            self.outgoing.push_back(Packet {
                source: from,
                destination: to,
                ..packet
            });
        }
    }

    fn run(&mut self, _now: Time) {}

    fn transmit(&mut self, _now: Time) -> Option<Packet> {
        self.outgoing.pop_front()
    }

    fn next_timeout(&self) -> Option<Time> {
        None
    }
}

#[cfg(test)]
mod tests;
