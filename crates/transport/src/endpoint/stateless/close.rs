//! Refusals of clients without a connection.

use courser_base::Side;
use courser_crypto::{TAG_LEN, header_protection, initial};
use courser_wire::frame::{CloseKind, ConnectionClose};
use courser_wire::packet::{LongHeader, MIN_INITIAL_DATAGRAM, PacketKind, patch_length};
use courser_wire::{ConnectionId, TransportErrorCode, Writer, packet_number};

use crate::endpoint::admission::client::Client;

/// Builds an Initial with CONNECTION_CLOSE from a server that keeps no state for the client (RFC
/// 9000 §5.2.2, §8.1.2).
pub fn build(
    to: &Client,
    source: ConnectionId,
    code: TransportErrorCode,
    reason: &'static str,
) -> Vec<u8> {
    const NUMBER_LEN: usize = 2;
    let keys = initial::initial_keys(to.version.value(), &to.destination, Side::Server);
    let header = LongHeader {
        kind: PacketKind::Initial,
        version: to.version.value(),
        destination: to.source,
        source,
        token: &[],
    };
    let frame = ConnectionClose {
        kind: CloseKind::Transport {
            error_code: code,
            frame_type: 0,
        },
        reason: reason.as_bytes(),
    };
    let number_offset = header.encoded_len();
    let payload_start = number_offset + NUMBER_LEN;
    let mut bytes = vec![0; payload_start + frame.encoded_len() + TAG_LEN];
    debug_assert!(
        bytes.len() < MIN_INITIAL_DATAGRAM,
        "shorter than the client's datagram"
    );
    let mut writer = Writer::new(&mut bytes);
    let length_field = header.encode(&mut writer, NUMBER_LEN);
    packet_number::write(&mut writer, 0, NUMBER_LEN);
    frame.encode(&mut writer);
    let length = bytes.len() - number_offset;
    patch_length(&mut bytes, length_field, length);
    keys.local.packet.seal_packet(0, &mut bytes, payload_start);
    header_protection::protect(&keys.local.header, &mut bytes, number_offset, NUMBER_LEN);
    bytes
}
