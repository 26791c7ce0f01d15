//! Packets that an honest peer would not send, sealed with the peer's real keys.

use courser_crypto::{TAG_LEN, header_protection};
use courser_wire::frame::Frame;
use courser_wire::packet::{LongHeader, PacketKind, ShortHeader, patch_length};
use courser_wire::version::VERSION_1;
use courser_wire::{Writer, packet_number};

use super::link::Datagram;
use super::{End, Pair};
use crate::space::SpaceId;

impl Pair {
    /// Sends the server a packet with these frame bytes, as the client would seal it, and runs
    /// until the response is back.
    pub(crate) fn forge_to_server(&mut self, space: SpaceId, payload: &[u8]) {
        let bytes = forge(&mut self.client, space, payload);
        let (from, to) = (self.client.address, self.server.address);
        self.deliver(Datagram {
            from,
            to,
            ecn: courser_base::Ecn::NotEct,
            bytes,
        });
        self.drive();
    }

    /// Sends the client a packet with these frame bytes, as the server would seal it.
    pub(crate) fn forge_to_client(&mut self, space: SpaceId, payload: &[u8]) {
        let bytes = forge(&mut self.server, space, payload);
        let (from, to) = (self.server.address, self.client.address);
        self.deliver(Datagram {
            from,
            to,
            ecn: courser_base::Ecn::NotEct,
            bytes,
        });
        self.drive();
    }

    /// Like [`Pair::forge_to_server`], for one frame.
    pub(crate) fn frame_to_server(&mut self, frame: &Frame<'_>) {
        self.forge_to_server(SpaceId::Application, &encode(frame));
    }

    /// Like [`Pair::forge_to_client`], for one frame.
    pub(crate) fn frame_to_client(&mut self, frame: &Frame<'_>) {
        self.forge_to_client(SpaceId::Application, &encode(frame));
    }
}

/// Encodes a frame as it is in the payload of a packet.
pub(crate) fn encode(frame: &Frame<'_>) -> Vec<u8> {
    let mut bytes = vec![0; frame.encoded_len()];
    frame.encode(&mut Writer::new(&mut bytes));
    bytes
}

/// Seals `payload` as the next packet of `end` in a space, without the checks of an honest end.
/// Datagrams with Initials are padded to 1200 bytes.
pub(crate) fn forge(end: &mut End, space: SpaceId, payload: &[u8]) -> Vec<u8> {
    forge_with(end, space, payload, |_| {})
}

/// Like [`forge`]; `change` may modify the header bytes before the packet is sealed.
pub(crate) fn forge_with(
    end: &mut End,
    space: SpaceId,
    payload: &[u8],
    change: impl FnOnce(&mut [u8]),
) -> Vec<u8> {
    const NUMBER_LEN: usize = 4;
    let connection = end.connection();
    let (destination, source) = connection.forging_ids();
    let number = connection.forging_number(space);
    let mut payload = payload.to_vec();
    if space == SpaceId::Initial {
        payload.resize(payload.len().max(1200), 0);
    }
    let mut bytes = vec![0; 64 + payload.len() + TAG_LEN];
    let mut writer = Writer::new(&mut bytes);
    let length_field = if space == SpaceId::Application {
        let key_phase = connection.forging_key_phase();
        ShortHeader {
            destination,
            spin: false,
            key_phase,
        }
        .encode(&mut writer, NUMBER_LEN);
        None
    } else {
        let kind = if space == SpaceId::Initial {
            PacketKind::Initial
        } else {
            PacketKind::Handshake
        };
        let header = LongHeader {
            kind,
            version: VERSION_1,
            destination,
            source,
            token: &[],
        };
        Some(header.encode(&mut writer, NUMBER_LEN))
    };
    let number_offset = writer.position();
    packet_number::write(&mut writer, number, NUMBER_LEN);
    let header_len = writer.position();
    writer.bytes(&payload);
    bytes.truncate(header_len + payload.len() + TAG_LEN);
    if let Some(offset) = length_field {
        let len = bytes.len() - number_offset;
        patch_length(&mut bytes, offset, len);
    }
    change(&mut bytes[..header_len]);
    connection.forging_seal(
        space,
        number,
        &mut bytes,
        header_len,
        |header_key, bytes| {
            header_protection::protect(header_key, bytes, number_offset, NUMBER_LEN);
        },
    );
    bytes
}
