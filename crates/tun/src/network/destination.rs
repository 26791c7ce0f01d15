//! Networks and families of addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netlink_packet_route::AddressFamily;

/// A network, of which a single address is the smallest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The first address.
    pub address: IpAddr,
    /// Bits that all addresses share, 0 to 32 or 128.
    pub length: u8,
}

impl Destination {
    /// Returns a network. Bits of the address behind the prefix are cleared.
    ///
    /// # Panics
    /// Panics if the length exceeds that of the address.
    pub fn new(address: IpAddr, length: u8) -> Self {
        let width = width(address);
        assert!(length <= width, "{length} bits of {width}");
        let rest = u32::from(width - length);
        let address = match address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(rest).unwrap_or(0);
                Ipv4Addr::from_bits(address.to_bits() & mask).into()
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(rest).unwrap_or(0);
                Ipv6Addr::from_bits(address.to_bits() & mask).into()
            }
        };
        Self { address, length }
    }

    /// Returns the network of one address.
    pub const fn single(address: IpAddr) -> Self {
        Self {
            address,
            length: width(address),
        }
    }

    /// Returns the network of all addresses of a family.
    pub const fn all(is_ipv6: bool) -> Self {
        Self {
            address: unspecified(is_ipv6),
            length: 0,
        }
    }

    /// Returns true if an address belongs to the network.
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv6() == self.address.is_ipv6()
            && Self::new(address, self.length).address == self.address
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

pub(super) const fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

pub(super) const fn unspecified(is_ipv6: bool) -> IpAddr {
    match is_ipv6 {
        true => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        false => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    }
}

const fn width(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}
