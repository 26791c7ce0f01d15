//! The queue of clients that wait to be accepted (limit K101).

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use courser_base::{ScopedIp, Source, Time};

use crate::endpoint::shrink::shrink;
use crate::hasher::KeyedState;

/// A queue in which networks take turns: they share the CPU time of handshakes, however many
/// clients one of them sends.
///
/// Each entry is assigned to a round: the next one, or the one after the last entry of its network.
/// Within a network, and among networks with one client each, the order is first come, first
/// served. So a burst from one address does not delay others, and none of it is refused. No entry
/// joins the round that is being served: with a stream of new networks it would never end, and
/// entries of the next round would starve.
#[derive(Debug)]
pub struct FairQueue<T> {
    entries: BTreeMap<(u64, u64), Entry<T>>,
    /// Number of entries so far: the order of entries in one round.
    count: u64,
    round: u64,
    networks: HashMap<Source, Network, KeyedState>,
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
    /// The arrival of the entry that was taken last, or of the first one if none was taken. Those
    /// that wait arrived later.
    since: Time,
}

impl<T> FairQueue<T> {
    /// Creates an empty queue. The key must be secret.
    pub fn new(key: [u8; 16]) -> Self {
        Self {
            entries: BTreeMap::new(),
            count: 0,
            round: 0,
            networks: HashMap::with_hasher(KeyedState::new(key)),
        }
    }

    /// Adds an entry of this address.
    pub fn push(&mut self, now: Time, address: impl Into<ScopedIp>, entry: T) {
        let source = Source::network(address);
        let next = self.round + 1;
        let mut is_first = false;
        let network = self.networks.entry(source).or_insert_with(|| {
            is_first = true;
            Network {
                last: next,
                waiting: 0,
                since: now,
            }
        });
        network.last += u64::from(!is_first);
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

    /// Removes and returns the entry whose turn it is.
    pub fn pop(&mut self) -> Option<T> {
        let ((round, _), entry) = self.entries.pop_first()?;
        self.round = round;
        if let Some(network) = self.networks.get_mut(&entry.network) {
            network.waiting -= 1;
            network.since = entry.since;
            if network.waiting == 0 {
                self.networks.remove(&entry.network);
                shrink(&mut self.networks);
            }
        }
        Some(entry.entry)
    }

    /// Returns the time that a client of this address would wait, estimated from those that wait
    /// already: others of its network, or else those that were the first of theirs.
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

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    /// Returns the order in which entries of these networks are taken.
    fn order(entries: &[(u8, u32)]) -> Vec<u32> {
        let mut turns = FairQueue::new([1; 16]);
        for &(network, entry) in entries {
            turns.push(Time::ZERO, Ipv4Addr::from([192, 0, network, 1]), entry);
        }
        std::iter::from_fn(|| turns.pop()).collect()
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

    #[test]
    fn a_client_that_comes_late_waits_for_no_more_than_a_round() {
        let mut turns = FairQueue::new([1; 16]);
        for entry in 0..1000 {
            turns.push(Time::ZERO, Ipv4Addr::from([192, 0, 1, 1]), entry);
        }
        for entry in 0..500 {
            assert_eq!(turns.pop(), Some(entry));
        }
        turns.push(Time::ZERO, Ipv4Addr::from([192, 0, 2, 1]), 5000);
        assert_eq!([turns.pop(), turns.pop()], [Some(500), Some(5000)]);
    }

    #[test]
    fn new_networks_do_not_keep_a_second_client_waiting() {
        let mut turns = FairQueue::new([1; 16]);
        turns.push(Time::ZERO, Ipv4Addr::from([198, 51, 100, 1]), 1000);
        turns.push(Time::ZERO, Ipv4Addr::from([198, 51, 100, 1]), 2000);
        let mut served = Vec::new();
        for network in 0..100 {
            for host in 0..2 {
                turns.push(
                    Time::ZERO,
                    Ipv4Addr::from([192, host, network, 1]),
                    u32::from(network),
                );
            }
            served.extend(turns.pop());
        }
        assert_eq!(served[0], 1000);
        assert!(
            served.iter().position(|it| *it == 2000) < Some(5),
            "{served:?}"
        );
    }

    #[test]
    fn nothing_is_remembered_of_networks_that_do_not_wait() {
        let mut turns = FairQueue::new([1; 16]);
        for network in 0..100 {
            turns.push(Time::ZERO, Ipv4Addr::from([192, 0, network, 1]), network);
        }
        while turns.pop().is_some() {}
        assert!(turns.is_empty() && turns.networks.is_empty());
        turns.push(Time::ZERO, Ipv4Addr::from([192, 0, 2, 1]), 0);
        assert_eq!(turns.networks.len(), 1);
    }

    #[test]
    fn a_client_waits_as_long_as_others_of_its_network() {
        let mut turns = FairQueue::new([1; 16]);
        for entry in 0..100 {
            turns.push(at(entry * 10), Ipv4Addr::from([192, 0, 1, 1]), entry);
        }
        let (same, other) = (
            Ipv4Addr::from([192, 0, 1, 9]),
            Ipv4Addr::from([192, 0, 2, 1]),
        );
        assert_eq!(turns.delay(at(1000), same), Duration::from_secs(1));
        for _ in 0..50 {
            turns.pop();
        }
        assert_eq!(turns.delay(at(1000), same), Duration::from_millis(510));
        assert_eq!(
            turns.delay(at(1000), other),
            Duration::ZERO,
            "it would be the next"
        );
        while turns.pop().is_some() {}
        assert_eq!(turns.delay(at(1000), same), Duration::ZERO);
    }

    #[test]
    fn a_client_of_a_new_network_waits_as_long_as_the_only_ones_of_theirs() {
        let mut turns = FairQueue::new([1; 16]);
        for network in 0..100 {
            turns.push(
                at(u64::from(network) * 10),
                Ipv4Addr::from([192, 0, network, 1]),
                network,
            );
        }
        let new = Ipv4Addr::from([198, 51, 100, 1]);
        assert_eq!(turns.delay(at(1000), new), Duration::from_secs(1));
        for _ in 0..50 {
            turns.pop();
        }
        assert_eq!(turns.delay(at(1000), new), Duration::from_millis(500));
    }
}
