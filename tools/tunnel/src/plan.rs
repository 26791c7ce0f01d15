//! What a tunnel changes on a system.

use std::collections::HashSet;
use std::fmt;
use std::net::IpAddr;

use courser::masque::{AddressRange, Prefix};

use crate::config::Wishes;

/// What a tunnel changes on a system. Its text is for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The name of the interface.
    pub device: String,
    /// The addresses of the interface.
    pub addresses: Vec<Prefix>,
    /// The MTU of the interface in bytes.
    pub mtu: usize,
    /// Destinations that get routes in the main table.
    pub routes: Vec<Prefix>,
    /// Destinations to which the proxy itself belongs, or everything: they get a table and rules of their own.
    pub captured: Vec<Prefix>,
    /// The addresses of the proxy, which are not reached through the tunnel.
    pub proxies: Vec<IpAddr>,
    /// Name servers.
    pub dns: Vec<IpAddr>,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// What is known about a tunnel.
pub(crate) struct Tunnel<'a> {
    pub(crate) device: &'a str,
    pub(crate) proxy: IpAddr,
    pub(crate) assigned: &'a [Prefix],
    pub(crate) offered: &'a [AddressRange],
    pub(crate) max_packet_size: usize,
    /// The system has IPv6.
    pub(crate) has_ipv6: bool,
    pub(crate) surroundings: &'a Surroundings,
}

/// The other networks of a system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Surroundings {
    /// Those that it is connected to.
    pub(crate) connected: Vec<Prefix>,
    /// Those that it reaches through routers, except for everything.
    pub(crate) routed: Vec<Prefix>,
    /// Its addresses, and those of its routers.
    pub(crate) taken: HashSet<IpAddr>,
}

impl Plan {
    pub(crate) fn new(tunnel: &Tunnel<'_>, wishes: &Wishes) -> Self {
        let mut warnings = Vec::new();
        let is_usable = |prefix: &&Prefix| tunnel.has_ipv6 || prefix.is_ipv4();
        let mut addresses: Vec<Prefix> =
            tunnel.assigned.iter().filter(is_usable).copied().collect();
        if addresses.len() < tunnel.assigned.len() {
            warnings.push("IPv6 is disabled on this system: only IPv4 uses the tunnel".to_owned());
        }
        addresses.retain(|prefix| {
            let address = prefix.host().first();
            let is_free =
                address != tunnel.proxy && !tunnel.surroundings.taken.contains(&address);
            if !is_free {
                warnings.push(format!(
                    "the address {address} is not used: this machine, one of its routers or the proxy has it"
                ));
            }
            is_free
        });
        let offered = Offered::new(tunnel.offered);
        let mut wanted = wanted(&offered, tunnel, wishes, &mut warnings);
        wanted.retain(|prefix| {
            let has_address = addresses.iter().any(|it| it.is_ipv4() == prefix.is_ipv4());
            if !has_address && !wishes.routes.is_empty() {
                warnings.push(format!(
                    "{prefix} is not routed: the proxy has given no address of its version of IP"
                ));
            }
            has_address
        });
        for prefix in &wanted {
            if !is_offered(prefix, tunnel.offered) {
                warnings.push(format!(
                    "the proxy does not offer all of {prefix}: it will refuse packets to the rest"
                ));
            }
        }
        if wishes.default_route {
            warnings.extend(leak(&wanted));
            warnings.extend(beside(tunnel.surroundings));
        }
        let dns = name_servers(&addresses, wishes, &mut warnings);
        for server in &dns {
            let server = Prefix::single(*server);
            if !wanted.iter().any(|it| it.covers(server.first())) {
                wanted.push(server);
            }
        }
        let (captured, routes) = wanted
            .into_iter()
            .partition(|it| it.bits() == 0 || it.covers(tunnel.proxy));
        // Packets of up to this size leave in capsules while the path carries less.
        let has_ipv6 = addresses.iter().any(|it| !it.is_ipv4());
        let least = if has_ipv6 { LEAST_IPV6 } else { 0 };
        let carried = tunnel.max_packet_size.max(least);
        Self {
            device: tunnel.device.to_owned(),
            mtu: wishes.mtu.map_or(carried, usize::from),
            addresses,
            routes,
            captured,
            proxies: vec![tunnel.proxy],
            dns,
            warnings,
        }
    }

    /// Keeps what a tunnel that is in use must not lose because the proxy takes addresses or routes back: packets would leave
    /// beside the tunnel. The proxy and the tunnel refuse them instead.
    pub(crate) fn hold(&mut self, before: &Self) {
        if self.addresses.is_empty() {
            let text =
                "the proxy has taken all addresses back: packets are refused until it assigns some";
            let warnings = vec![text.to_owned()];
            *self = Self {
                warnings,
                ..before.clone()
            };
            return;
        }
        for prefix in &before.captured {
            if prefix.bits() == 0 && !self.captured.contains(prefix) {
                self.captured.push(*prefix);
                self.warnings.push(format!(
                    "the proxy does not offer all of {prefix} any more: packets to the rest are refused"
                ));
            }
        }
    }
}

/// What a proxy offers.
struct Offered {
    /// The prefixes of the ranges, without repetitions for several protocols.
    prefixes: Vec<Prefix>,
    /// There are more than fit.
    has_more: bool,
    /// They are so much of IPv4 and IPv6 that they stand for everything, perhaps with exceptions.
    is_everything: [bool; 2],
}

impl Offered {
    fn new(ranges: &[AddressRange]) -> Self {
        let mut known = HashSet::new();
        let prefixes = ranges.iter().flat_map(AddressRange::prefixes);
        let new = prefixes.filter(|prefix| known.insert(*prefix));
        let mut prefixes: Vec<_> = new.take(MAX_ROUTES + 1).collect();
        let has_more = prefixes.len() > MAX_ROUTES;
        prefixes.truncate(MAX_ROUTES);
        let is_everything = [true, false].map(|is_ipv4| {
            let same = prefixes.iter().filter(|it| it.is_ipv4() == is_ipv4);
            let sizes = same.map(|it| 1_u64 << 32 >> it.bits().min(32));
            sizes.sum::<u64>() >= EVERYTHING
        });
        Self {
            prefixes,
            has_more,
            is_everything,
        }
    }

    fn is_of_everything(&self, prefix: &Prefix) -> bool {
        self.is_everything[usize::from(!prefix.is_ipv4())]
    }
}

fn wanted(
    offered: &Offered,
    tunnel: &Tunnel<'_>,
    wishes: &Wishes,
    warnings: &mut Vec<String>,
) -> Vec<Prefix> {
    let mut wanted = wishes.routes.clone();
    if !wishes.default_route && !wanted.is_empty() {
        return unique(wanted);
    }
    let prefixes = offered.prefixes.iter();
    // Everything that is offered, which is less than everything if the proxy says so.
    let chosen = prefixes.filter(|it| wishes.default_route || !offered.is_of_everything(it));
    let mut chosen: Vec<_> = chosen.copied().collect();
    if chosen.is_empty() && !offered.prefixes.is_empty() {
        let text = "nothing is routed into the tunnel: the proxy offers everything, which takes a wish: \
                    a default route, or routes";
        warnings.push(text.to_owned());
    } else if chosen.len() < offered.prefixes.len() {
        let version = if offered.is_everything[0] { 4 } else { 6 };
        warnings.push(format!(
            "IPv{version} is not routed: the proxy offers everything of it, which takes a wish"
        ));
    }
    if offered.has_more {
        warnings.push(format!(
            "the proxy offers more than {MAX_ROUTES} networks: the others are not routed"
        ));
    }
    for network in &tunnel.surroundings.connected {
        let is_inside = |it: &Prefix| it.bits() >= network.bits() && network.covers(it.first());
        let before = chosen.len();
        chosen.retain(|it| !is_inside(it));
        if chosen.len() < before {
            warnings.push(format!(
                "this machine is connected to {network}: networks inside of it that the proxy offers are not routed \
                 without a wish"
            ));
        }
    }
    wanted.extend(chosen);
    unique(wanted)
}

fn unique(mut prefixes: Vec<Prefix>) -> Vec<Prefix> {
    let mut known = HashSet::new();
    prefixes.retain(|prefix| known.insert(*prefix));
    prefixes
}

/// Returns the name servers that the tunnel reaches.
fn name_servers(addresses: &[Prefix], wishes: &Wishes, warnings: &mut Vec<String>) -> Vec<IpAddr> {
    if wishes.default_route && wishes.dns.is_empty() {
        let text = "names are resolved as before, perhaps beside the tunnel: no name servers were given for it";
        warnings.push(text.to_owned());
    }
    let mut servers = wishes.dns.clone();
    servers.retain(|server| {
        let is_reached = addresses.iter().any(|it| it.is_ipv4() == server.is_ipv4());
        if !is_reached {
            warnings.push(format!(
                "the name server {server} is not used: the proxy has given no address of its version of IP"
            ));
        }
        is_reached
    });
    servers
}

fn is_offered(prefix: &Prefix, ranges: &[AddressRange]) -> bool {
    ranges
        .iter()
        .any(|range| range.contains(prefix.first()) && range.contains(prefix.last()))
}

/// Returns a warning if only one version of IP has a default route.
fn leak(wanted: &[Prefix]) -> Option<String> {
    let has = |is_ipv4| {
        wanted
            .iter()
            .any(|it| it.bits() == 0 && it.is_ipv4() == is_ipv4)
    };
    match (has(true), has(false)) {
        (true, true) => None,
        (true, false) => {
            Some("IPv6 does not use the tunnel: the proxy does not offer it".to_owned())
        }
        (false, true) => {
            Some("IPv4 does not use the tunnel: the proxy does not offer it".to_owned())
        }
        (false, false) => {
            Some("the proxy offers no default route, but only what is listed here".to_owned())
        }
    }
}

/// Returns a warning about public addresses that the machine reaches in another way, which wins over a default route. Whoever
/// runs a network can say by DHCP that it has them.
fn beside(surroundings: &Surroundings) -> Option<String> {
    let all = surroundings.connected.iter().chain(&surroundings.routed);
    let public: Vec<_> = all.filter(|it| !is_private(it)).collect();
    let shown = public.iter().take(MAX_SHOWN).map(ToString::to_string);
    let shown: Vec<_> = shown.collect();
    let rest = match public.len().saturating_sub(MAX_SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!public.is_empty()).then(|| {
        format!(
            "packets to {}{rest} do not use the tunnel: this machine has other routes to these public addresses",
            shown.join(", ")
        )
    })
}

/// Returns true for addresses that the Internet has no route to.
pub(crate) fn is_private(prefix: &Prefix) -> bool {
    [
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "100.64.0.0/10",
        "169.254.0.0/16",
        "fc00::/7",
        "fe80::/10",
    ]
    .iter()
    .filter_map(|it| it.parse::<Prefix>().ok())
    .any(|private| private.bits() <= prefix.bits() && private.covers(prefix.first()))
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |addresses: &[IpAddr]| {
            let texts: Vec<_> = addresses.iter().map(ToString::to_string).collect();
            texts.join(", ")
        };
        let texts: Vec<_> = self.addresses.iter().map(shown).collect();
        write!(f, "device   {}, MTU {}", self.device, self.mtu)?;
        write!(f, "\naddress  {}", texts.join(", "))?;
        for route in &self.routes {
            write!(f, "\nroute    {}", shown(route))?;
        }
        for prefix in &self.captured {
            let what = match (prefix.bits(), prefix.is_ipv4()) {
                (0, true) => "everything of IPv4 without another route".to_owned(),
                (0, false) => "everything of IPv6 without another route".to_owned(),
                _ => shown(prefix),
            };
            let inside: Vec<_> = self
                .proxies
                .iter()
                .filter(|it| prefix.covers(**it))
                .copied()
                .collect();
            match inside.is_empty() {
                true => write!(f, "\nroute    {what}")?,
                false => write!(
                    f,
                    "\nroute    {what}, except for the proxy at {}",
                    list(&inside)
                )?,
            }
        }
        if !self.dns.is_empty() {
            write!(f, "\ndns      {}", list(&self.dns))?;
        }
        for warning in &self.warnings {
            write!(f, "\nwarning  {warning}")?;
        }
        Ok(())
    }
}

/// Returns a prefix, or an address without its length.
fn shown(prefix: &Prefix) -> String {
    match prefix.is_single() {
        true => prefix.first().to_string(),
        false => prefix.to_string(),
    }
}

/// Networks that are routed because the proxy offers them (K662). 256 ranges can make up 65 024.
const MAX_ROUTES: usize = 1024;

/// Networks that a warning lists.
const MAX_SHOWN: usize = 8;

/// A sixteenth of all addresses of IPv4, in addresses, and of IPv6, of which an eighth is in use. Private networks are a
/// hundredth.
const EVERYTHING: u64 = 1 << 28;

/// The smallest MTU of an interface with IPv6 (RFC 8200 §5).
const LEAST_IPV6: usize = 1280;

#[cfg(test)]
mod tests;
