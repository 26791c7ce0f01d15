//! Turns of clients that wait to be accepted (limit K101).

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use super::source::Source;
use crate::hasher::KeyedState;

/// A queue in which networks take turns: the CPU time of handshakes is shared among them, however
/// many clients one of them sends.
///
/// Each entry gets a round: the current one, or the one after the last of its network. Within a
/// network, and among networks with one client each, the first to come is the first to be served.
/// So a storm from one address costs others nothing, and none of it is refused.
#[derive(Debug)]
pub(super) struct Turns<T> {
    entries: BTreeMap<(u64, u64), (Source, T)>,
    /// Entries so far: the order of those of one round.
    count: u64,
    round: u64,
    /// The last round of each network that waits, and how many entries it has.
    networks: HashMap<Source, (u64, usize), KeyedState>,
}

impl<T> Turns<T> {
    /// Nobody waits. The key must be secret.
    pub(super) fn new(key: [u8; 16]) -> Self {
        Self {
            entries: BTreeMap::new(),
            count: 0,
            round: 0,
            networks: HashMap::with_hasher(KeyedState::new(key)),
        }
    }

    /// Adds an entry of this address.
    pub(super) fn push(&mut self, address: IpAddr, entry: T) {
        let network = Source::network(address);
        let (last, waiting) = self.networks.entry(network).or_default();
        let round = if *waiting == 0 { self.round } else { *last + 1 };
        (*last, *waiting) = (round, *waiting + 1);
        self.entries.insert((round, self.count), (network, entry));
        self.count += 1;
    }

    /// Takes the entry whose turn it is.
    pub(super) fn pop(&mut self) -> Option<T> {
        let ((round, _), (network, entry)) = self.entries.pop_first()?;
        self.round = round;
        if let Some((_, waiting)) = self.networks.get_mut(&network) {
            *waiting -= 1;
            if *waiting == 0 {
                self.networks.remove(&network);
            }
        }
        Some(entry)
    }

    /// True when nobody waits.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order in which entries of these networks are taken.
    fn order(entries: &[(u8, u32)]) -> Vec<u32> {
        let mut turns = Turns::new([1; 16]);
        for &(network, entry) in entries {
            turns.push([192, 0, network, 1].into(), entry);
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
        let mut turns = Turns::new([1; 16]);
        for entry in 0..1000 {
            turns.push([192, 0, 1, 1].into(), entry);
        }
        for entry in 0..500 {
            assert_eq!(turns.pop(), Some(entry));
        }
        turns.push([192, 0, 2, 1].into(), 5000);
        assert_eq!([turns.pop(), turns.pop()], [Some(5000), Some(500)]);
    }

    #[test]
    fn nothing_is_remembered_of_networks_that_do_not_wait() {
        let mut turns = Turns::new([1; 16]);
        for network in 0..100 {
            turns.push([192, 0, network, 1].into(), network);
        }
        while turns.pop().is_some() {}
        assert!(turns.is_empty() && turns.networks.is_empty());
        turns.push([192, 0, 2, 1].into(), 0);
        assert_eq!(turns.networks.len(), 1);
    }
}
