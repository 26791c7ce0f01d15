//! Migrations of our own end: another local address or socket, or the server's preferred address.
//! RFC 9000 §9.2, §9.5, §9.6.

use std::net::SocketAddr;
use std::time::Duration;

use courser_base::{FourTuple, Time};
use courser_wire::PreferredAddress;

use super::attempts::MigrationState;
use super::moves::NewPath;
use super::network_path::{Path, PathIndex, Place};
use super::paths::{MAX_PATHS, Paths};
use super::preferred::preferred;
use crate::build::transmit::SocketId;
use crate::cid::ConnectionIds;

/// A path that our end opens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnPath {
    /// The addresses and the socket of the path.
    pub(crate) place: Place,
    /// True if the recovery state of the path in use is kept.
    pub(crate) keeps_recovery: bool,
    /// True if the path comes into use before it is validated.
    pub(crate) is_at_once: bool,
}

impl OwnPath {
    /// Returns the order to open the path `new` to the address `peer`, which is in use.
    pub(crate) fn to(peer: SocketAddr, new: &NewPath) -> Self {
        let (local, socket) = (new.local, new.socket);
        Self {
            place: Place {
                tuple: FourTuple { peer, local },
                socket,
            },
            keeps_recovery: new.is_same_address,
            is_at_once: new.is_at_once,
        }
    }
}

impl Paths {
    /// Opens a path and challenges the peer on it, with an ID that was used on no other path. It replaces
    /// an unfinished move, and previous paths are closed. Returns false if the peer has issued no spare
    /// ID. `pto` is the probe timeout of the path in use.
    pub(crate) fn begin_own(
        &mut self,
        now: Time,
        own: OwnPath,
        pto: Duration,
        open_path: impl FnOnce() -> u32,
        ids: &mut ConnectionIds,
    ) -> bool {
        self.close_left();
        let Some((id, _)) = ids.reserve() else {
            return false;
        };
        if let Some(unfinished) = self.own.path.take_if(|path| *path != self.active) {
            self.remove(unfinished);
        }
        // The path in use and the one to return to remain.
        debug_assert!(self.table.len() < MAX_PATHS);
        let mut path = Path::new(own.place, open_path());
        path.peer_id = Some(id);
        path.keeps_recovery = own.keeps_recovery;
        if own.place.tuple.peer == self.active().tuple().peer {
            path.amplification.exempt();
        } else {
            // Permits one full challenge in each probe timeout, because the address may be that of an
            // uninvolved host (limit K160, RFC 9000 §21.5.3).
            path.amplification.on_received(UNVALIDATED_CREDIT);
        }
        path.validation.start(now, self.validation_pto(pto));
        self.table.push(path);
        let index = self.table.len() - 1;
        self.own.begin(index);
        if own.is_at_once {
            self.use_own(index, ids);
        }
        true
    }

    /// Closes the paths that were left after earlier moves, so that the peer replaces their IDs.
    fn close_left(&mut self) {
        while let Some(left) = self.table.iter().position(|path| path.expires_at.is_some()) {
            self.remove(left);
        }
    }

    /// Completes a move whose path is validated. Returns true if the path comes into use now, and false
    /// if it was in use before; `None` if there is no such move.
    pub(crate) fn finish_own(
        &mut self,
        now: Time,
        pto: Duration,
        ids: &mut ConnectionIds,
    ) -> Option<bool> {
        if self.active().is_validated() {
            // The active path may be that of an earlier immediate move, which a later one has replaced.
            self.expire_others(now, pto);
        }
        let validated = |index: &PathIndex| self.table[*index].is_validated();
        let index = self.own.path.filter(validated)?;
        let comes_into_use = index != self.active;
        if comes_into_use {
            if !self.has_peer_id(index, ids) {
                // Without an ID of its own the path must not be used (RFC 9000 §9.5).
                self.remove(index);
                return None;
            }
            self.use_own(index, ids);
        }
        self.own.on_done();
        self.last_validated = None;
        self.expire_others(now, pto);
        Some(comes_into_use)
    }

    /// Sets the time at which all paths but the one in use and that of an unfinished move are closed. Until
    /// then packets of the peer may arrive there, among them challenges (RFC 9000 §9.3.3).
    fn expire_others(&mut self, now: Time, pto: Duration) {
        let expires_at = now + self.validation_pto(pto).saturating_mul(3);
        let (active, unfinished) = (self.active, self.own.path);
        for at in 0..self.table.len() {
            let expires = at != active && Some(at) != unfinished;
            if expires && self.table[at].expires_at.is_none() {
                self.table[at].expires_at = Some(expires_at);
                self.abandon_validation(at);
            }
        }
    }

    /// Returns the number of moves and the state of the latest.
    pub(crate) fn own_move(&self) -> (u64, MigrationState) {
        (self.own.count, self.own.state)
    }

    /// Returns true once for each move that has failed.
    pub(crate) fn take_failed_move(&mut self) -> bool {
        std::mem::take(&mut self.own.has_failed)
    }

    /// Makes a path of our own choice the active one. Both paths keep their IDs.
    fn use_own(&mut self, index: PathIndex, ids: &mut ConnectionIds) {
        let old = self.active;
        if self.table[old].is_validated() {
            self.last_validated = Some(old);
        }
        if self.shares_recovery(index, old) {
            self.take_over(old, index);
        }
        let left = ids.destination_sequence();
        if let Some(id) = self.table[index].peer_id.take()
            && ids.exchange(id)
        {
            self.table[old].peer_id = Some(left);
        }
        self.active = index;
        self.changes += 1;
        if self.last_validated != Some(old) {
            self.remove(old);
        }
    }

    /// Returns true if a path has an ID of its own, after reserving a spare one if needed.
    fn has_peer_id(&mut self, index: PathIndex, ids: &mut ConnectionIds) -> bool {
        let path = &mut self.table[index];
        if path.peer_id.is_some_and(|id| ids.id_of(id).is_some()) {
            return true;
        }
        path.peer_id = ids.reserve().map(|(id, _)| id);
        path.peer_id.is_some()
    }

    /// Sets whether the address that the server prefers is used.
    pub(crate) fn set_follows_preferred(&mut self, follows: bool) {
        self.own.ignores_preferred = !follows;
    }

    /// Returns a path to the address that the server prefers, to be used once it is validated
    /// (RFC 9000 §9.6.1). Returns `None` if no offered address is usable.
    pub(crate) fn to_preferred(&self, offered: &PreferredAddress) -> Option<OwnPath> {
        let mut place = self.active().place();
        if self.own.ignores_preferred {
            return None;
        }
        place.tuple.peer = preferred(place.tuple.peer, offered)?;
        Some(OwnPath {
            place,
            keeps_recovery: false,
            is_at_once: false,
        })
    }

    /// Returns true if a path sends from a socket.
    pub(crate) fn has_socket(&self, socket: SocketId) -> bool {
        self.table.iter().any(|path| path.place().socket == socket)
    }
}

/// Bytes that count as received from the server's preferred address (limit K160), so that three full
/// datagrams may be sent there until it responds.
const UNVALIDATED_CREDIT: usize = 1200;

#[cfg(test)]
mod tests;
