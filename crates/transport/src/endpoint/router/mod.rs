//! Finds the owners of datagrams (RFC 9000 §5.2).

pub mod connection_routes;
pub mod owner;
pub mod shard_routes;
pub mod tables;

use std::mem;
use std::net::SocketAddr;
use std::sync::Arc;

use courser_base::FourTuple;
use courser_wire::ConnectionId;
use courser_wire::packet::{Packet, PacketKind};

use self::connection_routes::ConnectionRoutes;
use self::owner::Owner;
use self::shard_routes::ShardRoutes;
use super::handle::ConnectionHandle;
use super::shards::ShardId;
use super::shared::Shared;
use crate::cid::{ConnectionIdError, IdSource, ResetToken, TokenChange};
use crate::config::EndpointConfig;
use crate::connection::Connection;
use crate::rng::Rng;

/// Generates the connection IDs of an endpoint, and finds the owners of datagrams.
#[derive(Debug)]
pub struct Router {
    ids: IdSource,
    routes: ShardRoutes,
    shared: Arc<Shared>,
    /// The ID found last, because the datagrams of a batch have the same ID.
    last: Option<(ConnectionId, Owner)>,
    /// Number of failed attempts to generate an ID.
    failures: u64,
}

/// The result of a search for the owner of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    Owner(Owner),
    /// The ID may be one of ours or of a client, but has no owner in this shard.
    NoOwner,
    /// The endpoint cannot have generated the ID, so that no connection has it (attack A112).
    Foreign,
}

impl Router {
    /// Creates a router without routes; `key` must be secret.
    pub fn new(
        config: &EndpointConfig,
        shard: ShardId,
        key: [u8; 16],
        shared: Arc<Shared>,
    ) -> Self {
        let mut ids = IdSource::new(config);
        let mut routes = ShardRoutes::new(key);
        if !shard.is_alone() {
            let has_place = ids.join(shard.number, shard.count);
            routes.join(shard.number, !has_place, shared.clone());
        }
        Self {
            ids,
            routes,
            shared,
            last: None,
            failures: 0,
        }
    }

    /// Finds the owner of a packet that arrived on this path. Most packets belong to the connection of the
    /// previous one.
    #[inline]
    pub fn find(&mut self, packet: &Packet, path: &FourTuple) -> Found {
        match &self.last {
            Some((id, owner)) if *id == packet.destination => Found::Owner(*owner),
            _ if self.may_be_ours(packet) => self.look_up(packet, path),
            _ => Found::Foreign,
        }
    }

    /// Returns false for a packet whose ID the endpoint cannot have generated. Clients choose the IDs of
    /// their first packets themselves.
    fn may_be_ours(&self, packet: &Packet) -> bool {
        matches!(packet.kind, PacketKind::Initial | PacketKind::ZeroRtt)
            || self.ids.is_valid(&packet.destination)
    }

    fn look_up(&mut self, packet: &Packet, path: &FourTuple) -> Found {
        let Some(owner) = self.routes.find(&packet.destination, path) else {
            return Found::NoOwner;
        };
        if !packet.destination.is_empty() {
            self.last = Some((packet.destination, owner));
        }
        Found::Owner(owner)
    }

    /// Finds the connection of an ID that we have issued, or of these addresses if it is empty.
    pub fn find_connection(&self, id: &[u8], path: &FourTuple) -> Option<ConnectionHandle> {
        self.routes.find(id, path)?.connection()
    }

    /// Finds the connection that a datagram resets.
    pub fn find_reset(&self, peer: SocketAddr, datagram: &[u8]) -> Option<ConnectionHandle> {
        self.routes.find_reset(peer, datagram)?.connection()
    }

    /// Finds the connection that sends to `id` at `peer`.
    pub fn find_sender(&self, peer: SocketAddr, id: &ConnectionId) -> Option<ConnectionHandle> {
        self.routes.find_peer_id(peer, id)?.connection()
    }

    /// Returns the other shard that owns the destination of a packet.
    pub fn find_elsewhere(&self, packet: &Packet, path: &FourTuple) -> Option<u16> {
        self.routes.find_elsewhere(&packet.destination, path)
    }

    /// Returns the other shard with the connection that a datagram resets.
    pub fn find_reset_elsewhere(&self, peer: SocketAddr, datagram: &[u8]) -> Option<u16> {
        self.routes.find_reset_elsewhere(peer, datagram)
    }

    /// Returns the shard that the ID of a packet names, if it is one of our IDs.
    pub fn shard_of(&self, packet: &Packet) -> Option<u16> {
        self.ids.shard_of(&packet.destination)
    }

    /// Returns the generator of connection IDs.
    pub fn ids(&self) -> &IdSource {
        &self.ids
    }

    /// Generates an ID that no connection has.
    ///
    /// # Errors
    ///
    /// [`ConnectionIdError`] if all IDs are taken, or the generator is faulty.
    pub fn new_id(&mut self, rng: &mut Rng) -> Result<ConnectionId, ConnectionIdError> {
        let routes = &self.routes;
        let id = self.ids.generate(rng, |id| routes.is_taken(id));
        self.failures += u64::from(id.is_err());
        id
    }

    /// Generates the source ID of a Retry. The client addresses its next Initial to this ID, which must
    /// therefore be as long as a first destination.
    pub fn retry_source(&self, rng: &mut Rng) -> ConnectionId {
        if self.ids.length() >= MIN_DESTINATION {
            // A load balancer that routes by ID delivers the next Initial to this server.
            return self.ids.generate_unrouted(rng);
        }
        let id: [u8; MIN_DESTINATION] = rng.array();
        ConnectionId::new(&id).expect("eight bytes are an ID")
    }

    /// Routes the first ID of a waiting client. Returns false if the ID has an owner.
    #[must_use = "the client cannot wait"]
    pub fn add_waiting(&mut self, id: ConnectionId, number: u64) -> bool {
        self.routes.insert_initial_id(id, Owner::Waiting(number))
    }

    /// Removes the route of a client that no longer waits.
    pub fn remove_waiting(&mut self, id: &ConnectionId, number: u64) {
        self.routes.remove_initial_id(id, Owner::Waiting(number));
        self.last = None;
    }

    /// Routes a new connection by its ID, or by its addresses if it has none. Returns false if they have an
    /// owner.
    #[must_use = "without a route the connection receives no datagrams"]
    pub fn add(
        &mut self,
        handle: ConnectionHandle,
        routes: &mut ConnectionRoutes,
        id: ConnectionId,
        path: FourTuple,
    ) -> bool {
        let owner = Owner::Connection(handle);
        if !id.is_empty() {
            return self.routes.insert_id(id, owner);
        }
        let is_new = self.routes.insert_four_tuple(path, owner);
        if is_new {
            routes.four_tuple = Some(Box::new(path));
        }
        is_new
    }

    /// Routes a further ID of a connection, which [`Router::new_id`] has just returned.
    pub fn add_id(&mut self, handle: ConnectionHandle, id: ConnectionId) {
        let is_routed = self.routes.insert_id(id, Owner::Connection(handle));
        debug_assert!(is_routed, "it was free a moment ago");
    }

    /// Routes the first ID of a client to its connection, unless the ID has an owner.
    pub fn add_initial_id(
        &mut self,
        handle: ConnectionHandle,
        routes: &mut ConnectionRoutes,
        id: ConnectionId,
    ) {
        let owner = Owner::Connection(handle);
        let is_routed = self.routes.insert_initial_id(id, owner);
        routes.initial_id = is_routed.then_some(id);
    }

    /// Updates the routes of a connection that was used, and issues the missing IDs to it, each with the
    /// token that `reset_token` returns. Returns true if there are any.
    pub fn update(
        &mut self,
        handle: ConnectionHandle,
        routes: &mut ConnectionRoutes,
        connection: &mut Connection,
        rng: &mut Rng,
        reset_token: impl Fn(&ConnectionId) -> ResetToken,
    ) -> bool {
        let has_new = self.update_ids(handle, connection, rng, reset_token);
        self.update_reset_tokens(handle, routes, connection);
        self.update_peer_id(handle, routes, connection);
        has_new
    }

    /// Removes the routes of IDs that the peer has retired, and issues their replacements.
    fn update_ids(
        &mut self,
        handle: ConnectionHandle,
        connection: &mut Connection,
        rng: &mut Rng,
        reset_token: impl Fn(&ConnectionId) -> ResetToken,
    ) -> bool {
        let owner = Owner::Connection(handle);
        while let Some(id) = connection.take_retired_id() {
            self.routes.remove_id(&id, owner);
            self.last = None;
            self.shared.late_ids.lock().insert(id);
        }
        let mut has_new = false;
        for _ in 0..connection.missing_ids() {
            // If the generator fails, it is called again the next time.
            let Ok(id) = self.new_id(rng) else {
                break;
            };
            if id.is_empty() || !self.routes.insert_id(id, owner) {
                break;
            }
            connection.issue_id(id, reset_token(&id));
            has_new = true;
        }
        has_new
    }

    fn update_reset_tokens(
        &mut self,
        handle: ConnectionHandle,
        routes: &mut ConnectionRoutes,
        connection: &mut Connection,
    ) {
        let owner = Owner::Connection(handle);
        let peer = connection.path().peer;
        let tokens = &mut routes.reset_tokens;
        let has_moved = |from: &SocketAddr| *from != peer && !connection.has_several_paths();
        for (from, token) in tokens.iter_mut().filter(|(from, _)| has_moved(from)) {
            // The peer has moved, and a token is valid only from the address to which its ID is used.
            self.routes.remove_reset_token(*from, *token, owner);
            self.routes.insert_reset_token(peer, *token, owner);
            *from = peer;
        }
        while let Some((of_path, change)) = connection.poll_token_change() {
            match change {
                TokenChange::Added(token) => {
                    let peer = of_path.unwrap_or(peer);
                    if self.routes.insert_reset_token(peer, token, owner) {
                        tokens.push((peer, token));
                    }
                }
                TokenChange::Removed(token) => {
                    tokens.retain(|&(peer, known)| {
                        if known == token {
                            self.routes.remove_reset_token(peer, token, owner);
                        }
                        known != token
                    });
                }
            }
        }
    }

    /// Updates the route of the destination ID and address of a connection's packets.
    fn update_peer_id(
        &mut self,
        handle: ConnectionHandle,
        routes: &mut ConnectionRoutes,
        connection: &Connection,
    ) {
        let owner = Owner::Connection(handle);
        let sends_large = !connection.is_handshaking() && !connection.is_closed();
        let now = sends_large.then(|| (connection.path().peer, connection.ids().destination()));
        if now == routes.peer_id {
            return;
        }
        if let Some((peer, id)) = mem::replace(&mut routes.peer_id, now) {
            self.routes.remove_peer_id(peer, id, owner);
        }
        if let Some((peer, id)) = now {
            // If two peers at one address chose the same ID, the route stays with the first.
            self.routes.insert_peer_id(peer, id, owner);
        }
    }

    /// Removes all routes of a connection, which has issued these IDs.
    pub fn remove(
        &mut self,
        handle: ConnectionHandle,
        routes: &mut ConnectionRoutes,
        ids: impl Iterator<Item = ConnectionId>,
    ) {
        let owner = Owner::Connection(handle);
        let routes = mem::take(routes);
        for id in ids {
            self.routes.remove_id(&id, owner);
        }
        if let Some(id) = routes.initial_id {
            self.routes.remove_initial_id(&id, owner);
        }
        for (peer, token) in routes.reset_tokens {
            self.routes.remove_reset_token(peer, token, owner);
        }
        if let Some((peer, id)) = routes.peer_id {
            self.routes.remove_peer_id(peer, id, owner);
        }
        if let Some(path) = routes.four_tuple {
            self.routes.remove_four_tuple(&path, owner);
        }
        self.last = None;
    }

    /// Removes all routes of a connection that has panicked. Examines every route, because the state of the
    /// connection may be inconsistent.
    pub fn remove_faulty(&mut self, handle: ConnectionHandle, routes: &mut ConnectionRoutes) {
        *routes = ConnectionRoutes::default();
        self.routes.remove_owner(Owner::Connection(handle));
        self.last = None;
    }

    /// Removes the routes of this shard from the table of all shards.
    pub fn leave(&mut self) {
        self.routes.leave();
    }

    /// Returns the number of failed attempts to generate an ID.
    pub fn failures(&self) -> u64 {
        self.failures
    }

    /// Returns the number of routes in this shard.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.routes.len()
    }

    /// Returns the number of routes in the table of all shards.
    #[cfg(test)]
    pub fn common_len(&self) -> usize {
        self.routes.common_len()
    }

    /// Returns true if a connection has the ID.
    #[cfg(test)]
    pub fn is_taken(&self, id: &ConnectionId) -> bool {
        self.routes.is_taken(id)
    }
}

/// The shortest first Destination ID of a client (RFC 9000 §7.2).
pub const MIN_DESTINATION: usize = 8;

#[cfg(test)]
mod tests;
