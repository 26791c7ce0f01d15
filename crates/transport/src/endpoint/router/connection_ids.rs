//! The connection IDs of the endpoint's connections: made, routed and replaced.

use courser_wire::packet::{Packet, PacketKind};
use courser_wire::{ConnectionId, PreferredAddress};

use crate::cid::ConnectionIdError;
use crate::config::ServerConfig;
use crate::connection::Connection;
use crate::endpoint::{ConnectionHandle, Endpoint, Owner};

impl Endpoint {
    /// Makes an ID that no connection has.
    ///
    /// # Errors
    ///
    /// Fails if all IDs are taken, or the generator breaks its promises.
    pub fn new_id(&mut self) -> Result<ConnectionId, ConnectionIdError> {
        let routing = &self.routing;
        let id = self.ids.generate(&mut self.rng, |id| routing.is_taken(id));
        self.stats.connection_ids_failed += u64::from(id.is_err());
        id
    }

    /// Returns the address that a client should move to, with an ID for its use. There is none for a
    /// client that addresses us without IDs (RFC 9000 §18.2).
    pub fn prefer(
        &mut self,
        config: &ServerConfig,
        local_source: &ConnectionId,
    ) -> Option<PreferredAddress> {
        let (ipv4, ipv6) = (config.preferred_address_v4, config.preferred_address_v6);
        if local_source.is_empty() || ipv4.is_none() && ipv6.is_none() {
            return None;
        }
        let id = self.new_id().ok().filter(|id| id != local_source)?;
        Some(PreferredAddress {
            ipv4,
            ipv6,
            id,
            reset_token: self.stateless.reset_token(&id),
        })
    }

    /// Ends the routes of IDs that the peer has retired, and makes those that it may have now.
    pub fn settle_ids(&mut self, handle: ConnectionHandle) {
        let owner = Owner::Connection(handle);
        while let Some(id) = self
            .connection_mut(handle)
            .and_then(|connection| connection.ids_mut().take_retired())
        {
            self.routing.remove_id(&id, owner);
            self.last_route = None;
        }
        let wanted = self.connection(handle).map_or(0, Connection::ids_wanted);
        for _ in 0..wanted {
            // If the generator fails, it is called again the next time.
            let Ok(id) = self.new_id() else {
                break;
            };
            if id.is_empty() || !self.routing.insert_id(id, owner) {
                break;
            }
            let token = self.stateless.reset_token(&id);
            if let Some(connection) = self.connection_mut(handle) {
                connection.ids_mut().issue(id, token);
            }
            // The new IDs are sent at the next opportunity.
            self.touched(handle);
        }
    }

    /// Returns false for a packet whose ID the endpoint cannot have made, so that no connection has
    /// it (attack A112). Clients choose the IDs of their first packets themselves.
    pub fn may_be_ours(&self, packet: &Packet) -> bool {
        matches!(packet.kind, PacketKind::Initial | PacketKind::ZeroRtt)
            || self.ids.is_valid(&packet.destination)
    }
}
