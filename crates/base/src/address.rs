//! Addresses that keep their zone when they are taken apart, rebuilt and compared.
//!
//! An address such as `fe80::1` exists on every link. Only together with a zone, the index of an
//! interface, does it name a host (RFC 4007 §6). `SocketAddr::new(address.ip(), port)` loses the
//! zone, so the project's lints disallow that function. What has an address already uses
//! [`with_port`] or a [`ScopedIp`]; `SocketAddr::from((ip, port))` is for addresses without a zone.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// Returns the only form in which addresses are compared and kept in tables: without IPv4 mapping,
/// without a flow label, and with a zone only where an address needs one.
///
/// - A dual-stack socket represents IPv4 peers by IPv4-mapped IPv6 addresses (RFC 4291 §2.5.5.2).
/// - A flow label belongs to packets and not to a host (RFC 6437 §2). Received addresses do not have
///   the label with which they were sent to, so a path whose address has one would match no reply.
/// - Systems report the zone of link-local addresses only. One that a user gives with a global
///   address has no effect on sending, and would not be found in replies either.
#[inline]
pub fn canonical(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(_) => address,
        SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
            Some(v4) => SocketAddr::from((v4, v6.port())),
            None => {
                let scope_id = zone_of(*v6.ip(), v6.scope_id());
                SocketAddr::V6(SocketAddrV6::new(*v6.ip(), v6.port(), 0, scope_id))
            }
        },
    }
}

/// Returns the address with another port. All other parts stay, the flow label too.
pub const fn with_port(mut address: SocketAddr, port: u16) -> SocketAddr {
    address.set_port(port);
    address
}

/// Returns true if two addresses differ at most in their ports: the same IP address in the same zone.
pub fn is_same_host(one: SocketAddr, other: SocketAddr) -> bool {
    ScopedIp::of(one) == ScopedIp::of(other)
}

/// An IP address with its zone (RFC 4007 §6): a socket address without the port.
///
/// ```
/// use std::net::{IpAddr, SocketAddr};
///
/// use courser_base::ScopedIp;
///
/// let address: SocketAddr = "[fe80::1%3]:4433".parse()?;
/// let ip = ScopedIp::of(address);
/// assert_eq!(ip.to_string(), "fe80::1%3");
/// assert_eq!(ip.with_port(443).to_string(), "[fe80::1%3]:443");
/// assert_ne!(ip, ScopedIp::from(address.ip()));
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ScopedIp {
    ip: IpAddr,
    /// 0 for addresses without a zone.
    scope_id: u32,
}

impl ScopedIp {
    /// Returns the IP address of a socket address, with its zone.
    pub fn of(address: SocketAddr) -> Self {
        match address {
            SocketAddr::V4(v4) => Self::from(*v4.ip()),
            SocketAddr::V6(v6) => Self::new(*v6.ip(), v6.scope_id()),
        }
    }

    /// Returns an IPv6 address in the zone with this index. The zone has no effect on addresses that
    /// need none.
    pub const fn new(ip: Ipv6Addr, scope_id: u32) -> Self {
        Self {
            ip: IpAddr::V6(ip).to_canonical(),
            scope_id: zone_of(ip, scope_id),
        }
    }

    /// Returns a local address in the zone of a peer, or the reverse: a link-local address reaches only
    /// hosts of its own zone.
    pub fn in_zone_of(ip: IpAddr, other: SocketAddr) -> Self {
        match (ip, other) {
            (IpAddr::V6(ip), SocketAddr::V6(other)) => Self::new(ip, other.scope_id()),
            (ip, _) => Self::from(ip),
        }
    }

    /// Returns the IP address.
    pub const fn ip(self) -> IpAddr {
        self.ip
    }

    /// Returns the index of the zone, which is that of an interface, or 0 without a zone.
    pub const fn scope_id(self) -> u32 {
        self.scope_id
    }

    /// Returns the socket address with this port.
    pub fn with_port(self, port: u16) -> SocketAddr {
        match self.ip {
            IpAddr::V4(ip) => SocketAddr::from((ip, port)),
            IpAddr::V6(ip) => SocketAddr::V6(SocketAddrV6::new(ip, port, 0, self.scope_id)),
        }
    }

    /// Returns true for a link-local IPv6 address whose zone is not known, so that nothing can be sent
    /// to it.
    pub fn lacks_zone(self) -> bool {
        self.scope_id == 0
            && matches!(self.ip, IpAddr::V6(ip) if ip.is_unicast_link_local() || is_scoped_group(ip))
    }
}

/// Writes the address as RFC 4007 §11 does: `fe80::1%3`.
impl fmt::Display for ScopedIp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.scope_id {
            0 => self.ip.fmt(f),
            scope_id => f.pad(&format!("{}%{scope_id}", self.ip)),
        }
    }
}

impl From<IpAddr> for ScopedIp {
    fn from(ip: IpAddr) -> Self {
        Self {
            ip: ip.to_canonical(),
            scope_id: 0,
        }
    }
}

/// Takes the IP address and its zone, and leaves the port out.
impl From<SocketAddr> for ScopedIp {
    fn from(address: SocketAddr) -> Self {
        Self::of(address)
    }
}

impl From<Ipv4Addr> for ScopedIp {
    fn from(ip: Ipv4Addr) -> Self {
        Self::from(IpAddr::V4(ip))
    }
}

impl From<Ipv6Addr> for ScopedIp {
    fn from(ip: Ipv6Addr) -> Self {
        Self::from(IpAddr::V6(ip))
    }
}

/// Returns the zone if the address needs one, and 0 otherwise.
#[inline]
const fn zone_of(ip: Ipv6Addr, scope_id: u32) -> u32 {
    match scope_id {
        0 => 0,
        scope_id if ip.is_unicast_link_local() || is_scoped_group(ip) => scope_id,
        _ => 0,
    }
}

/// Returns true for groups within an interface or a link (RFC 4291 §2.7).
const fn is_scoped_group(ip: Ipv6Addr) -> bool {
    let [first, second, ..] = ip.octets();
    first == 0xff && matches!(second & 0x0f, 1 | 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().expect(text)
    }

    fn labelled(text: &str, label: u32) -> SocketAddr {
        match address(text) {
            SocketAddr::V6(mut v6) => {
                v6.set_flowinfo(label);
                v6.into()
            }
            v4 @ SocketAddr::V4(_) => v4,
        }
    }

    #[test]
    fn canonical_addresses_keep_the_zone_that_they_need() {
        for (given, kept) in [
            ("[fe80::1%3]:1", "[fe80::1%3]:1"),
            ("[ff02::1%3]:1", "[ff02::1%3]:1"),
            ("[2001:db8::1%3]:1", "[2001:db8::1]:1"),
            ("[::1%3]:1", "[::1]:1"),
            ("[fd00::1%3]:1", "[fd00::1]:1"),
            ("[ff05::1%3]:1", "[ff05::1]:1"),
            ("[::ffff:192.0.2.1]:1", "192.0.2.1:1"),
            ("192.0.2.1:1", "192.0.2.1:1"),
        ] {
            assert_eq!(canonical(address(given)), address(kept), "{given}");
            let ip = ScopedIp::of(address(given));
            assert_eq!(ip.with_port(1), address(kept), "{given}");
        }
    }

    #[test]
    fn flow_labels_do_not_distinguish_addresses() {
        let labelled = labelled("[fe80::1%3]:1", 0x12345);
        assert_ne!(labelled, address("[fe80::1%3]:1"));
        assert_eq!(canonical(labelled), address("[fe80::1%3]:1"));
        assert!(is_same_host(labelled, address("[fe80::1%3]:2")));
    }

    #[test]
    fn with_port_changes_only_the_port() {
        let moved = with_port(labelled("[fe80::1%3]:1", 0x12345), 2);
        assert_eq!(moved, labelled("[fe80::1%3]:2", 0x12345));
    }

    #[test]
    fn one_address_in_two_zones_is_two_hosts() {
        let (one, other) = (address("[fe80::1%3]:1"), address("[fe80::1%4]:1"));
        assert!(!is_same_host(one, other));
        assert_ne!(ScopedIp::of(one), ScopedIp::of(other));
        assert!(is_same_host(
            address("[::ffff:192.0.2.1]:1"),
            address("192.0.2.1:9")
        ));
    }

    #[test]
    fn local_addresses_are_in_the_zone_of_their_peer() {
        let zone_of = |ip: &str, peer| {
            let ip = ScopedIp::in_zone_of(ip.parse().expect("the address is valid"), address(peer));
            ip.to_string()
        };
        assert_eq!(zone_of("fe80::2", "[fe80::1%3]:1"), "fe80::2%3");
        assert_eq!(zone_of("2001:db8::2", "[fe80::1%3]:1"), "2001:db8::2");
        assert_eq!(zone_of("fe80::2", "[2001:db8::1]:1"), "fe80::2");
        assert_eq!(zone_of("192.0.2.2", "[fe80::1%3]:1"), "192.0.2.2");
    }

    #[test]
    fn link_local_addresses_need_a_zone() {
        let lacks = |text: &str| ScopedIp::of(address(text)).lacks_zone();
        assert!(lacks("[fe80::1]:1") && lacks("[ff02::1]:1"));
        for text in [
            "[fe80::1%3]:1",
            "[2001:db8::1]:1",
            "[::1]:1",
            "169.254.0.1:1",
        ] {
            assert!(!lacks(text), "{text}");
        }
    }

    #[test]
    fn zones_are_written_after_a_percent_sign() {
        assert_eq!(
            ScopedIp::of(address("[fe80::1%3]:1")).to_string(),
            "fe80::1%3"
        );
        assert_eq!(ScopedIp::of(address("[::1]:1")).to_string(), "::1");
        let ip = ScopedIp::of(address("[fe80::1%3]:1"));
        assert_eq!(format!("{ip:>10}|"), " fe80::1%3|");
    }
}
