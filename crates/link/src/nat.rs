//! An address translator whose mappings change.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use courser_base::Time;

use crate::packet::Packet;
use crate::probability::{Effect, Keyed};
use crate::spec::NatSpec;

/// Stands between clients and the rest of the world.
///
/// Every client keeps its own address and port as its first mapping; at each change all of them
/// get other random ports, and what is sent to an old one is lost. Or each gets another one when
/// its own has not been used for long.
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
    /// When clients last sent something, where mappings expire.
    used: HashMap<SocketAddr, Time>,
}

impl Nat {
    /// Most clients at a time; all mappings are forgotten when one more comes.
    pub const MAX_CLIENTS: usize = 10_000;

    /// A translator that knows nobody yet. All ports come from this seed.
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

    /// A packet of a client goes out: gives it the client's public address.
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

    /// A packet comes in: gives it the client's private address, or returns false if it is to be
    /// dropped because nobody has the public one now.
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

    /// How often mappings have changed.
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
        // In order of addresses, since maps have none and a run must replay.
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

    /// Another public address for a client, that nobody has.
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
            let public = SocketAddr::new(ip, port);
            let is_free = !self.private_of.contains_key(&public);
            let is_new =
                old.is_none_or(|old| old.port() != port && (!self.spec.address || old.ip() != ip));
            if is_free && is_new {
                return public;
            }
        }
    }
}

/// Another address in the same /24 or /64.
fn another_host(ip: IpAddr, random: u64) -> IpAddr {
    match ip {
        IpAddr::V4(ip) => {
            let [a, b, c, _] = ip.octets();
            // Neither the network's own address nor the broadcast address.
            let host = u8::try_from(1 + random % 254).unwrap_or(1);
            IpAddr::from([a, b, c, host])
        }
        IpAddr::V6(ip) => {
            let network = ip.to_bits() >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from_bits(network | u128::from(random.max(2))))
        }
    }
}

/// Ports that nobody listens on by convention.
const FIRST_PORT: u64 = 10_000;
const PORTS: u64 = 50_000;

#[cfg(test)]
mod tests;
