//! What tests need to seal packets in a connection's name.

use courser_crypto::HeaderKey;
use courser_wire::ConnectionId;

use super::Connection;
use crate::space::SpaceId;

impl Connection {
    pub(crate) fn forging_ids(&self) -> (ConnectionId, ConnectionId) {
        (*self.cids.peer.current(), self.handshake.local_source)
    }

    /// Takes the next packet number of a space.
    pub(crate) fn forging_number(&mut self, space: SpaceId) -> u64 {
        let space = self.spaces.get_mut(space).expect("the space is open");
        space.next_packet_number += 1;
        space.next_packet_number - 1
    }

    pub(crate) fn forging_key_phase(&self) -> bool {
        self.key_phase.keys.as_ref().is_some_and(|keys| keys.key_phase())
    }

    pub(crate) fn forging_seal(
        &mut self,
        space: SpaceId,
        number: u64,
        bytes: &mut [u8],
        header_len: usize,
        protect: impl FnOnce(&HeaderKey, &mut [u8]),
    ) {
        if space == SpaceId::Application {
            let keys = self.key_phase.keys.as_mut().expect("1-RTT keys");
            keys.seal_packet(number, bytes, header_len);
            protect(keys.local_header(), bytes);
        } else {
            let space = self.spaces.get(space).expect("the space is open");
            let keys = space.keys.as_ref().expect("keys of the space");
            keys.local.packet.seal_packet(number, bytes, header_len);
            protect(&keys.local.header, bytes);
        }
    }
}
