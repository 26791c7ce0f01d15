//! Ranges of addresses, and routes made of them (RFC 9484 §4.7.3).

use std::fmt;
use std::net::IpAddr;

use super::packet::is_icmp;
use crate::prefix::{Prefix, bits, of_bits, width};

/// Addresses from a first to a last one, with the protocol of the packets that are sent to them.
///
/// ```
/// use courser_masque::ip::AddressRange;
/// let range = AddressRange::new("192.0.2.4".parse()?, "192.0.2.7".parse()?, Some(17))?;
/// assert!(range.contains("192.0.2.5".parse()?));
/// assert_eq!(range.prefixes(), ["192.0.2.4/30".parse()?]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AddressRange {
    start: IpAddr,
    end: IpAddr,
    /// 0 for all protocols.
    protocol: u8,
}

/// The reason why addresses or ranges are no routes. A peer that sends such ranges has its stream reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidRange {
    /// The addresses are of two versions of IP.
    #[error("{0} and {1} are of two versions of IP")]
    Versions(IpAddr, IpAddr),
    /// The range ends before it starts.
    #[error("the range ends at {1}, before its start {0}")]
    Reversed(IpAddr, IpAddr),
    /// Ranges have to be ordered by version, protocol and address.
    #[error("the range from {0} stands behind a later one")]
    Unordered(IpAddr),
    /// Two ranges of one protocol, or one of them of all protocols, share addresses.
    #[error("the range from {0} overlaps another one")]
    Overlap(IpAddr),
    /// There are more ranges than an end accepts.
    #[error("{0} ranges, allowed are {max}", max = super::limits::RANGES)]
    TooMany(usize),
}

impl AddressRange {
    /// Creates a range. `None` stands for all protocols, and protocol 0 for the same, as in capsules.
    ///
    /// # Errors
    /// Returns an error if the addresses are of two versions, or the range ends before it starts.
    pub fn new(start: IpAddr, end: IpAddr, protocol: Option<u8>) -> Result<Self, InvalidRange> {
        if start.is_ipv4() != end.is_ipv4() {
            return Err(InvalidRange::Versions(start, end));
        }
        if start > end {
            return Err(InvalidRange::Reversed(start, end));
        }
        let protocol = protocol.unwrap_or(0);
        Ok(Self {
            start,
            end,
            protocol,
        })
    }

    /// Returns all addresses of IPv4.
    pub fn all_ipv4() -> Self {
        Prefix::IPV4.into()
    }

    /// Returns all addresses of IPv6.
    pub fn all_ipv6() -> Self {
        Prefix::IPV6.into()
    }

    /// Returns the same addresses for one protocol, or for all.
    #[must_use]
    pub const fn for_protocol(mut self, protocol: Option<u8>) -> Self {
        self.protocol = match protocol {
            Some(protocol) => protocol,
            None => 0,
        };
        self
    }

    /// Returns the first address.
    pub const fn start(&self) -> IpAddr {
        self.start
    }

    /// Returns the last address.
    pub const fn end(&self) -> IpAddr {
        self.end
    }

    /// Returns the protocol of packets, as the registry of Internet Protocol Numbers has it: 6 is TCP, 17 UDP. `None` for
    /// all protocols. ICMP is always allowed.
    pub const fn protocol(&self) -> Option<u8> {
        match self.protocol {
            0 => None,
            protocol => Some(protocol),
        }
    }

    /// Returns true for a range of IPv4.
    pub const fn is_ipv4(&self) -> bool {
        self.start.is_ipv4()
    }

    /// Returns true if the address is in the range. An IPv4-mapped address is one of IPv6.
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.is_ipv4() && (self.start..=self.end).contains(&address)
    }

    /// Returns the addresses that are in both ranges, for the protocol of both, if there are any.
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        let protocol = match (self.protocol, other.protocol) {
            (0, protocol) | (protocol, 0) => protocol,
            (one, two) if one == two => one,
            _ => return None,
        };
        let (start, end) = (self.start.max(other.start), self.end.min(other.end));
        let range = Self::new(start, end, Some(protocol)).ok()?;
        (self.is_ipv4() == other.is_ipv4()).then_some(range)
    }

    /// Returns the prefixes that make up the range, in order, for tables of routes: at most 62 for IPv4 and 254 for IPv6.
    pub fn prefixes(&self) -> Vec<Prefix> {
        let mut prefixes = Vec::new();
        let (mut next, last) = (bits(self.start), bits(self.end));
        let most = u32::from(width(self.start));
        loop {
            // The longest run of addresses that begins here: bounded by the zeros of its first and by its last.
            let count = last - next;
            let fitting = match count.checked_add(1) {
                Some(count) => count.ilog2(),
                None => 128,
            };
            let host = next.trailing_zeros().min(fitting).min(most);
            let first = of_bits(next, self.start);
            let len = u8::try_from(most - host).unwrap_or(0);
            prefixes.extend(Prefix::new(first, len));
            let step = 1_u128.checked_shl(host).unwrap_or(0);
            match next.checked_add(step) {
                Some(following) if step > 0 && following <= last => next = following,
                _ => return prefixes,
            }
        }
    }

    /// Returns what ranges are ordered by (RFC 9484 §4.7.3).
    const fn group(&self) -> (bool, u8) {
        (!self.is_ipv4(), self.protocol)
    }
}

impl From<Prefix> for AddressRange {
    fn from(prefix: Prefix) -> Self {
        Self {
            start: prefix.first(),
            end: prefix.last(),
            protocol: 0,
        }
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.prefixes().as_slice() {
            [one] => write!(f, "{one}")?,
            _ => write!(f, "{}-{}", self.start, self.end)?,
        }
        match self.protocol {
            0 => Ok(()),
            protocol => write!(f, " protocol {protocol}"),
        }
    }
}

/// Ranges in the order of a capsule, which do not overlap: the destinations of packets in one direction.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Routes(Vec<AddressRange>);

impl Routes {
    /// Creates routes from ranges in any order.
    ///
    /// # Errors
    /// Returns an error if ranges overlap, or there are more than 256.
    pub fn new(ranges: impl IntoIterator<Item = AddressRange>) -> Result<Self, InvalidRange> {
        let mut ranges: Vec<_> = ranges.into_iter().collect();
        ranges.sort_by_key(|range| (range.group(), range.start));
        Self::of_ordered(ranges)
    }

    /// Creates routes from ranges in the order of a capsule.
    ///
    /// # Errors
    /// Returns an error if ranges are not ordered or overlap, or there are more than 256.
    pub fn of_ordered(ranges: Vec<AddressRange>) -> Result<Self, InvalidRange> {
        if ranges.len() > super::limits::RANGES {
            return Err(InvalidRange::TooMany(ranges.len()));
        }
        for pair in ranges.windows(2) {
            let [one, next] = pair else { continue };
            if one.group() > next.group() {
                return Err(InvalidRange::Unordered(next.start));
            }
            if one.group() == next.group() && one.end >= next.start {
                return Err(match one.start > next.start {
                    true => InvalidRange::Unordered(next.start),
                    false => InvalidRange::Overlap(next.start),
                });
            }
        }
        let routes = Self(ranges);
        // A range of all protocols overlaps those of a single one too.
        for range in routes.0.iter().filter(|range| range.protocol != 0) {
            let before = routes.last_before(range.end, 0);
            if before.is_some_and(|all| all.end >= range.start) {
                return Err(InvalidRange::Overlap(range.start));
            }
        }
        Ok(routes)
    }

    /// Returns all addresses of the versions that are asked for.
    pub fn all(ipv4: bool, ipv6: bool) -> Self {
        let ranges = [
            ipv4.then(AddressRange::all_ipv4),
            ipv6.then(AddressRange::all_ipv6),
        ];
        Self(ranges.into_iter().flatten().collect())
    }

    /// Returns the part of the routes that is also in one of `others`.
    ///
    /// # Errors
    /// Returns an error if the parts are more than 256.
    pub fn within(&self, others: &[AddressRange]) -> Result<Self, InvalidRange> {
        let parts = self
            .0
            .iter()
            .flat_map(|range| others.iter().filter_map(|other| range.intersection(other)));
        Self::new(parts)
    }

    /// Returns the ranges.
    pub fn ranges(&self) -> &[AddressRange] {
        &self.0
    }

    /// Returns true if packets of a protocol may be sent to an address. ICMP may always be, to addresses of any protocol.
    pub fn contains(&self, address: IpAddr, protocol: u8) -> bool {
        let is_in = |protocol| {
            let range = self.last_before(address, protocol);
            range.is_some_and(|range| range.end >= address)
        };
        if is_in(0) || (protocol != 0 && is_in(protocol)) {
            return true;
        }
        is_icmp(address, protocol) && self.0.iter().any(|range| range.contains(address))
    }

    /// Returns the last range of a protocol that starts no later than at an address.
    fn last_before(&self, address: IpAddr, protocol: u8) -> Option<&AddressRange> {
        let group = (!address.is_ipv4(), protocol);
        let end = self
            .0
            .partition_point(|range| (range.group(), range.start) <= (group, address));
        let last = self.0[..end].last()?;
        (last.group() == group).then_some(last)
    }
}

#[cfg(test)]
mod tests;
