//! The addresses of one tunnel of a proxy.

use std::sync::Arc;
use std::sync::OnceLock;

use courser_base::Mutex;
use courser_masque::Prefix;
use courser_masque::ip::{AssignedAddress, RequestedAddress};

use super::control::Addresses;
use super::core::Core;
use super::network::Network;

/// The addresses of one tunnel, which are given back when this is dropped.
pub(crate) struct Lease {
    network: Arc<Network>,
    /// The name of the client, which may have its addresses again.
    owner: Arc<str>,
    /// The versions that the scope of the tunnel allows, IPv4 and IPv6.
    versions: [bool; 2],
    entries: Mutex<Vec<AssignedAddress>>,
    core: OnceLock<Core>,
}

impl Lease {
    /// Takes an address of each version that the scope of a tunnel allows. `None` if there is none of any.
    pub(crate) fn take(
        network: Arc<Network>,
        owner: Arc<str>,
        versions: [bool; 2],
    ) -> Option<Arc<Self>> {
        let now = network.now();
        let mut pool = network.pool.lock();
        let allowed = [true, false].into_iter().zip(versions);
        let found: Vec<_> = allowed
            .filter(|(_, is_allowed)| *is_allowed)
            .filter_map(|(is_ipv4, _)| pool.allocate(is_ipv4, &owner, now))
            .map(AssignedAddress::unasked)
            .collect();
        drop(pool);
        (!found.is_empty()).then(|| {
            Arc::new(Self {
                network,
                owner,
                versions,
                entries: Mutex::new(found),
                core: OnceLock::new(),
            })
        })
    }

    /// Returns all addresses.
    pub(crate) fn entries(&self) -> Vec<AssignedAddress> {
        self.entries.lock().clone()
    }

    /// Sends packets for the addresses to the tunnel, once it exists.
    pub(crate) fn attach(&self, core: &Core) {
        let entries = self.entries.lock();
        if self.core.set(core.clone()).is_ok() {
            for entry in entries.iter() {
                self.network.attach(entry.prefix.first(), core);
            }
        }
    }

    /// Answers one part of a request. An address that was assigned without a request is the answer to the first request
    /// of its version, or is exchanged for the one that the client wants.
    fn answer(&self, entries: &mut [AssignedAddress], wanted: &RequestedAddress) -> bool {
        let is_ipv4 = wanted.prefix.is_ipv4();
        if !self.versions[usize::from(!is_ipv4)] {
            return false;
        }
        let is_spare =
            |entry: &&mut AssignedAddress| entry.request == 0 && entry.prefix.is_ipv4() == is_ipv4;
        let Some(spare) = entries.iter_mut().find(is_spare) else {
            return false; // One address of a version is enough for a tunnel.
        };
        spare.request = wanted.request;
        if !wanted.prefix.first().is_unspecified()
            && let Some(found) = self.exchange(spare.prefix, wanted.prefix)
        {
            spare.prefix = found;
        }
        true
    }

    /// Exchanges an address for one that the client wants, if nobody else has it.
    fn exchange(&self, old: Prefix, wanted: Prefix) -> Option<Prefix> {
        let now = self.network.now();
        let mut pool = self.network.pool.lock();
        let found = pool.allocate_wanted(wanted, &self.owner, now)?;
        pool.release(old, now);
        drop(pool);
        self.network.detach(old.first());
        if let Some(core) = self.core.get() {
            self.network.attach(found.first(), core);
        }
        Some(found)
    }
}

impl Addresses for Lease {
    fn on_request(
        &self,
        wanted: &[RequestedAddress],
    ) -> (Vec<AssignedAddress>, Vec<RequestedAddress>) {
        let mut entries = self.entries.lock();
        let mut refused = Vec::new();
        for request in wanted {
            if !self.answer(&mut entries, request) {
                refused.push(*request);
            }
        }
        (entries.clone(), refused)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let now = self.network.now();
        for entry in self.entries.lock().drain(..) {
            // Packets stop before the address rests.
            self.network.detach(entry.prefix.first());
            self.network.pool.lock().release(entry.prefix, now);
        }
    }
}
