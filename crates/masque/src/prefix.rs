//! Prefixes of IP addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A prefix of addresses, such as `192.0.2.0/24` or `2001:db8::/32`, or one address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Prefix {
    first: IpAddr,
    len: u8,
}

/// The error of a text that is no [`Prefix`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "'{0}' is no prefix of addresses such as 192.0.2.0/24 or 2001:db8::/32, without bits behind its length"
)]
pub struct InvalidPrefix(String);

impl Prefix {
    /// All IPv4 addresses.
    pub const IPV4: Self = Self::v4([0, 0, 0, 0], 0);
    /// All IPv6 addresses.
    pub const IPV6: Self = Self::v6([0, 0, 0, 0, 0, 0, 0, 0], 0);

    /// Any one address of IPv4, where an address is requested (RFC 9484 §4.7.2).
    pub const NEW_IPV4: Self = Self::v4([0, 0, 0, 0], 32);
    /// Any one address of IPv6, where an address is requested (RFC 9484 §4.7.2).
    pub const NEW_IPV6: Self = Self::v6([0, 0, 0, 0, 0, 0, 0, 0], 128);

    /// Creates a prefix from its first address and its length in bits.
    ///
    /// # Errors
    /// Returns an error if the length exceeds that of the address, or a bit behind it is set.
    pub fn new(first: IpAddr, len: u8) -> Result<Self, InvalidPrefix> {
        let prefix = Self { first, len };
        match len <= width(first) && prefix.host_bits() & bits(first) == 0 {
            true => Ok(prefix),
            false => Err(InvalidPrefix(prefix.to_string())),
        }
    }

    /// Returns the prefix of one address, which is not changed: an IPv4-mapped address stays one of IPv6.
    pub const fn single(address: IpAddr) -> Self {
        Self {
            first: address,
            len: width(address),
        }
    }

    /// Returns the first address.
    pub const fn first(&self) -> IpAddr {
        self.first
    }

    /// Returns the last address.
    pub fn last(&self) -> IpAddr {
        of_bits(bits(self.first) | self.host_bits(), self.first)
    }

    /// Returns the address that a host with this prefix uses. Of a network it is the second one, as the first one stands
    /// for all of it.
    #[must_use]
    pub fn host(&self) -> Self {
        let is_network = self.len + 1 < width(self.first);
        Self::single(match is_network {
            true => of_bits(bits(self.first) + 1, self.first),
            false => self.first,
        })
    }

    /// Returns the length of the prefix in bits: 0 to 32 or 128.
    pub const fn bits(&self) -> u8 {
        self.len
    }

    /// Returns true if the prefix is one address.
    pub const fn is_single(&self) -> bool {
        self.len == width(self.first)
    }

    /// Returns true for a prefix of IPv4.
    pub const fn is_ipv4(&self) -> bool {
        self.first.is_ipv4()
    }

    /// Returns true if a packet with the address has the prefix. Unlike for [`contains`](Self::contains), an IPv4-mapped
    /// address is one of IPv6, as it is in a packet.
    pub fn covers(&self, address: IpAddr) -> bool {
        self.is_ipv4() == address.is_ipv4()
            && (bits(self.first) ^ bits(address)) & !self.host_bits() == 0
    }

    /// Returns a mask of the bits behind the prefix.
    fn host_bits(&self) -> u128 {
        let count = u32::from(width(self.first).saturating_sub(self.len));
        1_u128.checked_shl(count).map_or(u128::MAX, |bit| bit - 1)
    }

    /// Returns true if the address has the prefix. An IPv4-mapped IPv6 address is the IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.first, address.to_canonical()) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                let difference = u32::from(first) ^ u32::from(address);
                self.len == 0 || difference >> (32 - self.len) == 0
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                let difference = u128::from(first) ^ u128::from(address);
                self.len == 0 || difference >> (128 - self.len) == 0
            }
            _ => false,
        }
    }

    pub(crate) const fn v4([a, b, c, d]: [u8; 4], len: u8) -> Self {
        Self {
            first: IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
            len,
        }
    }

    pub(crate) const fn v6([a, b, c, d, e, f, g, h]: [u16; 8], len: u8) -> Self {
        Self {
            first: IpAddr::V6(Ipv6Addr::new(a, b, c, d, e, f, g, h)),
            len,
        }
    }
}

/// Returns the length of an address in bits.
pub(crate) const fn width(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

/// Returns an address as a number.
pub(crate) fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u32::from(v4).into(),
        IpAddr::V6(v6) => v6.into(),
    }
}

/// Returns the address of a number, of the version of `like`.
pub(crate) fn of_bits(bits: u128, like: IpAddr) -> IpAddr {
    match like {
        IpAddr::V4(_) => Ipv4Addr::from(u32::try_from(bits).unwrap_or(u32::MAX)).into(),
        IpAddr::V6(_) => Ipv6Addr::from(bits).into(),
    }
}

impl From<IpAddr> for Prefix {
    fn from(address: IpAddr) -> Self {
        let first = address.to_canonical();
        let len = if first.is_ipv4() { 32 } else { 128 };
        Self { first, len }
    }
}

impl FromStr for Prefix {
    type Err = InvalidPrefix;

    fn from_str(text: &str) -> Result<Self, InvalidPrefix> {
        let invalid = || InvalidPrefix(text.chars().take(64).collect());
        let (address, len) = match text.split_once('/') {
            Some((address, len)) => (address, Some(len)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| invalid())?;
        if address != address.to_canonical() {
            return Err(invalid()); // A mapped address has two lengths.
        }
        let most = Self::from(address).len;
        let len = match len {
            None => most,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits
                .parse()
                .ok()
                .filter(|len| *len <= most)
                .ok_or_else(invalid)?,
            Some(_) => return Err(invalid()),
        };
        let is_exact = match address {
            IpAddr::V4(v4) => u32::from(v4).checked_shl(len.into()).unwrap_or(0) == 0,
            IpAddr::V6(v6) => u128::from(v6).checked_shl(len.into()).unwrap_or(0) == 0,
        };
        let first = address;
        is_exact.then_some(Self { first, len }).ok_or_else(invalid)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_contain_their_addresses() {
        for (prefix, address, expected) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.0", false),
            ("0.0.0.0/0", "255.255.255.255", true),
            ("0.0.0.0/0", "::1", false),
            ("::/0", "::1", true),
            ("10.0.0.0/8", "::ffff:10.0.0.1", true),
            ("2001:db8::/32", "2001:db8:ffff::", true),
            ("2001:db8::1", "2001:db8::1", true),
            ("2001:db8::1", "2001:db8::2", false),
        ] {
            let found: Prefix = prefix.parse().unwrap();
            assert_eq!(
                found.contains(address.parse().unwrap()),
                expected,
                "{prefix} {address}"
            );
        }
    }

    #[test]
    fn prefixes_have_first_and_last_addresses() {
        for (text, last) in [
            ("10.0.0.0/8", "10.255.255.255"),
            ("0.0.0.0/0", "255.255.255.255"),
            ("192.0.2.1/32", "192.0.2.1"),
            ("::/0", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("2001:db8::/64", "2001:db8::ffff:ffff:ffff:ffff"),
        ] {
            let prefix: Prefix = text.parse().unwrap();
            let last: IpAddr = last.parse().unwrap();
            assert_eq!(prefix.last(), last, "{text}");
            assert!(prefix.covers(last) && prefix.covers(prefix.first()));
            assert_eq!(Prefix::new(prefix.first(), prefix.bits()), Ok(prefix));
        }
        assert!(Prefix::new("10.0.0.1".parse().unwrap(), 8).is_err());
        assert!(Prefix::new("10.0.0.0".parse().unwrap(), 33).is_err());
        assert!(Prefix::new("::".parse().unwrap(), 129).is_err());
        let all: Prefix = "0.0.0.0/0".parse().unwrap();
        assert!(!all.covers("::ffff:10.0.0.1".parse().unwrap()));
    }

    #[test]
    fn texts_that_are_no_prefixes_are_refused() {
        for text in [
            "",
            "10.0.0.1/8",
            "10.0.0.0/33",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "10/8",
            "::/129",
            "::ffff:10.0.0.0/104",
            "fe80::1%1",
            "example.org",
        ] {
            assert!(text.parse::<Prefix>().is_err(), "{text}");
        }
        let prefix: Prefix = "2001:db8::/32".parse().unwrap();
        assert_eq!(prefix.to_string(), "2001:db8::/32");
    }
}
