//! Chooses the address of a server's preferred_address parameter. RFC 9000 §9.6, §21.5.3.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use courser_base::{ScopedIp, canonical};
use courser_wire::PreferredAddress;

/// Returns the address to move to, of the family of `current`, the server's address in the
/// handshake. Returns `None` if there is none, or if its scope is smaller than that of `current`,
/// because the server may try to make the client send to an uninvolved host.
pub(crate) fn preferred(current: SocketAddr, offered: &PreferredAddress) -> Option<SocketAddr> {
    let current = canonical(current);
    let address: SocketAddr = match current.ip() {
        IpAddr::V4(_) => offered.ipv4?.into(),
        IpAddr::V6(_) => offered.ipv6?.into(),
    };
    let has_wide_scope = Scope::of(address.ip()) >= Scope::of(current.ip());
    let is_usable = address.port() != 0 && is_host(address.ip()) && has_wide_scope;
    // The parameter has no zone. A link-local address is on the link on which the server was reached.
    let address = ScopedIp::in_zone_of(address.ip(), current).with_port(address.port());
    (is_usable && address != current).then_some(address)
}

/// The part of the network in which an address is valid, the smallest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Scope {
    /// Loopback addresses.
    Host,
    /// Link-local addresses.
    Link,
    /// Private, shared and unique local addresses.
    Site,
    /// All other addresses.
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
    fn preferred_address_has_the_family_in_use() {
        let (v4, v6) = (Some("198.51.100.1:443"), Some("[2001:db8::7]:443"));
        let chosen = from("192.0.2.1:443", v4, v6);
        assert_eq!(chosen.as_deref(), v4);
        assert_eq!(from("[::ffff:192.0.2.1]:443", v4, v6).as_deref(), v4);
        assert_eq!(from("[2001:db8::1]:443", v4, v6).as_deref(), v6);
        assert_eq!(from("192.0.2.1:443", None, v6), None);
        assert_eq!(from("[2001:db8::1]:443", v4, None), None);
    }

    /// The parameter has no zone, without which a link-local address is ambiguous.
    #[test]
    fn link_local_address_is_on_the_link_of_the_server() {
        let offered = Some("[fe80::7]:443");
        let chosen = from("[fe80::1%3]:443", None, offered);
        assert_eq!(chosen.as_deref(), Some("[fe80::7%3]:443"));
        let same = from("[fe80::7%3]:443", None, offered);
        assert_eq!(same, None, "it is the address in use");
        let global = Some("[2001:db8::7]:443");
        assert_eq!(from("[fe80::1%3]:443", None, global).as_deref(), global);
    }

    #[test]
    fn addresses_that_no_host_can_have_are_ignored() {
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
        assert_eq!(
            from("192.0.2.1:443", same, None),
            None,
            "it is the address in use"
        );
    }

    /// Attack A57: a server on the Internet makes the client send to hosts of its own network.
    #[test]
    fn address_of_a_smaller_scope_is_ignored() {
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
