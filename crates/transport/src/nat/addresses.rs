//! The addresses to which probes may be sent, whatever a peer asks for.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The addresses and networks of this machine, as far as the application has named them.
#[derive(Debug, Default)]
pub(super) struct OwnAddresses {
    offered: Vec<SocketAddr>,
    networks: Vec<(IpAddr, u8)>,
}

/// The reach of an address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Reach {
    /// It is valid everywhere.
    Global,
    /// It is valid in a private network.
    Private,
    /// It is valid in this machine.
    Loopback,
    /// It names no single machine beyond this link.
    Never,
}

impl OwnAddresses {
    pub(super) fn add(&mut self, address: SocketAddr) {
        self.offered.push(canonical(address));
    }

    pub(super) fn remove(&mut self, address: SocketAddr) {
        let address = canonical(address);
        self.offered.retain(|offered| *offered != address);
    }

    /// Adds a network, if there are not too many.
    pub(super) fn add_network(&mut self, network: IpAddr, prefix: u8) {
        let entry = (network.to_canonical(), prefix);
        if self.networks.len() < MAX_NETWORKS && !self.networks.contains(&entry) {
            self.networks.push(entry);
        }
    }

    /// Returns true if a probe to the address is of use and harms no bystander: it has the family of an address of ours,
    /// is not ours, and is global, or private or loopback like one of ours. Ports of system services are excluded,
    /// apart from 443.
    pub(super) fn may_probe(&self, target: SocketAddr) -> bool {
        let target = canonical(target);
        let port = target.port();
        let is_service = port < FIRST_USER_PORT && port != 443;
        if is_service || self.offered.contains(&target) {
            return false;
        }
        match reach(target.ip()) {
            Reach::Never => false,
            Reach::Loopback => self.offered.iter().any(|it| it.ip().is_loopback()),
            Reach::Private => self.is_near(target.ip()),
            Reach::Global => self
                .offered
                .iter()
                .any(|it| it.is_ipv4() == target.is_ipv4()),
        }
    }

    /// Returns the order in which targets are probed: those in a network of ours first.
    pub(super) fn rank(&self, target: SocketAddr) -> u8 {
        u8::from(!self.is_near(target.ip().to_canonical()))
    }

    /// Returns true if the address is in a network of ours. Unless the application has named networks of the family, a private
    /// address of ours is presumed to be in a network of the usual size.
    fn is_near(&self, ip: IpAddr) -> bool {
        let of_family = |network: &&(IpAddr, u8)| network.0.is_ipv4() == ip.is_ipv4();
        let mut named = self.networks.iter().filter(of_family).peekable();
        if named.peek().is_some() {
            return named.any(|(network, prefix)| is_in(ip, *network, *prefix));
        }
        let private = self.offered.iter().map(|it| it.ip());
        let mut private = private.filter(|own| reach(*own) == Reach::Private);
        private.any(|own| is_in(ip, own, if own.is_ipv4() { 24 } else { 64 }))
    }
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::from((address.ip().to_canonical(), address.port()))
}

fn is_in(ip: IpAddr, network: IpAddr, prefix: u8) -> bool {
    let same = |one: u128, other: u128, bits: u32| {
        let ignored = bits.saturating_sub(u32::from(prefix));
        one.checked_shr(ignored) == other.checked_shr(ignored)
    };
    match (ip, network) {
        (IpAddr::V4(ip), IpAddr::V4(network)) => {
            same(ip.to_bits().into(), network.to_bits().into(), 32)
        }
        (IpAddr::V6(ip), IpAddr::V6(network)) => same(ip.to_bits(), network.to_bits(), 128),
        _ => false,
    }
}

fn reach(ip: IpAddr) -> Reach {
    match ip {
        IpAddr::V4(ip) => reach_of_ipv4(ip),
        IpAddr::V6(ip) => reach_of_ipv6(ip),
    }
}

/// Special addresses by RFC 6890.
fn reach_of_ipv4(ip: Ipv4Addr) -> Reach {
    let [a, b, ..] = ip.octets();
    if ip.is_loopback() {
        Reach::Loopback
    } else if ip.is_link_local() || ip.is_multicast() || a == 0 || a >= 240 {
        Reach::Never
    } else if ip.is_private() || a == 100 && b & 0xc0 == 64 {
        Reach::Private
    } else {
        Reach::Global
    }
}

/// Special addresses by RFC 6890, and those in which an IPv4 address is embedded: translators pass them on.
fn reach_of_ipv6(ip: Ipv6Addr) -> Reach {
    let [a, b, ..] = ip.segments();
    let embedded = match (a, b) {
        // NAT64 (RFC 6052, RFC 8215) and IPv4-compatible addresses.
        (0x64, 0xff9b) => Some(low_bits(ip, 0)),
        (0, 0) if !ip.is_loopback() => Some(low_bits(ip, 0)),
        // 6to4 (RFC 3056).
        (0x2002, _) => Some(low_bits(ip, 80)),
        _ => None,
    };
    if ip.is_loopback() {
        return Reach::Loopback;
    }
    if let Some(ipv4) = embedded {
        return match reach_of_ipv4(ipv4) {
            Reach::Global if a != 0 => Reach::Global,
            _ => Reach::Never,
        };
    }
    match a {
        _ if ip.is_multicast() => Reach::Never,
        // Link-local, and site-local of old (RFC 3879).
        _ if a & 0xff80 == 0xfe80 => Reach::Never,
        // Discard-only (RFC 6666), and Teredo (RFC 4380), which reaches IPv4 hosts.
        0x100 => Reach::Never,
        0x2001 if b == 0 => Reach::Never,
        _ if a & 0xfe00 == 0xfc00 => Reach::Private,
        _ => Reach::Global,
    }
}

/// Returns 32 bits of an address as an IPv4 address, above the lowest `shift` bits.
fn low_bits(ip: Ipv6Addr, shift: u32) -> Ipv4Addr {
    let bits = (ip.to_bits() >> shift) & u128::from(u32::MAX);
    Ipv4Addr::from_bits(u32::try_from(bits).unwrap_or(0))
}

/// The first port that is not one of system services (RFC 6335 §6).
const FIRST_USER_PORT: u16 = 1024;

/// Networks of the machine that are remembered (limit K285).
const MAX_NETWORKS: usize = 16;

#[cfg(test)]
mod tests;
