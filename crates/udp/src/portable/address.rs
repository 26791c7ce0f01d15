//! Conversion between the addresses of users and those of sockets.
//!
//! A dual-stack socket represents IPv4 peers by IPv4-mapped IPv6 addresses (RFC 4291 §2.5.5.2).
//! Above this crate a peer has only one address, the IPv4 one. Otherwise tables of peers, tokens
//! and path comparisons would see two.

use std::net::{IpAddr, SocketAddr};

pub(crate) use courser_base::canonical;

/// Returns the address in the form that a socket of the given family takes.
///
/// An IPv6 address stays unchanged for an IPv4 socket; the kernel refuses it.
pub(crate) fn for_socket(address: SocketAddr, socket_is_ipv6: bool) -> SocketAddr {
    match canonical(address) {
        SocketAddr::V4(v4) if socket_is_ipv6 => {
            SocketAddr::from((v4.ip().to_ipv6_mapped(), v4.port()))
        }
        other => other,
    }
}

/// Returns the source address if it can be used for a datagram to `destination`.
pub(crate) fn usable_source(source: Option<IpAddr>, destination: SocketAddr) -> Option<IpAddr> {
    source
        .map(|ip| ip.to_canonical())
        .filter(|ip| ip.is_ipv4() == destination.is_ipv4() && !ip.is_unspecified())
}

#[cfg(test)]
mod tests;
