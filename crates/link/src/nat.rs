//! A network address translator whose mappings change.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use courser_base::Time;

use crate::packet::Packet;
use crate::probability::{Effect, Keyed};
use crate::spec::NatSpec;

/// A translator between clients and the rest of the network.
///
/// The first mapping of every client is its own address and port. At each change all clients are
/// mapped to other random ports, and packets to their old ports are dropped. With
/// [`NatSpec::idle`], a client is mapped to another port after its mapping was idle.
#[derive(Debug)]
pub struct Nat {
    spec: NatSpec,
    numbers: Keyed,
    draws: u64,
    /// The time of the next change.
    next: Option<Time>,
    changes: u64,
    public_of: HashMap<SocketAddr, SocketAddr>,
    private_of: HashMap<SocketAddr, SocketAddr>,
    /// The time of the last packet of each client, for mappings that expire.
    used: HashMap<SocketAddr, Time>,
}

impl Nat {
    /// Maximum number of clients. A further one clears all mappings.
    pub const MAX_CLIENTS: usize = 10_000;

    /// Creates a translator without mappings. All ports follow from the seed.
    pub fn new(spec: NatSpec, seed: u64) -> Self {
        Self {
            spec,
            numbers: Keyed::new(seed, 0, Effect::Nat),
            draws: 0,
            next: spec.idle.is_none().then(|| Time::ZERO + spec.first),
            changes: 0,
            public_of: HashMap::new(),
            private_of: HashMap::new(),
            used: HashMap::new(),
        }
    }

    /// Translates the source of a packet from a client to the public address.
    pub fn outbound(&mut self, now: Time, packet: &mut Packet) {
        self.change_if_due(now);
        let client = packet.source;
        packet.source = self.public(client);
        if self.spec.idle.is_none() {
            return;
        }
        if self.is_expired(now, client) {
            let old = packet.source;
            packet.source = self.unused(client);
            self.private_of.remove(&old);
            self.public_of.insert(client, packet.source);
            self.private_of.insert(packet.source, client);
            self.changes += 1;
        }
        self.used.insert(client, now);
    }

    /// Translates the destination of a packet to the private address of the client. Returns false
    /// if the packet must be dropped because no client is mapped to its destination.
    pub fn inbound(&mut self, now: Time, packet: &mut Packet) -> bool {
        self.change_if_due(now);
        match self.private_of.get(&packet.destination) {
            Some(private) if self.is_expired(now, *private) => false,
            Some(private) => {
                packet.destination = *private;
                true
            }
            None => false,
        }
    }

    /// Returns the number of changes of mappings.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    fn is_expired(&self, now: Time, client: SocketAddr) -> bool {
        let used = self.used.get(&client);
        let limit = self.spec.idle.unwrap_or(Duration::MAX);
        used.is_some_and(|used| now - *used >= limit)
    }

    fn change_if_due(&mut self, now: Time) {
        if self.next.is_none_or(|next| next > now) {
            return;
        }
        let elapsed = now - Time::ZERO;
        self.next = self.spec.next_after(elapsed).map(|at| Time::ZERO + at);
        self.changes += 1;
        self.private_of.clear();
        // Sorted, because the iteration order of a map differs between runs.
        let mut clients: Vec<SocketAddr> = self.public_of.keys().copied().collect();
        clients.sort_unstable();
        for client in clients {
            let public = self.unused(client);
            self.public_of.insert(client, public);
            self.private_of.insert(public, client);
        }
    }

    fn public(&mut self, client: SocketAddr) -> SocketAddr {
        if let Some(public) = self.public_of.get(&client) {
            return *public;
        }
        if self.public_of.len() == Self::MAX_CLIENTS {
            self.public_of.clear();
            self.private_of.clear();
            self.used.clear();
        }
        let is_taken = self.private_of.contains_key(&client);
        let public = if is_taken {
            self.unused(client)
        } else {
            client
        };
        self.public_of.insert(client, public);
        self.private_of.insert(public, client);
        public
    }

    /// Returns a public address for a client that no client is mapped to, and that differs from its
    /// present one.
    fn unused(&mut self, client: SocketAddr) -> SocketAddr {
        let old = self.public_of.get(&client).copied();
        loop {
            self.draws += 1;
            let mut numbers = self.numbers.numbers(self.draws);
            let port = u16::try_from(FIRST_PORT + numbers.below(PORTS)).unwrap_or(u16::MAX);
            let mut ip = old.unwrap_or(client).ip();
            if self.spec.address {
                ip = another_host(ip, numbers.next());
            }
            let public = SocketAddr::from((ip, port));
            let is_free = !self.private_of.contains_key(&public);
            let is_new =
                old.is_none_or(|old| old.port() != port && (!self.spec.address || old.ip() != ip));
            if is_free && is_new {
                return public;
            }
        }
    }
}

/// Returns another address in the same /24 or /64.
fn another_host(ip: IpAddr, random: u64) -> IpAddr {
    match ip {
        IpAddr::V4(ip) => {
            let [a, b, c, _] = ip.octets();
            // Neither the address of the network nor the broadcast address.
            let host = u8::try_from(1 + random % 254).unwrap_or(1);
            IpAddr::from([a, b, c, host])
        }
        IpAddr::V6(ip) => {
            let network = ip.to_bits() >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from_bits(network | u128::from(random.max(2))))
        }
    }
}

/// The lowest public port, above the well-known ones.
const FIRST_PORT: u64 = 10_000;
const PORTS: u64 = 50_000;

#[cfg(test)]
mod tests;
