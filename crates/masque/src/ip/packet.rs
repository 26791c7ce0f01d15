//! Headers of IP packets (RFC 791, RFC 8200).

/// The protocol number of ICMP.
pub const ICMP: u8 = 1;
/// The protocol number of ICMPv6.
pub const ICMPV6: u8 = 58;

/// Returns true for the protocol number of an extension header of IPv6 that has a length (RFC 8200 §4, and the registry
/// of IPv6 extension headers).
pub(crate) const fn is_extension(protocol: u8) -> bool {
    matches!(protocol, 0 | 43 | 44 | 51 | 60 | 135 | 139 | 140)
}
