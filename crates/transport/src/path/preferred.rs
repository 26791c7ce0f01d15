//! The address that a server prefers. RFC 9000 §9.6, §21.5.3.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use courser_base::{ScopedIp, canonical};
use courser_wire::PreferredAddress;

/// Returns the address to move to, of the family of `current`, the server's address in the
/// handshake. `None` if there is none, or one that a server on the network of `current` has no
/// reason to prefer: it may be an attempt to have the client send to another host.
pub(crate) fn preferred(current: SocketAddr, offered: &PreferredAddress) -> Option<SocketAddr> {
    let current = canonical(current);
    let address: SocketAddr = match current.ip() {
        IpAddr::V4(_) => offered.ipv4?.into(),
        IpAddr::V6(_) => offered.ipv6?.into(),
    };
    let is_scoped_alike = Scope::of(address.ip()) >= Scope::of(current.ip());
    let is_usable = address.port() != 0 && is_host(address.ip()) && is_scoped_alike;
    // The parameter has no zone. A link-local address is on the link on which the server was reached.
    let address = ScopedIp::in_zone_of(address.ip(), current).with_port(address.port());
    (is_usable && address != current).then_some(address)
}

/// The part of the network in which an address is valid, the smallest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Scope {
    /// This machine.
    Host,
    /// One link.
    Link,
    /// One site.
    Site,
    /// The whole Internet.
    Global,
}

impl Scope {
    fn of(ip: IpAddr) -> Self {
        match ip.to_canonical() {
            ip if ip.is_loopback() => Self::Host,
            IpAddr::V4(ip) if ip.is_link_local() => Self::Link,
            IpAddr::V4(ip) if ip.is_private() || is_shared(ip) => Self::Site,
            IpAddr::V6(ip) if ip.is_unicast_link_local() => Self::Link,
            IpAddr::V6(ip) if ip.is_unique_local() => Self::Site,
            IpAddr::V4(_) | IpAddr::V6(_) => Self::Global,
        }
    }
}

/// Returns true for the addresses between the customers of a provider and its NAT (RFC 6598).
fn is_shared(ip: Ipv4Addr) -> bool {
    let [first, second, ..] = ip.octets();
    first == 100 && second & 0xc0 == 64
}

/// Returns true for an address that a single host can have.
fn is_host(ip: IpAddr) -> bool {
    let is_broadcast = ip == IpAddr::V4(Ipv4Addr::BROADCAST);
    let is_of_v4 = matches!(ip, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some());
    !ip.is_unspecified() && !ip.is_multicast() && !is_broadcast && !is_of_v4
}

#[cfg(test)]
mod tests {
    use courser_wire::ConnectionId;

    use super::*;

    fn offered(ipv4: Option<&str>, ipv6: Option<&str>) -> PreferredAddress {
        PreferredAddress {
            ipv4: ipv4.map(|address| address.parse().expect("an address")),
            ipv6: ipv6.map(|address| address.parse().expect("an address")),
            id: ConnectionId::new(&[1; 8]).expect("eight bytes"),
            reset_token: [1; 16],
        }
    }

    fn from(current: &str, ipv4: Option<&str>, ipv6: Option<&str>) -> Option<String> {
        let current = current.parse().expect("an address");
        preferred(current, &offered(ipv4, ipv6)).map(|it| it.to_string())
    }

    #[test]
    fn the_address_has_the_family_in_use() {
        let (v4, v6) = (Some("198.51.100.1:443"), Some("[2001:db8::7]:443"));
        let chosen = from("192.0.2.1:443", v4, v6);
        assert_eq!(chosen.as_deref(), v4);
        assert_eq!(from("[::ffff:192.0.2.1]:443", v4, v6).as_deref(), v4);
        assert_eq!(from("[2001:db8::1]:443", v4, v6).as_deref(), v6);
        assert_eq!(from("192.0.2.1:443", None, v6), None);
        assert_eq!(from("[2001:db8::1]:443", v4, None), None);
    }

    /// The parameter has no zone, and a link-local address means nothing without one.
    #[test]
    fn a_link_local_address_is_on_the_link_of_the_server() {
        let offered = Some("[fe80::7]:443");
        let chosen = from("[fe80::1%3]:443", None, offered);
        assert_eq!(chosen.as_deref(), Some("[fe80::7%3]:443"));
        let same = from("[fe80::7%3]:443", None, offered);
        assert_eq!(same, None, "it is there");
        let global = Some("[2001:db8::7]:443");
        assert_eq!(from("[fe80::1%3]:443", None, global).as_deref(), global);
    }

    #[test]
    fn impossible_addresses_are_not_used() {
        for address in [
            "198.51.100.1:0",
            "0.0.0.0:443",
            "224.0.0.1:443",
            "255.255.255.255:443",
        ] {
            assert_eq!(
                from("192.0.2.1:443", Some(address), None),
                None,
                "{address}"
            );
        }
        for address in ["[ff02::1]:443", "[::]:443", "[::ffff:192.0.2.9]:443"] {
            assert_eq!(
                from("[2001:db8::1]:443", None, Some(address)),
                None,
                "{address}"
            );
        }
        let same = Some("192.0.2.1:443");
        assert_eq!(from("192.0.2.1:443", same, None), None, "it is there");
    }

    /// Attack A57: a server on the Internet sends the client to its own network.
    #[test]
    fn a_distant_server_prefers_no_address_nearby() {
        let near = [
            "127.0.0.1:80",
            "169.254.1.1:80",
            "10.0.0.1:80",
            "100.64.0.1:80",
        ];
        for address in near {
            assert_eq!(
                from("192.0.2.1:443", Some(address), None),
                None,
                "{address}"
            );
        }
        for address in ["[::1]:80", "[fe80::1]:80", "[fd00::1]:80"] {
            assert_eq!(
                from("[2001:db8::1]:443", None, Some(address)),
                None,
                "{address}"
            );
        }
        let (site, global) = (Some("10.0.0.9:443"), Some("192.0.2.9:443"));
        assert_eq!(from("10.0.0.1:443", site, None).as_deref(), site);
        assert_eq!(from("10.0.0.1:443", global, None).as_deref(), global);
        assert_eq!(
            from("127.0.0.1:443", Some("127.0.0.2:443"), None).as_deref(),
            Some("127.0.0.2:443")
        );
    }
}
