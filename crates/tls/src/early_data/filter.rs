//! Filters that detect tickets which were used before. RFC 8446 §8.

use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::time::Duration;

use courser_base::{Mutex, Source};

/// Decides whether a ticket may be used. Across all servers that accept it, each ticket may be used
/// once.
///
/// Servers of a fleet that share sessions also share a filter, for example in a database with an
/// atomic "insert if absent".
pub trait ReplayFilter: fmt::Debug + Send + Sync {
    /// Returns true if `ticket` was certainly never passed before. Otherwise the session is not
    /// resumed: the client performs a full handshake, and its early data is refused.
    ///
    /// `now` is the time since the Unix epoch. rustls refuses early data whose ClientHello is more
    /// than 60 seconds older or younger than the ticket claims, so a ticket may be removed from the
    /// filter after two minutes. The method is called during the handshake, and it must not block
    /// unless TLS runs in separate tasks.
    fn is_first_use(&self, ticket: &[u8], now: Duration) -> bool;

    /// Like [`is_first_use`](Self::is_first_use), for a ticket that was issued to the client with this address. A filter
    /// with a maximum can give each source a share of it. The default implementation ignores the address.
    fn is_first_use_from(&self, client: Option<IpAddr>, ticket: &[u8], now: Duration) -> bool {
        let _ = client;
        self.is_first_use(ticket, now)
    }
}

/// Keeps used tickets in the memory of one process.
///
/// Keeps each ticket for two to four minutes, and at most 131 072 of them in 4 MiB (limit K152).
/// Once half of that number was used within two minutes, it returns false, so that a full filter
/// does not let replays pass.
///
/// Each source has a share: tickets that were issued to one address may be three times as many as are left, those of its
/// networks somewhat more. So no source disables resumption for others.
#[derive(Debug)]
pub struct MemoryReplayFilter {
    generations: Mutex<Generations>,
    /// Maximum number of tickets in each of the two generations.
    max_tickets: usize,
}

#[derive(Debug, Default)]
struct Generations {
    /// The time at which the present generation ends.
    until: Duration,
    present: HashSet<Fingerprint>,
    past: HashSet<Fingerprint>,
    /// The sources of the tickets in the present generation.
    uses: UsesBySource,
}

impl Default for MemoryReplayFilter {
    fn default() -> Self {
        Self {
            generations: Mutex::default(),
            max_tickets: MAX_TICKETS / 2,
        }
    }
}

impl ReplayFilter for MemoryReplayFilter {
    fn is_first_use(&self, ticket: &[u8], now: Duration) -> bool {
        self.is_first_use_from(None, ticket, now)
    }

    fn is_first_use_from(&self, client: Option<IpAddr>, ticket: &[u8], now: Duration) -> bool {
        let mut generations = self.generations.lock();
        generations.rotate(now);
        let Some(&fingerprint) = ticket.first_chunk() else {
            return false;
        };
        let left = self.max_tickets.saturating_sub(generations.present.len());
        let is_refused = left == 0
            || generations.past.contains(&fingerprint)
            || client.is_some_and(|client| generations.uses.is_over_share(client, left));
        if is_refused || !generations.present.insert(fingerprint) {
            return false;
        }
        if let Some(client) = client {
            generations.uses.add(client);
        }
        true
    }
}

impl Generations {
    /// Begins another generation when the present one is over. A clock that is set back makes it
    /// last longer, and never removes tickets sooner.
    fn rotate(&mut self, now: Duration) {
        if now < self.until {
            return;
        }
        let is_past_over = now >= self.until + GENERATION;
        self.past = std::mem::take(&mut self.present);
        self.uses = UsesBySource::default();
        if is_past_over {
            self.past = HashSet::new();
        }
        self.until = now + GENERATION;
    }
}

/// Numbers of used tickets by source, in tables of a fixed size. Sources with the same entry are counted together: a few
/// may be refused because of another one, and no source has more than its share.
#[derive(Debug, Default)]
struct UsesBySource {
    /// Distributes the sources in a way that clients cannot predict.
    hasher: RandomState,
    /// A table for each level of sources, one after the other. Empty until a source is counted.
    counts: Vec<u32>,
}

impl UsesBySource {
    fn add(&mut self, client: IpAddr) {
        self.counts.resize(LEVELS * ENTRIES, 0);
        for (entry, _) in self.entries(client).collect::<Vec<_>>() {
            self.counts[entry] += 1;
        }
    }

    /// Returns true if a source of the client has its share while this many uses are left.
    fn is_over_share(&self, client: IpAddr, left: usize) -> bool {
        self.entries(client).any(|(entry, multiple)| {
            let count = self.counts.get(entry).copied().unwrap_or(0);
            count as usize >= left.saturating_mul(multiple)
        })
    }

    /// Returns the entries of a client, each with the multiple of the uses left that it may have.
    fn entries(&self, client: IpAddr) -> impl Iterator<Item = (usize, usize)> {
        let sources = Source::shares(client).take(LEVELS).enumerate();
        sources.map(|(level, (source, multiple))| {
            let hash = self.hasher.hash_one(source) % ENTRIES as u64;
            (level * ENTRIES + hash as usize, multiple)
        })
    }
}

/// The first bytes of a ticket. They are random and chosen by the server, because rustls looks up
/// no other tickets.
type Fingerprint = [u8; 16];

/// Maximum number of tickets in the filter (limit K152): 546 uses per second.
const MAX_TICKETS: usize = 131_072;

/// The levels of [`Source::shares`].
const LEVELS: usize = 4;
/// Entries of the table of each level (limit K432): 128 KiB for all of them.
const ENTRIES: usize = 8192;

/// Twice the 60 seconds by which rustls lets the age of a ticket differ.
const GENERATION: Duration = Duration::from_secs(120);

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(1_700_000_000);

    fn ticket(number: usize) -> [u8; 32] {
        let mut ticket = [7; 32];
        ticket[..8].copy_from_slice(&(number as u64).to_be_bytes());
        ticket
    }

    #[test]
    fn a_ticket_is_admitted_once() {
        let filter = MemoryReplayFilter::default();
        assert!(filter.is_first_use(&ticket(1), NOW));
        assert!(!filter.is_first_use(&ticket(1), NOW));
        assert!(filter.is_first_use(&ticket(2), NOW));
    }

    #[test]
    fn a_ticket_is_kept_for_two_minutes_at_any_time_of_use() {
        for used in 0..120 {
            let filter = MemoryReplayFilter::default();
            assert!(filter.is_first_use(&ticket(0), NOW));
            let used = NOW + Duration::from_secs(used);
            assert!(filter.is_first_use(&ticket(1), used));
            for later in 0..=120 {
                let later = used + Duration::from_secs(later);
                assert!(
                    !filter.is_first_use(&ticket(1), later),
                    "{used:?}, {later:?}"
                );
            }
        }
    }

    #[test]
    fn a_full_filter_admits_no_ticket_until_the_next_generation() {
        let filter = MemoryReplayFilter::default();
        for number in 0..MAX_TICKETS {
            let is_first = filter.is_first_use(&ticket(number), NOW);
            assert_eq!(is_first, number < MAX_TICKETS / 2, "{number}");
        }
        let later = NOW + GENERATION;
        assert!(filter.is_first_use(&ticket(MAX_TICKETS), later));
        assert!(!filter.is_first_use(&ticket(0), later));
        let generations = filter.generations.lock();
        assert_eq!(generations.past.len(), MAX_TICKETS / 2);
    }

    /// Uses as many tickets of this client as the filter admits.
    fn fill(filter: &MemoryReplayFilter, client: &str, first: usize) -> usize {
        let client: IpAddr = client.parse().expect("an address");
        let admitted = (first..first + MAX_TICKETS)
            .take_while(|it| filter.is_first_use_from(Some(client), &ticket(*it), NOW));
        admitted.count()
    }

    /// Attack A271.
    #[test]
    fn one_source_leaves_room_for_the_tickets_of_others() {
        let filter = MemoryReplayFilter::default();
        let first = fill(&filter, "192.0.2.1", 0);
        assert_eq!(first, MAX_TICKETS / 2 * 3 / 4);
        assert_eq!(fill(&filter, "::ffff:192.0.2.1", first), 0);
        let neighbour = fill(&filter, "192.0.2.2", first);
        assert_eq!(first + neighbour, MAX_TICKETS / 2 * 7 / 8, "one network");
        let all = first + neighbour;
        assert!(fill(&filter, "198.51.100.1", all) >= MAX_TICKETS / 2 / 8 * 3 / 4);
        let later = NOW + GENERATION;
        let client: IpAddr = "192.0.2.1".parse().expect("an address");
        assert!(filter.is_first_use_from(Some(client), &ticket(MAX_TICKETS), later));
    }

    /// Attack A271.
    #[test]
    fn networks_of_one_site_leave_room_for_the_tickets_of_others() {
        let filter = MemoryReplayFilter::default();
        let mut used = 0;
        for network in 0..256 {
            used += fill(&filter, &format!("2001:db8:0:{network:x}00::1"), used);
        }
        assert!(used <= MAX_TICKETS / 2 * 11 / 12 + 1, "{used}");
        assert!(fill(&filter, "2001:db9::1", used) >= 1000);
    }

    #[test]
    fn a_clock_that_is_set_back_removes_no_ticket() {
        let filter = MemoryReplayFilter::default();
        assert!(filter.is_first_use(&ticket(1), NOW));
        assert!(!filter.is_first_use(&ticket(1), NOW - Duration::from_secs(3600)));
        assert!(!filter.is_first_use(&ticket(1), NOW + Duration::from_secs(60)));
    }

    #[test]
    fn tickets_too_short_to_be_random_are_refused() {
        let filter = MemoryReplayFilter::default();
        assert!(!filter.is_first_use(&[0; 15], NOW));
    }
}
