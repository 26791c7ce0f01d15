//! The routes of one shard, and those in the table of all shards.

use std::net::SocketAddr;
use std::sync::Arc;

use courser_base::FourTuple;
use courser_wire::ConnectionId;

use super::owner::Owner;
use super::tables::RouteTables;
use crate::cid::ResetToken;
use crate::endpoint::shared::Shared;

/// Finds the owners of datagrams in this shard.
///
/// A common table of all shards contains the keys that do not name a shard: the first IDs of clients,
/// reset tokens, the addresses of connections without IDs, and all IDs if they have no byte for the
/// shard. Lookups in this shard do not use that table.
#[derive(Debug)]
pub struct ShardRoutes {
    own: RouteTables<Owner>,
    common: Option<Common>,
}

/// The access of one shard to the routes of all shards.
#[derive(Debug)]
struct Common {
    shard: u16,
    has_all_ids: bool,
    shared: Arc<Shared>,
}

/// Removes the routes of this shard, so that the others process its datagrams.
impl Drop for Common {
    fn drop(&mut self) {
        let mut table = self.shared.routes.lock();
        table.retain_owners(|(shard, _)| *shard != self.shard);
    }
}

impl ShardRoutes {
    /// Creates the routes of an endpoint with one shard; `key` must be secret.
    pub fn new(key: [u8; 16]) -> Self {
        Self {
            own: RouteTables::new(key),
            common: None,
        }
    }

    /// Joins the shards of an endpoint as number `shard`. Call it before any route is added.
    pub fn join(&mut self, shard: u16, has_all_ids: bool, shared: Arc<Shared>) {
        debug_assert!(self.common.is_none(), "a shard joins once");
        self.common = Some(Common {
            shard,
            has_all_ids,
            shared,
        });
    }

    /// See [`RouteTables::is_taken`].
    pub fn is_taken(&self, id: &ConnectionId) -> bool {
        let is_taken_elsewhere = |common: &Common| common.shared.routes.lock().is_taken(id);
        self.own.is_taken(id) || self.for_ids().is_some_and(is_taken_elsewhere)
    }

    /// See [`RouteTables::insert_id`].
    #[must_use = "an id that is owned must not be issued"]
    pub fn insert_id(&mut self, id: ConnectionId, owner: Owner) -> bool {
        let is_new = self.own.insert_id(id, owner);
        if let Some(common) = self.for_ids().filter(|_| is_new)
            && !common
                .shared
                .routes
                .lock()
                .insert_id(id, (common.shard, owner))
        {
            self.own.remove_id(&id, owner);
            return false;
        }
        is_new
    }

    /// See [`RouteTables::insert_initial_id`].
    #[must_use = "packets with this id belong to another owner"]
    pub fn insert_initial_id(&mut self, id: ConnectionId, owner: Owner) -> bool {
        let is_new = self.own.insert_initial_id(id, owner);
        if let Some(common) = self.common.as_ref().filter(|_| is_new) {
            let entry = (common.shard, owner);
            if !common.shared.routes.lock().insert_initial_id(id, entry) {
                self.own.remove_initial_id(&id, owner);
                return false;
            }
        }
        is_new
    }

    /// See [`RouteTables::insert_four_tuple`].
    #[must_use = "the address is in use"]
    pub fn insert_four_tuple(&mut self, path: FourTuple, owner: Owner) -> bool {
        let is_new = self.own.insert_four_tuple(path, owner);
        if let Some(common) = self.common.as_ref().filter(|_| is_new) {
            let entry = (common.shard, owner);
            if !common.shared.routes.lock().insert_four_tuple(path, entry) {
                self.own.remove_four_tuple(&path, owner);
                return false;
            }
        }
        is_new
    }

    /// See [`RouteTables::insert_reset_token`].
    pub fn insert_reset_token(
        &mut self,
        peer: SocketAddr,
        token: ResetToken,
        owner: Owner,
    ) -> bool {
        let is_new = self.own.insert_reset_token(peer, token, owner);
        if let Some(common) = self.common.as_ref().filter(|_| is_new) {
            let mut table = common.shared.routes.lock();
            table.insert_reset_token(peer, token, (common.shard, owner));
        }
        is_new
    }

    /// See [`RouteTables::insert_peer_id`].
    pub fn insert_peer_id(&mut self, peer: SocketAddr, id: ConnectionId, owner: Owner) {
        self.own.insert_peer_id(peer, id, owner);
    }

    /// See [`RouteTables::remove_peer_id`].
    pub fn remove_peer_id(&mut self, peer: SocketAddr, id: ConnectionId, owner: Owner) {
        self.own.remove_peer_id(peer, id, owner);
    }

    /// See [`RouteTables::find_peer_id`].
    pub fn find_peer_id(&self, peer: SocketAddr, id: &ConnectionId) -> Option<Owner> {
        self.own.find_peer_id(peer, id)
    }

    /// See [`RouteTables::remove_id`].
    pub fn remove_id(&mut self, id: &ConnectionId, owner: Owner) {
        self.own.remove_id(id, owner);
        if let Some(common) = self.for_ids() {
            common
                .shared
                .routes
                .lock()
                .remove_id(id, (common.shard, owner));
        }
    }

    /// See [`RouteTables::remove_initial_id`].
    pub fn remove_initial_id(&mut self, id: &ConnectionId, owner: Owner) {
        self.own.remove_initial_id(id, owner);
        self.in_common(|table, entry| table.remove_initial_id(id, entry), owner);
    }

    /// See [`RouteTables::remove_four_tuple`].
    pub fn remove_four_tuple(&mut self, path: &FourTuple, owner: Owner) {
        self.own.remove_four_tuple(path, owner);
        self.in_common(|table, entry| table.remove_four_tuple(path, entry), owner);
    }

    /// See [`RouteTables::remove_reset_token`].
    pub fn remove_reset_token(&mut self, peer: SocketAddr, token: ResetToken, owner: Owner) {
        self.own.remove_reset_token(peer, token, owner);
        self.in_common(
            |table, entry| table.remove_reset_token(peer, token, entry),
            owner,
        );
    }

    /// See [`RouteTables::remove_owner`].
    pub fn remove_owner(&mut self, owner: Owner) {
        self.own.remove_owner(owner);
        self.in_common(|table, entry| table.remove_owner(entry), owner);
    }

    /// See [`RouteTables::find`].
    #[inline]
    pub fn find(&self, destination: &[u8], path: &FourTuple) -> Option<Owner> {
        self.own.find(destination, path)
    }

    /// See [`RouteTables::find_reset`].
    pub fn find_reset(&self, peer: SocketAddr, datagram: &[u8]) -> Option<Owner> {
        self.own.find_reset(peer, datagram)
    }

    /// Removes the routes of this shard from the table of all shards.
    pub fn leave(&mut self) {
        self.common = None;
    }

    /// Returns the other shard that owns a destination.
    pub fn find_elsewhere(&self, destination: &[u8], path: &FourTuple) -> Option<u16> {
        let common = self.common.as_ref()?;
        let found = common.shared.routes.lock().find(destination, path);
        common.other(found)
    }

    /// Returns the other shard with the connection that a datagram resets.
    pub fn find_reset_elsewhere(&self, peer: SocketAddr, datagram: &[u8]) -> Option<u16> {
        let common = self.common.as_ref()?;
        let found = common.shared.routes.lock().find_reset(peer, datagram);
        common.other(found)
    }

    fn in_common(
        &self,
        change: impl FnOnce(&mut RouteTables<(u16, Owner)>, (u16, Owner)),
        owner: Owner,
    ) {
        if let Some(common) = &self.common {
            change(&mut common.shared.routes.lock(), (common.shard, owner));
        }
    }

    /// Returns the table of all shards if all IDs are in it.
    fn for_ids(&self) -> Option<&Common> {
        self.common.as_ref().filter(|it| it.has_all_ids)
    }

    /// Returns the number of entries in the tables of this shard.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.own.len()
    }

    /// Returns the number of entries in the table of all shards.
    #[cfg(test)]
    pub fn common_len(&self) -> usize {
        self.common
            .as_ref()
            .map_or(0, |it| it.shared.routes.lock().len())
    }
}

impl Common {
    fn other(&self, found: Option<(u16, Owner)>) -> Option<u16> {
        let (shard, _) = found?;
        (shard != self.shard).then_some(shard)
    }
}
