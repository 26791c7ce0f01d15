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
    held: Mutex<Held>,
    core: OnceLock<Core>,
}

#[derive(Debug, Default)]
struct Held {
    entries: Vec<AssignedAddress>,
    /// True once the client has asked for addresses.
    was_asked: bool,
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
                held: Mutex::new(Held {
                    entries: found,
                    was_asked: false,
                }),
                core: OnceLock::new(),
            })
        })
    }

    /// Returns all addresses.
    pub(crate) fn entries(&self) -> Vec<AssignedAddress> {
        self.held.lock().entries.clone()
    }

    /// Sends packets for the addresses to the tunnel, once it exists.
    pub(crate) fn attach(&self, core: &Core) {
        let held = self.held.lock();
        if self.core.set(core.clone()).is_ok() {
            for entry in &held.entries {
                self.network.attach(entry.prefix.first(), core);
            }
        }
    }

    /// Answers one part of a request: one address of a version is enough for a tunnel. One that was assigned without a
    /// request is the answer to the first request of its version, or is exchanged for the one that the client wants.
    fn answer(&self, entries: &mut Vec<AssignedAddress>, wanted: &RequestedAddress) -> bool {
        let is_ipv4 = wanted.prefix.is_ipv4();
        let known = entries
            .iter_mut()
            .find(|entry| entry.prefix.is_ipv4() == is_ipv4);
        match known {
            Some(entry) if entry.request == 0 => {
                entry.request = wanted.request;
                if let Some(found) = self.allocate_wanted(wanted.prefix) {
                    self.release(entry.prefix);
                    entry.prefix = found;
                }
                true
            }
            Some(_) => false,
            None => {
                let request = wanted.request;
                let found = self
                    .allocate_wanted(wanted.prefix)
                    .or_else(|| self.allocate(is_ipv4));
                entries.extend(found.map(|prefix| AssignedAddress { request, prefix }));
                found.is_some()
            }
        }
    }

    fn allocate(&self, is_ipv4: bool) -> Option<Prefix> {
        if !self.versions[usize::from(!is_ipv4)] {
            return None;
        }
        let now = self.network.now();
        let mut pool = self.network.pool.lock();
        let found = pool.allocate(is_ipv4, &self.owner, now)?;
        drop(pool);
        Some(self.attached(found))
    }

    fn allocate_wanted(&self, wanted: Prefix) -> Option<Prefix> {
        let is_any = wanted.first().is_unspecified();
        if is_any || !self.versions[usize::from(!wanted.is_ipv4())] {
            return None;
        }
        let now = self.network.now();
        let mut pool = self.network.pool.lock();
        let found = pool.allocate_wanted(wanted, &self.owner, now)?;
        drop(pool);
        Some(self.attached(found))
    }

    /// Sends packets for a prefix to the tunnel, if it exists.
    fn attached(&self, prefix: Prefix) -> Prefix {
        if let Some(core) = self.core.get() {
            self.network.attach(prefix.first(), core);
        }
        prefix
    }

    fn release(&self, prefix: Prefix) {
        // Packets stop before the address rests.
        self.network.detach(prefix.first());
        let now = self.network.now();
        self.network.pool.lock().release(prefix, now);
    }
}

impl Addresses for Lease {
    fn on_request(
        &self,
        wanted: &[RequestedAddress],
    ) -> (Vec<AssignedAddress>, Vec<RequestedAddress>) {
        let mut held = self.held.lock();
        let Held { entries, was_asked } = &mut *held;
        let mut refused = Vec::new();
        for request in wanted {
            if !self.answer(entries, request) {
                refused.push(*request);
            }
        }
        if !std::mem::replace(was_asked, true) {
            // A client that asks has said what it wants: without IPv6, a narrow path is enough for it.
            entries.retain(|entry| {
                let is_wanted = entry.request != 0;
                if !is_wanted {
                    self.release(entry.prefix);
                }
                is_wanted
            });
        }
        (entries.clone(), refused)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        for entry in std::mem::take(&mut *self.held.lock()).entries {
            self.release(entry.prefix);
        }
    }
}
