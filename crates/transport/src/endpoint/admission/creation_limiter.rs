//! Limits the rate at which one source opens connections (limit K102).

use std::hash::BuildHasher;
use std::time::Duration;

use courser_base::{ScopedIp, Source, Time};

use crate::hasher::KeyedState;

/// Limits the connections that one [`Source`] opens per second: a host to the rate itself, a network to four
/// times the rate, a site to sixteen times and an allocation to 64 times the rate.
///
/// Each source may open one second's worth at once. Clients with a validated address are counted
/// separately from others, whose addresses may be forged. The table has a fixed size; when it is
/// full, the source that has opened the fewest connections is forgotten.
#[derive(Debug)]
pub struct CreationLimiter {
    hasher: KeyedState,
    /// [`SETS`] sets; empty until the first connection.
    sets: Vec<[Entry; WAYS]>,
}

/// A source, as its keyed hash, and the time at which its debt is paid.
#[derive(Clone, Copy, Default, Debug)]
struct Entry {
    source: u64,
    paid_at: Time,
}

impl CreationLimiter {
    /// Creates an empty limiter. The key must be secret.
    pub fn new(key: [u8; 16]) -> Self {
        Self {
            hasher: KeyedState::new(key),
            sets: Vec::new(),
        }
    }

    /// Requests a connection for a client at `rate` per second and address. Returns true and counts
    /// the connection if it may be opened. A rate of zero allows none.
    pub fn allow(
        &mut self,
        address: impl Into<ScopedIp>,
        is_validated: bool,
        rate: u32,
        now: Time,
    ) -> bool {
        let address = address.into();
        let mut paid = [Time::ZERO; 4];
        for ((source, rate), paid) in rates(address, rate).zip(&mut paid) {
            let entry = self.entry(source, is_validated);
            let Some(cost) = cost(rate) else {
                return false;
            };
            *paid = entry.paid_at.max(now) + cost;
            if *paid - now > SECOND {
                return false;
            }
        }
        for ((source, _), paid_at) in rates(address, rate).zip(paid) {
            self.entry(source, is_validated).paid_at = paid_at;
        }
        true
    }

    /// Counts a connection whose client has validated its address after it was admitted.
    pub fn count(&mut self, address: impl Into<ScopedIp>, rate: u32, now: Time) {
        for (source, rate) in rates(address.into(), rate) {
            let entry = self.entry(source, true);
            let paid_at = entry.paid_at.max(now) + cost(rate).unwrap_or_default();
            // Connections admitted beyond the rate add no further debt.
            entry.paid_at = paid_at.min(now + SECOND);
        }
    }

    /// Returns the entry of a source. A new source takes over the entry with the least debt.
    fn entry(&mut self, source: Source, is_validated: bool) -> &mut Entry {
        if self.sets.is_empty() {
            self.sets.resize(SETS, Default::default());
        }
        let hash = self.hasher.hash_one((source, is_validated)).max(1);
        let index = usize::try_from(hash % SETS as u64).expect("less than SETS");
        let set = &mut self.sets[index];
        let known = set.iter().position(|entry| entry.source == hash);
        let least = (0..WAYS).min_by_key(|&way| set[way].paid_at);
        let entry = &mut set[known.or(least).unwrap_or_default()];
        if entry.source != hash {
            *entry = Entry {
                source: hash,
                paid_at: Time::ZERO,
            };
        }
        entry
    }
}

/// Returns the sources that a client counts towards, each with its rate.
fn rates(address: ScopedIp, rate: u32) -> impl Iterator<Item = (Source, u32)> {
    let sources = [
        Some(Source::host(address)),
        Some(Source::network(address)),
        Some(Source::site(address)),
        Source::allocation(address),
    ];
    let rates = std::iter::successors(Some(rate), |rate| Some(rate.saturating_mul(LEVEL_MULTIPLE)));
    sources.into_iter().flatten().zip(rates)
}

fn cost(rate: u32) -> Option<Duration> {
    SECOND.checked_div(rate)
}

const SECOND: Duration = Duration::from_secs(1);

/// Rate of a network, in multiples of the rate of an address; also that of a site in multiples of that of a network,
/// and that of an allocation in multiples of that of a site (limit K102).
const LEVEL_MULTIPLE: u32 = 4;

/// Sets of the table, and entries of a set (limit K102): each source has two possible entries, each of
/// 16 bytes.
const SETS: usize = 2048;
const WAYS: usize = 4;

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    fn limiter() -> CreationLimiter {
        CreationLimiter::new([1; 16])
    }

    /// Returns how many of many simultaneous connections are allowed.
    fn burst(limiter: &mut CreationLimiter, address: [u8; 4], millis: u64) -> usize {
        let allowed = |_: &i32| limiter.allow(Ipv4Addr::from(address), true, 10, at(millis));
        (0..1000).filter(allowed).count()
    }

    #[test]
    fn address_gets_its_rate() {
        let mut limiter = limiter();
        assert_eq!(burst(&mut limiter, [192, 0, 2, 1], 1000), 10);
        assert_eq!(burst(&mut limiter, [192, 0, 2, 1], 1099), 0);
        assert_eq!(burst(&mut limiter, [192, 0, 2, 1], 1100), 1);
        assert_eq!(burst(&mut limiter, [192, 0, 2, 1], 9000), 10);
    }

    #[test]
    fn network_gets_four_times_the_rate_of_an_address() {
        let mut limiter = limiter();
        let of_network: usize = (0..=255)
            .map(|low| burst(&mut limiter, [192, 0, 2, low], 1000))
            .sum();
        assert_eq!(of_network, 40);
        assert_eq!(burst(&mut limiter, [192, 0, 3, 1], 1000), 10);
    }

    #[test]
    fn sites_and_allocations_get_multiples_of_the_rate_of_an_address() {
        let mut limiter = limiter();
        let of_site: usize = (0..=255)
            .map(|network| burst(&mut limiter, [192, 0, network, 1], 1000))
            .sum();
        assert_eq!(of_site, 160);
        let mut allowed = |site: u16, network: u16| {
            let address = std::net::Ipv6Addr::new(0x2001, 0xdb8, site, network << 8, 0, 0, 0, 1);
            let allowed = |_: &i32| limiter.allow(address, true, 10, at(1000));
            (0..20).filter(allowed).count()
        };
        let of_site: usize = (0..256).map(|network| allowed(0, network)).sum();
        assert_eq!(of_site, 160);
        let of_allocation: usize = (1..256).map(|site| allowed(site, 0)).sum();
        assert_eq!(of_site + of_allocation, 640);
    }

    #[test]
    fn forged_addresses_do_not_reduce_the_rate_of_validated_ones() {
        let mut limiter = limiter();
        let address = Ipv4Addr::new(192, 0, 2, 1);
        let forged = (0..1000).filter(|_| limiter.allow(address, false, 10, at(0)));
        assert_eq!(forged.count(), 10);
        assert_eq!(burst(&mut limiter, [192, 0, 2, 1], 0), 10);
    }

    #[test]
    fn clients_that_validate_later_are_counted() {
        let mut limiter = limiter();
        for _ in 0..7 {
            limiter.count(Ipv4Addr::new(192, 0, 2, 1), 10, at(0));
        }
        assert_eq!(burst(&mut limiter, [192, 0, 2, 1], 0), 3);
        for _ in 0..1000 {
            limiter.count(Ipv4Addr::new(192, 0, 2, 1), 10, at(0));
        }
        assert_eq!(
            burst(&mut limiter, [192, 0, 2, 1], 1000),
            10,
            "no debt beyond a second"
        );
    }

    #[test]
    fn refused_connections_are_not_counted() {
        let mut limiter = limiter();
        burst(&mut limiter, [192, 0, 2, 1], 0);
        assert!(!limiter.allow(Ipv4Addr::new(192, 0, 2, 1), true, 10, at(50)));
        assert!(limiter.allow(Ipv4Addr::new(192, 0, 2, 1), true, 10, at(100)));
    }

    #[test]
    fn rate_of_zero_allows_none() {
        assert!(!limiter().allow(Ipv4Addr::new(192, 0, 2, 1), true, 0, at(0)));
    }

    #[test]
    fn table_does_not_grow_and_keeps_the_sources_with_the_most_connections() {
        let mut limiter = limiter();
        assert_eq!(limiter.sets.capacity(), 0, "allocated at the first use");
        assert_eq!(burst(&mut limiter, [254, 0, 0, 1], 0), 10);
        for net in 0..100_000u32 {
            let address = std::net::Ipv4Addr::from_bits(net << 8);
            limiter.allow(address, true, 10, at(0));
        }
        assert_eq!(limiter.sets.capacity(), SETS);
        assert!(size_of_val(limiter.sets.as_slice()) <= 128 << 10);
        assert_eq!(burst(&mut limiter, [254, 0, 0, 1], 0), 0);
    }
}
