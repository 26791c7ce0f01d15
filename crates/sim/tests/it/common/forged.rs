//! Packets that every observer of the wire can forge: their keys are not secret, or they have none.

use courser_base::Side;
use courser_crypto::{TAG_LEN, header_protection, initial, retry_integrity};
use courser_wire::packet::{LongHeader, PacketKind, encode_retry, patch_length, retry};
use courser_wire::version::VERSION_1;
use courser_wire::{ConnectionId, Writer, packet_number};

/// The observed values of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Ids {
    /// The destination ID of the client's Initials before the server chose one, from which their
    /// keys follow.
    pub first: ConnectionId,
    pub client: ConnectionId,
    /// The present destination ID of the client.
    pub server: ConnectionId,
}

/// Returns an Initial with these frames, with the keys of the first destination ID.
pub fn initial_of(sender: Side, ids: &Ids, number: u64, frames: &[u8]) -> Vec<u8> {
    const NUMBER_LEN: usize = 4;
    let (destination, source) = match sender {
        Side::Client => (ids.server, ids.client),
        Side::Server => (ids.client, ids.server),
    };
    let mut payload = frames.to_vec();
    payload.resize(frames.len().max(1200), 0);
    let mut bytes = vec![0; 64 + payload.len() + TAG_LEN];
    let mut writer = Writer::new(&mut bytes);
    let header = LongHeader {
        kind: PacketKind::Initial,
        version: VERSION_1,
        destination,
        source,
        token: &[],
    };
    let length_field = header.encode(&mut writer, NUMBER_LEN);
    let number_offset = writer.position();
    packet_number::write(&mut writer, number, NUMBER_LEN);
    let header_len = writer.position();
    writer.bytes(&payload);
    bytes.truncate(header_len + payload.len() + TAG_LEN);
    let len = bytes.len() - number_offset;
    patch_length(&mut bytes, length_field, len);
    let keys = initial::initial_keys(VERSION_1, &ids.first, sender).local;
    keys.packet.seal_packet(number, &mut bytes, header_len);
    header_protection::protect(&keys.header, &mut bytes, number_offset, NUMBER_LEN);
    bytes
}

/// Returns CONNECTION_CLOSE with INTERNAL_ERROR in an Initial.
pub fn initial_close(sender: Side, ids: &Ids, number: u64) -> Vec<u8> {
    initial_of(sender, ids, number, &[0x1c, 1, 0, 0])
}

/// Returns a Retry to the client with the correct tag.
pub fn retry_to_client(ids: &Ids, source: &ConnectionId) -> Vec<u8> {
    let token = [0x77; 24];
    let len = retry::encoded_retry_len(&ids.client, source, &token);
    let mut bytes = vec![0; len];
    let mut writer = Writer::new(&mut bytes);
    encode_retry(&mut writer, VERSION_1, &ids.client, source, &token);
    let written = writer.position();
    bytes.truncate(written);
    let tag = retry_integrity::tag(&ids.first, &bytes);
    bytes.extend_from_slice(&tag);
    bytes
}

/// Returns a Version Negotiation packet to the client with one version, not ours.
pub fn versions_to_client(ids: &Ids) -> Vec<u8> {
    let mut bytes = vec![0xc5, 0, 0, 0, 0];
    for id in [&ids.client, &ids.first] {
        bytes.push(u8::try_from(id.len()).expect("a connection ID has at most 20 bytes"));
        bytes.extend_from_slice(id);
    }
    bytes.extend_from_slice(&0x6b33_43cf_u32.to_be_bytes());
    bytes
}

/// Returns a datagram like a stateless reset: a short header and random bytes.
pub fn reset_of(mut random: impl FnMut() -> u64, len: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..len).map(|_| random().to_le_bytes()[0]).collect();
    bytes[0] = bytes[0] & 0x3f | 0x40;
    bytes
}
