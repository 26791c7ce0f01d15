//! The state of one end of a tunnel: addresses and routes of both sides (RFC 9484 §4.7).

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr};

use courser_base::Side;

use super::capsule::{AssignedAddress, Capsule, CapsuleError, RequestedAddress};
use super::limits::REQUEST_IDS;
use super::packet::Header;
use super::range::Routes;
use crate::prefix::Prefix;

/// One end of a tunnel: the addresses and routes that it has, and those that it has given.
///
/// Each end may send packets from the addresses that the other has assigned to it, to the ranges that the other has
/// advertised. Capsules replace each other as a whole.
#[derive(Clone, Debug)]
pub struct End {
    pub(super) side: Side,
    /// The addresses of this end.
    pub(super) assigned: Vec<Prefix>,
    /// Those of them that it uses: all, unless it has chosen.
    pub(super) own: Vec<Prefix>,
    chosen: Option<Vec<Prefix>>,
    /// The destinations of packets of this end.
    pub(super) routes: Routes,
    /// The addresses of the other end.
    pub(super) given: Vec<AssignedAddress>,
    /// The destinations of packets of the other end.
    pub(super) advertised: Routes,
    pub(super) is_router: bool,
    /// The addresses of the router at this end, of IPv4 and IPv6.
    routers: [Option<IpAddr>; 2],
    ignores_peer: bool,
    /// Request IDs of the other end.
    used: HashSet<u64>,
    next_request: u64,
    /// True once an assignment has answered a request.
    was_answered: bool,
    generation: u64,
}

/// The effect of a capsule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// The addresses of this end have changed, or were repeated.
    Assigned,
    /// The routes of this end have changed, or were repeated.
    Routes,
    /// The other end wants addresses. Each has to be answered with [`End::assign`].
    Requested(Vec<RequestedAddress>),
}

impl End {
    /// Creates an end without addresses and routes. A server lowers the hop limit of packets that it sends.
    pub fn new(side: Side) -> Self {
        Self {
            side,
            assigned: Vec::new(),
            own: Vec::new(),
            chosen: None,
            routes: Routes::default(),
            given: Vec::new(),
            advertised: Routes::default(),
            is_router: matches!(side, Side::Server),
            routers: [None; 2],
            ignores_peer: false,
            used: HashSet::new(),
            next_request: 1,
            was_answered: false,
            generation: 0,
        }
    }

    /// Sets whether packets of other hosts are sent, whose hop limit is lowered (RFC 9484 §7.1).
    #[must_use]
    pub const fn forwarding(mut self, is_router: bool) -> Self {
        self.is_router = is_router;
        self
    }

    /// Sets the addresses from which ICMP errors come. By default the first address of this end, or 192.0.0.8 (RFC 7600
    /// §4.8).
    #[must_use]
    pub const fn routers(mut self, ipv4: Option<IpAddr>, ipv6: Option<IpAddr>) -> Self {
        self.routers = [ipv4, ipv6];
        self
    }

    /// Ignores the addresses that the other end assigns and the ranges that it advertises, as a proxy does with its clients:
    /// a client could otherwise assign the addresses to the proxy that it wants to reach.
    #[must_use]
    pub const fn ignoring_peer(mut self) -> Self {
        self.ignores_peer = true;
        self
    }

    /// Uses only these addresses from now on, as far as they are assigned: single ones of an assigned prefix, for a host
    /// without a network behind it. Packets to the others would reach addresses that the host has for other networks.
    pub fn choose(&mut self, addresses: &[Prefix]) {
        self.chosen = Some(addresses.to_vec());
        self.use_chosen();
    }

    fn use_chosen(&mut self) {
        let assigned = &self.assigned;
        let is_assigned = |it: &&Prefix| {
            let mut prefixes = assigned.iter();
            prefixes.any(|prefix| prefix.bits() <= it.bits() && prefix.covers(it.first()))
        };
        self.own = match &self.chosen {
            Some(chosen) => chosen.iter().filter(is_assigned).copied().collect(),
            None => assigned.clone(),
        };
        self.generation += 1;
    }

    /// Returns the addresses of this end, as the other end has assigned them. Those that no host can have are left out.
    pub fn assigned(&self) -> &[Prefix] {
        &self.assigned
    }

    /// Returns the destinations of packets of this end.
    pub const fn routes(&self) -> &Routes {
        &self.routes
    }

    /// Returns the addresses of the other end.
    pub fn given(&self) -> &[AssignedAddress] {
        &self.given
    }

    /// Returns the destinations of packets of the other end.
    pub const fn advertised(&self) -> &Routes {
        &self.advertised
    }

    /// Returns a number that is another one after each change of addresses or routes.
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns true if this end has requested no address, or an assignment has answered a request.
    pub const fn is_answered(&self) -> bool {
        self.next_request == 1 || self.was_answered
    }

    /// Returns true if either end uses an address of IPv6.
    pub fn has_ipv6(&self) -> bool {
        let given = self.given.iter().map(|entry| &entry.prefix);
        self.own.iter().chain(given).any(|prefix| !prefix.is_ipv4())
    }

    /// Returns the address of the router at this end, for ICMP errors.
    pub fn router(&self, is_ipv4: bool) -> Option<IpAddr> {
        let own = || {
            let mut prefixes = self.own.iter();
            let prefix = prefixes.find(|prefix| prefix.is_ipv4() == is_ipv4);
            prefix.map(Prefix::first)
        };
        let known = self.routers[usize::from(!is_ipv4)].or_else(own);
        known.or(is_ipv4.then_some(DUMMY))
    }

    /// Returns the source of an ICMP error about a packet that the host at this end has sent.
    ///
    /// Without a router it is the destination of a packet of IPv4: Linux accepts no packet of IPv4 with one of its own
    /// addresses as the source, and with filters of sources only what it would answer through the tunnel.
    pub fn router_here(&self, packet: &[u8]) -> Option<IpAddr> {
        let destination = Header::parse(packet).ok()?.destination;
        match (self.routers, destination) {
            ([None, _], IpAddr::V4(_)) => Some(destination),
            _ => self.router(destination.is_ipv4()),
        }
    }

    /// Requests addresses, each with an ID of its own.
    pub fn request(&mut self, addresses: &[Prefix]) -> Capsule {
        let request = |prefix: &Prefix| {
            let request = self.next_request;
            self.next_request += 1;
            RequestedAddress {
                request,
                prefix: *prefix,
            }
        };
        Capsule::AddressRequest(addresses.iter().map(request).collect())
    }

    /// Sets all addresses of the other end, and returns the capsule that assigns them. `refused` are requests without
    /// an address, which are answered once.
    pub fn assign(&mut self, given: Vec<AssignedAddress>, refused: &[RequestedAddress]) -> Capsule {
        self.given = given;
        self.generation += 1;
        let refusals = refused.iter().map(|wanted| AssignedAddress {
            request: wanted.request,
            prefix: match wanted.prefix.is_ipv4() {
                true => Prefix::NEW_IPV4,
                false => Prefix::NEW_IPV6,
            },
        });
        Capsule::AddressAssign(self.given.iter().copied().chain(refusals).collect())
    }

    /// Sets the destinations of packets of the other end, and returns the capsule that advertises them.
    pub fn advertise(&mut self, routes: Routes) -> Capsule {
        self.advertised = routes.clone();
        self.generation += 1;
        Capsule::RouteAdvertisement(routes)
    }

    /// Acts on a capsule of the other end.
    ///
    /// # Errors
    /// Returns an error if the stream has to be reset: a request ID was used before, or there were too many.
    pub fn on_capsule(&mut self, capsule: Capsule) -> Result<Event, CapsuleError> {
        match capsule {
            Capsule::AddressAssign(_) if self.ignores_peer => Ok(Event::Assigned),
            Capsule::AddressAssign(entries) => {
                // Refusals are the unspecified addresses.
                let prefixes = entries.iter().map(|entry| entry.prefix);
                self.assigned = prefixes.filter(is_of_hosts).collect();
                self.was_answered |= entries.iter().any(|entry| entry.request != 0);
                self.use_chosen();
                Ok(Event::Assigned)
            }
            Capsule::AddressRequest(wanted) => {
                for entry in &wanted {
                    if self.used.len() >= REQUEST_IDS {
                        return Err(CapsuleError::TooMany(self.used.len() + 1));
                    }
                    if !self.used.insert(entry.request) {
                        return Err(CapsuleError::UsedRequest(entry.request));
                    }
                }
                Ok(Event::Requested(wanted))
            }
            Capsule::RouteAdvertisement(_) if self.ignores_peer => Ok(Event::Routes),
            Capsule::RouteAdvertisement(routes) => {
                self.routes = routes;
                self.generation += 1;
                Ok(Event::Routes)
            }
        }
    }
}

impl AssignedAddress {
    /// Returns an assignment that answers no request.
    pub const fn unasked(prefix: Prefix) -> Self {
        Self { request: 0, prefix }
    }
}

/// Returns true if all addresses of a prefix can be those of hosts that packets are forwarded to.
fn is_of_hosts(prefix: &Prefix) -> bool {
    let overlaps = |other: &Prefix| other.covers(prefix.first()) || prefix.covers(other.first());
    !NO_HOSTS.iter().any(overlaps)
}

/// Prefixes without addresses of hosts: unspecified, loopback, link-local, IPv4-mapped, groups and what is behind them.
const NO_HOSTS: [Prefix; 8] = [
    Prefix::v4([0, 0, 0, 0], 8),
    Prefix::v4([127, 0, 0, 0], 8),
    Prefix::v4([169, 254, 0, 0], 16),
    Prefix::v4([224, 0, 0, 0], 3),
    Prefix::v6([0, 0, 0, 0, 0, 0, 0, 0], 127),
    Prefix::v6([0, 0, 0, 0, 0, 0xffff, 0, 0], 96),
    Prefix::v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10),
    Prefix::v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8),
];

/// The address of routers without one (RFC 7600 §4.8).
const DUMMY: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 0, 8));

#[cfg(test)]
mod tests;
