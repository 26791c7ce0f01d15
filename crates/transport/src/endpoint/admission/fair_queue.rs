//! The queue of clients that wait to be accepted (limit K101).

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use courser_base::{ScopedIp, Source, Time};

use crate::endpoint::shrink::shrink;
use crate::hasher::KeyedState;

/// A queue in which networks take turns, so that they share the CPU time of handshakes equally,
/// independent of their number of clients.
///
/// Each entry is assigned to a round: the next one, or the one after the last entry of its network.
/// Within a network, and among networks with one client each, the order is that of arrival. A burst
/// from one address does not delay others, and none of it is refused. No entry joins the round that
/// is being served, because a stream of new networks would prolong it and starve the next round.
///
/// A site or allocation with many waiting networks has a limited number of them in each round, so that
/// it does not take the turns of all others.
#[derive(Debug)]
pub struct FairQueue<T> {
    entries: BTreeMap<(u64, u64), Entry<T>>,
    /// Number of entries so far, which orders the entries of one round.
    count: u64,
    round: u64,
    networks: HashMap<Source, Network, KeyedState>,
    /// Number of waiting networks of each site and allocation.
    crowds: HashMap<Source, u64, KeyedState>,
}

#[derive(Debug)]
struct Entry<T> {
    network: Source,
    since: Time,
    /// True if no other client of its network waited when it arrived.
    is_first: bool,
    entry: T,
}

/// A network with waiting clients.
#[derive(Debug)]
struct Network {
    /// The round of its last entry.
    last: u64,
    waiting: usize,
    /// The site and allocation that it belongs to.
    crowds: Crowds,
    /// The arrival of the entry that was taken last, or of the first one if none was taken. All
    /// waiting entries arrived later.
    since: Time,
}

/// The site and allocation of a network, each with the number of its networks in a round.
#[derive(Clone, Copy, Debug)]
struct Crowds([(Option<Source>, u64); 2]);

impl Crowds {
    fn of(address: ScopedIp) -> Self {
        Self([
            (Some(Source::site(address)), SITE_PER_ROUND),
            (Source::allocation(address), ALLOCATION_PER_ROUND),
        ])
    }

    fn sources(self) -> impl Iterator<Item = (Source, u64)> {
        let each = self.0.into_iter();
        each.filter_map(|(source, per_round)| Some((source?, per_round)))
    }
}

impl<T> FairQueue<T> {
    /// Creates an empty queue. The key must be secret.
    pub fn new(key: [u8; 16]) -> Self {
        Self {
            entries: BTreeMap::new(),
            count: 0,
            round: 0,
            networks: HashMap::with_hasher(KeyedState::new(key)),
            crowds: HashMap::with_hasher(KeyedState::new(key)),
        }
    }

    /// Adds an entry of this address.
    pub fn push(&mut self, now: Time, address: impl Into<ScopedIp>, entry: T) {
        let address = address.into();
        let source = Source::network(address);
        let crowds = Crowds::of(address);
        let rounds = self.rounds(crowds);
        let mut is_first = false;
        let network = self.networks.entry(source).or_insert_with(|| {
            is_first = true;
            Network {
                last: self.round + 1 + rounds,
                waiting: 0,
                crowds,
                since: now,
            }
        });
        if is_first {
            for (crowd, _) in crowds.sources() {
                *self.crowds.entry(crowd).or_default() += 1;
            }
        } else {
            network.last += rounds.max(1);
        }
        network.waiting += 1;
        let entry = Entry {
            network: source,
            since: now,
            is_first,
            entry,
        };
        self.entries.insert((network.last, self.count), entry);
        self.count += 1;
    }

    /// Returns the number of rounds in which each waiting network of this site and allocation has one turn.
    fn rounds(&self, crowds: Crowds) -> u64 {
        let networks = |source| self.crowds.get(&source).copied().unwrap_or(0);
        let rounds = crowds
            .sources()
            .map(|(source, per_round)| networks(source) / per_round);
        rounds.max().unwrap_or(0)
    }

    /// Removes and returns the entry whose turn it is.
    pub fn pop(&mut self) -> Option<T> {
        let ((round, _), entry) = self.entries.pop_first()?;
        self.round = round;
        if let Some(network) = self.networks.get_mut(&entry.network) {
            network.waiting -= 1;
            network.since = entry.since;
            if network.waiting == 0 {
                let crowds = network.crowds;
                self.networks.remove(&entry.network);
                shrink(&mut self.networks);
                self.leave(crowds);
            }
        }
        Some(entry.entry)
    }

    /// Records that a network of this site and allocation has no waiting clients left.
    fn leave(&mut self, crowds: Crowds) {
        for (source, _) in crowds.sources() {
            if let Some(networks) = self.crowds.get_mut(&source) {
                *networks -= 1;
                if *networks == 0 {
                    self.crowds.remove(&source);
                    shrink(&mut self.crowds);
                }
            }
        }
    }

    /// Estimates how long a client of this address would wait, from the waiting clients of its network, or
    /// else from those that were the first of their networks.
    pub fn delay(&self, now: Time, address: impl Into<ScopedIp>) -> Duration {
        if let Some(network) = self.networks.get(&Source::network(address)) {
            return now - network.since;
        }
        let next = self.entries.first_key_value();
        next.filter(|(_, entry)| entry.is_first)
            .map_or(Duration::ZERO, |(_, entry)| now - entry.since)
    }

    /// Returns true if no client waits.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// Networks of one site that have a turn in the same round (limit K101).
const SITE_PER_ROUND: u64 = 8;

/// Networks of one allocation that have a turn in the same round (limit K101).
const ALLOCATION_PER_ROUND: u64 = 32;

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    /// Returns the order in which entries of these networks are taken.
    fn order(entries: &[(u8, u32)]) -> Vec<u32> {
        let mut queue = FairQueue::new([1; 16]);
        for &(network, entry) in entries {
            queue.push(Time::ZERO, Ipv4Addr::from([192, 0, network, 1]), entry);
        }
        std::iter::from_fn(|| queue.pop()).collect()
    }

    #[test]
    fn one_network_is_served_in_order() {
        let entries: Vec<_> = (0..1000).map(|entry| (1, entry)).collect();
        assert!(order(&entries).is_sorted());
    }

    #[test]
    fn networks_take_turns() {
        let storm = (0..6).map(|entry| (1, entry));
        let entries: Vec<_> = storm.chain([(2, 100), (2, 101), (3, 200)]).collect();
        assert_eq!(order(&entries), [0, 100, 200, 1, 101, 2, 3, 4, 5]);
    }

    /// Returns the position at which a client of another network is served behind two clients of each of these
    /// networks.
    fn place_behind(networks: impl Iterator<Item = IpAddr> + Clone) -> Option<usize> {
        let mut queue = FairQueue::new([1; 16]);
        for address in networks.clone().chain(networks) {
            queue.push(Time::ZERO, address, 0);
        }
        queue.push(Time::ZERO, Ipv4Addr::from([198, 51, 100, 1]), 1);
        let served: Vec<u32> = std::iter::from_fn(|| queue.pop()).collect();
        assert!(queue.networks.is_empty() && queue.crowds.is_empty());
        served.iter().position(|it| *it == 1)
    }

    /// Attack A245.
    #[test]
    fn networks_of_one_site_or_allocation_do_not_take_the_turns_of_others() {
        let of_site = (0..256).map(|it| Ipv6Addr::new(0x2001, 0xdb8, 0, it << 8, 0, 0, 0, 1));
        assert_eq!(place_behind(of_site.map(IpAddr::V6)), Some(8));
        let of_allocation = (0..256).map(|it| Ipv6Addr::new(0x2001, 0xdb8, it, 0, 0, 0, 0, 1));
        assert_eq!(place_behind(of_allocation.map(IpAddr::V6)), Some(32));
        let of_ipv4 = (0..=255).map(|it| Ipv4Addr::new(192, 0, it, 1));
        assert_eq!(place_behind(of_ipv4.map(IpAddr::V4)), Some(8));
        let apart = (0..=255).map(|it| Ipv4Addr::new(192, it, 0, 1));
        assert_eq!(place_behind(apart.map(IpAddr::V4)), Some(256));
    }

    #[test]
    fn late_client_of_another_network_waits_for_at_most_a_round() {
        let mut queue = FairQueue::new([1; 16]);
        for entry in 0..1000 {
            queue.push(Time::ZERO, Ipv4Addr::from([192, 0, 1, 1]), entry);
        }
        for entry in 0..500 {
            assert_eq!(queue.pop(), Some(entry));
        }
        queue.push(Time::ZERO, Ipv4Addr::from([192, 0, 2, 1]), 5000);
        assert_eq!([queue.pop(), queue.pop()], [Some(500), Some(5000)]);
    }

    #[test]
    fn new_networks_do_not_starve_a_second_client() {
        let mut queue = FairQueue::new([1; 16]);
        queue.push(Time::ZERO, Ipv4Addr::from([198, 51, 100, 1]), 1000);
        queue.push(Time::ZERO, Ipv4Addr::from([198, 51, 100, 1]), 2000);
        let mut served = Vec::new();
        for network in 0..100 {
            for host in 0..2 {
                queue.push(
                    Time::ZERO,
                    Ipv4Addr::from([192, host, network, 1]),
                    u32::from(network),
                );
            }
            served.extend(queue.pop());
        }
        assert_eq!(served[0], 1000);
        assert!(
            served.iter().position(|it| *it == 2000) < Some(5),
            "{served:?}"
        );
    }

    #[test]
    fn networks_without_waiting_clients_are_forgotten() {
        let mut queue = FairQueue::new([1; 16]);
        for network in 0..100 {
            queue.push(Time::ZERO, Ipv4Addr::from([192, 0, network, 1]), network);
        }
        while queue.pop().is_some() {}
        assert!(queue.is_empty() && queue.networks.is_empty());
        queue.push(Time::ZERO, Ipv4Addr::from([192, 0, 2, 1]), 0);
        assert_eq!(queue.networks.len(), 1);
    }

    #[test]
    fn delay_is_that_of_other_clients_of_the_network() {
        let mut queue = FairQueue::new([1; 16]);
        for entry in 0..100 {
            queue.push(at(entry * 10), Ipv4Addr::from([192, 0, 1, 1]), entry);
        }
        let (same, other) = (
            Ipv4Addr::from([192, 0, 1, 9]),
            Ipv4Addr::from([192, 0, 2, 1]),
        );
        assert_eq!(queue.delay(at(1000), same), Duration::from_secs(1));
        for _ in 0..50 {
            queue.pop();
        }
        assert_eq!(queue.delay(at(1000), same), Duration::from_millis(510));
        assert_eq!(
            queue.delay(at(1000), other),
            Duration::ZERO,
            "it would be served next"
        );
        while queue.pop().is_some() {}
        assert_eq!(queue.delay(at(1000), same), Duration::ZERO);
    }

    #[test]
    fn delay_of_a_new_network_is_that_of_other_single_clients() {
        let mut queue = FairQueue::new([1; 16]);
        for network in 0..100 {
            queue.push(
                at(u64::from(network) * 10),
                Ipv4Addr::from([192, 0, network, 1]),
                network,
            );
        }
        let new = Ipv4Addr::from([198, 51, 100, 1]);
        assert_eq!(queue.delay(at(1000), new), Duration::from_secs(1));
        for _ in 0..50 {
            queue.pop();
        }
        assert_eq!(queue.delay(at(1000), new), Duration::from_millis(500));
    }
}
