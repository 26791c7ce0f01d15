//! Follows a peer to another path, and changes the connection IDs with it. RFC 9000 §9.3, §9.5.

use std::time::Duration;

use courser_base::Time;
use courser_wire::ConnectionId;

use super::network_path::Place;
use super::paths::{PathIndex, Paths, PathsOutcome};
use crate::cid::ConnectionIds;

/// The result of following the peer to another path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Migration {
    /// True if the peer sends to a newer ID of ours than before.
    pub(crate) has_new_id: bool,
    /// The ID by which we addressed the peer until now.
    pub(crate) old_destination: ConnectionId,
}

impl Paths {
    /// Returns the path of an authentic packet, added to the table if the peer is new there. `len` is
    /// the length of its datagram, `rtt` the round-trip time of the path in use, and `open_path`
    /// gives a new path its key.
    pub(crate) fn on_packet(
        &mut self,
        now: Time,
        place: impl Into<Place>,
        len: usize,
        rtt: Duration,
        open_path: impl FnOnce() -> u32,
    ) -> Option<PathIndex> {
        let place = place.into();
        if let Some(index) = self.find(place) {
            return Some(index);
        }
        let index = self.add(now, place, rtt, open_path)?;
        self.table[index].amplification.on_received(len);
        Some(index)
    }

    /// Follows the peer to the path at `index`, on which it sends to `destination`
    /// (RFC 9000 §9.3). `pto` is the probe timeout of the path in use.
    ///
    /// If the peer uses a new ID on the new path, we use one too, so that the two paths cannot be
    /// linked (§9.5). A rebound NAT changes no ID.
    pub(crate) fn follow(
        &mut self,
        now: Time,
        index: PathIndex,
        destination: &ConnectionId,
        pto: Duration,
        ids: &mut ConnectionIds,
    ) -> Migration {
        let shared = ids.destination_sequence();
        let own = self.table.get(index).and_then(|path| path.peer_id);
        let has_own = own.is_some_and(|id| id != shared && ids.id_of(id).is_some());
        let old_destination = ids.destination();
        let has_new_id = ids.on_peer_moved(destination);
        if has_new_id || has_own {
            self.switch_peer_id(index, ids);
        }
        // Both paths use the same ID if the peer did not change its own, or issued no other.
        let shared = Some(shared).filter(|&id| id == ids.destination_sequence());
        self.set_peer_id(self.active, shared, ids);
        self.migrate(now, index, self.validation_pto(pto));
        Migration {
            has_new_id,
            old_destination,
        }
    }

    /// Returns true if the path at `index` uses another local address than the one in use and is not
    /// validated. A server challenges such a path before it follows (RFC 9000 §9.6.2).
    pub(crate) fn needs_validation_first(
        &mut self,
        now: Time,
        index: PathIndex,
        pto: Duration,
    ) -> bool {
        let (pto, here) = (self.validation_pto(pto), self.active().place());
        let Some(path) = self.table.get_mut(index) else {
            return false;
        };
        let is_waiting = !path.place().is_same_local(&here) && !path.is_validated();
        if is_waiting {
            path.validation.start(now, pto);
        }
        is_waiting
    }

    /// Runs the timers of the paths. A path that comes into use again keeps its ID.
    pub(crate) fn on_timeout(&mut self, now: Time, ids: &mut ConnectionIds) -> PathsOutcome {
        let outcome = self.run_timers(now);
        self.retire_removed_ids(ids);
        if outcome == PathsOutcome::Reverted {
            self.return_to_peer_id(ids);
        }
        outcome
    }

    /// Removes and returns the recovery key of an abandoned path, and retires its ID.
    pub(crate) fn release_removed_id(&mut self, ids: &mut ConnectionIds) -> Option<u32> {
        self.retire_removed_ids(ids);
        self.take_removed().map(|remains| remains.key)
    }

    /// Returns the destination ID for probes of a path. Each path has its own if the peer issued
    /// enough of them, so that an observer cannot link the paths (RFC 9000 §9.5).
    pub(crate) fn destination(
        &mut self,
        index: PathIndex,
        ids: &mut ConnectionIds,
    ) -> ConnectionId {
        let current = ids.destination();
        if index == self.active {
            return current;
        }
        let Some(path) = self.table.get_mut(index) else {
            return current;
        };
        if let Some(id) = path.peer_id.and_then(|id| ids.id_of(id)) {
            return id;
        }
        let Some((sequence, id)) = ids.reserve() else {
            return current;
        };
        path.peer_id = Some(sequence);
        id
    }

    /// Changes to the ID that probes of a path used, or to an unused one.
    fn switch_peer_id(&mut self, index: PathIndex, ids: &mut ConnectionIds) {
        let path = self.table.get_mut(index);
        ids.switch(path.and_then(|path| path.peer_id.take()));
    }

    /// Restores the ID of the previous path after a return to it, if that path had another one.
    fn return_to_peer_id(&mut self, ids: &mut ConnectionIds) {
        let active = self.active_mut();
        if active.peer_id == Some(ids.destination_sequence()) {
            active.peer_id = None;
        } else {
            self.switch_peer_id(self.active, ids);
        }
    }

    /// Sets the ID for probes of a path, and retires the previous one.
    fn set_peer_id(&mut self, index: PathIndex, id: Option<u64>, ids: &mut ConnectionIds) {
        let Some(path) = self.table.get_mut(index) else {
            return;
        };
        if let Some(old) = std::mem::replace(&mut path.peer_id, id)
            && Some(old) != id
        {
            ids.give_up(old);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use courser_base::FourTuple;
    use courser_wire::NewConnectionId;
    use courser_wire::transport_parameters::TransportParameters;

    use super::*;
    use crate::path::Path;
    use crate::path::{AllowedMoves, Arrival};

    const PTO: Duration = Duration::from_millis(100);

    fn tuple(last: u8) -> FourTuple {
        FourTuple::to(SocketAddr::from(([127, 0, 0, last], 1)))
    }

    fn id(byte: u8) -> ConnectionId {
        ConnectionId::new(&[byte; 8]).expect("eight bytes")
    }

    /// Creates a validated path, two IDs of ours, and three of the peer.
    fn parts() -> (Paths, ConnectionIds) {
        let mut path = Path::new(tuple(1), 0);
        path.on_validated();
        let mut ids = ConnectionIds::new(id(1), id(101));
        let parameters = TransportParameters {
            active_connection_id_limit: 2,
            ..TransportParameters::default()
        };
        ids.on_peer_parameters(&parameters).expect("no address");
        ids.issue(id(2), [2; 16]);
        for sequence in [1, 2] {
            let byte = 101 + u8::try_from(sequence).expect("small");
            ids.on_new_connection_id_frame(&NewConnectionId {
                sequence,
                retire_prior_to: 0,
                id: id(byte),
                reset_token: [byte; 16],
            })
            .expect("within the limit");
        }
        (Paths::new(path, Duration::ZERO), ids)
    }

    /// Receives a packet from another address and returns its path.
    fn appear(paths: &mut Paths, last: u8) -> PathIndex {
        let (now, key) = (Time::ZERO + Duration::from_secs(u64::from(last)), last);
        let index = paths.on_packet(now, tuple(last), 1200, PTO, || u32::from(key));
        index.expect("a new path")
    }

    #[test]
    fn new_address_gets_a_key_and_a_budget_once() {
        let (mut paths, _) = parts();
        let index = appear(&mut paths, 2);
        let path = paths.get_mut(index).expect("it was added");
        assert_eq!((path.key(), path.budget()), (2, 3600));
        let again = paths.on_packet(Time::ZERO, tuple(2), 1200, PTO, || panic!("no key"));
        assert_eq!(again, Some(index));
        let mut arrive = |last| paths.on_datagram(&tuple(last).into(), 100, AllowedMoves::None);
        assert_eq!((arrive(2), arrive(3)), (Arrival::Known, Arrival::Elsewhere));
        assert_eq!(paths.get_mut(index).map(|path| path.budget()), Some(3900));
    }

    #[test]
    fn peer_with_a_new_id_is_addressed_by_a_new_one() {
        let (mut paths, mut ids) = parts();
        let index = appear(&mut paths, 2);
        let migration = paths.follow(Time::ZERO, index, &id(2), PTO, &mut ids);
        assert!(migration.has_new_id);
        assert_eq!(migration.old_destination, id(101));
        assert_eq!(ids.destination(), id(102));
        assert_eq!(paths.active().tuple(), tuple(2));
    }

    #[test]
    fn rebound_nat_changes_no_id() {
        let (mut paths, mut ids) = parts();
        let index = appear(&mut paths, 2);
        let migration = paths.follow(Time::ZERO, index, &id(1), PTO, &mut ids);
        assert!(!migration.has_new_id);
        assert_eq!(ids.destination(), id(101));
    }

    #[test]
    fn probed_path_keeps_the_id_of_its_probes() {
        let (mut paths, mut ids) = parts();
        let index = appear(&mut paths, 2);
        let probed = paths.destination(index, &mut ids);
        assert_eq!(probed, id(102));
        assert_eq!(paths.destination(index, &mut ids), probed, "reserved");
        assert_eq!(paths.destination(paths.active_index(), &mut ids), id(101));
        paths.follow(Time::ZERO, index, &id(1), PTO, &mut ids);
        assert_eq!(ids.destination(), probed);
    }

    #[test]
    fn paths_share_an_id_if_none_is_spare() {
        let (mut paths, mut ids) = parts();
        let indices = [2, 3, 4].map(|last| appear(&mut paths, last));
        let destinations = indices.map(|index| paths.destination(index, &mut ids));
        assert_eq!(destinations, [id(102), id(103), id(101)]);
    }

    #[test]
    fn failed_validation_returns_to_the_previous_path_with_its_id() {
        let (mut paths, mut ids) = parts();
        let index = appear(&mut paths, 2);
        paths.follow(Time::ZERO, index, &id(2), PTO, &mut ids);
        let outcome = paths.on_timeout(Time::ZERO + PTO * 3, &mut ids);
        assert_eq!(outcome, PathsOutcome::Reverted);
        assert_eq!(paths.active().tuple(), tuple(1));
        assert_ne!(ids.destination(), id(102), "the other path used that ID");
        assert_eq!(paths.release_removed_id(&mut ids), Some(2));
        assert_eq!(paths.release_removed_id(&mut ids), None);
    }
}
