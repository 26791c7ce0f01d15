//! Fair shares of the connections of a listener (limit K86).

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard};

use courser_base::{Mutex, ScopedIp, Source};

use super::Limits;
use super::refusals::Refusal;

/// Counts open connections by source, and refuses sources that hold too many.
///
/// A source is admitted while it holds less than a multiple of the connections left. No source is limited while
/// the server is idle, and the more sources there are, the smaller is the share of each. A single address can
/// hold three quarters of all connections, and networks, sites and allocations hold more
/// ([`Source::shares`]), so that one source never excludes another.
///
/// An unvalidated address may be forged. Unvalidated clients are counted together with all clients of the
/// claimed address. Validated clients are counted without the unvalidated ones, so that forged packets do not
/// use the share of the owner of the address (attack A180). All unvalidated clients together may hold only a
/// part of the connections (limit K257).
#[derive(Debug)]
pub(crate) struct Shares {
    max_connections: usize,
    /// `None` if clients are never asked to validate their addresses.
    max_unvalidated: Option<usize>,
    max_per_address: usize,
    table: Mutex<Table>,
}

/// The connections of a listener, counted separately for validated and unvalidated addresses.
#[derive(Debug, Default)]
struct Table {
    validated: Counts,
    unvalidated: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    open: usize,
    /// Connections by source; at most four entries for each open connection.
    held: HashMap<Source, usize>,
}

/// The share of one connection, returned when dropped.
#[derive(Debug)]
pub(crate) struct Share {
    shares: Arc<Shares>,
    address: ScopedIp,
    is_validated: bool,
}

impl Shares {
    /// Creates the shares of a listener whose clients have validated addresses or may be asked to validate them.
    pub(crate) fn new(limits: &Limits) -> Arc<Self> {
        let max_unvalidated = limits.max_connections.div_ceil(UNVALIDATED_PART);
        Self::with(limits, Some(max_unvalidated))
    }

    /// Creates the shares of a listener whose clients are never asked to validate their addresses.
    pub(crate) fn without_validation(limits: &Limits) -> Arc<Self> {
        Self::with(limits, None)
    }

    fn with(limits: &Limits, max_unvalidated: Option<usize>) -> Arc<Self> {
        Arc::new(Self {
            max_connections: limits.max_connections,
            max_unvalidated,
            max_per_address: limits.max_connections_per_address.unwrap_or(usize::MAX),
            table: Mutex::default(),
        })
    }

    /// Takes a share for a connection of this address.
    ///
    /// # Errors
    /// Returns the reason for the refusal; see [`may_retry`](Self::may_retry).
    pub(crate) fn take(
        self: &Arc<Self>,
        address: impl Into<ScopedIp>,
        is_validated: bool,
    ) -> Result<Share, Refusal> {
        let address = address.into();
        let mut table = self.lock();
        let open = table.validated.open + table.unvalidated.open;
        let left = self.max_connections.saturating_sub(open);
        if left == 0 {
            return Err(Refusal::Full);
        }
        let max_unvalidated = self.max_unvalidated.unwrap_or(usize::MAX);
        if !is_validated && table.unvalidated.open >= max_unvalidated {
            return Err(Refusal::Unvalidated);
        }
        let held = |source| match is_validated {
            true => table.validated.of(source),
            false => table.validated.of(source) + table.unvalidated.of(source),
        };
        self.check(address, left, held)?;
        table.of(is_validated).add(address);
        Ok(Share {
            shares: self.clone(),
            address,
            is_validated,
        })
    }

    /// Returns true if a client that was refused for this reason may be admitted after it has validated its
    /// address, and can be asked to.
    pub(crate) fn may_retry(&self, refusal: Refusal, is_validated: bool) -> bool {
        let is_lifted = matches!(
            refusal,
            Refusal::Unvalidated | Refusal::Share | Refusal::Address
        );
        self.max_unvalidated.is_some() && !is_validated && is_lifted
    }

    /// Checks whether another connection of this address is allowed while `left` connections are left and its
    /// sources hold `held`.
    fn check(
        &self,
        address: ScopedIp,
        left: usize,
        held: impl Fn(Source) -> usize,
    ) -> Result<(), Refusal> {
        if held(Source::host(address)) >= self.max_per_address {
            return Err(Refusal::Address);
        }
        let is_over = |(source, multiple)| held(source) >= left.saturating_mul(multiple);
        match Source::shares(address).any(is_over) {
            true => Err(Refusal::Share),
            false => Ok(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock()
    }
}

impl Table {
    fn of(&mut self, is_validated: bool) -> &mut Counts {
        match is_validated {
            true => &mut self.validated,
            false => &mut self.unvalidated,
        }
    }
}

impl Counts {
    fn of(&self, source: Source) -> usize {
        self.held.get(&source).copied().unwrap_or(0)
    }

    fn add(&mut self, address: ScopedIp) {
        self.open += 1;
        for (source, _) in Source::shares(address) {
            *self.held.entry(source).or_default() += 1;
        }
    }

    fn remove(&mut self, address: ScopedIp) {
        self.open = self.open.saturating_sub(1);
        for (source, _) in Source::shares(address) {
            if let Some(held) = self.held.get_mut(&source) {
                *held -= 1;
                if *held == 0 {
                    self.held.remove(&source);
                }
            }
        }
    }
}

impl Share {
    /// PathSettings the connection to those with validated addresses. Call this after the handshake.
    ///
    /// # Errors
    /// Returns the reason if validated clients have used the share of the source meanwhile. The connection must
    /// then be closed.
    pub(crate) fn validate(&mut self) -> Result<(), Refusal> {
        if self.is_validated {
            return Ok(());
        }
        let mut table = self.shares.lock();
        let validated = &table.validated;
        // Unvalidated connections may all be forged, so they do not reduce the number left.
        let left = self.shares.max_connections.saturating_sub(validated.open);
        let held = |source| validated.of(source);
        self.shares.check(self.address, left, held)?;
        table.unvalidated.remove(self.address);
        table.validated.add(self.address);
        self.is_validated = true;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut table = self.shares.lock();
        table.of(self.is_validated).remove(self.address);
    }
}

/// Divisor of all connections that yields the part for unvalidated clients (limit K257).
const UNVALIDATED_PART: usize = 2;

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, SocketAddr};

    use super::*;

    /// Creates the shares of a listener with this number of connections.
    fn shares(max_connections: usize) -> Arc<Shares> {
        Shares::new(&Limits {
            max_connections,
            ..Limits::default()
        })
    }

    /// Takes as many connections as this address may hold.
    fn fill(shares: &Arc<Shares>, address: &str) -> Vec<Share> {
        fill_with(shares, address, true)
    }

    /// Takes as many connections as unvalidated clients that claim this address may hold.
    fn fill_unvalidated(shares: &Arc<Shares>, address: &str) -> Vec<Share> {
        fill_with(shares, address, false)
    }

    fn fill_with(shares: &Arc<Shares>, address: &str, is_validated: bool) -> Vec<Share> {
        let address: IpAddr = address.parse().expect("an address");
        std::iter::from_fn(|| shares.take(address, is_validated).ok()).collect()
    }

    fn refusal(shares: &Arc<Shares>, address: [u8; 4], is_validated: bool) -> Refusal {
        let taken = shares.take(IpAddr::from(address), is_validated);
        taken.expect_err("refused")
    }

    #[test]
    fn one_address_leaves_a_quarter_to_others() {
        let shares = shares(1000);
        let first = fill(&shares, "192.0.2.1");
        assert_eq!(first.len(), 750);
        assert_eq!(refusal(&shares, [192, 0, 2, 1], true), Refusal::Share);
        assert_eq!(fill(&shares, "198.51.100.1").len(), 188);
    }

    #[test]
    fn one_network_leaves_an_eighth_to_others() {
        let shares = shares(1000);
        let held: Vec<_> = (0..=255)
            .flat_map(|low| fill(&shares, &format!("192.0.2.{low}")))
            .collect();
        assert_eq!(held.len(), 875);
        assert!(!fill(&shares, "198.51.100.1").is_empty());
    }

    /// Takes as many connections as these networks may hold, in turns.
    fn fill_all(shares: &Arc<Shares>, addresses: impl Iterator<Item = String>) -> Vec<Share> {
        let addresses: Vec<String> = addresses.collect();
        let mut held: Vec<Share> = Vec::new();
        loop {
            let before = held.len();
            held.extend(addresses.iter().flat_map(|it| fill(shares, it)));
            if held.len() == before {
                return held;
            }
        }
    }

    /// Attack A245: a tunnel broker or hosting provider gives a customer 256 networks.
    #[test]
    fn networks_of_one_ipv6_site_leave_a_twelfth_to_others() {
        let shares = shares(20_000);
        let networks = (0..256).map(|it| format!("2001:db8:0:{:x}::1", it << 8));
        let held = fill_all(&shares, networks);
        assert_eq!(held.len(), 18_334);
        let others = (0..256).map(|it| format!("2001:db9:{it:x}::1"));
        assert!(fill_all(&shares, others).len() >= 1000, "5 %");
    }

    #[test]
    fn sites_of_one_ipv6_allocation_leave_a_sixteenth_to_others() {
        let shares = shares(20_000);
        let sites = (0..1024).map(|it| format!("2001:db8:{it:x}::1"));
        let held = fill_all(&shares, sites);
        assert_eq!(held.len(), 18_750);
        let others = (0..256).map(|it| format!("2001:{it:x}::1"));
        assert!(fill_all(&shares, others).len() >= 1000, "5 %");
    }

    #[test]
    fn networks_of_one_ipv4_site_leave_a_twelfth_to_others() {
        let shares = shares(20_000);
        let networks = (0..=255).map(|it| format!("192.0.{it}.1"));
        let held = fill_all(&shares, networks);
        assert_eq!(held.len(), 18_334);
        let others = (0..=255).map(|it| format!("198.{it}.0.1"));
        assert!(fill_all(&shares, others).len() >= 1000, "5 %");
    }

    #[test]
    fn addresses_of_one_ipv6_host_count_together() {
        let shares = shares(1000);
        let first = fill(&shares, "2001:db8::1");
        assert_eq!(first.len(), 750);
        assert!(fill(&shares, "2001:db8::ffff:2").is_empty(), "the same /64");
        assert!(!fill(&shares, "2001:db8:0:1::1").is_empty(), "another /64");
    }

    #[test]
    fn hosts_on_a_link_count_separately() {
        let shares = shares(1000);
        let take = |address: &str| {
            let address: SocketAddr = address.parse().expect(address);
            shares.take(address, true)
        };
        let first: Vec<_> = std::iter::from_fn(|| take("[fe80::1%2]:1").ok()).collect();
        assert_eq!(first.len(), 750);
        let _neighbour = take("[fe80::2%2]:1").expect("another host");
        let _elsewhere = take("[fe80::1%3]:1").expect("another link");
    }

    #[test]
    fn mapped_addresses_are_ipv4_addresses() {
        let shares = shares(1000);
        let _first = fill(&shares, "192.0.2.1");
        assert!(fill(&shares, "::ffff:192.0.2.1").is_empty());
    }

    #[test]
    fn last_connection_goes_to_a_client_that_holds_few() {
        let shares = shares(1);
        let only = fill(&shares, "192.0.2.1");
        assert_eq!(only.len(), 1);
        assert_eq!(refusal(&shares, [192, 0, 2, 2], true), Refusal::Full);
        drop(only);
        assert_eq!(fill(&shares, "192.0.2.2").len(), 1);
    }

    #[test]
    fn ended_connections_leave_no_entries() {
        let shares = shares(100);
        drop(fill(&shares, "192.0.2.1"));
        let mut claimed = fill_unvalidated(&shares, "192.0.2.1");
        assert_eq!(claimed[0].validate(), Ok(()));
        drop(claimed);
        let table = shares.lock();
        for counts in [&table.validated, &table.unvalidated] {
            assert_eq!((counts.open, counts.held.len()), (0, 0));
        }
    }

    fn three_for_each_address() -> Arc<Shares> {
        Shares::new(&Limits {
            max_connections: 100,
            max_connections_per_address: Some(3),
            ..Limits::default()
        })
    }

    /// Attack A180.
    #[test]
    fn forged_packets_leave_the_owner_of_the_address_its_maximum() {
        let shares = three_for_each_address();
        let forged = fill_unvalidated(&shares, "192.0.2.1");
        assert_eq!(forged.len(), 3);
        assert_eq!(refusal(&shares, [192, 0, 2, 1], false), Refusal::Address);
        let mut owned = fill(&shares, "192.0.2.1");
        assert_eq!(owned.len(), 3);
        assert_eq!(refusal(&shares, [192, 0, 2, 1], true), Refusal::Address);
        drop(forged);
        assert!(
            fill_unvalidated(&shares, "192.0.2.1").is_empty(),
            "they share with the owner"
        );
        owned.truncate(1);
        assert_eq!(fill_unvalidated(&shares, "192.0.2.1").len(), 2);
    }

    #[test]
    fn late_validation_does_not_lift_the_maximum() {
        let shares = three_for_each_address();
        let mut first = fill_unvalidated(&shares, "192.0.2.1");
        let mut others = fill(&shares, "192.0.2.1");
        assert_eq!(first[0].validate(), Err(Refusal::Address));
        others.pop();
        assert_eq!(first[0].validate(), Ok(()));
        assert_eq!(first[0].validate(), Ok(()), "it is already");
        assert_eq!(first[1].validate(), Err(Refusal::Address));
        drop(first);
        assert_eq!(fill(&shares, "192.0.2.1").len(), 1);
    }

    #[test]
    fn late_validation_does_not_lift_the_share() {
        let shares = shares(1000);
        let mut first = fill_unvalidated(&shares, "192.0.2.1");
        let held = fill(&shares, "192.0.2.1").len();
        assert_eq!((first.len(), held), (500, 375));
        let _held = fill(&shares, "192.0.2.1");
        let proven = first.iter_mut().map(Share::validate);
        assert_eq!(proven.filter(Result::is_ok).count(), 375);
        assert_eq!(first[375].validate(), Err(Refusal::Share));
    }

    /// Limit K257.
    #[test]
    fn forged_packets_leave_half_of_all_connections() {
        let shares = shares(1000);
        let forged: Vec<_> = (0..=255)
            .flat_map(|high| fill_unvalidated(&shares, &format!("192.{high}.2.1")))
            .collect();
        assert_eq!(forged.len(), 500);
        let over_part = refusal(&shares, [198, 51, 100, 1], false);
        assert_eq!(over_part, Refusal::Unvalidated);
        assert!(shares.may_retry(over_part, false));
        assert_eq!(fill(&shares, "198.51.100.1").len(), 375);
        let unlimited = Shares::without_validation(&Limits {
            max_connections: 1000,
            ..Limits::default()
        });
        assert_eq!(fill_unvalidated(&unlimited, "192.0.2.1").len(), 750);
    }

    #[test]
    fn full_listeners_ask_no_client_to_validate_its_address() {
        let shares = shares(2);
        let _all = [
            fill(&shares, "192.0.2.1"),
            fill(&shares, "198.51.100.1"),
            fill(&shares, "203.0.113.1"),
        ];
        let full = refusal(&shares, [192, 0, 2, 7], false);
        assert_eq!(full, Refusal::Full);
        assert!(!shares.may_retry(full, false));
    }

    #[test]
    fn clients_over_a_share_are_asked_to_validate_their_address_once() {
        let limits = Limits {
            max_connections: 100,
            max_connections_per_address: Some(3),
            ..Limits::default()
        };
        let unlimited = Limits {
            max_connections_per_address: None,
            ..limits.clone()
        };
        for (limits, reason) in [(limits, Refusal::Address), (unlimited, Refusal::Share)] {
            let validating = Shares::new(&limits);
            let without_validation = Shares::without_validation(&limits);
            for (shares, may_retry) in [(validating, true), (without_validation, false)] {
                let _held = fill(&shares, "192.0.2.1");
                assert_eq!(refusal(&shares, [192, 0, 2, 1], false), reason);
                assert_eq!(shares.may_retry(reason, false), may_retry);
                assert!(!shares.may_retry(reason, true), "it is validated");
            }
        }
    }

    #[test]
    fn one_address_may_have_a_maximum() {
        let shares = three_for_each_address();
        let first = fill(&shares, "192.0.2.1");
        assert_eq!(first.len(), 3);
        assert_eq!(refusal(&shares, [192, 0, 2, 1], true), Refusal::Address);
        assert_eq!(fill(&shares, "192.0.2.2").len(), 3);
        drop(first);
        assert_eq!(fill(&shares, "192.0.2.1").len(), 3);
    }
}
