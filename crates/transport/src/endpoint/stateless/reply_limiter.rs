//! Limits the datagrams that are sent to addresses that may be forged.

use std::hash::BuildHasher;
use std::net::IpAddr;
use std::time::Duration;

use courser_base::{ScopedIp, Time};

use crate::config::ReplyLimits;
use crate::hasher::KeyedState;

/// Prevents attacks that reflect the replies of an endpoint to forged addresses.
///
/// Each prefix, and all of them together, may get one second's worth of packets at once and the
/// rate after that. The table has a fixed size. If all entries for a prefix are taken, the prefix
/// with the least debt is forgotten; it can gain one burst, within the overall rate.
#[derive(Debug)]
pub struct ReplyLimiter {
    limits: ReplyLimits,
    hasher: KeyedState,
    overall: Debt,
    /// [`SETS`] sets; empty until the first packet.
    sets: Vec<[Entry; WAYS]>,
}

impl ReplyLimiter {
    /// Maximum of prefixes that are remembered.
    #[cfg(test)]
    pub const MAX_PREFIXES: usize = SETS * WAYS;

    /// Creates an empty limiter; `key` must be secret. A rate of zero forbids all packets.
    pub fn new(limits: ReplyLimits, key: [u8; 16]) -> Self {
        Self {
            limits,
            hasher: KeyedState::new(key),
            overall: Debt::default(),
            sets: Vec::new(),
        }
    }

    /// Requests one packet to `peer`. Returns true and counts the packet if it may be sent.
    pub fn allow(&mut self, peer: impl Into<ScopedIp>, now: Time) -> bool {
        if self.sets.is_empty() {
            self.sets.resize(SETS, Default::default());
        }
        let prefix = Prefix::of(peer.into());
        let set = usize::try_from(self.hasher.hash_one(prefix.0) % SETS as u64);
        let entry = Entry::find(&mut self.sets[set.expect("less than SETS")], prefix);
        let debt = if entry.prefix == prefix {
            entry.debt
        } else {
            Debt::default()
        };
        let overall = self.overall.plus_one(self.limits.overall, now);
        let of_prefix = debt.plus_one(self.limits.per_prefix, now);
        let (Some(overall), Some(of_prefix)) = (overall, of_prefix) else {
            return false;
        };
        self.overall = overall;
        *entry = Entry {
            prefix,
            debt: of_prefix,
        };
        true
    }
}

/// Sets of the table, and entries of a set. Together they exceed the overall rate of resets in one
/// second, after which a debt is paid.
const SETS: usize = 1024;
const WAYS: usize = 4;

/// One prefix and its debt.
#[derive(Clone, Copy, Default, Debug)]
struct Entry {
    prefix: Prefix,
    debt: Debt,
}

impl Entry {
    /// Returns the entry of a prefix, or the one that it may take over.
    fn find(set: &mut [Self; WAYS], prefix: Prefix) -> &mut Self {
        let known = set.iter().position(|entry| entry.prefix == prefix);
        let least = (0..WAYS).min_by_key(|&index| set[index].debt);
        &mut set[known.or(least).unwrap_or_default()]
    }
}

/// The time at which the debt for all packets is paid, each of which costs a fraction of a second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
struct Debt(Time);

impl Debt {
    /// Returns the debt after another packet, unless that exceeds one second's worth.
    fn plus_one(self, rate: u32, now: Time) -> Option<Self> {
        let cost = Duration::from_secs(1).checked_div(rate)?;
        let paid_at = self.0.max(now) + cost;
        (paid_at - now <= Duration::from_secs(1)).then_some(Self(paid_at))
    }
}

/// The network of an address: 24 bits of IPv4, 56 of IPv6. All ones in the high byte mark IPv4; zero is
/// not a valid prefix.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Prefix(u64);

impl Prefix {
    fn of(address: ScopedIp) -> Self {
        match address.ip() {
            IpAddr::V4(v4) => Self(0xff << 56 | u64::from(v4.to_bits() >> 8)),
            // A link is a network of its own.
            IpAddr::V6(v6) if v6.is_unicast_link_local() => {
                Self(0x02 << 56 | u64::from(address.scope_id()))
            }
            IpAddr::V6(v6) => {
                let bits = u64::try_from(v6.to_bits() >> 72).expect("56 bits");
                Self(0x01 << 56 | bits)
            }
        }
    }
}

/// Returns true for source ports that no QUIC client uses. A forged datagram could direct our reply to
/// a service on such a port, which may answer it (limit K20, RFC 9000 §21.5). Datagrams from these
/// ports that belong to no connection are dropped.
pub fn is_refused_port(port: u16) -> bool {
    REFUSED_PORTS.contains(&port)
}

/// The ports of echo, discard-like and time services, then of name, file, directory, key and
/// discovery services.
const REFUSED_PORTS: [u16; 17] = [
    0, 7, 17, 19, 53, 111, 123, 137, 138, 161, 389, 500, 1900, 3702, 5353, 5355, 11211,
];

#[cfg(test)]
mod tests;
