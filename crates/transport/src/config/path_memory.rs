//! The paths of earlier connections, for Careful Resume (RFC 9959).

use std::collections::BTreeMap;
use std::time::Duration;

use courser_base::{Mutex, ScopedIp, Time};
use courser_recovery::SavedPath;

/// Remembers the capacity of the paths to peers, so that later connections to the same address start
/// faster (Careful Resume, RFC 9959). Pass it in
/// [`TransportConfig::path_memory`](crate::TransportConfig::path_memory).
///
/// Connections write into the memory when they end, unless the peer broke a rule of QUIC, and read from
/// it when they start. An entry is used by one connection at a time, and for an hour. Several endpoints
/// can share a memory if their clocks have the same origin, which all endpoints of one runtime have.
///
/// The memory holds 1024 addresses (limit K178), and forgets the oldest.
#[derive(Debug, Default)]
pub struct PathMemory {
    paths: Mutex<BTreeMap<ScopedIp, Entry>>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    saved: Time,
    path: SavedPath,
}

impl PathMemory {
    /// Creates an empty memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of addresses in the memory.
    pub fn len(&self) -> usize {
        self.paths.lock().len()
    }

    /// Returns true if nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Remembers the path to an address, observed at `now`.
    pub fn put(&self, now: Time, peer: impl Into<ScopedIp>, path: SavedPath) {
        let peer = peer.into();
        let mut paths = self.paths.lock();
        let is_new = !paths.contains_key(&peer);
        if is_new && paths.len() >= MAX_PATHS {
            let oldest = paths.iter().min_by_key(|(_, entry)| entry.saved);
            if let Some(peer) = oldest.map(|(peer, _)| *peer) {
                paths.remove(&peer);
            }
        }
        paths.insert(peer, Entry { saved: now, path });
    }

    /// Removes and returns the path to an address, if it was observed in the hour before `now`.
    pub fn take(&self, now: Time, peer: impl Into<ScopedIp>) -> Option<SavedPath> {
        let entry = self.paths.lock().remove(&peer.into())?;
        (now.saturating_since(entry.saved) <= LIFETIME).then_some(entry.path)
    }
}

/// The maximum number of addresses in a memory (limit K178).
const MAX_PATHS: usize = 1024;
/// The time after which an observation expires.
const LIFETIME: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    const START: Time = Time::ZERO;

    fn path(window: u64) -> SavedPath {
        SavedPath {
            window,
            min_rtt: Duration::from_millis(50),
        }
    }

    fn peer(number: u32) -> IpAddr {
        IpAddr::from(number.to_be_bytes())
    }

    #[test]
    fn path_is_used_once() {
        let memory = PathMemory::new();
        memory.put(START, peer(1), path(7));
        assert_eq!(memory.take(START, peer(2)), None);
        assert_eq!(memory.take(START, peer(1)), Some(path(7)));
        assert_eq!(memory.take(START, peer(1)), None);
        assert!(memory.is_empty());
    }

    #[test]
    fn path_is_forgotten_after_an_hour() {
        for (seconds, is_known) in [(3600, true), (3601, false)] {
            let memory = PathMemory::new();
            memory.put(START, peer(1), path(7));
            let now = START + Duration::from_secs(seconds);
            assert_eq!(memory.take(now, peer(1)).is_some(), is_known, "{seconds} s");
        }
    }

    #[test]
    fn memory_is_bounded_and_keeps_the_newest() {
        let memory = PathMemory::new();
        let at = |number: u32| START + Duration::from_millis(u64::from(number));
        for number in 0..2000 {
            memory.put(at(number), peer(number), path(number.into()));
        }
        assert_eq!(memory.len(), MAX_PATHS);
        // One path more replaces one path, the oldest.
        for (count, first) in [(1024, Some(path(0))), (1025, None)] {
            let memory = PathMemory::new();
            for number in 0..count {
                memory.put(at(number), peer(number), path(number.into()));
            }
            assert_eq!(memory.take(at(count), peer(0)), first, "{count} paths");
            assert_eq!(memory.take(at(count), peer(1)), Some(path(1)), "{count}");
        }
        assert_eq!(memory.take(at(2000), peer(975)), None);
        assert_eq!(memory.take(at(2000), peer(976)), Some(path(976)));
        memory.put(at(2000), peer(1999), path(1));
        assert_eq!(memory.take(at(2000), peer(1999)), Some(path(1)), "replaced");
    }
}
