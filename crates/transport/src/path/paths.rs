//! The paths of a connection: the one in use, and those being validated.

use std::time::Duration;

use courser_base::{FourTuple, Time, is_same_host};

use super::attempts::Attempts;
use super::moves::Moves;
pub use super::network_path::PathIndex;
use super::network_path::{MIN_DATAGRAM, Path, Place};
use super::spin::Spin;
use super::validation::{Expired, Proof};
use crate::cid::ConnectionIds;

/// Maximum number of paths, the one in use included (limit K07).
pub const MAX_PATHS: usize = 4;

/// The paths of a connection. All packets except probes use the active one.
#[derive(Debug)]
pub struct Paths {
    pub(super) table: Vec<Path>,
    pub(super) active: PathIndex,
    /// The path to return to if validation of the active one fails (RFC 9000 §9.3.2).
    pub(super) last_validated: Option<PathIndex>,
    /// The migrations of our own end.
    pub(super) own: Attempts,
    /// The pace of these migrations.
    moves: Moves,
    /// The addresses to which the peer may move.
    pub(super) peer_moves: PeerMoves,
    /// Number of changes of the active path.
    pub(super) changes: u64,
    /// The addresses of the handshake.
    first: FourTuple,
    /// The time from which a new path is accepted, of which there is one per round trip (limit K07).
    next_new_at: Time,
    /// Removed paths whose IDs and recovery state are not yet released, fewer than [`MAX_PATHS`].
    removed: Vec<RemovedPath>,
    /// The addresses of paths whose validation has ended without a response, until they are recorded in
    /// the trace: at most one for each path.
    unanswered: Vec<FourTuple>,
    /// The probe timeout before there is a sample of the round-trip time.
    initial_pto: Duration,
    /// Each path ID has a spin bit of its own (RFC 10069 §5.8).
    pub(crate) spin: Spin,
}

/// The addresses to which the peer may move (RFC 9000 §9).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PeerMoves {
    /// To any address: a client whose server allows migration.
    Anywhere,
    /// To another port of the same address, as a NAT does when it rebinds; a client whose server
    /// has sent disable_active_migration. A client that uses the preferred address may use any address.
    SameAddress {
        /// True if the server offered a preferred address.
        has_preferred: bool,
    },
    /// To none: servers do not move, except to the preferred address, to which the client moves first.
    Nowhere,
}

/// A response to a challenge of ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answered {
    /// The path that it validates.
    pub path: PathIndex,
    /// The properties that it confirms.
    pub proof: Proof,
    /// True if the path was not validated before.
    pub is_new: bool,
}

/// A removed path whose ID and recovery state are not yet released.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RemovedPath {
    /// Its key in loss recovery.
    pub(super) key: u32,
    /// The ID of the peer in its probes.
    pub(super) peer_id: Option<u64>,
}

/// The result of running the timers of the paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathsOutcome {
    /// The active path has not changed.
    Unchanged,
    /// The active path failed, and the previous one is in use again.
    Reverted,
    /// No path is left, so the connection ends without a packet (RFC 9000 §9.3.2).
    NoneLeft,
}

impl Paths {
    /// Creates a table with one path, whose round-trip time is `initial_rtt` until it is measured.
    pub fn new(path: Path, initial_rtt: Duration) -> Self {
        Self {
            initial_pto: initial_rtt.saturating_mul(3),
            first: path.tuple(),
            table: vec![path],
            active: 0,
            last_validated: None,
            own: Attempts::default(),
            moves: Moves::default(),
            peer_moves: PeerMoves::Anywhere,
            changes: 0,
            next_new_at: Time::ZERO,
            removed: Vec::new(),
            unanswered: Vec::new(),
            spin: Spin::Off,
        }
    }

    /// Creates the table of a further path of the same connection.
    pub fn of_path(&self, path: Path) -> Self {
        let mut paths = Self::new(path, Duration::ZERO);
        paths.initial_pto = self.initial_pto;
        paths.peer_moves = self.peer_moves;
        paths.spin = self.spin.of_new_path();
        paths
    }

    /// Begins to validate a path of another path ID. It may be much slower than this one, whose probe timeout is `pto`
    /// (RFC 9000 §8.2.4): the answers to the last three challenges count, and these span as long as the initial timeout.
    pub fn begin_validation_of(&self, now: Time, path: &mut Path, pto: Duration) {
        let pto = pto.max(self.initial_pto);
        path.begin_patient_validation(now, pto / 3, pto.saturating_mul(3));
    }

    /// Sets the addresses to which the peer may move.
    pub fn set_peer_moves(&mut self, peer_moves: PeerMoves) {
        self.peer_moves = peer_moves;
    }

    /// Returns true if the peer may move to the path `tuple`.
    pub fn may_move_to(&self, tuple: FourTuple) -> bool {
        match self.peer_moves {
            PeerMoves::Anywhere => true,
            PeerMoves::SameAddress { has_preferred } => {
                let is_same = is_same_host(self.first.peer, tuple.peer);
                let is_elsewhere = match (self.first.local, tuple.local) {
                    (Some(first), Some(local)) => first != local,
                    // If the system does not report the local address, it may be the preferred one.
                    _ => true,
                };
                is_same || has_preferred && is_elsewhere
            }
            PeerMoves::Nowhere => false,
        }
    }

    /// Returns true if the peer may move, which servers do not.
    pub(super) fn peer_may_move(&self) -> bool {
        self.peer_moves != PeerMoves::Nowhere
    }

    /// Returns true if `place` differs from the path in use only by the port of the peer, and the peer may
    /// move: its NAT may have rebound.
    pub(crate) fn may_have_rebound(&self, place: Place) -> bool {
        let here = self.active().place();
        self.peer_may_move()
            && place.socket == here.socket
            && place.is_same_host(&here)
            && place.tuple.peer.port() != here.tuple.peer.port()
    }

    /// Returns true if the peer is at its address of the handshake.
    pub fn is_at_first_peer(&self) -> bool {
        self.active().tuple().peer == self.first.peer
    }

    /// Records that the peer's address of the handshake is validated.
    pub(crate) fn on_first_peer_validated(&mut self) {
        if self.is_at_first_peer() {
            self.active_mut().on_validated();
        }
    }

    /// Returns the number of times that the active path has changed.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns the path in use.
    pub fn active(&self) -> &Path {
        &self.table[self.active]
    }

    /// Returns the path in use if it is validated, else the previous validated one. If there is none, as
    /// before the handshake of a client without a token, returns the path in use.
    pub fn proven(&self) -> &Path {
        let active = self.active();
        if active.amplification.is_validated() {
            return active;
        }
        let before = self.last_validated.and_then(|index| self.table.get(index));
        before.unwrap_or(active)
    }

    /// Returns the path in use for changes.
    pub fn active_mut(&mut self) -> &mut Path {
        &mut self.table[self.active]
    }

    /// Returns the index of the path in use.
    pub fn active_index(&self) -> PathIndex {
        self.active
    }

    /// Returns the larger of the current and the initial probe timeout. A path validation ends
    /// after three of these (RFC 9000 §8.2.4).
    pub(super) fn validation_pto(&self, pto: Duration) -> Duration {
        pto.max(self.initial_pto)
    }

    /// Returns true if a datagram from and to `place` arrived on the path in use, as nearly all do.
    #[inline]
    pub(crate) fn is_here(&self, place: &Place) -> bool {
        let active = self.table.get(self.active);
        active.is_some_and(|path| path.is_at(place))
    }

    /// Returns true if the ID and recovery state of a removed path are to be released.
    #[inline]
    pub(crate) fn has_removed(&self) -> bool {
        !self.removed.is_empty()
    }

    /// Returns the path at `index`.
    pub fn get_mut(&mut self, index: PathIndex) -> Option<&mut Path> {
        self.table.get_mut(index)
    }

    /// Finds a path by its addresses and its socket. An unknown local address matches any.
    #[inline]
    pub fn find(&self, place: impl Into<Place>) -> Option<PathIndex> {
        let place = place.into();
        if self.is_here(&place) {
            return Some(self.active);
        }
        self.table.iter().position(|path| path.is_at(&place))
    }

    /// Adds a path on which a packet of the peer arrived. Returns `None` when there are too many
    /// paths or they change too quickly. `rtt` is the round-trip time of the path in use, and
    /// `open_path` returns the key of the new one.
    pub(super) fn add(
        &mut self,
        now: Time,
        place: impl Into<Place>,
        rtt: Duration,
        open_path: impl FnOnce() -> u32,
    ) -> Option<PathIndex> {
        if self.peer_moves == PeerMoves::Nowhere || now < self.next_new_at {
            return None;
        }
        if self.table.len() >= MAX_PATHS {
            let (active, keep) = (self.active, self.last_validated);
            let replaced = (0..self.table.len()).find(|&at| at != active && Some(at) != keep)?;
            self.remove(replaced);
        }
        self.next_new_at = now + rtt.min(MAX_NEW_PATH_DELAY);
        self.table.push(Path::new(place, open_path()));
        Some(self.table.len() - 1)
    }

    /// Makes the path at `index` the active one, because the peer moved there. Its amplification
    /// limit applies until it is validated (RFC 9000 §9.3).
    pub(super) fn migrate(&mut self, now: Time, index: PathIndex, pto: Duration) {
        let old = self.active;
        if index == old {
            return;
        }
        if self.table[old].amplification.is_validated() {
            self.last_validated = Some(old);
        }
        if self.shares_recovery(index, old) {
            self.take_over(old, index);
        }
        let new = &mut self.table[index];
        if !new.amplification.is_validated() {
            new.validation.start(now, pto);
        }
        self.active = index;
        self.changes += 1;
        // The old path is validated too. A response there shows that the move was forged (§9.3.3).
        self.table[old].validation.start(now, pto);
    }

    /// Returns true if the recovery state of the path at `older` remains valid on the one at `newer`.
    pub(super) fn shares_recovery(&self, newer: PathIndex, older: PathIndex) -> bool {
        let (newer, older) = (&self.table[newer], &self.table[older]);
        match self.peer_moves {
            // A change of our own port is not visible in the addresses.
            PeerMoves::Nowhere => newer.keeps_recovery,
            PeerMoves::Anywhere | PeerMoves::SameAddress { .. } => {
                newer.place().is_same_host(&older.place())
            }
        }
    }

    /// Moves the recovery state of the old path to the new one. Only the port changed, most likely by a
    /// rebound NAT on the same network path, so measurements and packets in flight remain valid
    /// (RFC 9000 §9.4).
    pub(super) fn take_over(&mut self, old: PathIndex, new: PathIndex) {
        let Ok([old, new]) = self.table.get_disjoint_mut([old, new]) else {
            return;
        };
        std::mem::swap(&mut old.key, &mut new.key);
    }

    /// Processes a PATH_RESPONSE, which may arrive on any path (§8.2.2), and returns the path that it
    /// validates. `pto`, the probe timeout of the path in use, is for the second part of a validation,
    /// because the datagram of the first may have been too small.
    pub fn on_path_response(
        &mut self,
        now: Time,
        data: [u8; 8],
        pto: Duration,
    ) -> Option<Answered> {
        let pto = self.validation_pto(pto);
        let answers = self.table.iter_mut().enumerate();
        let mut answers =
            answers.filter_map(|(index, path)| Some((index, path.validation.on_response(data)?)));
        let (index, proof) = answers.next()?;
        let path = &mut self.table[index];
        let is_new = !path.amplification.is_validated();
        path.amplification.on_validated();
        if proof == Proof::Address {
            // The limit no longer applies; the next challenge fills a datagram (§8.2.1, §8.2.3).
            path.validation.start_for_size(now, pto);
        }
        if index == self.active {
            self.last_validated = None;
        }
        Some(Answered {
            path: index,
            proof,
            is_new,
        })
    }

    /// Removes and returns the addresses of a path whose validation has ended without a response.
    pub(crate) fn take_unanswered(&mut self) -> Option<FourTuple> {
        self.unanswered.pop()
    }

    /// Stops the validation of a path, if there is one.
    pub(super) fn abandon_validation(&mut self, index: PathIndex) {
        self.record_unanswered(index);
        self.table[index].validation.abandon();
    }

    /// Records that the validation of a path ends without a response, if a challenge was sent.
    fn record_unanswered(&mut self, index: PathIndex) {
        let path = &self.table[index];
        if path.validation.is_probing() {
            self.unanswered.push(path.tuple());
        }
    }

    /// Returns a path other than the active one that has a pending challenge or response and whose
    /// amplification limit permits a datagram.
    pub fn next_to_probe(&self) -> Option<PathIndex> {
        (0..self.table.len()).find(|&index| {
            let path = &self.table[index];
            index != self.active
                && path.has_frames_to_send()
                && path.amplification.budget() >= MIN_DATAGRAM as u64
        })
    }

    /// Returns the time at which the first timer of a validation expires.
    pub fn next_timeout(&self) -> Option<Time> {
        let mut next = self.moves.next_timeout();
        for path in &self.table {
            let due = Time::earliest(path.validation.next_timeout(), path.expires_at);
            next = Time::earliest(next, due);
        }
        next
    }

    /// Returns the pace of the moves that our end begins.
    pub(crate) fn moves(&mut self) -> &mut Moves {
        &mut self.moves
    }

    /// Runs the timers of all paths.
    pub(super) fn run_timers(&mut self, now: Time) -> PathsOutcome {
        let mut outcome = PathsOutcome::Unchanged;
        let mut index = 0;
        while index < self.table.len() {
            let was_probing = self.table[index].validation.is_probing();
            let failed = self.table[index].validation.on_timeout(now) == Expired::Failed;
            if failed && was_probing {
                self.unanswered.push(self.table[index].tuple());
            }
            if index != self.active && self.table[index].expires_at.is_some_and(|at| at <= now) {
                self.remove(index);
                continue;
            }
            // The path to return to is kept until the new one is validated, even if its own
            // validation fails.
            let is_kept = if index == self.active {
                self.table[index].amplification.is_validated()
            } else {
                Some(index) == self.last_validated
            };
            if !failed || is_kept {
                index += 1;
                continue;
            }
            if index != self.active {
                self.remove(index);
                continue;
            }
            let Some(back) = self.last_validated.take() else {
                return PathsOutcome::NoneLeft;
            };
            self.revert(back);
            self.remove(index);
            outcome = PathsOutcome::Reverted;
        }
        outcome
    }

    /// Returns to the path validated before, because the active one got no response (§9.3.2).
    fn revert(&mut self, back: PathIndex) {
        if self.shares_recovery(self.active, back) {
            self.take_over(self.active, back);
        }
        self.active = back;
        self.changes += 1;
        self.abandon_validation(back);
    }

    pub(super) fn remove(&mut self, index: PathIndex) {
        debug_assert_ne!(index, self.active);
        self.record_unanswered(index);
        let path = self.table.remove(index);
        self.removed.push(RemovedPath {
            key: path.key,
            peer_id: path.peer_id,
        });
        self.active -= usize::from(self.active > index);
        self.own.on_path_removed(index);
        let kept = self.last_validated.filter(|&at| at != index);
        self.last_validated = kept.map(|at| at - usize::from(at > index));
    }

    /// Takes a removed path, whose recovery state the caller must release.
    pub(super) fn take_removed(&mut self) -> Option<RemovedPath> {
        self.removed.pop()
    }

    /// Retires the IDs of removed paths, the last one first.
    pub(super) fn retire_removed_ids(&mut self, ids: &mut ConnectionIds) {
        let removed = self.removed.iter_mut().rev();
        removed
            .filter_map(|path| path.peer_id.take())
            .for_each(|id| ids.give_up(id));
    }

    /// Returns the number of ended validations that wait to be recorded.
    #[cfg(test)]
    pub(crate) fn unrecorded(&self) -> usize {
        self.unanswered.len()
    }

    /// Returns the number of paths.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.table.len()
    }
}

/// The longest time before a further path is accepted, so that a rebound client is followed in time
/// even with a huge RTT estimate.
const MAX_NEW_PATH_DELAY: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests;
