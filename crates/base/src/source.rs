//! Sources: ranges of addresses that limits treat as one sender.

use std::net::{IpAddr, Ipv6Addr};

use crate::ScopedIp;

/// A range of addresses that one sender is assumed to control. Limits on what one client may use count by
/// source. It consists of the first bits of an address, their number, and the zone of a link-local address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Source {
    bits: u128,
    length: u8,
    scope_id: u32,
}

impl Source {
    /// Returns the host of an address: an IPv4 address, or a /64 of IPv6, from which one host may choose
    /// any number of addresses (RFC 8981).
    ///
    /// A /64 within a site is a network of many hosts, like a private /24 of IPv4, so a unique local
    /// address (RFC 4193) is a host, and so is a link-local address in its zone.
    pub fn host(address: impl Into<ScopedIp>) -> Self {
        let address = address.into();
        let v6_length = match is_local(address) {
            true => 128,
            false => 64,
        };
        Self::of(address, 32, v6_length)
    }

    /// Returns the network of an address: a /24 of IPv4, or a /56 of IPv6, like a provider's
    /// customer who may use many addresses. Within a site it is a /64, and a zone is the whole link.
    pub fn network(address: impl Into<ScopedIp>) -> Self {
        let address = address.into();
        let v6_length = match is_local(address) {
            true => 64,
            false => 56,
        };
        Self::of(address, 24, v6_length)
    }

    /// Returns the site of an address: a /16 of IPv4 or a /48 of IPv6, which a hosting provider or tunnel
    /// broker gives to one customer.
    pub fn site(address: impl Into<ScopedIp>) -> Self {
        Self::of(address.into(), 16, 48)
    }

    /// Returns the allocation of an IPv6 address: the /32 that a registry gives to one provider. `None`
    /// for IPv4, whose providers have many small ranges.
    pub fn allocation(address: impl Into<ScopedIp>) -> Option<Self> {
        let address = address.into();
        let is_v6 = matches!(address.ip(), IpAddr::V6(_));
        is_v6.then(|| Self::of(address, 16, 32))
    }

    /// Returns all sources of an address, each with the multiple of what is left of a resource that it may
    /// hold.
    ///
    /// A host can hold three quarters of the resource, a network seven eighths, a site eleven twelfths and an
    /// allocation fifteen sixteenths. So none of them excludes another one.
    pub fn shares(address: impl Into<ScopedIp>) -> impl Iterator<Item = (Self, usize)> {
        let address = address.into();
        let allocation = Self::allocation(address).map(|it| (it, ALLOCATION_MULTIPLE));
        [
            (Self::host(address), HOST_MULTIPLE),
            (Self::network(address), NETWORK_MULTIPLE),
            (Self::site(address), SITE_MULTIPLE),
        ]
        .into_iter()
        .chain(allocation)
    }

    fn of(address: ScopedIp, v4_length: u8, v6_length: u8) -> Self {
        let (bits, length) = match address.ip() {
            IpAddr::V4(v4) => (v4.to_ipv6_mapped().to_bits(), 96 + v4_length),
            IpAddr::V6(v6) => (v6.to_bits(), v6_length),
        };
        Self {
            bits: bits >> (128 - u32::from(length)),
            length,
            scope_id: address.scope_id(),
        }
    }
}

/// The multiple of what is left of a resource that one host may hold.
const HOST_MULTIPLE: usize = 3;
/// The multiple for one network.
const NETWORK_MULTIPLE: usize = 7;
/// The multiple for one site.
const SITE_MULTIPLE: usize = 11;
/// The multiple for one allocation.
const ALLOCATION_MULTIPLE: usize = 15;

/// Returns true for addresses of a link or a site, where a /64 has many hosts.
fn is_local(address: ScopedIp) -> bool {
    let is_local = |v6: Ipv6Addr| v6.is_unicast_link_local() || v6.is_unique_local();
    matches!(address.ip(), IpAddr::V6(v6) if is_local(v6))
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect(text)
    }

    fn host(text: &str) -> Source {
        Source::host(address(text))
    }

    fn network(text: &str) -> Source {
        Source::network(address(text))
    }

    fn scoped(text: &str) -> SocketAddr {
        text.parse().expect(text)
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

    #[test]
    fn sites_are_16_bits_of_ipv4_and_48_of_ipv6() {
        let site = |text| Source::site(address(text));
        assert_eq!(site("192.0.2.1"), site("192.0.255.1"));
        assert_ne!(site("192.0.2.1"), site("192.1.2.1"));
        assert_eq!(site("2001:db8::1"), site("2001:db8:0:ff00::1"));
        assert_ne!(site("2001:db8::1"), site("2001:db8:1::1"));
    }

    #[test]
    fn allocations_are_32_bits_of_ipv6() {
        let allocation = |text| Source::allocation(address(text));
        assert_eq!(allocation("2001:db8::1"), allocation("2001:db8:ffff::1"));
        assert_ne!(allocation("2001:db8::1"), allocation("2001:db9::1"));
        assert_eq!(allocation("192.0.2.1"), None);
        assert_eq!(allocation("::ffff:192.0.2.1"), None);
    }

    #[test]
    fn larger_sources_have_larger_shares() {
        for (text, count) in [("192.0.2.1", 3), ("2001:db8::1", 4)] {
            let multiples: Vec<_> = Source::shares(address(text)).map(|it| it.1).collect();
            assert_eq!(multiples.len(), count);
            assert!(multiples.is_sorted(), "{multiples:?}");
        }
    }

    #[test]
    fn neighbours_on_a_link_are_hosts_of_one_network_for_each_zone() {
        let [one, neighbour, elsewhere] =
            ["[fe80::1%2]:1", "[fe80::2%2]:1", "[fe80::1%3]:1"].map(scoped);
        assert_eq!(Source::host(one), Source::host(scoped("[fe80::1%2]:9")));
        assert_ne!(Source::host(one), Source::host(neighbour));
        assert_ne!(Source::host(one), Source::host(elsewhere));
        assert_eq!(Source::network(one), Source::network(neighbour));
        assert_ne!(Source::network(one), Source::network(elsewhere));
    }

    #[test]
    fn unique_local_addresses_are_hosts_of_a_64_bit_network() {
        assert_ne!(host("fd12:3456:789a:1::1"), host("fd12:3456:789a:1::2"));
        let at = network("fd12:3456:789a:1::1");
        assert_eq!(at, network("fd12:3456:789a:1::2"));
        assert_ne!(at, network("fd12:3456:789a:2::1"));
    }
}
