//! The capacity of paths, stored for later connections (RFC 9959).

use courser_base::{ScopedIp, Time};
use courser_recovery::{SavedPath, initial_window};

use super::LossRecovery;
use super::path_recovery::PathRecovery;

impl LossRecovery {
    /// Starts from the capacity of an earlier connection to this address, if it is stored.
    pub(crate) fn recall_path(&mut self, now: Time, peer: ScopedIp) {
        let memory = self.config.path_memory.as_ref();
        if let Some(saved) = memory.and_then(|memory| memory.take(now, peer)) {
            let path = self.paths.active_mut();
            path.congestion.start_carefully(path.mtu, saved);
        }
    }

    /// Stores the capacity of the path in use when the connection ends.
    pub(crate) fn remember_path(&self, now: Time, peer: ScopedIp) {
        if let Some(memory) = &self.config.path_memory
            && let Some(path) = observe(self.paths.active())
        {
            memory.put(now, peer, path);
        }
    }
}

/// Returns how much a path delivers in a round trip. `None` if that is less than several initial windows,
/// which slow start reaches in two round trips anyway.
fn observe(path: &PathRecovery) -> Option<SavedPath> {
    let min_rtt = path.rtt.min();
    let rate = path
        .bandwidth
        .estimate()
        .filter(|_| path.rtt.has_sample())?;
    let window = rate.bytes_in(min_rtt);
    let is_large = window >= MIN_INITIAL_WINDOWS * initial_window(path.mtu);
    is_large.then_some(SavedPath { window, min_rtt })
}

/// The smallest capacity that is stored, in initial windows.
const MIN_INITIAL_WINDOWS: u64 = 4;
