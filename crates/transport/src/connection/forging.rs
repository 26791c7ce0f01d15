//! Test support for packets that are sealed with the keys of a connection.

use courser_crypto::HeaderKey;
use courser_wire::ConnectionId;

use super::Connection;
use crate::recovery::Built;
use crate::space::SpaceId;
use crate::space::sent::SentFrames;

impl Connection {
    pub(crate) fn forging_ids(&self) -> (ConnectionId, ConnectionId) {
        (
            self.parts.ids.destination(),
            self.parts.handshake.local_id(),
        )
    }

    /// Takes the next packet number of a space and records an empty packet under it, so that an
    /// honest acknowledgement of the forged packet is valid.
    pub(crate) fn forging_number(&mut self, space: SpaceId) -> u64 {
        if space == SpaceId::Application {
            self.packets.protection.derive();
        }
        let number = self
            .packets
            .recovery
            .next_number(space)
            .expect("the space is open")
            .value;
        let built = Built {
            number,
            len: 0,
            frames: SentFrames::default(),
            ack_eliciting: false,
            in_flight: false,
            quic_bit_cleared: false,
            follows_in_batch: false,
        };
        self.packets
            .recovery
            .on_forged_packet(space, &built, &mut self.parts.rng);
        number
    }

    /// Protects the header of a sealed 1-RTT packet.
    pub(crate) fn forging_protect(&mut self, bytes: &mut [u8], number_offset: usize, len: usize) {
        self.packets.protection.derive();
        let keys = self.packets.protection.one_rtt_keys().expect("1-RTT keys");
        keys.protect(bytes, number_offset, len);
    }

    pub(crate) fn forging_key_phase(&self) -> bool {
        self.packets.protection.key_phase().unwrap_or_default()
    }

    pub(crate) fn forging_seal(
        &mut self,
        space: SpaceId,
        number: u64,
        bytes: &mut [u8],
        header_len: usize,
        protect: impl FnOnce(&HeaderKey, &mut [u8]),
    ) {
        self.packets
            .protection
            .seal_only(space, number, bytes, header_len);
        protect(
            self.packets.protection.local_header(space).expect("keys"),
            bytes,
        );
    }
}
