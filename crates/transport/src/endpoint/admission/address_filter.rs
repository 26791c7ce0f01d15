//! Lists of addresses whose datagrams an endpoint processes or drops.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A range of addresses whose first bits are equal.
///
/// IPv4 addresses that are mapped into IPv6 are IPv4 addresses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct AddressPrefix {
    first: IpAddr,
    length: u8,
}

/// An error for a text that is not a valid [`AddressPrefix`] or list of them. Its message contains the
/// invalid value and the allowed ones.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AddressListError(String);

impl fmt::Display for AddressListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for AddressListError {}

impl FromStr for AddressPrefix {
    type Err = AddressListError;

    /// Parses `192.0.2.1`, `192.0.2.0/24`, `2001:db8::1` or `2001:db8::/32`.
    fn from_str(text: &str) -> Result<Self, AddressListError> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| {
            AddressListError(format!(
                "'{text}' is not an address or prefix such as 192.0.2.1 or 2001:db8::/32"
            ))
        })?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let mut length: u8 = match length {
            None => most,
            Some(digits) => digits
                .parse()
                .ok()
                .filter(|length| *length <= most && digits.bytes().all(|it| it.is_ascii_digit()))
                .ok_or_else(|| {
                    AddressListError(format!(
                        "'{text}' has the prefix length '{digits}', 0 to {most} are allowed"
                    ))
                })?,
        };
        let first = match address.to_canonical() {
            mapped @ IpAddr::V4(_) if address.is_ipv6() => {
                length = length.checked_sub(MAPPED).ok_or_else(|| {
                    AddressListError(format!(
                        "'{text}' has the prefix length {length}, {MAPPED} to 128 are allowed"
                    ))
                })?;
                mapped
            }
            address => address,
        };
        let prefix = Self {
            first: first_of(first, length),
            length,
        };
        match prefix.first == first {
            true => Ok(prefix),
            false => Err(AddressListError(format!(
                "'{text}' has bits behind its prefix length, allowed is '{prefix}'"
            ))),
        }
    }
}

impl AddressPrefix {
    /// Parses a list with one address or prefix per line. `#` begins a comment, and empty lines are
    /// skipped.
    ///
    /// # Errors
    /// [`AddressListError`] for the first invalid line, with its number. More than 1 048 576 entries are
    /// refused (limit K103).
    pub fn parse_list(text: &str) -> Result<Vec<Self>, AddressListError> {
        let mut prefixes = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let entry = line.split('#').next().unwrap_or_default().trim();
            if entry.is_empty() {
                continue;
            }
            let number = index + 1;
            let prefix = entry
                .parse()
                .map_err(|error| AddressListError(format!("line {number}: {error}")))?;
            if prefixes.len() == MAX_PREFIXES {
                return Err(AddressListError(format!(
                    "line {number}: more than {MAX_PREFIXES} entries"
                )));
            }
            prefixes.push(prefix);
        }
        Ok(prefixes)
    }

    /// Returns the first and the last address as 32-bit or 128-bit numbers.
    fn range(&self) -> (u128, u128) {
        let length = u32::from(self.length);
        match self.first {
            IpAddr::V4(v4) => {
                let first = u128::from(v4.to_bits());
                (first, first | low_bits(32 - length))
            }
            IpAddr::V6(v6) => (v6.to_bits(), v6.to_bits() | low_bits(128 - length)),
        }
    }
}

impl fmt::Display for AddressPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.length)
    }
}

/// Decides from an address alone whether its datagrams are processed.
///
/// The longest prefix that contains the address decides. An address that is in no list is allowed,
/// and so is one whose prefix is in both. To allow only a few networks, block `0.0.0.0/0` and
/// `::/0`.
///
/// ```
/// use courser_transport::{AddressFilter, AddressPrefix};
///
/// let block = AddressPrefix::parse_list("192.0.2.0/24 # spam")?;
/// let allow = AddressPrefix::parse_list("192.0.2.7")?;
/// let filter = AddressFilter::new(&block, &allow);
/// assert!(filter.is_blocked([192, 0, 2, 8].into()));
/// assert!(!filter.is_blocked([192, 0, 2, 7].into()));
/// assert!(!filter.is_blocked([198, 51, 100, 1].into()));
/// # Ok::<(), courser_transport::AddressListError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AddressFilter {
    v4: Verdicts<u32>,
    v6: Verdicts<u128>,
}

/// Sorted addresses at which the verdict changes. Addresses before the first are allowed, and
/// verdicts alternate.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Verdicts<T>(Vec<T>);

impl<T: Ord> Verdicts<T> {
    #[inline]
    fn is_blocked(&self, address: &T) -> bool {
        self.0.partition_point(|change| change <= address) % 2 == 1
    }
}

impl AddressFilter {
    /// Builds the filter. It takes 8 bytes for each IPv4 prefix and 32 for each IPv6 prefix, and
    /// less if they overlap.
    pub fn new(block: &[AddressPrefix], allow: &[AddressPrefix]) -> Self {
        let changes = |is_v4: bool| {
            let of_family = |prefixes: &[AddressPrefix], is_blocked: bool| {
                prefixes
                    .iter()
                    .filter(|prefix| prefix.first.is_ipv4() == is_v4)
                    .map(|prefix| Entry::new(prefix, is_blocked))
                    .collect::<Vec<_>>()
            };
            let mut entries = of_family(block, true);
            entries.extend(of_family(allow, false));
            changes_of(entries)
        };
        let v4 = changes(true).into_iter();
        Self {
            // A change after the very last address does not fit and is dropped.
            v4: Verdicts(v4.filter_map(|change| u32::try_from(change).ok()).collect()),
            v6: Verdicts(changes(false)),
        }
    }

    /// Returns true if datagrams from this address must be dropped. Takes a binary search.
    #[inline]
    pub fn is_blocked(&self, address: IpAddr) -> bool {
        if self.is_empty() {
            return false;
        }
        match address.to_canonical() {
            IpAddr::V4(v4) => self.v4.is_blocked(&v4.to_bits()),
            IpAddr::V6(v6) => self.v6.is_blocked(&v6.to_bits()),
        }
    }

    /// Returns true if no address is blocked.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.v4.0.is_empty() && self.v6.0.is_empty()
    }
}

/// A prefix as a range, with its verdict.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    first: u128,
    /// The length of the prefix. Longer prefixes come after those that cover them.
    length: u8,
    /// The verdict. An allowed prefix comes after the same prefix blocked, and so overrides it.
    is_allowed: bool,
    last: u128,
}

impl Entry {
    fn new(prefix: &AddressPrefix, is_blocked: bool) -> Self {
        let (first, last) = prefix.range();
        Self {
            first,
            length: prefix.length,
            is_allowed: !is_blocked,
            last,
        }
    }
}

/// Flattens prefixes, which may be nested, into the addresses at which the verdict changes.
fn changes_of(mut entries: Vec<Entry>) -> Vec<u128> {
    entries.sort_unstable();
    let mut changes = Changes(Vec::new());
    // Prefixes that contain the current address, the longest on top.
    let mut open: Vec<Entry> = Vec::new();
    for entry in entries {
        close_before(&mut open, &mut changes, Some(entry.first));
        changes.set(entry.first, !entry.is_allowed);
        open.push(entry);
    }
    close_before(&mut open, &mut changes, None);
    changes.0.into_iter().map(|(address, _)| address).collect()
}

/// Closes the open prefixes whose last address is below `address`.
fn close_before(open: &mut Vec<Entry>, changes: &mut Changes, address: Option<u128>) {
    while let Some(ended) = open.pop_if(|it| address.is_none_or(|address| it.last < address)) {
        let is_blocked = open.last().is_some_and(|outer| !outer.is_allowed);
        if let Some(behind) = ended.last.checked_add(1) {
            changes.set(behind, is_blocked);
        }
    }
}

/// Addresses at which the verdict changes, with the new verdict. The first one blocks.
struct Changes(Vec<(u128, bool)>);

impl Changes {
    fn set(&mut self, address: u128, is_blocked: bool) {
        self.0.pop_if(|(last, _)| *last == address);
        let before = self.0.last().is_some_and(|(_, is_blocked)| *is_blocked);
        if before != is_blocked {
            self.0.push((address, is_blocked));
        }
    }
}

/// Returns the address with all but its first bits cleared.
fn first_of(address: IpAddr, length: u8) -> IpAddr {
    let length = u32::from(length);
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
            IpAddr::V4((v4.to_bits() & mask).into())
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
            IpAddr::V6((v6.to_bits() & mask).into())
        }
    }
}

/// Returns a number whose `count` lowest bits are set.
fn low_bits(count: u32) -> u128 {
    !u128::MAX.checked_shl(count).unwrap_or(0)
}

/// The bits before an IPv4 address that is mapped into IPv6 (RFC 4291 §2.5.5.2).
const MAPPED: u8 = 96;

/// Maximum of entries in a list, which exceeds all published lists together (limit K103).
const MAX_PREFIXES: usize = 1 << 20;

#[cfg(test)]
mod tests;
