//! Fair shares of a socket with a standing queue (limit K117).

use std::collections::HashMap;
use std::time::Duration;

use courser_base::{ScopedIp, Source, Time};

use crate::hasher::KeyedState;

/// Decides which datagrams are dropped while the socket has a standing queue.
///
/// A socket is read in the order of arrival, so a network that sends more than the endpoint can process
/// delays all others. During that time, datagrams of a network that sends more than all others together
/// are dropped until the queue is empty, which costs a fraction of processing them. So are those of a site
/// that sends three times as much as all others, and of an allocation that sends seven times as much. No
/// datagram is dropped while there is only one network, or while the endpoint keeps up.
///
/// Source addresses may be forged, so that datagrams of established connections must be excepted.
#[derive(Debug)]
pub struct Backlog {
    /// The time since which the socket has not been empty.
    since: Option<Time>,
    /// The time until which [`SHORT_QUEUE`] applies.
    alert_until: Time,
    window: Time,
    networks: Level,
    sites: Level,
    allocations: Level,
}

/// The datagrams of the sources of one size.
#[derive(Debug)]
struct Level {
    /// Number of datagrams of each source since the window began.
    counts: HashMap<Source, u64, KeyedState>,
    /// A source must send more than this multiple of what all others send.
    multiple: u64,
    /// The source that sent most of the last window.
    heaviest: Option<Source>,
}

impl Level {
    fn new(key: [u8; 16], multiple: u64) -> Self {
        Self {
            counts: HashMap::with_hasher(KeyedState::new(key)),
            multiple,
            heaviest: None,
        }
    }

    /// Begins another window. `is_recent` is true if the counts describe the present senders.
    fn begin(&mut self, is_recent: bool) {
        self.heaviest = is_recent.then(|| self.find_heaviest()).flatten();
        self.counts.clear();
    }

    /// Counts datagrams. Returns true if they are of the source that sent most of the last window.
    fn count(&mut self, source: Source, count: u64) -> bool {
        if self.counts.len() < MAX_NETWORKS {
            *self.counts.entry(source).or_default() += count;
        } else if let Some(known) = self.counts.get_mut(&source) {
            *known += count;
        }
        self.heaviest == Some(source)
    }

    /// Returns the source that has sent more than its multiple of all others, if there are others.
    fn find_heaviest(&self) -> Option<Source> {
        let sum: u64 = self.counts.values().sum();
        let (source, most) = self.counts.iter().max_by_key(|(_, count)| **count)?;
        let others = sum - most;
        (others > 0 && *most > others * self.multiple).then_some(*source)
    }
}

impl Backlog {
    /// Creates the state of an empty socket. The key must be secret.
    pub fn new(key: [u8; 16]) -> Self {
        Self {
            since: None,
            alert_until: Time::ZERO,
            window: Time::ZERO,
            networks: Level::new(key, 1),
            sites: Level::new(key, SITE_MULTIPLE),
            allocations: Level::new(key, ALLOCATION_MULTIPLE),
        }
    }

    /// Records whether the socket has more than was read at once.
    #[inline]
    pub fn on_turn(&mut self, now: Time, has_more: bool) {
        if !has_more {
            self.since = None;
        } else if self.since.is_none() {
            self.since = Some(now);
        }
    }

    /// Returns true if `count` datagrams from this address are to be dropped, except those of established
    /// connections.
    #[inline]
    pub fn must_drop(&mut self, now: Time, address: impl Into<ScopedIp>, count: u64) -> bool {
        let keeps_up = self.since.is_none() && now >= self.alert_until;
        !keeps_up && self.is_from_heaviest(now, address.into(), count)
    }

    fn is_from_heaviest(&mut self, now: Time, address: ScopedIp, count: u64) -> bool {
        let age = now - self.window;
        if age >= WINDOW {
            // The counts of an older queue do not describe the present senders.
            let is_recent = age < ALERT;
            for level in [&mut self.networks, &mut self.sites, &mut self.allocations] {
                level.begin(is_recent);
            }
            self.window = now;
        }
        let mut is_heaviest = self.networks.count(Source::network(address), count);
        is_heaviest |= self.sites.count(Source::site(address), count);
        // IPv4 has no allocations, but its datagrams count as those of others.
        let allocation = Source::allocation(address).unwrap_or(Source::site(address));
        is_heaviest |= self.allocations.count(allocation, count);
        let longest = match now < self.alert_until {
            true => SHORT_QUEUE,
            false => LONG_QUEUE,
        };
        if self.since.is_none_or(|since| now - since < longest) {
            return false;
        }
        self.alert_until = now + ALERT;
        is_heaviest
    }
}

/// Time over which the datagrams of networks are compared.
const WINDOW: Duration = Duration::from_millis(10);

/// Time for which the socket may stay non-empty: bursts of honest peers are processed within it.
const LONG_QUEUE: Duration = Duration::from_millis(5);

/// The same limit during [`ALERT`], because a flood builds the next queue at once.
const SHORT_QUEUE: Duration = Duration::from_millis(1);

/// Time after a standing queue in which [`SHORT_QUEUE`] applies.
const ALERT: Duration = Duration::from_millis(100);

/// Multiple of the datagrams of all others that a site must send so that its datagrams are dropped.
const SITE_MULTIPLE: u64 = 3;

/// The same for an allocation.
const ALLOCATION_MULTIPLE: u64 = 7;

/// Maximum of networks, of sites and of allocations that are distinguished in one window.
const MAX_NETWORKS: usize = 1024;

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv6Addr};

    use super::*;

    const FLOOD: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(198, 51, 100, 1));
    const HONEST: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    fn at(micros: u64) -> Time {
        Time::from_nanos(1_000_000_000 + micros * 1000)
    }

    /// Processes a datagram of each address every 100 µs from `begin` on, while the socket is never
    /// empty. Returns the number of dropped datagrams of each address.
    fn run(backlog: &mut Backlog, begin: u64, turns: u64, addresses: &[IpAddr]) -> Vec<u64> {
        let mut dropped = vec![0; addresses.len()];
        for turn in 0..turns {
            let now = at(begin + turn * 100);
            for (address, dropped) in addresses.iter().zip(&mut dropped) {
                *dropped += u64::from(backlog.must_drop(now, *address, 1));
            }
            backlog.on_turn(now, true);
        }
        dropped
    }

    #[test]
    fn datagrams_of_the_heaviest_network_are_dropped_from_a_standing_queue() {
        let mut backlog = Backlog::new([1; 16]);
        let addresses = [FLOOD, FLOOD, HONEST];
        let dropped = run(&mut backlog, 0, 1000, &addresses);
        assert_eq!(dropped[2], 0);
        assert!(dropped[0] > 800, "{dropped:?}");
        backlog.on_turn(at(100_000), false);
        assert!(
            !backlog.must_drop(at(100_001), FLOOD, 1),
            "the queue is empty"
        );
    }

    #[test]
    fn burst_is_processed() {
        let mut backlog = Backlog::new([1; 16]);
        for burst in 0..100 {
            let begin = burst * 200_000;
            let dropped = run(&mut backlog, begin, 49, &[FLOOD, FLOOD, HONEST]);
            assert_eq!(dropped, [0, 0, 0]);
            backlog.on_turn(at(begin + 5000), false);
        }
    }

    #[test]
    fn datagrams_of_a_single_network_are_never_dropped() {
        let mut backlog = Backlog::new([1; 16]);
        let neighbour = IpAddr::V4(std::net::Ipv4Addr::new(198, 51, 100, 9));
        let dropped = run(&mut backlog, 0, 1000, &[FLOOD, FLOOD, neighbour]);
        assert_eq!(dropped, [0, 0, 0]);
    }

    #[test]
    fn datagrams_of_networks_that_send_equally_are_not_dropped() {
        let mut backlog = Backlog::new([1; 16]);
        assert_eq!(run(&mut backlog, 0, 1000, &[FLOOD, HONEST]), [0, 0]);
    }

    /// Attack A245: each of 256 networks sends little.
    #[test]
    fn datagrams_of_a_site_or_allocation_that_sends_most_are_dropped() {
        let site = |it| Ipv6Addr::new(0x2001, 0xdb8, 0, it << 8, 0, 0, 0, 1);
        let allocation = |it| Ipv6Addr::new(0x2001, 0xdb8, it, 0, 0, 0, 0, 1);
        let sources: [&dyn Fn(u16) -> Ipv6Addr; 2] = [&site, &allocation];
        for source in sources {
            let mut backlog = Backlog::new([1; 16]);
            let mut addresses: Vec<IpAddr> = (0..256).map(|it| source(it).into()).collect();
            addresses.extend([HONEST; 8]);
            let dropped = run(&mut backlog, 0, 1000, &addresses);
            assert!(dropped[..256].iter().all(|it| *it > 800), "{dropped:?}");
            assert_eq!(dropped[256..], [0; 8]);
        }
    }

    #[test]
    fn datagrams_of_a_large_site_among_others_are_not_dropped() {
        let mut backlog = Backlog::new([1; 16]);
        let of_site = (0..20).map(|it| IpAddr::V4([198, 51, it, 1].into()));
        let others = (0..10).map(|it| IpAddr::V4([192, it, 0, 1].into()));
        let addresses: Vec<IpAddr> = of_site.chain(others).collect();
        assert_eq!(run(&mut backlog, 0, 1000, &addresses), [0; 30]);
    }

    #[test]
    fn past_flood_is_forgotten() {
        let mut backlog = Backlog::new([1; 16]);
        run(&mut backlog, 0, 1000, &[FLOOD, FLOOD, HONEST]);
        backlog.on_turn(at(100_000), false);
        // The first window of the next queue has no previous one to compare with.
        let dropped = run(&mut backlog, 60_000_000, 99, &[FLOOD, HONEST]);
        assert_eq!(dropped, [0, 0]);
    }

    #[test]
    fn table_of_networks_is_bounded() {
        let mut backlog = Backlog::new([1; 16]);
        backlog.on_turn(at(0), true);
        for number in 0..100_000u32 {
            backlog.must_drop(at(1), IpAddr::V4((number << 8).into()), 1);
        }
        for level in [&backlog.networks, &backlog.sites, &backlog.allocations] {
            assert!(level.counts.len() <= MAX_NETWORKS);
        }
        assert_eq!(backlog.networks.counts.len(), MAX_NETWORKS);
    }
}
