//! The routes of one shard, and those that all shards of an endpoint must know.

use std::net::SocketAddr;
use std::sync::Arc;

use courser_base::{FourTuple, Mutex};
use courser_wire::ConnectionId;

use super::owner::Owner;
use super::routing::Routing;
use crate::cid::ResetToken;

/// Leads from datagrams to owners in this shard.
///
/// A table of all shards also has the keys that name no shard: the first IDs of clients, reset tokens,
/// the addresses of connections without IDs, and all IDs if they have no place for the number. Lookups
/// in this shard do not touch that table.
#[derive(Debug)]
pub(super) struct Routes {
    own: Routing<Owner>,
    common: Option<Common>,
}

/// The routes of all shards, seen from one of them.
#[derive(Debug)]
struct Common {
    shard: u16,
    has_all_ids: bool,
    table: Arc<CommonRoutes>,
}

/// The table of all shards of an endpoint: the shard and the owner in it.
pub(super) type CommonRoutes = Mutex<Routing<(u16, Owner)>>;

impl Routes {
    /// Creates the routes of an endpoint with one shard; `key` must be secret.
    pub(super) fn new(key: [u8; 16]) -> Self {
        Self {
            own: Routing::new(key),
            common: None,
        }
    }

    /// Makes the routes those of shard number `shard`. There are no routes yet.
    pub(super) fn join(&mut self, shard: u16, has_all_ids: bool, table: Arc<CommonRoutes>) {
        debug_assert!(self.common.is_none(), "a shard joins once");
        self.common = Some(Common {
            shard,
            has_all_ids,
            table,
        });
    }

    /// See [`Routing::is_taken`].
    pub(super) fn is_taken(&self, id: &ConnectionId) -> bool {
        let is_taken_elsewhere = |common: &Common| common.table.lock().is_taken(id);
        self.own.is_taken(id) || self.for_ids().is_some_and(is_taken_elsewhere)
    }

    /// See [`Routing::insert_id`].
    #[must_use = "an id that is owned must not be issued"]
    pub(super) fn insert_id(&mut self, id: ConnectionId, owner: Owner) -> bool {
        let is_new = self.own.insert_id(id, owner);
        if let Some(common) = self.for_ids().filter(|_| is_new)
            && !common.table.lock().insert_id(id, (common.shard, owner))
        {
            self.own.remove_id(&id, owner);
            return false;
        }
        is_new
    }

    /// See [`Routing::insert_initial_id`].
    #[must_use = "packets with this id go elsewhere"]
    pub(super) fn insert_initial_id(&mut self, id: ConnectionId, owner: Owner) -> bool {
        let is_new = self.own.insert_initial_id(id, owner);
        if let Some(common) = self.common.as_ref().filter(|_| is_new) {
            let entry = (common.shard, owner);
            if !common.table.lock().insert_initial_id(id, entry) {
                self.own.remove_initial_id(&id, owner);
                return false;
            }
        }
        is_new
    }

    /// See [`Routing::insert_four_tuple`].
    #[must_use = "the address is in use"]
    pub(super) fn insert_four_tuple(&mut self, path: FourTuple, owner: Owner) -> bool {
        let is_new = self.own.insert_four_tuple(path, owner);
        if let Some(common) = self.common.as_ref().filter(|_| is_new) {
            let entry = (common.shard, owner);
            if !common.table.lock().insert_four_tuple(path, entry) {
                self.own.remove_four_tuple(&path, owner);
                return false;
            }
        }
        is_new
    }

    /// See [`Routing::insert_reset_token`].
    pub(super) fn insert_reset_token(
        &mut self,
        peer: SocketAddr,
        token: ResetToken,
        owner: Owner,
    ) -> bool {
        let is_new = self.own.insert_reset_token(peer, token, owner);
        if let Some(common) = self.common.as_ref().filter(|_| is_new) {
            let mut table = common.table.lock();
            table.insert_reset_token(peer, token, (common.shard, owner));
        }
        is_new
    }

    /// See [`Routing::insert_peer_id`].
    pub(super) fn insert_peer_id(&mut self, peer: SocketAddr, id: ConnectionId, owner: Owner) {
        self.own.insert_peer_id(peer, id, owner);
    }

    /// See [`Routing::remove_peer_id`].
    pub(super) fn remove_peer_id(&mut self, peer: SocketAddr, id: ConnectionId, owner: Owner) {
        self.own.remove_peer_id(peer, id, owner);
    }

    /// See [`Routing::find_peer_id`].
    pub(super) fn find_peer_id(&self, peer: SocketAddr, id: &ConnectionId) -> Option<Owner> {
        self.own.find_peer_id(peer, id)
    }

    /// See [`Routing::remove_id`].
    pub(super) fn remove_id(&mut self, id: &ConnectionId, owner: Owner) {
        self.own.remove_id(id, owner);
        if let Some(common) = self.for_ids() {
            common.table.lock().remove_id(id, (common.shard, owner));
        }
    }

    /// See [`Routing::remove_initial_id`].
    pub(super) fn remove_initial_id(&mut self, id: &ConnectionId, owner: Owner) {
        self.own.remove_initial_id(id, owner);
        self.in_common(|table, entry| table.remove_initial_id(id, entry), owner);
    }

    /// See [`Routing::remove_four_tuple`].
    pub(super) fn remove_four_tuple(&mut self, path: &FourTuple, owner: Owner) {
        self.own.remove_four_tuple(path, owner);
        self.in_common(|table, entry| table.remove_four_tuple(path, entry), owner);
    }

    /// See [`Routing::remove_reset_token`].
    pub(super) fn remove_reset_token(&mut self, peer: SocketAddr, token: ResetToken, owner: Owner) {
        self.own.remove_reset_token(peer, token, owner);
        self.in_common(
            |table, entry| table.remove_reset_token(peer, token, entry),
            owner,
        );
    }

    /// See [`Routing::remove_owner`].
    pub(super) fn remove_owner(&mut self, owner: Owner) {
        self.own.remove_owner(owner);
        self.in_common(|table, entry| table.remove_owner(entry), owner);
    }

    /// See [`Routing::find`].
    #[inline]
    pub(super) fn find(&self, destination: &[u8], path: &FourTuple) -> Option<Owner> {
        self.own.find(destination, path)
    }

    /// See [`Routing::find_reset`].
    pub(super) fn find_reset(&self, peer: SocketAddr, datagram: &[u8]) -> Option<Owner> {
        self.own.find_reset(peer, datagram)
    }

    /// Ends all routing from other shards to this one.
    pub(super) fn leave(&mut self) {
        if let Some(common) = self.common.take() {
            let mut table = common.table.lock();
            table.retain_owners(|(shard, _)| *shard != common.shard);
        }
    }

    /// Returns the other shard that owns a destination.
    pub(super) fn find_elsewhere(&self, destination: &[u8], path: &FourTuple) -> Option<u16> {
        let common = self.common.as_ref()?;
        let found = common.table.lock().find(destination, path);
        common.other(found)
    }

    /// Returns the other shard with the connection that a datagram resets.
    pub(super) fn find_reset_elsewhere(&self, peer: SocketAddr, datagram: &[u8]) -> Option<u16> {
        let common = self.common.as_ref()?;
        let found = common.table.lock().find_reset(peer, datagram);
        common.other(found)
    }

    fn in_common(
        &self,
        change: impl FnOnce(&mut Routing<(u16, Owner)>, (u16, Owner)),
        owner: Owner,
    ) {
        if let Some(common) = &self.common {
            change(&mut common.table.lock(), (common.shard, owner));
        }
    }

    /// Returns the table of all shards if all IDs are in it.
    fn for_ids(&self) -> Option<&Common> {
        self.common.as_ref().filter(|it| it.has_all_ids)
    }

    /// Returns the number of entries in the tables of this shard.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.own.len()
    }

    /// Returns the number of entries in the table of all shards.
    #[cfg(test)]
    pub(super) fn common_len(&self) -> usize {
        self.common.as_ref().map_or(0, |it| it.table.lock().len())
    }
}

impl Common {
    fn other(&self, found: Option<(u16, Owner)>) -> Option<u16> {
        let (shard, _) = found?;
        (shard != self.shard).then_some(shard)
    }
}
