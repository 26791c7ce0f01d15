//! The network of the system, as a plan wants it.

use std::net::IpAddr;

use courser::masque::{Prefix, Tun, TunError};
use courser_tun::network::{Action, Destination, LOCAL, MAIN, Network, NetworkError, Route, Rule};

use crate::dns::NameServers;
use crate::failure::Failure;
use crate::plan::{Plan, Surroundings};

/// What a tunnel has changed on the system. Rules and name servers are taken back when it is dropped; addresses and routes
/// end with the device.
pub(crate) struct System<'a> {
    tun: &'a Tun,
    network: Network,
    rules: Vec<Rule>,
    routes: Vec<Route>,
    dns: Option<(Vec<IpAddr>, NameServers)>,
    /// The addresses of the device.
    own: Vec<IpAddr>,
    /// The priority of the first rule.
    priority: u32,
}

impl<'a> System<'a> {
    /// Removes what tunnels have left that were killed.
    pub(crate) fn new(tun: &'a Tun) -> Result<Self, Failure> {
        let mut network = Network::open().map_err(refused)?;
        let priority = free_priority(&mut network).map_err(refused)?;
        Ok(Self {
            tun,
            network,
            rules: Vec::new(),
            routes: Vec::new(),
            dns: None,
            own: Vec::new(),
            priority,
        })
    }

    /// Changes the system to a plan.
    pub(crate) fn apply(&mut self, plan: &Plan) -> Result<(), Failure> {
        let tun = self.tun;
        tun.set_addresses(&plan.addresses).map_err(unusable)?;
        let hosts = plan.addresses.iter().map(|it| it.host().first());
        self.own = hosts.collect();
        tun.set_mtu(plan.mtu).map_err(unusable)?;
        tun.set_up().map_err(unusable)?;
        tun.set_routes(&plan.routes).map_err(unusable)?;
        self.set_table(&plan.captured)?;
        self.set_rules(rules(plan, self.table(), self.priority))?;
        self.set_dns(plan)
    }

    /// Sets again what other programs have removed of a plan. Returns true if something was missing.
    pub(crate) fn restore(&mut self, plan: &Plan) -> Result<bool, Failure> {
        let was_missing = self.tun.restore().map_err(unusable)?;
        let count = self.rules.len() + self.routes.len();
        // What cannot be listed is not known to be missing.
        if let Ok((rules, routes)) = self.present() {
            self.rules.retain(|rule| rules.contains(rule));
            self.routes.retain(|route| routes.contains(route));
        }
        if !was_missing && self.rules.len() + self.routes.len() == count {
            return Ok(false);
        }
        self.apply(plan)?;
        Ok(true)
    }

    /// Returns the rules of all tunnels, and the routes of the table of this one.
    fn present(&mut self) -> Result<(Vec<Rule>, Vec<Route>), NetworkError> {
        let (mut rules, mut routes) = (Vec::new(), Vec::new());
        let table = self.table();
        for is_ipv6 in [false, true] {
            // A system without IPv6 has no lists of it.
            let mut used = self.rules.iter().map(|rule| rule.to);
            if used.any(|to| to.address.is_ipv6() == is_ipv6) {
                rules.extend(self.network.rules(is_ipv6)?);
                routes.extend(self.network.routes(table, is_ipv6)?);
            }
        }
        Ok((rules, routes))
    }

    /// Returns true if another program has replaced the name servers.
    pub(crate) fn lost_name_servers(&self) -> bool {
        let set = self.dns.as_ref().map(|(_, set)| set);
        set.is_some_and(NameServers::are_replaced)
    }

    /// Returns the other networks of the system.
    pub(crate) fn surroundings(&mut self) -> Surroundings {
        let mut found = surroundings(&mut self.network, self.tun.index());
        // Old kernels list addresses of IPv6 as those of the loopback interface.
        found.taken.retain(|it| !self.own.contains(it));
        found
    }

    /// The table of this tunnel.
    fn table(&self) -> u32 {
        TABLES + self.tun.index()
    }

    fn set_table(&mut self, captured: &[Prefix]) -> Result<(), Failure> {
        let table = self.table();
        let wanted: Vec<_> = captured
            .iter()
            .map(|prefix| Route {
                table,
                ..Route::through(self.tun.index(), destination(prefix))
            })
            .collect();
        for route in &wanted {
            if !self.routes.contains(route) {
                self.network.add_route(route).map_err(refused)?;
                self.routes.push(*route);
            }
        }
        let gone = self.routes.extract_if(.., |route| !wanted.contains(route));
        for route in gone {
            self.network.remove_route(&route).map_err(refused)?;
        }
        Ok(())
    }

    /// New rules are added before old ones are removed, so that packets to the proxy never enter the tunnel.
    fn set_rules(&mut self, wanted: Vec<Rule>) -> Result<(), Failure> {
        for rule in &wanted {
            if !self.rules.contains(rule) {
                self.network.add_rule(rule).map_err(refused)?;
                self.rules.push(*rule);
            }
        }
        let gone = self.rules.extract_if(.., |rule| !wanted.contains(rule));
        for rule in gone {
            self.network.remove_rule(&rule).map_err(refused)?;
        }
        Ok(())
    }

    fn set_dns(&mut self, plan: &Plan) -> Result<(), Failure> {
        if self
            .dns
            .as_ref()
            .is_some_and(|(servers, _)| *servers == plan.dns)
        {
            return Ok(());
        }
        self.dns = None;
        if !plan.dns.is_empty() {
            let set = NameServers::set(&plan.dns, self.tun.name()).map_err(Failure::System)?;
            self.dns = Some((plan.dns.clone(), set));
        }
        Ok(())
    }
}

impl Drop for System<'_> {
    fn drop(&mut self) {
        // Those that lead into the tunnel first.
        for rule in self.rules.drain(..).rev() {
            let _ = self.network.remove_rule(&rule);
        }
        // They end with the device, unless that remains.
        for route in self.routes.drain(..) {
            let _ = self.network.remove_route(&route);
        }
    }
}

/// Returns the rules of a plan. The first ones lead to the proxy past the tunnel, or nowhere if there is no other way: its
/// packets must not enter the tunnel that they carry. For each destination, routes of the system that are more precise win.
fn rules(plan: &Plan, table: u32, priority: u32) -> Vec<Rule> {
    let mut rules = Vec::new();
    let mut add = |to, action| {
        let priority = priority + rules.len() as u32;
        rules.push(Rule {
            priority,
            to,
            action,
        });
    };
    let is_inside = |proxy: &&IpAddr| plan.captured.iter().any(|it| it.covers(**proxy));
    for proxy in plan.proxies.iter().filter(is_inside).take(MAX_PROXIES) {
        let to = Destination::single(*proxy);
        add(to, Action::Lookup(MAIN));
        add(to, Action::Unreachable);
    }
    let mut captured: Vec<_> = plan.captured.iter().map(destination).collect();
    captured.sort_by_key(|it| std::cmp::Reverse(it.length));
    for to in captured.into_iter().take(MAX_CAPTURED) {
        let suppress = to.length;
        add(
            to,
            Action::LookupLonger {
                table: MAIN,
                suppress,
            },
        );
        add(to, Action::Lookup(table));
    }
    rules
}

/// Returns the networks of the system without those of an interface. What is not known is left out.
pub(crate) fn surroundings(network: &mut Network, without: u32) -> Surroundings {
    let mut found = Surroundings::default();
    for is_ipv6 in [false, true] {
        let own = network.routes(LOCAL, is_ipv6).unwrap_or_default();
        let own = own.iter().filter(|route| route.interface != without);
        let own = own.map(|route| route.destination);
        let single = own.filter(|it| *it == Destination::single(it.address));
        found.taken.extend(single.map(|it| it.address));
        let routes = network.routes(MAIN, is_ipv6).unwrap_or_default();
        for route in routes.iter().filter(|it| it.interface != without) {
            let Destination { address, length } = route.destination;
            if let Some(gateway) = route.gateway {
                found.taken.insert(gateway);
            }
            let networks = match route.gateway {
                Some(_) => &mut found.routed,
                None => &mut found.connected,
            };
            if length > 0 {
                networks.extend(Prefix::new(address, length));
            }
        }
    }
    found
}

/// Returns the priority of the first rule of a new tunnel, and removes the rules of tunnels whose device is gone.
fn free_priority(network: &mut Network) -> Result<u32, NetworkError> {
    let mut used = Vec::new();
    for is_ipv6 in [false, true] {
        // A system without IPv6 has no rules of it.
        let rules = network.rules(is_ipv6).unwrap_or_default();
        let left = abandoned(&rules, |device| network.has_interface(device))?;
        for rule in rules {
            match left.contains(&block(&rule)) {
                true => network.remove_rule(&rule)?,
                false => used.push(block(&rule)),
            }
        }
    }
    let free = (0..MAX_TUNNELS).find(|it| !used.contains(it));
    Ok(FIRST_PRIORITY + free.unwrap_or(MAX_TUNNELS) * BLOCK)
}

/// Returns the blocks of rules that lead to devices which do not exist. Rules that lead to none may be the first ones of a
/// tunnel that another process sets up.
fn abandoned<E>(
    rules: &[Rule],
    mut exists: impl FnMut(u32) -> Result<bool, E>,
) -> Result<Vec<u32>, E> {
    let (mut left, mut alive) = (Vec::new(), Vec::new());
    for rule in rules {
        if let Action::Lookup(table) = rule.action
            && table > TABLES
        {
            match exists(table - TABLES)? {
                true => alive.push(block(rule)),
                false => left.push(block(rule)),
            }
        }
    }
    left.retain(|block| !alive.contains(block));
    Ok(left)
}

const fn block(rule: &Rule) -> u32 {
    rule.priority.saturating_sub(FIRST_PRIORITY) / BLOCK
}

fn destination(prefix: &Prefix) -> Destination {
    Destination::new(prefix.first(), prefix.bits())
}

pub(crate) fn refused(error: NetworkError) -> Failure {
    unusable(error.into())
}

pub(crate) fn unusable(error: TunError) -> Failure {
    match &error {
        TunError::Network(inner) if inner.is_permission() => Failure::System(format!(
            "{inner}: this process needs the capability CAP_NET_ADMIN"
        )),
        TunError::Network(inner) if inner.is_present() => Failure::System(format!(
            "{inner}: the system has one already; remove it, or leave this destination out"
        )),
        _ => Failure::System(error.to_string()),
    }
}

/// Tables of routes are numbered from here, by the number of the interface.
const TABLES: u32 = 5_200_000;

/// The priority of the first rule of the first tunnel: before those of the system, and behind those of Tailscale, whose
/// networks are more precise than everything.
const FIRST_PRIORITY: u32 = 5300;

/// Rules of a tunnel.
const BLOCK: u32 = 100;

/// Tunnels whose rules come before those of the system.
const MAX_TUNNELS: u32 = 200;

/// Addresses of the proxy that are kept out of the tunnel (K641).
pub(crate) const MAX_PROXIES: usize = 16;

/// Destinations with rules (K640), so that those of a tunnel fit into its block. The proxy may offer many that contain its
/// own address.
const MAX_CAPTURED: usize = 32;

const _: () = assert!(2 * (MAX_PROXIES + MAX_CAPTURED) <= BLOCK as usize);

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(captured: &[&str], proxies: &[&str]) -> Plan {
        Plan {
            device: "courser0".to_owned(),
            addresses: Vec::new(),
            mtu: 1350,
            routes: Vec::new(),
            captured: captured.iter().map(|it| it.parse().expect(it)).collect(),
            proxies: proxies.iter().map(|it| it.parse().expect(it)).collect(),
            dns: Vec::new(),
            warnings: Vec::new(),
        }
    }

    fn texts(plan: &Plan) -> Vec<String> {
        rules(plan, 77, 100)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn proxy_comes_first_and_everything_last() {
        let found = texts(&plan(
            &["0.0.0.0/0", "192.0.0.0/16", "::/0"],
            &["192.0.2.1", "198.51.100.1"],
        ));
        assert_eq!(
            found,
            [
                "100: to 192.0.2.1/32 lookup 254",
                "101: to 192.0.2.1/32 unreachable",
                "102: to 198.51.100.1/32 lookup 254",
                "103: to 198.51.100.1/32 unreachable",
                "104: to 192.0.0.0/16 lookup 254 suppress_prefixlength 16",
                "105: to 192.0.0.0/16 lookup 77",
                "106: to 0.0.0.0/0 lookup 254 suppress_prefixlength 0",
                "107: to 0.0.0.0/0 lookup 77",
                "108: to ::/0 lookup 254 suppress_prefixlength 0",
                "109: to ::/0 lookup 77",
            ]
        );
    }

    #[test]
    fn proxy_outside_of_the_destinations_needs_no_rule() {
        assert_eq!(texts(&plan(&["::/0"], &["192.0.2.1"])).len(), 2);
        assert!(texts(&plan(&[], &["192.0.2.1"])).is_empty());
    }

    #[test]
    fn rules_of_a_tunnel_that_is_being_set_up_are_not_taken_for_leftovers() {
        let all = plan(&["0.0.0.0/0"], &["192.0.2.1"]);
        let blocks = [0, 1, 2].map(|number| {
            let table = TABLES + 7 + number;
            rules(&all, table, FIRST_PRIORITY + number * BLOCK)
        });
        // The third tunnel has added its first two rules.
        let found: Vec<_> = [&blocks[0][..], &blocks[1], &blocks[2][..2]].concat();
        let left = abandoned(&found, |device| Ok::<_, ()>(device == 7));
        assert_eq!(left, Ok(vec![1]));
    }

    #[test]
    fn rules_of_a_tunnel_fit_into_its_block() {
        let many: Vec<String> = (0..200).map(|it| format!("{it}.0.0.0/8")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let proxies: Vec<String> = (0..50).map(|it| format!("10.0.0.{it}")).collect();
        let proxies: Vec<&str> = proxies.iter().map(String::as_str).collect();
        let found = rules(&plan(&many, &proxies), 77, 100);
        assert_eq!(found.len(), 2 * (MAX_PROXIES + MAX_CAPTURED));
    }
}
