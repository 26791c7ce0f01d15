//! Remembers networks that drop UDP, and servers that do not answer over it.
//!
//! If QUIC fails where TCP works, another attempt for every connection would cost a delay each time. So the
//! origin uses only TCP for a period that doubles with each failure. If several origins fail in a row without a
//! success, the network is the cause, and all origins use only TCP there. Networks are identified by the local
//! address; in another network QUIC is tried again.
//!
//! An alternative that fails while the origin is reachable is broken (RFC 7838 §2.4). It is avoided in the same
//! way without affecting QUIC to other addresses of the origin. Other origins that announce the same alternative
//! are not affected, because an origin may announce a server that has no certificate for it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use super::origin::Origin;

/// The remembered failures. Their number is limited: the entry that expires first is removed.
#[derive(Debug, Default)]
pub(super) struct UdpMemory {
    origins: HashMap<(IpAddr, Origin), BackOff>,
    /// Broken alternatives by local address, announcing origin, and `host:port`.
    alternatives: HashMap<(IpAddr, Origin, Box<str>), BackOff>,
    networks: HashMap<IpAddr, Network>,
}

#[derive(Clone, Copy, Debug)]
struct BackOff {
    failures: u32,
    until: Instant,
}

#[derive(Clone, Debug, Default)]
struct Network {
    /// Origins that failed since the last success.
    silent: Vec<Origin>,
    back_off: Option<BackOff>,
}

impl UdpMemory {
    /// Returns true if QUIC to an origin should be tried from a local address.
    pub(super) fn is_worth_trying(&self, now: Instant, local: IpAddr, origin: &Origin) -> bool {
        self.avoided_until(now, local, origin).is_none()
    }

    /// Returns the end of the period in which QUIC to an origin is not tried from a local address, if it is not
    /// over.
    pub(super) fn avoided_until(
        &self,
        now: Instant,
        local: IpAddr,
        origin: &Origin,
    ) -> Option<Instant> {
        let of_origin = self.origins.get(&(local, origin.clone()));
        let of_network = self.networks.get(&local);
        let of_network = of_network.and_then(|network| network.back_off.as_ref());
        let ends = of_origin.into_iter().chain(of_network);
        let until = ends.map(|back_off| back_off.until).max()?;
        (until > now).then_some(until)
    }

    /// Records that QUIC to an origin failed for a reason that is not in the network.
    pub(super) fn on_broken(&mut self, now: Instant, local: IpAddr, origin: &Origin) {
        let key = (local, origin.clone());
        let known = self.origins.get(&key).copied();
        evict_earliest(&mut self.origins, &key, |known| known.until);
        self.origins.insert(key, BackOff::after(known, now));
    }

    /// Records that QUIC failed where TCP worked.
    pub(super) fn on_failed(&mut self, now: Instant, local: IpAddr, origin: &Origin) {
        self.on_broken(now, local, origin);
        evict_earliest(&mut self.networks, &local, |network| {
            network.back_off.map_or(now, |back_off| back_off.until)
        });
        let network = self.networks.entry(local).or_default();
        if !network.silent.contains(origin) {
            network.silent.push(origin.clone());
        }
        if network.silent.len() >= SILENT_ORIGINS {
            network.silent.clear();
            network.back_off = Some(BackOff::after(network.back_off, now));
        }
    }

    /// Returns the end of the period in which an alternative is not tried, if it is not over.
    pub(super) fn alternative_avoided_until(
        &self,
        now: Instant,
        local: IpAddr,
        (origin, name): (&Origin, &str),
    ) -> Option<Instant> {
        let known = self.alternatives.get(&(local, origin.clone(), name.into()));
        known.map(|known| known.until).filter(|until| *until > now)
    }

    /// Records that an alternative failed where another connection to the origin worked.
    pub(super) fn on_alternative_failed(
        &mut self,
        now: Instant,
        local: IpAddr,
        (origin, name): (&Origin, &str),
    ) {
        let key = (local, origin.clone(), name.into());
        let known = self.alternatives.get(&key).copied();
        evict_earliest(&mut self.alternatives, &key, |known| known.until);
        self.alternatives.insert(key, BackOff::after(known, now));
    }

    /// Records that an alternative worked.
    pub(super) fn on_alternative_worked(&mut self, local: IpAddr, origin: &Origin, name: &str) {
        self.alternatives
            .remove(&(local, origin.clone(), name.into()));
    }

    /// Removes all entries, because another network may use the same local address.
    pub(super) fn on_network_changed(&mut self) {
        *self = Self::default();
    }

    /// Records that QUIC worked.
    pub(super) fn on_worked(&mut self, local: IpAddr, origin: &Origin) {
        self.origins.remove(&(local, origin.clone()));
        self.networks.remove(&local);
    }
}

impl BackOff {
    fn after(known: Option<Self>, now: Instant) -> Self {
        let failures = known.map_or(0, |known| known.failures);
        let wait = FIRST_WAIT.saturating_mul(1 << failures.min(MAX_DOUBLINGS));
        Self {
            failures: failures.saturating_add(1),
            until: now + wait.min(LONGEST_WAIT),
        }
    }
}

fn evict_earliest<K: Clone + Eq + std::hash::Hash, V>(
    map: &mut HashMap<K, V>,
    key: &K,
    until: impl Fn(&V) -> Instant,
) {
    if map.len() < MAX_ENTRIES || map.contains_key(key) {
        return;
    }
    let earliest = map.iter().min_by_key(|(_, value)| until(value));
    if let Some(earliest) = earliest.map(|(key, _)| key.clone()) {
        map.remove(&earliest);
    }
}

/// First period, after which HTTP/3 to a restarted server is tried again.
const FIRST_WAIT: Duration = Duration::from_secs(5 * 60);
/// Longest period, as in Chromium, because networks sometimes change without a change of address.
const LONGEST_WAIT: Duration = Duration::from_secs(48 * 3600);
/// Largest number of doublings: five minutes doubled ten times exceed two days.
const MAX_DOUBLINGS: u32 = 10;
/// Number of silent origins that indicate a firewall, because a single server may be down.
const SILENT_ORIGINS: usize = 3;
const MAX_ENTRIES: usize = 512;

#[cfg(test)]
mod tests;
