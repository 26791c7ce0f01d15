//! Restrictions on alternatives, so that a server cannot direct its clients to services of other protocols or
//! into private networks.

use std::net::{IpAddr, SocketAddr};

/// Returns true for ports of other protocols, as blocked by browsers (Fetch Standard, "bad port").
pub(super) fn is_blocked(port: u16) -> bool {
    BLOCKED.binary_search(&port).is_ok()
}

/// Returns the allowed addresses of an alternative on another host. Private and loopback addresses are allowed
/// only if the origin has one itself.
pub(crate) fn allowed(others: Vec<SocketAddr>, origin: &[SocketAddr]) -> Vec<SocketAddr> {
    if origin.iter().any(is_internal) {
        return others;
    }
    let mut others = others;
    others.retain(|address| !is_internal(address));
    others
}

/// Returns true for addresses that mean different machines in different networks: loopback, private and
/// link-local addresses (RFC 6890), multicast groups and the unspecified address.
pub(crate) fn is_internal(address: &SocketAddr) -> bool {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => {
            let [first, second, ..] = ip.octets();
            ip.is_loopback()
                || ip.is_private()
                || ip.is_link_local()
                || ip.is_broadcast()
                || ip.is_multicast()
                || first == 0
                // Shared addresses of carrier-grade NAT (RFC 6598).
                || (first == 100 && second & 0xc0 == 64)
        }
        IpAddr::V6(ip) => {
            ip.is_loopback()
                || ip.is_unspecified()
                || ip.is_unique_local()
                || ip.is_unicast_link_local()
                || ip.is_multicast()
        }
    }
}

/// The blocked ports in ascending order.
const BLOCKED: [u16; 83] = [
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101,
    102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427,
    465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990,
    993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667,
    6668, 6669, 6679, 6697, 10080,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_other_protocols_are_blocked() {
        assert!(BLOCKED.is_sorted());
        for port in [0, 53, 123, 161, 389, 5060, 10_080] {
            assert!(is_blocked(port), "{port}");
        }
        for port in [80, 443, 4433, 8443, 65_535] {
            assert!(!is_blocked(port), "{port}");
        }
    }

    #[test]
    fn internal_addresses_need_an_internal_origin() {
        let at = |text: &str| SocketAddr::from((text.parse::<IpAddr>().expect(text), 443));
        let public = [at("203.0.113.1"), at("2001:db8::1")];
        for text in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.0.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fd00::1",
            "fe80::1",
            "ff02::1",
            "::ffff:10.0.0.1",
        ] {
            let mixed = vec![public[0], at(text), public[1]];
            assert_eq!(allowed(mixed.clone(), &public), public, "{text}");
            assert_eq!(allowed(mixed.clone(), &[at(text)]), mixed, "{text}");
            assert_eq!(allowed(mixed, &[]), public, "{text}");
        }
        for text in ["100.128.0.1", "172.32.0.1", "1.1.1.1", "2a00::1"] {
            assert_eq!(allowed(vec![at(text)], &public), [at(text)], "{text}");
        }
    }
}
