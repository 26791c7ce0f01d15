//! Addresses that are not of the public internet, and IPv4 addresses inside of IPv6 addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::prefix::Prefix;

/// Returns the kind of an address that is not of the public internet, by the registries of special-purpose addresses
/// (RFC 6890). Canonical addresses only.
pub(crate) fn special_purpose(address: IpAddr) -> Option<&'static str> {
    let found = SPECIAL.iter().find(|(prefix, _)| prefix.contains(address));
    let kind = found.map(|(_, kind)| *kind);
    let is_public = address.is_ipv4() || GLOBAL.iter().any(|prefix| prefix.contains(address));
    kind.or((!is_public).then_some("an address outside of the public internet"))
}

/// Returns the IPv4 address to which packets for an IPv6 address may be translated or tunnelled. `nat64` are prefixes of
/// translators, with a length of [`NAT64_LENGTHS`].
pub(crate) fn embedded(address: Ipv6Addr, nat64: &[Prefix]) -> Option<Ipv4Addr> {
    let octets = address.octets();
    let v4 = |at: usize| Ipv4Addr::new(octets[at], octets[at + 1], octets[at + 2], octets[at + 3]);
    // The most precise prefix is the one that the translator has.
    let matching = nat64.iter().filter(|it| it.covers(address.into()));
    if let Some(prefix) = matching.max_by_key(|it| it.bits()) {
        return Some(translated(octets, prefix.bits()));
    }
    if SIX_TO_FOUR.contains(address.into()) {
        return Some(v4(2));
    }
    let is_compatible = IPV4_COMPATIBLE.contains(address.into())
        && ![Ipv6Addr::UNSPECIFIED, Ipv6Addr::LOCALHOST].contains(&address);
    let is_low = is_compatible || IPV4_TRANSLATED.contains(address.into());
    (is_low || NAT64.contains(address.into())).then(|| v4(12))
}

/// Returns the IPv4 address behind the prefix of a translator. Bits 64 to 71 are no part of it (RFC 6052 §2.2).
fn translated(octets: [u8; 16], prefix_bits: u8) -> Ipv4Addr {
    let behind = usize::from(prefix_bits / 8)..octets.len();
    let mut inner = behind.filter(|at| *at != 8).map(|at| octets[at]);
    let mut next = || inner.next().unwrap_or(0);
    Ipv4Addr::new(next(), next(), next(), next())
}

/// Lengths of the prefixes of translators in bits (RFC 6052 §2.2).
pub(crate) const NAT64_LENGTHS: [u8; 6] = [32, 40, 48, 56, 64, 96];

/// 6to4 (RFC 3056).
const SIX_TO_FOUR: Prefix = Prefix::v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16);
/// The prefix of translators that all know (RFC 6052 §2.1).
const NAT64: Prefix = Prefix::v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96);
/// IPv4-compatible addresses (RFC 4291 §2.5.5.1).
const IPV4_COMPATIBLE: Prefix = Prefix::v6([0, 0, 0, 0, 0, 0, 0, 0], 96);
/// IPv4-translated addresses (RFC 2765 §2.1).
const IPV4_TRANSLATED: Prefix = Prefix::v6([0, 0, 0, 0, 0xffff, 0, 0, 0], 96);

/// Prefixes of IPv6 addresses of the public internet: global unicast, of which all others are reserved (RFC 4291 §2.4,
/// and overlays use some of them), and those of public translators.
const GLOBAL: [Prefix; 2] = [Prefix::v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3), NAT64];

/// Prefixes outside of the public internet, more specific ones first.
const SPECIAL: &[(Prefix, &str)] = &[
    (Prefix::v4([0, 0, 0, 0], 8), "an unspecified address"),
    (Prefix::v4([10, 0, 0, 0], 8), "a private address"),
    (
        Prefix::v4([100, 64, 0, 0], 10),
        "a shared address of a carrier",
    ),
    (Prefix::v4([127, 0, 0, 0], 8), "a loopback address"),
    (Prefix::v4([169, 254, 0, 0], 16), "a link-local address"),
    (Prefix::v4([172, 16, 0, 0], 12), "a private address"),
    (
        Prefix::v4([192, 0, 0, 0], 24),
        "an address of protocol assignments",
    ),
    (
        Prefix::v4([192, 0, 2, 0], 24),
        "an address for documentation",
    ),
    (Prefix::v4([192, 31, 196, 0], 24), "an address of AS112"),
    (Prefix::v4([192, 52, 193, 0], 24), "an address of AMT"),
    (
        Prefix::v4([192, 88, 99, 0], 24),
        "an address of 6to4 relays",
    ),
    (Prefix::v4([192, 168, 0, 0], 16), "a private address"),
    (Prefix::v4([192, 175, 48, 0], 24), "an address of AS112"),
    (Prefix::v4([198, 18, 0, 0], 15), "an address for benchmarks"),
    (
        Prefix::v4([198, 51, 100, 0], 24),
        "an address for documentation",
    ),
    (
        Prefix::v4([203, 0, 113, 0], 24),
        "an address for documentation",
    ),
    (Prefix::v4([224, 0, 0, 0], 4), "a multicast address"),
    (
        Prefix::v4([255, 255, 255, 255], 32),
        "the broadcast address",
    ),
    (Prefix::v4([240, 0, 0, 0], 4), "a reserved address"),
    (
        Prefix::v6([0, 0, 0, 0, 0, 0, 0, 0], 128),
        "the unspecified address",
    ),
    (
        Prefix::v6([0, 0, 0, 0, 0, 0, 0, 1], 128),
        "the loopback address",
    ),
    // Local translators may send to private addresses in any form (RFC 8215).
    (
        Prefix::v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48),
        "an address of a local translator",
    ),
    (
        Prefix::v6([0x100, 0, 0, 0, 0, 0, 0, 0], 64),
        "an address that discards",
    ),
    // Teredo has the address of a client in other bits, protected by nothing.
    (
        Prefix::v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23),
        "an address of protocol assignments",
    ),
    (
        Prefix::v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32),
        "an address for documentation",
    ),
    (
        Prefix::v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
        "an address for documentation",
    ),
    (
        Prefix::v6([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16),
        "a segment identifier",
    ),
    (
        Prefix::v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7),
        "a unique local address",
    ),
    (
        Prefix::v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10),
        "a link-local address",
    ),
    (
        Prefix::v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10),
        "a site-local address",
    ),
    (
        Prefix::v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8),
        "a multicast address",
    ),
];
