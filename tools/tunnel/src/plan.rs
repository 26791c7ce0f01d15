//! What a tunnel changes on a system.

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
}

impl Plan {
    pub(crate) fn new(tunnel: &Tunnel<'_>, wishes: &Wishes) -> Self {
        let mut warnings = Vec::new();
        let is_usable = |prefix: &&Prefix| tunnel.has_ipv6 || prefix.is_ipv4();
        let addresses: Vec<Prefix> = tunnel.assigned.iter().filter(is_usable).copied().collect();
        if addresses.len() < tunnel.assigned.len() {
            warnings.push("IPv6 is disabled on this system: only IPv4 uses the tunnel".to_owned());
        }
        let offered = offered(tunnel.offered);
        let mut wanted = wanted(&offered, wishes, &mut warnings);
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
        }
        for server in &wishes.dns {
            let server = Prefix::single(*server);
            if !wanted.iter().any(|it| it.covers(server.first())) {
                wanted.push(server);
            }
        }
        let (captured, routes) = wanted
            .into_iter()
            .partition(|it| it.bits() == 0 || it.covers(tunnel.proxy));
        Self {
            device: tunnel.device.to_owned(),
            mtu: wishes.mtu.map_or(tunnel.max_packet_size, usize::from),
            addresses,
            routes,
            captured,
            proxies: vec![tunnel.proxy],
            dns: wishes.dns.clone(),
            warnings,
        }
    }
}

/// Returns the prefixes of ranges, without repetitions for several protocols.
fn offered(ranges: &[AddressRange]) -> Vec<Prefix> {
    let mut found: Vec<Prefix> = Vec::new();
    for prefix in ranges.iter().flat_map(AddressRange::prefixes) {
        if !found.contains(&prefix) {
            found.push(prefix);
        }
    }
    found
}

fn wanted(offered: &[Prefix], wishes: &Wishes, warnings: &mut Vec<String>) -> Vec<Prefix> {
    let mut wanted = wishes.routes.clone();
    if wishes.default_route {
        // Everything that is offered, which is less than everything if the proxy says so.
        wanted.extend(offered);
    } else if wanted.is_empty() {
        wanted.extend(offered.iter().filter(|it| it.bits() > 0));
        if wanted.is_empty() && !offered.is_empty() {
            let text = "nothing is routed into the tunnel: the proxy offers everything, which takes a wish: \
                        a default route, or routes";
            warnings.push(text.to_owned());
        }
    }
    let mut found: Vec<Prefix> = Vec::new();
    for prefix in wanted {
        if !found.contains(&prefix) {
            found.push(prefix);
        }
    }
    found
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

#[cfg(test)]
mod tests;
