//! First datagrams of clients without TLS, which any unauthenticated peer can send.

use std::net::SocketAddr;

use courser_base::{Ecn, Side};
use courser_crypto::{TAG_LEN, header_protection, initial};
use courser_wire::frame::{CloseKind, Frame, Frames};
use courser_wire::packet::{self, LongHeader, PacketKind, patch_length};
use courser_wire::version::VERSION_1;
use courser_wire::{ConnectionId, Writer, packet_number};

use super::link::Datagram;
use super::server_address;

/// The contents of a client's first datagram.
#[derive(Clone)]
pub(crate) struct FirstDatagram {
    pub(crate) address: SocketAddr,
    pub(crate) destination: ConnectionId,
    pub(crate) source: ConnectionId,
    pub(crate) token: Vec<u8>,
    pub(crate) payload: Vec<u8>,
    /// Length of the padded datagram in bytes.
    pub(crate) len: usize,
}

impl FirstDatagram {
    /// Creates a first datagram with a PING and padding. Each number stands for another client at
    /// another address.
    pub(crate) fn new(number: u16) -> Self {
        let [high, low] = number.to_be_bytes();
        Self {
            address: SocketAddr::from(([172, 16, high, low], 40_000)),
            destination: id(&[0xd0, 0, 0, 0, 0, 0, high, low]),
            source: id(&[0x50, 0, 0, 0, 0, 0, high, low]),
            token: Vec::new(),
            payload: vec![1],
            len: 1200,
        }
    }

    /// Returns the datagram, sealed with the Initial keys of a client.
    pub(crate) fn initial(&self) -> Datagram {
        self.sealed_as(Side::Client)
    }

    /// Returns the same packet, sealed with the Initial keys of `side`.
    pub(crate) fn sealed_as(&self, side: Side) -> Datagram {
        const NUMBER_LEN: usize = 2;
        let header = LongHeader {
            kind: PacketKind::Initial,
            version: VERSION_1,
            destination: self.destination,
            source: self.source,
            token: &self.token,
        };
        let number_offset = header.encoded_len();
        let payload_start = number_offset + NUMBER_LEN;
        let len = self
            .len
            .max(payload_start + self.payload.len().max(2) + TAG_LEN);
        let mut bytes = vec![0; len];
        let mut writer = Writer::new(&mut bytes);
        let length_field = header.encode(&mut writer, NUMBER_LEN);
        packet_number::write(&mut writer, 0, NUMBER_LEN);
        writer.bytes(&self.payload);
        patch_length(&mut bytes, length_field, len - number_offset);
        let keys = initial::initial_keys(VERSION_1, &self.destination, side);
        keys.local.packet.seal_packet(0, &mut bytes, payload_start);
        header_protection::protect(&keys.local.header, &mut bytes, number_offset, NUMBER_LEN);
        Datagram {
            from: self.address,
            to: server_address(),
            ecn: Ecn::NotEct,
            bytes,
        }
    }
}

/// Creates a connection ID of these bytes.
pub(crate) fn id(bytes: &[u8]) -> ConnectionId {
    ConnectionId::new(bytes).expect("at most 20 bytes")
}

/// Returns the kind of the first packet in a datagram.
pub(crate) fn kind_of(datagram: &Datagram) -> PacketKind {
    packet::decode(&datagram.bytes, 0, 8)
        .expect("a packet")
        .kind
}

/// Opens a server's Initial whose keys are derived from `destination` and returns the code of the
/// CONNECTION_CLOSE in it.
pub(crate) fn close_code(datagram: &Datagram, destination: &ConnectionId) -> Option<u64> {
    let mut bytes = datagram.bytes.clone();
    let packet = packet::decode(&bytes, 0, 8)
        .ok()
        .filter(|it| it.kind == PacketKind::Initial)?;
    bytes.truncate(packet.end);
    let keys = initial::initial_keys(VERSION_1, destination, Side::Client);
    let offset = packet.packet_number_offset;
    let (len, number) = header_protection::unprotect(&keys.peer.header, &mut bytes, offset)?;
    let (header, payload) = bytes.split_at_mut(offset + len);
    let len = keys.peer.packet.open(number, header, payload).ok()?;
    Frames::new(&payload[..len]).find_map(|frame| match frame {
        Ok(Frame::ConnectionClose(close)) => match close.kind {
            CloseKind::Transport { error_code, .. } => Some(error_code.value()),
            CloseKind::Application { .. } => None,
        },
        _ => None,
    })
}
