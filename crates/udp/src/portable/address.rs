//! Addresses as users see them and as the socket wants them.
//!
//! A dual-stack socket speaks of IPv4 peers by IPv4-mapped IPv6 addresses (RFC 4291 §2.5.5.2).
//! Above this crate a peer has one address only, the IPv4 one: tables of peers, tokens and path
//! comparisons would otherwise see two.

use std::net::{IpAddr, SocketAddr, SocketAddrV6};

/// The address without mapping, and without the flow label, which is not part of it.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(_) => address,
        SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
            Some(v4) => SocketAddr::from((v4, v6.port())),
            None => SocketAddr::V6(SocketAddrV6::new(*v6.ip(), v6.port(), 0, v6.scope_id())),
        },
    }
}

/// The address as a socket of the given family wants it.
///
/// An IPv6 address stays as it is on an IPv4 socket; the kernel refuses it.
pub(crate) fn for_socket(address: SocketAddr, socket_is_ipv6: bool) -> SocketAddr {
    match canonical(address) {
        SocketAddr::V4(v4) if socket_is_ipv6 => {
            SocketAddr::from((v4.ip().to_ipv6_mapped(), v4.port()))
        }
        other => other,
    }
}

/// The source address, if it can serve for a datagram to `destination`.
pub(crate) fn usable_source(source: Option<IpAddr>, destination: SocketAddr) -> Option<IpAddr> {
    source
        .map(|ip| ip.to_canonical())
        .filter(|ip| ip.is_ipv4() == destination.is_ipv4() && !ip.is_unspecified())
}

#[cfg(test)]
mod tests;
