//! The recovery states of all paths of a connection.

use courser_base::Time;

use super::features::Experience;
use super::path_recovery::{PathKey, PathRecovery};
use crate::config::TransportConfig;

/// The recovery states of all paths of a connection, one of which is active.
#[derive(Debug)]
pub(super) struct PathTable {
    /// Never empty: the active path cannot be closed.
    table: Vec<PathRecovery>,
    active: usize,
    next_key: PathKey,
    /// Largest datagram that the peer accepts.
    peer_limit: u16,
}

impl PathTable {
    /// Creates a table with one path, which is active.
    pub(super) fn new(now: Time, config: &TransportConfig, experience: &Experience) -> Self {
        Self {
            table: vec![PathRecovery::new(now, config, experience, 0)],
            active: 0,
            next_key: 1,
            peer_limit: u16::MAX,
        }
    }

    /// Returns the state of the active path.
    #[inline]
    pub(super) fn active(&self) -> &PathRecovery {
        &self.table[self.active]
    }

    /// Returns the state of the active path.
    #[inline]
    pub(super) fn active_mut(&mut self) -> &mut PathRecovery {
        &mut self.table[self.active]
    }

    /// Returns the state of the path with this key; `None` once it is closed.
    pub(super) fn get_mut(&mut self, key: PathKey) -> Option<&mut PathRecovery> {
        if self.active().key == key {
            return Some(self.active_mut());
        }
        self.table.iter_mut().find(|path| path.key == key)
    }

    /// Returns the bytes in flight on all paths.
    #[cfg(test)]
    pub(super) fn bytes_in_flight(&self) -> u64 {
        self.table.iter().map(|path| path.bytes_in_flight).sum()
    }

    /// Adds the state of a new path.
    pub(super) fn open(
        &mut self,
        now: Time,
        config: &TransportConfig,
        experience: &Experience,
    ) -> PathKey {
        let key = self.next_key;
        self.next_key += 1;
        let mut path = PathRecovery::new(now, config, experience, key);
        path.set_peer_limit(self.peer_limit);
        self.table.push(path);
        key
    }

    /// Makes a path the active one.
    pub(super) fn activate(&mut self, key: PathKey) {
        if let Some(index) = self.table.iter().position(|path| path.key == key) {
            self.active = index;
        }
    }

    /// Removes a path that is not active. The records of packets sent on it keep its key.
    pub(super) fn close(&mut self, key: PathKey) {
        let Some(index) = self.table.iter().position(|path| path.key == key) else {
            return;
        };
        debug_assert_ne!(index, self.active, "the active path stays");
        if index != self.active {
            self.table.remove(index);
            self.active -= usize::from(self.active > index);
        }
    }

    /// Removes all paths but the active one, and frees the records of its packets.
    pub(super) fn free(&mut self) {
        let mut active = self.table.swap_remove(self.active);
        active.free();
        (self.table, self.active) = (vec![active], 0);
    }

    /// Frees spare capacity of the records.
    pub(super) fn shrink(&mut self) {
        for path in &mut self.table {
            path.delivery.shrink();
        }
    }

    /// Returns the size of the largest datagram that the peer accepts.
    pub(super) fn peer_limit(&self) -> u16 {
        self.peer_limit
    }

    /// Sets the size of the largest datagram that the peer accepts, on every path.
    pub(super) fn set_peer_limit(&mut self, size: u16) {
        self.peer_limit = size;
        self.table
            .iter_mut()
            .for_each(|path| path.set_peer_limit(size));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths() -> (PathTable, TransportConfig) {
        let config = TransportConfig::default();
        (
            PathTable::new(Time::ZERO, &config, &Experience::default()),
            config,
        )
    }

    #[test]
    fn closing_a_path_keeps_the_active_one() {
        let (mut paths, config) = paths();
        let [second, third] =
            [0; 2].map(|_| paths.open(Time::ZERO, &config, &Experience::default()));
        paths.activate(third);
        paths.close(second);
        assert_eq!(paths.active().key, third);
        assert!(paths.get_mut(second).is_none());
        paths.activate(0);
        assert_eq!(paths.active().key, 0);
    }

    #[test]
    fn path_opened_later_obeys_limit_of_peer() {
        let (mut paths, config) = paths();
        paths.set_peer_limit(1200);
        let key = paths.open(Time::ZERO, &config, &Experience::default());
        assert_eq!(paths.get_mut(key).map(|path| path.mtu()), Some(1200));
    }

    #[test]
    fn key_is_never_used_again() {
        let (mut paths, config) = paths();
        let first = paths.open(Time::ZERO, &config, &Experience::default());
        paths.close(first);
        assert_ne!(
            paths.open(Time::ZERO, &config, &Experience::default()),
            first
        );
    }
}
