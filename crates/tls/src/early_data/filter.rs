//! Filters that detect tickets which were used before. RFC 8446 §8.

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use courser_base::Mutex;

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
}

/// Keeps used tickets in the memory of one process.
///
/// Keeps each ticket for two to four minutes, and at most 131 072 of them in 4 MiB (limit K152).
/// Once half of that number was used within two minutes, it returns false, so that a full filter
/// does not let replays pass.
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
        let mut generations = self.generations.lock();
        generations.rotate(now);
        let Some(&fingerprint) = ticket.first_chunk() else {
            return false;
        };
        if generations.past.contains(&fingerprint) || generations.present.len() >= self.max_tickets
        {
            return false;
        }
        generations.present.insert(fingerprint)
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
        if is_past_over {
            self.past = HashSet::new();
        }
        self.until = now + GENERATION;
    }
}

/// The first bytes of a ticket. They are random and chosen by the server, because rustls looks up
/// no other tickets.
type Fingerprint = [u8; 16];

/// Maximum number of tickets in the filter (limit K152): 546 uses per second.
const MAX_TICKETS: usize = 131_072;

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
