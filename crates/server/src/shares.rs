//! Fair shares of the connections of a listener (limit K86).

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, MutexGuard};

use courser_base::Mutex;

use super::limits::Limits;
use super::refusals::Refusal;

/// Counts open connections by source, and refuses sources that hold too many.
///
/// A source is admitted while it holds less than a multiple of the connections left. No source is
/// limited while the server is idle, and the more sources there are, the smaller the share of each.
/// A single address can hold three quarters of all connections and a single network seven eighths,
/// so that one source never locks out another.
#[derive(Debug)]
pub(super) struct Shares {
    max_connections: usize,
    max_per_address: usize,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    open: usize,
    /// Connections held; at most two entries for each open connection.
    held: HashMap<Source, usize>,
}

/// The first bits of an address, and their number.
type Source = (u128, u8);

/// One connection of a source, until it is dropped.
#[derive(Debug)]
pub(super) struct Share {
    shares: Arc<Shares>,
    address: IpAddr,
}

impl Shares {
    /// Creates the shares of a listener.
    pub(super) fn new(limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            max_connections: limits.max_connections,
            max_per_address: limits.max_connections_per_address.unwrap_or(usize::MAX),
            table: Mutex::default(),
        })
    }

    /// Takes a connection for this address.
    ///
    /// # Errors
    /// Returns the reason if it is refused.
    pub(super) fn take(self: &Arc<Self>, address: IpAddr) -> Result<Share, Refusal> {
        let mut table = self.lock();
        let left = self.max_connections.saturating_sub(table.open);
        if left == 0 {
            return Err(Refusal::Full);
        }
        let [(of_address, _), _] = sources(address);
        if table.held.get(&of_address).copied().unwrap_or(0) >= self.max_per_address {
            return Err(Refusal::Address);
        }
        for (source, multiple) in sources(address) {
            let held = table.held.get(&source).copied().unwrap_or(0);
            if held >= left.saturating_mul(multiple) {
                return Err(Refusal::Share);
            }
        }
        table.open += 1;
        for (source, _) in sources(address) {
            *table.held.entry(source).or_default() += 1;
        }
        Ok(Share {
            shares: self.clone(),
            address,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock()
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut table = self.shares.lock();
        table.open = table.open.saturating_sub(1);
        for (source, _) in sources(self.address) {
            if let Some(held) = table.held.get_mut(&source) {
                *held -= 1;
                if *held == 0 {
                    table.held.remove(&source);
                }
            }
        }
    }
}

/// Returns the address and the network that a connection counts towards, each with the multiple of
/// the connections left that it may hold: /32 and /24 of IPv4, /64 and /56 of IPv6.
fn sources(address: IpAddr) -> [(Source, usize); 2] {
    let (bits, lengths) = match address.to_canonical() {
        IpAddr::V4(v4) => (v4.to_ipv6_mapped().to_bits(), [128, 120]),
        IpAddr::V6(v6) => (v6.to_bits(), [64, 56]),
    };
    let source = |length: u8| (bits >> (128 - u32::from(length)), length);
    [
        (source(lengths[0]), ADDRESS_MULTIPLE),
        (source(lengths[1]), NETWORK_MULTIPLE),
    ]
}

/// Multiple of the connections left that one address may hold.
const ADDRESS_MULTIPLE: usize = 3;
/// Multiple of the connections left that one network may hold.
const NETWORK_MULTIPLE: usize = 7;

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates the shares of so many connections.
    fn shares(max_connections: usize) -> Arc<Shares> {
        Shares::new(&Limits {
            max_connections,
            ..Limits::default()
        })
    }

    /// Takes as many connections as this address is allowed.
    fn fill(shares: &Arc<Shares>, address: &str) -> Vec<Share> {
        let address = address.parse().expect("an address");
        std::iter::from_fn(|| shares.take(address).ok()).collect()
    }

    #[test]
    fn one_address_leaves_a_quarter_to_others() {
        let shares = shares(1000);
        let first = fill(&shares, "192.0.2.1");
        assert_eq!(first.len(), 750);
        assert_eq!(
            shares.take([192, 0, 2, 1].into()).expect_err("its share"),
            Refusal::Share
        );
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

    #[test]
    fn addresses_of_one_ipv6_host_count_together() {
        let shares = shares(1000);
        let first = fill(&shares, "2001:db8::1");
        assert_eq!(first.len(), 750);
        assert!(fill(&shares, "2001:db8::ffff:2").is_empty(), "the same /64");
        assert!(!fill(&shares, "2001:db8:0:1::1").is_empty(), "another /64");
    }

    #[test]
    fn mapped_addresses_are_ipv4_addresses() {
        let shares = shares(1000);
        let _first = fill(&shares, "192.0.2.1");
        assert!(fill(&shares, "::ffff:192.0.2.1").is_empty());
    }

    #[test]
    fn the_last_connection_goes_to_who_holds_few() {
        let shares = shares(1);
        let only = fill(&shares, "192.0.2.1");
        assert_eq!(only.len(), 1);
        assert_eq!(
            shares.take([192, 0, 2, 2].into()).expect_err("none left"),
            Refusal::Full
        );
        drop(only);
        assert_eq!(fill(&shares, "192.0.2.2").len(), 1);
    }

    #[test]
    fn nothing_is_left_of_connections_that_end() {
        let shares = shares(100);
        drop(fill(&shares, "192.0.2.1"));
        let table = shares.lock();
        assert_eq!((table.open, table.held.len()), (0, 0));
    }

    #[test]
    fn one_address_may_have_a_maximum() {
        let shares = Shares::new(&Limits {
            max_connections: 100,
            max_connections_per_address: Some(3),
            ..Limits::default()
        });
        let first = fill(&shares, "192.0.2.1");
        assert_eq!(first.len(), 3);
        assert_eq!(
            shares.take([192, 0, 2, 1].into()).expect_err("its maximum"),
            Refusal::Address
        );
        assert_eq!(fill(&shares, "192.0.2.2").len(), 3);
        drop(first);
        assert_eq!(fill(&shares, "192.0.2.1").len(), 3);
    }
}
