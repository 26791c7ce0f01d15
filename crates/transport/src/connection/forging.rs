//! What tests need to seal packets in a connection's name.

use courser_crypto::HeaderKey;
use courser_wire::ConnectionId;

use super::Connection;
use crate::recovery::Built;
use crate::space::SpaceId;
use crate::space::sent::SentFrames;

impl Connection {
    pub(crate) fn forging_ids(&self) -> (ConnectionId, ConnectionId) {
        (*self.cids.peer.current(), self.handshake.local_source)
    }

    /// Takes the next packet number of a space and notes a packet of no consequence under it,
    /// so that an honest acknowledgement of the forged packet is nothing special.
    pub(crate) fn forging_number(&mut self, space: SpaceId) -> u64 {
        if space == SpaceId::Application {
            self.key_phase.derive();
        }
        let (number, _) = self.recovery.next_number(space).expect("the space is open");
        let built = Built {
            number,
            len: 0,
            frames: SentFrames::default(),
            ack_eliciting: false,
            in_flight: false,
        };
        self.recovery.on_forged_packet(space, &built, &mut self.rng);
        number
    }

    /// Protects the header of a sealed 1-RTT packet.
    pub(crate) fn forging_protect(&self, bytes: &mut [u8], number_offset: usize, len: usize) {
        let keys = self.key_phase.keys.as_ref().expect("1-RTT keys");
        keys.protect(bytes, number_offset, len);
    }

    pub(crate) fn forging_key_phase(&self) -> bool {
        self.key_phase
            .keys
            .as_ref()
            .is_some_and(|keys| keys.key_phase())
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
