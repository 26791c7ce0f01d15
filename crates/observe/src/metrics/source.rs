//! All that metrics are read from.

use std::sync::Arc;

use courser_base::Mutex;
use courser_quic::Endpoint;

use super::counts::Counts;
use super::endpoint;
use super::family::Family;

/// The counters of connections, and endpoints by their names. Clones have the same ones.
#[derive(Clone, Debug, Default)]
pub(super) struct Source(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    counts: Arc<Counts>,
    endpoints: Mutex<Vec<(String, Endpoint)>>,
}

impl Source {
    pub(super) fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.0.counts)
    }

    /// Adds an endpoint, or replaces the one of this name.
    pub(super) fn watch(&self, name: String, endpoint: &Endpoint) {
        let mut endpoints = self.0.endpoints.lock();
        endpoints.retain(|(known, _)| *known != name);
        endpoints.push((name, endpoint.clone()));
    }

    /// Removes the endpoint of this name. Returns false if there is none.
    pub(super) fn unwatch(&self, name: &str) -> bool {
        // The handle is dropped after the lock.
        let removed: Vec<_> = {
            let mut endpoints = self.0.endpoints.lock();
            endpoints
                .extract_if(.., |(known, _)| known == name)
                .collect()
        };
        !removed.is_empty()
    }

    pub(super) fn families(&self) -> Vec<Family> {
        let mut families = self.0.counts.families();
        let endpoints = self.0.endpoints.lock().clone();
        families.extend(endpoint::families(&endpoints));
        families
    }
}
