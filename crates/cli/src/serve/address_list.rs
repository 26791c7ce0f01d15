//! Lists of addresses in files, one address or prefix a line.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::Failure;

/// Addresses that have their first bits in common.
///
/// IPv4 addresses that are mapped into IPv6 are IPv4 addresses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Prefix {
    first: IpAddr,
    length: u8,
}

impl Prefix {
    /// Reads `192.0.2.1`, `192.0.2.0/24`, `2001:db8::1` or `2001:db8::/32`.
    ///
    /// # Errors
    /// The reason, with what was seen and what is allowed.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| {
            format!("'{text}' is not an address or prefix such as 192.0.2.1 or 2001:db8::/32")
        })?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let mut length: u8 = match length {
            None => most,
            Some(digits) => digits
                .parse()
                .ok()
                .filter(|length| *length <= most && digits.bytes().all(|it| it.is_ascii_digit()))
                .ok_or_else(|| {
                    format!("'{text}' has the prefix length '{digits}', 0 to {most} are allowed")
                })?,
        };
        let first = match address.to_canonical() {
            mapped @ IpAddr::V4(_) if address.is_ipv6() => {
                length = length.checked_sub(MAPPED).ok_or_else(|| {
                    format!("'{text}' has the prefix length {length}, {MAPPED} to 128 are allowed")
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
            false => Err(format!(
                "'{text}' has bits behind its prefix length, allowed is '{prefix}'"
            )),
        }
    }

    /// True if the address has these first bits.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.first.is_ipv4() && first_of(address, self.length) == self.first
    }

    fn covers(&self, other: &Self) -> bool {
        self.length <= other.length && self.contains(other.first)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.length)
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

/// Reads the text of a list: sorted, and without prefixes that others cover.
///
/// # Errors
/// The first line that is wrong, with its number, what was seen and what is allowed.
pub(crate) fn parse(text: &str) -> Result<Vec<Prefix>, String> {
    let mut prefixes = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let entry = line.split('#').next().unwrap_or_default().trim();
        if entry.is_empty() {
            continue;
        }
        let prefix = Prefix::parse(entry).map_err(|why| format!("line {}: {why}", index + 1))?;
        if prefixes.len() == MOST_PREFIXES {
            let line = index + 1;
            return Err(format!("line {line}: more than {MOST_PREFIXES} entries"));
        }
        prefixes.push(prefix);
    }
    // A prefix comes right before those that it covers.
    prefixes.sort_unstable();
    prefixes.dedup_by(|later, kept| kept.covers(later));
    Ok(prefixes)
}

/// A list that is read again when its file changes.
#[derive(Debug)]
pub(super) struct AddressList {
    path: PathBuf,
    stamp: Stamp,
    prefixes: Vec<Prefix>,
}

/// Differs between two versions of a file.
type Stamp = (Option<SystemTime>, u64);

impl AddressList {
    /// # Errors
    /// When the file cannot be read, or a line is wrong.
    pub(super) fn load(path: &Path) -> Result<Self, Failure> {
        let wrong = |why: &dyn fmt::Display| {
            Failure::new(format!("cannot use the list {}: {why}", path.display()))
        };
        // Before the content: a change between the two is noticed at the next look.
        let stamp = stamp(path).map_err(|error| wrong(&error))?;
        if stamp.1 > MOST_BYTES {
            let len = stamp.1;
            return Err(wrong(&format!(
                "it has {len} bytes, {MOST_BYTES} are allowed"
            )));
        }
        let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
        Ok(Self {
            path: path.to_owned(),
            stamp,
            prefixes: parse(&text).map_err(|why| wrong(&why))?,
        })
    }

    /// Returns the prefixes, sorted, none of them inside another.
    pub(super) fn prefixes(&self) -> &[Prefix] {
        &self.prefixes
    }

    /// True if one of the prefixes contains the address.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let behind = self.prefixes.partition_point(|it| it.first <= address);
        let nearest = behind.checked_sub(1).and_then(|at| self.prefixes.get(at));
        nearest.is_some_and(|prefix| prefix.contains(address))
    }

    /// True if the file looks different from when it was read. One that is gone does too.
    pub(super) fn has_changed(&self) -> bool {
        stamp(&self.path).ok() != Some(self.stamp)
    }

    /// Reads the file again, whether or not it has changed.
    ///
    /// # Errors
    /// As of [`load`](Self::load); the list then stays as it was.
    pub(super) fn reload(&mut self) -> Result<(), Failure> {
        *self = Self::load(&self.path)?;
        Ok(())
    }
}

fn stamp(path: &Path) -> std::io::Result<Stamp> {
    let metadata = path.metadata()?;
    Ok((metadata.modified().ok(), metadata.len()))
}

/// Bits in front of an IPv4 address that is mapped into IPv6 (RFC 4291 §2.5.5.2).
const MAPPED: u8 = 96;
/// 18 MiB of memory: more than all published lists together.
const MOST_PREFIXES: usize = 1 << 20;
/// As many of the longest lines, without comments.
const MOST_BYTES: u64 = 64 << 20;

#[cfg(test)]
mod tests;
