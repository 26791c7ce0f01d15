//! The paths of a connection: the one in use, and those being proven.

use std::time::Duration;

use courser_base::{FourTuple, Time};

use super::validation::{Expired, Proof};
use super::{MIN_DATAGRAM, Path};
use crate::config::TransportConfig;

/// Paths kept at once, the one in use included (limit K07).
pub const MAX_PATHS: usize = 4;

/// Which path of the table.
pub type PathIndex = usize;

/// The paths of a connection. The active one is where everything but probes goes.
#[derive(Debug)]
pub struct Paths {
    table: Vec<Path>,
    active: PathIndex,
    /// Where to return to when the active path turns out not to be the peer's (RFC 9000 §9.3.2).
    last_validated: Option<PathIndex>,
    /// A new path may appear once per round trip (limit K07).
    next_new_at: Time,
    next_id: u32,
    /// Largest datagram that the peer takes.
    peer_limit: u16,
    /// IDs of the peer that no path uses any more, fewer than [`MAX_PATHS`].
    unused_ids: Vec<u64>,
}

/// What became of the paths when their timers ran.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathsOutcome {
    /// Nothing the connection must act on.
    Unchanged,
    /// The active path failed, another one is in use again.
    Reverted,
    /// No path is left (RFC 9000 §9.3.2): the connection ends silently.
    NoneLeft,
}

impl Paths {
    /// A table with one path.
    pub fn new(path: Path) -> Self {
        let next_id = path.id;
        Self {
            table: vec![path],
            active: 0,
            last_validated: None,
            next_new_at: Time::ZERO,
            next_id,
            peer_limit: u16::MAX,
            unused_ids: Vec::new(),
        }
    }

    /// The peer takes no larger datagrams than this, on no path.
    pub fn set_peer_limit(&mut self, size: u16) {
        self.peer_limit = size;
        self.table
            .iter_mut()
            .for_each(|path| path.set_peer_limit(size));
    }

    /// The path in use.
    pub fn active(&self) -> &Path {
        &self.table[self.active]
    }

    /// The path in use if the peer has proven to be there, else the one before, where it has.
    pub fn proven(&self) -> &Path {
        let active = self.active();
        if active.amplification.is_validated() {
            return active;
        }
        let before = self.last_validated.and_then(|index| self.table.get(index));
        before.unwrap_or(active)
    }

    /// The path in use.
    pub fn active_mut(&mut self) -> &mut Path {
        &mut self.table[self.active]
    }

    /// Index of the path in use.
    pub fn active_index(&self) -> PathIndex {
        self.active
    }

    /// The path that sent packets with this number in them.
    pub fn by_id(&mut self, id: u32) -> Option<&mut Path> {
        if self.active().id == id {
            return Some(self.active_mut());
        }
        self.table.iter_mut().find(|path| path.id == id)
    }

    /// The path at `index`.
    pub fn get_mut(&mut self, index: PathIndex) -> Option<&mut Path> {
        self.table.get_mut(index)
    }

    /// Finds a path by its addresses. An unknown local address matches any.
    pub fn find(&self, tuple: FourTuple) -> Option<PathIndex> {
        let same = |path: &Path| {
            path.tuple.peer == tuple.peer
                && (path.tuple.local == tuple.local
                    || path.tuple.local.is_none()
                    || tuple.local.is_none())
        };
        if self.table.get(self.active).is_some_and(same) {
            return Some(self.active);
        }
        self.table.iter().position(same)
    }

    /// Adds a path the peer appeared on; `None` when there are too many, or too quickly.
    pub fn add(
        &mut self,
        now: Time,
        tuple: FourTuple,
        config: &TransportConfig,
    ) -> Option<PathIndex> {
        if now < self.next_new_at {
            return None;
        }
        if self.table.len() >= MAX_PATHS {
            let (active, keep) = (self.active, self.last_validated);
            let victim = (0..self.table.len()).find(|&at| at != active && Some(at) != keep)?;
            self.remove(victim);
        }
        self.next_new_at = now + self.active().rtt.smoothed().min(MAX_NEW_PATH_DELAY);
        self.next_id += 1;
        let mut path = Path::new(now, tuple, config, self.next_id);
        path.set_peer_limit(self.peer_limit);
        self.table.push(path);
        Some(self.table.len() - 1)
    }

    /// The peer moved to the path at `index`: everything goes there from now on, within its
    /// amplification limit until it is validated (RFC 9000 §9.3).
    pub fn migrate(&mut self, now: Time, index: PathIndex, pto: Duration) {
        let old = self.active;
        if index == old {
            return;
        }
        if self.table[old].amplification.is_validated() {
            self.last_validated = Some(old);
        }
        if self.table[old].tuple.peer.ip() == self.table[index].tuple.peer.ip() {
            self.take_over(old, index);
        }
        let new = &mut self.table[index];
        if !new.amplification.is_validated() {
            new.validation.start(now, pto);
        }
        self.active = index;
        // The old path is asked too: if the peer is still there, the move was forged (§9.3.3).
        self.table[old].validation.start(now, pto);
    }

    /// Only the port changed: most likely a NAT forgot its mapping, and the route is the same.
    /// What was learned about it goes on (RFC 9000 §9.4), packets in flight included.
    fn take_over(&mut self, old: PathIndex, new: PathIndex) {
        let Ok([old, new]) = self.table.get_disjoint_mut([old, new]) else {
            return;
        };
        std::mem::swap(&mut old.id, &mut new.id);
        std::mem::swap(&mut old.rtt, &mut new.rtt);
        std::mem::swap(&mut old.congestion, &mut new.congestion);
        std::mem::swap(&mut old.delivery, &mut new.delivery);
        std::mem::swap(&mut old.pacer, &mut new.pacer);
        std::mem::swap(&mut old.mtu, &mut new.mtu);
        std::mem::swap(&mut old.search, &mut new.search);
        std::mem::swap(&mut old.refused, &mut new.refused);
        std::mem::swap(&mut old.persistent, &mut new.persistent);
        std::mem::swap(&mut old.bytes_in_flight, &mut new.bytes_in_flight);
    }

    /// A PATH_RESPONSE arrived, on whatever path (§8.2.2). True when the active path was
    /// validated by it. `pto` is for a second validation: the first may have been too small.
    pub fn on_path_response(&mut self, now: Time, data: [u8; 8], pto: Duration) -> bool {
        let answers = self.table.iter_mut().enumerate();
        let mut answers =
            answers.filter_map(|(index, path)| Some((index, path.validation.on_response(data)?)));
        let Some((index, proof)) = answers.next() else {
            return false;
        };
        let path = &mut self.table[index];
        path.amplification.on_validated();
        if proof == Proof::Address {
            // The limit is gone; the next challenge fills a datagram (§8.2.1, §8.2.3).
            path.validation.start(now, pto);
        }
        if index == self.active {
            self.last_validated = None;
        }
        index == self.active
    }

    /// The path, other than the active one, that wants to send a challenge or a response and may
    /// send a datagram for it.
    pub fn wanting_probe(&self) -> Option<PathIndex> {
        (0..self.table.len()).find(|&index| {
            let path = &self.table[index];
            index != self.active
                && (path.validation.wants_challenge() || path.validation.response().is_some())
                && path.amplification.budget() >= MIN_DATAGRAM as u64
        })
    }

    /// When the first validation wants attention.
    pub fn next_timeout(&self) -> Option<Time> {
        self.table
            .iter()
            .filter_map(|path| path.validation.next_timeout())
            .min()
    }

    /// Runs what is due.
    pub fn on_timeout(&mut self, now: Time) -> PathsOutcome {
        let mut outcome = PathsOutcome::Unchanged;
        let mut index = 0;
        while index < self.table.len() {
            let failed = self.table[index].validation.on_timeout(now) == Expired::Failed;
            // The way back stays open until the new path is proven, even when nobody answers on
            // it just now.
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

    /// Nobody answered on the active path: back to the one that was proven before (§9.3.2).
    fn revert(&mut self, back: PathIndex) {
        if self.table[self.active].tuple.peer.ip() == self.table[back].tuple.peer.ip() {
            self.take_over(self.active, back);
        }
        self.active = back;
        self.table[back].validation.abandon();
    }

    fn remove(&mut self, index: PathIndex) {
        debug_assert_ne!(index, self.active);
        let path = self.table.remove(index);
        self.unused_ids.extend(path.peer_id);
        self.active -= usize::from(self.active > index);
        let kept = self.last_validated.filter(|&at| at != index);
        self.last_validated = kept.map(|at| at - usize::from(at > index));
    }

    /// The sequence number of an ID of the peer that is to be retired.
    pub fn take_unused_id(&mut self) -> Option<u64> {
        self.unused_ids.pop()
    }

    /// How many paths are kept.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.table.len()
    }
}

/// Even with a huge RTT estimate a rebound client is followed within this time.
const MAX_NEW_PATH_DELAY: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests;
