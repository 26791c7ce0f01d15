//! Sources: ranges of addresses that stand for one party.

use std::net::IpAddr;

/// The first bits of an address and their number: the range that one party is assumed to hold.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Source {
    bits: u128,
    length: u8,
}

impl Source {
    /// Returns the host of an address: an IPv4 address, or a /64 of IPv6.
    pub(super) fn host(address: IpAddr) -> Self {
        Self::of(address, 32, 64)
    }

    /// Returns the network of an address: a /24 of IPv4, or a /56 of IPv6, like a provider's
    /// customer who may use many addresses.
    pub(super) fn network(address: IpAddr) -> Self {
        Self::of(address, 24, 56)
    }

    fn of(address: IpAddr, v4_length: u8, v6_length: u8) -> Self {
        let (bits, length) = match address.to_canonical() {
            IpAddr::V4(v4) => (v4.to_ipv6_mapped().to_bits(), 96 + v4_length),
            IpAddr::V6(v6) => (v6.to_bits(), v6_length),
        };
        Self {
            bits: bits >> (128 - u32::from(length)),
            length,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> Source {
        Source::host(text.parse().expect("an address"))
    }

    fn network(text: &str) -> Source {
        Source::network(text.parse().expect("an address"))
    }

    #[test]
    fn hosts_are_addresses_of_ipv4_and_64_bits_of_ipv6() {
        assert_eq!(host("192.0.2.1"), host("::ffff:192.0.2.1"));
        assert_ne!(host("192.0.2.1"), host("192.0.2.2"));
        assert_eq!(host("2001:db8::1"), host("2001:db8::ffff:0:0:2"));
        assert_ne!(host("2001:db8::1"), host("2001:db8:0:1::1"));
    }

    #[test]
    fn networks_are_24_bits_of_ipv4_and_56_of_ipv6() {
        assert_eq!(network("192.0.2.1"), network("192.0.2.255"));
        assert_ne!(network("192.0.2.1"), network("192.0.3.1"));
        assert_eq!(network("2001:db8::1"), network("2001:db8:0:ff::1"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:100::1"));
        assert_ne!(network("0.0.0.1"), network("::1"));
    }
}
