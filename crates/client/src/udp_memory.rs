//! A record of networks that drop UDP, and of servers that do not answer over it.
//!
//! If QUIC fails where TCP works, trying it again for every connection costs a delay each time and
//! gains nothing. So the origin uses only TCP for a period that doubles with each failure. If
//! several origins fail one after the other without a success between them, the network is the
//! cause, and all origins use only TCP there. A network is recognised by our local address in it:
//! in another network everything is tried afresh.
//!
//! An alternative that fails while the origin is reached elsewhere is broken (RFC 7838 §2.4). It is avoided
//! in the same way, and does not keep the origin from QUIC elsewhere. Other origins that announce it are not
//! affected: an origin may announce the server of another one, which fails for want of a certificate.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use super::origin::Origin;

/// The record. It is bounded: the entry that ends soonest is removed first.
#[derive(Debug, Default)]
pub(super) struct UdpMemory {
    origins: HashMap<(IpAddr, Origin), BackOff>,
    /// Broken alternatives, by the origin that announced them and `host:port`.
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
    /// Origins that have failed since the last success.
    silent: Vec<Origin>,
    back_off: Option<BackOff>,
}

impl UdpMemory {
    /// Returns whether QUIC is worth an attempt from a local address.
    pub(super) fn is_worth_trying(&self, now: Instant, local: IpAddr, origin: &Origin) -> bool {
        let is_over = |back_off: &BackOff| back_off.until <= now;
        let of_origin = self.origins.get(&(local, origin.clone()));
        let of_network = self.networks.get(&local);
        of_origin.is_none_or(is_over)
            && of_network
                .and_then(|network| network.back_off.as_ref())
                .is_none_or(is_over)
    }

    /// Records that QUIC failed where TCP worked.
    pub(super) fn on_failed(&mut self, now: Instant, local: IpAddr, origin: &Origin) {
        let key = (local, origin.clone());
        let known = self.origins.get(&key).copied();
        make_room(&mut self.origins, &key, |known| known.until);
        self.origins.insert(key, BackOff::after(known, now));
        make_room(&mut self.networks, &local, |network| {
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

    /// Returns whether an alternative of an origin is worth an attempt from a local address.
    pub(super) fn is_alternative_worth_trying(
        &self,
        now: Instant,
        local: IpAddr,
        (origin, name): (&Origin, &str),
    ) -> bool {
        let known = self.alternatives.get(&(local, origin.clone(), name.into()));
        known.is_none_or(|known| known.until <= now)
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
        make_room(&mut self.alternatives, &key, |known| known.until);
        self.alternatives.insert(key, BackOff::after(known, now));
    }

    /// Records that an alternative worked.
    pub(super) fn on_alternative_worked(&mut self, local: IpAddr, origin: &Origin, name: &str) {
        self.alternatives
            .remove(&(local, origin.clone(), name.into()));
    }

    /// Forgets everything: the network has changed, and may have the address of another one.
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

fn make_room<K: Clone + Eq + std::hash::Hash, V>(
    map: &mut HashMap<K, V>,
    key: &K,
    until: impl Fn(&V) -> Instant,
) {
    if map.len() < MAX_ENTRIES || map.contains_key(key) {
        return;
    }
    let soonest = map.iter().min_by_key(|(_, value)| until(value));
    if let Some(soonest) = soonest.map(|(key, _)| key.clone()) {
        map.remove(&soonest);
    }
}

/// The first period, after which a restarted server gets HTTP/3 back.
const FIRST_WAIT: Duration = Duration::from_secs(5 * 60);
/// The longest period, that of Chromium, because networks sometimes change without a change of address.
const LONGEST_WAIT: Duration = Duration::from_secs(48 * 3600);
/// Maximum of doublings: 5 minutes doubled ten times is longer than two days.
const MAX_DOUBLINGS: u32 = 10;
/// Number of silent origins that indicate a firewall: one server alone may be down.
const SILENT_ORIGINS: usize = 3;
const MAX_ENTRIES: usize = 512;

#[cfg(test)]
mod tests;
