//! A network address translator: gives packets from the inside a source of its own, and leads
//! the answers back.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use courser_base::Time;

/// What a NAT changes when it forgets its mappings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rebinding {
    /// Every flow gets another port.
    Port,
    /// Every flow gets another address, and another port.
    Address,
}

/// A network address translator with one mapping for each inner address and port, whatever the
/// destination (RFC 4787 §4.1, endpoint-independent mapping and filtering).
///
/// Mappings live until the next rebinding. IPv6 is not translated.
#[derive(Debug)]
pub struct Nat {
    /// Which of the world's NATs it is; its addresses follow from that.
    index: u8,
    /// How many times the address has changed.
    generation: u8,
    next_port: u16,
    outside: BTreeMap<SocketAddr, u16>,
    inside: BTreeMap<u16, SocketAddr>,
    schedule: Option<Schedule>,
    rebindings: u64,
}

/// When a NAT forgets by itself.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    what: Rebinding,
    next: Time,
    every: Option<Duration>,
}

/// The first port of a NAT: below it are those that belong to services (RFC 4787 §4.2.2).
const FIRST_PORT: u16 = 1024;

impl Nat {
    /// The NAT with this number, without a schedule.
    pub fn new(index: u8) -> Self {
        Self {
            index,
            generation: 0,
            next_port: FIRST_PORT,
            outside: BTreeMap::new(),
            inside: BTreeMap::new(),
            schedule: None,
            rebindings: 0,
        }
    }

    /// Rebinds at `first` and, if `every` is given and not zero, again and again.
    pub fn schedule(&mut self, what: Rebinding, first: Time, every: Option<Duration>) {
        let every = every.filter(|every| !every.is_zero());
        self.schedule = Some(Schedule {
            what,
            next: first,
            every,
        });
    }

    /// Every address that a NAT of this number ever has: one in the space for shared addresses
    /// (RFC 6598) for each generation.
    pub(super) fn addresses(index: u8) -> impl Iterator<Item = IpAddr> {
        (0..=u8::MAX).map(move |generation| address(index, generation))
    }

    /// The address it has now.
    pub fn address(&self) -> IpAddr {
        address(self.index, self.generation)
    }

    /// How many times it has forgotten its mappings.
    pub fn rebindings(&self) -> u64 {
        self.rebindings
    }

    /// Forgets all mappings.
    pub fn rebind(&mut self, what: Rebinding) {
        self.outside.clear();
        self.inside.clear();
        self.rebindings += 1;
        if what == Rebinding::Address {
            self.generation = self.generation.wrapping_add(1);
        }
    }

    /// What the outside sees as the source of a packet from `source`.
    pub fn outside(&mut self, now: Time, source: SocketAddr) -> SocketAddr {
        self.keep_schedule(now);
        if source.is_ipv6() {
            return source;
        }
        if let Some(port) = self.outside.get(&source) {
            return SocketAddr::new(self.address(), *port);
        }
        let port = self.free_port();
        self.outside.insert(source, port);
        self.inside.insert(port, source);
        SocketAddr::new(self.address(), port)
    }

    /// Whom on the inside a packet to `destination` is for.
    pub fn inside(&mut self, now: Time, destination: SocketAddr) -> Option<SocketAddr> {
        self.keep_schedule(now);
        if destination.is_ipv6() {
            return Some(destination);
        }
        if destination.ip() != self.address() {
            return None;
        }
        self.inside.get(&destination.port()).copied()
    }

    fn keep_schedule(&mut self, now: Time) {
        while let Some(schedule) = self.schedule
            && schedule.next <= now
        {
            self.rebind(schedule.what);
            self.schedule = schedule.every.map(|every| Schedule {
                next: schedule.next + every,
                ..schedule
            });
        }
    }

    /// The next port that nobody has. A port is not given out again before all others were.
    fn free_port(&mut self) -> u16 {
        loop {
            let port = self.next_port;
            self.next_port = port.checked_add(1).unwrap_or(FIRST_PORT);
            if !self.inside.contains_key(&port) {
                return port;
            }
        }
    }
}

fn address(index: u8, generation: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(100, 64, index, generation))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inner(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }

    #[test]
    fn mapping_stays_and_leads_back() {
        let mut nat = Nat::new(3);
        let seen = nat.outside(Time::ZERO, inner(5000));
        assert_eq!(seen, nat.outside(Time::ZERO, inner(5000)));
        assert_ne!(seen, nat.outside(Time::ZERO, inner(5001)));
        assert_eq!(nat.inside(Time::ZERO, seen), Some(inner(5000)));
    }

    #[test]
    fn rebinding_changes_the_port_and_forgets_the_old_one() {
        let mut nat = Nat::new(0);
        let before = nat.outside(Time::ZERO, inner(1));
        nat.rebind(Rebinding::Port);
        let after = nat.outside(Time::ZERO, inner(1));
        assert_eq!(before.ip(), after.ip());
        assert_ne!(before.port(), after.port());
        assert_eq!(nat.inside(Time::ZERO, before), None);
        assert_eq!(nat.inside(Time::ZERO, after), Some(inner(1)));
    }

    #[test]
    fn address_rebinding_changes_the_address() {
        let mut nat = Nat::new(0);
        let before = nat.outside(Time::ZERO, inner(1));
        nat.rebind(Rebinding::Address);
        assert_ne!(before.ip(), nat.outside(Time::ZERO, inner(1)).ip());
    }

    #[test]
    fn schedule_rebinds_again_and_again() {
        let mut nat = Nat::new(0);
        let second = |n| Time::ZERO + Duration::from_secs(n);
        nat.schedule(Rebinding::Port, second(5), Some(Duration::from_secs(5)));
        let first = nat.outside(second(4), inner(1));
        assert_eq!(nat.inside(second(5), first), None);
        nat.outside(second(21), inner(1));
        assert_eq!(nat.rebindings(), 4);
    }
}
