//! Routing of datagrams to connections (RFC 9000 §5.2).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{Hash, Hasher};
use std::net::SocketAddr;

use courser_base::FourTuple;
use courser_crypto::reset_token;
use courser_wire::ConnectionId;

use crate::cid::ResetToken;
use crate::endpoint::shrink::shrink;
use crate::endpoint::stateless::reset;
use crate::hasher::KeyedState;

/// The tables that map datagrams to the handle `H` of their connection.
///
/// Peers choose many of the keys, so the hashers are keyed (attack A14), and an entry is never
/// overwritten by another connection (attack A15). Each connection owns few entries:
/// [`crate::cid::issued::IssuedIds::MAX_IDS`] IDs, one client-chosen ID, one address, a token for
/// each ID that it uses, and the destination ID of its packets.
#[derive(Debug)]
pub struct RouteTables<H> {
    ids: HashMap<ConnectionId, H, KeyedState>,
    initial_ids: HashMap<ConnectionId, H, KeyedState>,
    four_tuples: HashMap<FourTuple, H, KeyedState>,
    reset_tokens: HashMap<ResetSource, H, KeyedState>,
    /// Connections by the destination address and ID of their packets, for quotes of our own datagrams.
    peer_ids: HashMap<(SocketAddr, ConnectionId), H, KeyedState>,
}

impl<H: Copy + Eq> RouteTables<H> {
    /// Creates empty tables; `key` must be secret.
    pub fn new(key: [u8; 16]) -> Self {
        let state = KeyedState::new(key);
        Self {
            ids: HashMap::with_hasher(state.clone()),
            initial_ids: HashMap::with_hasher(state.clone()),
            four_tuples: HashMap::with_hasher(state.clone()),
            reset_tokens: HashMap::with_hasher(state.clone()),
            peer_ids: HashMap::with_hasher(state),
        }
    }

    /// Returns true if a connection owns the ID.
    pub fn is_taken(&self, id: &ConnectionId) -> bool {
        self.ids.contains_key(id) || self.initial_ids.contains_key(id)
    }

    /// Routes an ID that we issued. Returns false and changes nothing if it has an owner already.
    #[must_use = "an id that is owned must not be issued"]
    pub fn insert_id(&mut self, id: ConnectionId, handle: H) -> bool {
        debug_assert!(
            !id.is_empty(),
            "connections without ids are routed by address"
        );
        insert(&mut self.ids, id, handle)
    }

    /// Routes the ID that a client chose for its first packets. Returns false and changes nothing
    /// if it has an owner already.
    #[must_use = "packets with this id belong to another owner"]
    pub fn insert_initial_id(&mut self, id: ConnectionId, handle: H) -> bool {
        insert(&mut self.initial_ids, id, handle)
    }

    /// Routes an address, for a connection to which we gave an empty ID. Returns false and changes
    /// nothing if another connection has this address: without IDs they could not be distinguished
    /// (RFC 9000 §5.1).
    #[must_use = "the address is in use"]
    pub fn insert_four_tuple(&mut self, four_tuple: FourTuple, handle: H) -> bool {
        insert(&mut self.four_tuples, four_tuple, handle)
    }

    /// Routes resets with `token` from `peer`. Returns false and changes nothing if another
    /// connection owns the token, which then resets only that one.
    pub fn insert_reset_token(&mut self, peer: SocketAddr, token: ResetToken, handle: H) -> bool {
        insert(&mut self.reset_tokens, ResetSource { peer, token }, handle)
    }

    /// Routes quotes of datagrams to `id` at `peer`, unless another connection sends to it too.
    pub fn insert_peer_id(&mut self, peer: SocketAddr, id: ConnectionId, handle: H) {
        insert(&mut self.peer_ids, (peer, id), handle);
    }

    /// Removes the route for quotes of datagrams to `id` at `peer`.
    pub fn remove_peer_id(&mut self, peer: SocketAddr, id: ConnectionId, handle: H) {
        if self.peer_ids.get(&(peer, id)) == Some(&handle) {
            self.peer_ids.remove(&(peer, id));
            shrink(&mut self.peer_ids);
        }
    }

    /// Finds the connection that sends to `id` at `peer`.
    pub fn find_peer_id(&self, peer: SocketAddr, id: &ConnectionId) -> Option<H> {
        self.peer_ids.get(&(peer, *id)).copied()
    }

    /// Removes the route of an ID that we issued. Like all removals, it does not change entries of other
    /// connections.
    pub fn remove_id(&mut self, id: &ConnectionId, handle: H) {
        if self.ids.get(id) == Some(&handle) {
            self.ids.remove(id);
            shrink(&mut self.ids);
        }
    }

    /// Removes the route of an ID that a client chose.
    pub fn remove_initial_id(&mut self, id: &ConnectionId, handle: H) {
        if self.initial_ids.get(id) == Some(&handle) {
            self.initial_ids.remove(id);
            shrink(&mut self.initial_ids);
        }
    }

    /// Removes the route of an address.
    pub fn remove_four_tuple(&mut self, four_tuple: &FourTuple, handle: H) {
        if self.four_tuples.get(four_tuple) == Some(&handle) {
            self.four_tuples.remove(four_tuple);
            shrink(&mut self.four_tuples);
        }
    }

    /// Removes the route of a reset token.
    pub fn remove_reset_token(&mut self, peer: SocketAddr, token: ResetToken, handle: H) {
        let source = ResetSource { peer, token };
        if self.reset_tokens.get(&source) == Some(&handle) {
            self.reset_tokens.remove(&source);
            shrink(&mut self.reset_tokens);
        }
    }

    /// Removes all routes to a connection. Examines every entry, so use it only in rare cases.
    pub fn remove_owner(&mut self, handle: H) {
        self.ids.retain(|_, owner| *owner != handle);
        self.initial_ids.retain(|_, owner| *owner != handle);
        self.four_tuples.retain(|_, owner| *owner != handle);
        self.reset_tokens.retain(|_, owner| *owner != handle);
        self.peer_ids.retain(|_, owner| *owner != handle);
    }

    /// Removes the routes to all owners for which `is_kept` returns false. Examines every entry, like
    /// [`RouteTables::remove_owner`].
    pub fn retain_owners(&mut self, is_kept: impl Fn(&H) -> bool) {
        self.ids.retain(|_, owner| is_kept(owner));
        self.initial_ids.retain(|_, owner| is_kept(owner));
        self.four_tuples.retain(|_, owner| is_kept(owner));
        self.reset_tokens.retain(|_, owner| is_kept(owner));
        self.peer_ids.retain(|_, owner| is_kept(owner));
    }

    /// Finds the owner of a datagram by the Destination Connection ID of its first packet, or by
    /// its addresses when the ID is empty. IDs of more than 20 bytes have no owner.
    pub fn find(&self, destination: &[u8], four_tuple: &FourTuple) -> Option<H> {
        let id = ConnectionId::new(destination)?;
        if id.is_empty() {
            // The route of a client has no local address at first, but datagrams contain it.
            let anywhere = FourTuple::to(four_tuple.peer);
            let exact = self.four_tuples.get(four_tuple);
            return exact.or_else(|| self.four_tuples.get(&anywhere)).copied();
        }
        self.ids
            .get(&id)
            .or_else(|| self.initial_ids.get(&id))
            .copied()
    }

    /// Finds the connection that a datagram resets. A reset is any datagram that ends in the token
    /// of an ID which the connection uses towards `peer` (RFC 9000 §10.3.1).
    ///
    /// Call it for datagrams without an owner. Datagrams that belong to a connection but do not
    /// decrypt are checked by [`crate::cid::peer::PeerIds::is_reset_token`].
    pub fn find_reset(&self, peer: SocketAddr, datagram: &[u8]) -> Option<H> {
        if self.reset_tokens.is_empty() {
            return None;
        }
        let token = reset::token_of(datagram)?;
        self.reset_tokens.get(&ResetSource { peer, token }).copied()
    }

    /// Returns the number of entries in all tables.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        let by_id = self.ids.len() + self.initial_ids.len();
        by_id + self.four_tuples.len() + self.reset_tokens.len() + self.peer_ids.len()
    }

    /// Returns true if all tables are empty.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn insert<K: Eq + Hash, H>(table: &mut HashMap<K, H, KeyedState>, key: K, handle: H) -> bool {
    match table.entry(key) {
        Entry::Occupied(_) => false,
        Entry::Vacant(vacant) => {
            vacant.insert(handle);
            true
        }
    }
}

/// The address and token that may reset a connection. A token is valid only from the address to which
/// its ID is used, so that another server cannot use it.
#[derive(Clone, Copy)]
struct ResetSource {
    peer: SocketAddr,
    token: ResetToken,
}

/// Compares tokens in constant time (RFC 9000 §10.3.1). The hash is keyed, so the time to find a
/// candidate reveals nothing about tokens either.
impl PartialEq for ResetSource {
    fn eq(&self, other: &Self) -> bool {
        reset_token::equal(&self.token, &other.token) & (self.peer == other.peer)
    }
}

impl Eq for ResetSource {}

impl Hash for ResetSource {
    fn hash<S: Hasher>(&self, state: &mut S) {
        self.peer.hash(state);
        state.write(&self.token);
    }
}

/// Omits the tokens, which are secrets and stay out of logs.
impl std::fmt::Debug for ResetSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.peer)
    }
}

#[cfg(test)]
mod tests;
