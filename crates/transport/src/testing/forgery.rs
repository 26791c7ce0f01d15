//! A forged packet, every part of which can be chosen.

use courser_base::{Ecn, FourTuple};
use courser_crypto::{PacketKey, TAG_LEN, header_protection};
use courser_wire::packet::{LongHeader, ShortHeader, patch_length};
use courser_wire::version::VERSION_1;
use courser_wire::{ConnectionId, Writer, packet_number};

use super::link::Datagram;
use super::{End, Pair};
use crate::endpoint::ReceiveMeta;
use crate::space::SpaceId;

/// The differences from the packet that an honest end would seal with these frames.
#[derive(Clone, Default)]
pub(crate) struct Forgery {
    payload: Vec<u8>,
    number: Option<u64>,
    destination: Option<ConnectionId>,
    source: Option<ConnectionId>,
    token: Vec<u8>,
    version: Option<u32>,
    /// Bits of the first byte to invert.
    flip: u8,
    /// Minimum payload length of an Initial in bytes.
    min_payload: usize,
}

const NUMBER_LEN: usize = 4;

impl Forgery {
    /// Creates a packet with these frames, padded to 1200 bytes if it is an Initial.
    pub(crate) fn of(payload: &[u8]) -> Self {
        Self {
            payload: payload.to_vec(),
            min_payload: 1200,
            ..Self::default()
        }
    }

    pub(crate) fn number(self, number: u64) -> Self {
        Self {
            number: Some(number),
            ..self
        }
    }

    pub(crate) fn destination(self, id: &[u8]) -> Self {
        Self {
            destination: ConnectionId::new(id),
            ..self
        }
    }

    pub(crate) fn source(self, id: &[u8]) -> Self {
        Self {
            source: ConnectionId::new(id),
            ..self
        }
    }

    pub(crate) fn token(self, token: &[u8]) -> Self {
        Self {
            token: token.to_vec(),
            ..self
        }
    }

    /// Writes another version into a long header. The keys stay those of version 1.
    pub(crate) fn version(self, version: u32) -> Self {
        Self {
            version: Some(version),
            ..self
        }
    }

    pub(crate) fn flip(self, bits: u8) -> Self {
        Self { flip: bits, ..self }
    }

    pub(crate) fn unpadded(self) -> Self {
        Self {
            min_payload: 0,
            ..self
        }
    }

    /// Seals the packet with the keys of `end`.
    pub(crate) fn seal(&self, end: &mut End, space: SpaceId) -> Vec<u8> {
        let key_phase = end.connection().forging_key_phase();
        let (mut bytes, number, header_len) = self.write(end, space, key_phase);
        let offset = header_len - NUMBER_LEN;
        end.connection()
            .forging_seal(space, number, &mut bytes, header_len, |key, bytes| {
                header_protection::protect(key, bytes, offset, NUMBER_LEN);
            });
        bytes
    }

    /// Seals a 1-RTT packet with `key`, instead of the current keys of `end`.
    pub(crate) fn seal_with(&self, end: &mut End, key: &PacketKey, key_phase: bool) -> Vec<u8> {
        let (mut bytes, number, header_len) = self.write(end, SpaceId::Application, key_phase);
        key.seal_packet(number, &mut bytes, header_len);
        let offset = header_len - NUMBER_LEN;
        end.connection()
            .forging_protect(&mut bytes, offset, NUMBER_LEN);
        bytes
    }

    /// Writes everything but the protection. Returns the packet number and the length of the
    /// header.
    fn write(&self, end: &mut End, space: SpaceId, key_phase: bool) -> (Vec<u8>, u64, usize) {
        let connection = end.connection();
        let (destination, source) = connection.forging_ids();
        let (destination, source) = (
            self.destination.unwrap_or(destination),
            self.source.unwrap_or(source),
        );
        let number = self
            .number
            .unwrap_or_else(|| connection.forging_number(space));
        let mut payload = self.payload.clone();
        if space == SpaceId::Initial {
            payload.resize(payload.len().max(self.min_payload), 0);
        }
        let mut bytes = vec![0; 64 + self.token.len() + payload.len() + TAG_LEN];
        let mut writer = Writer::new(&mut bytes);
        let length_field = if space == SpaceId::Application {
            ShortHeader {
                destination,
                spin: false,
                key_phase,
            }
            .encode(&mut writer, NUMBER_LEN);
            None
        } else {
            let (kind, token) = (space.packet_kind(), &self.token[..]);
            let header = LongHeader {
                kind,
                version: VERSION_1,
                destination,
                source,
                token,
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
        if let Some(version) = self.version {
            bytes[1..5].copy_from_slice(&version.to_be_bytes());
        }
        bytes[0] ^= self.flip;
        (bytes, number, header_len)
    }
}

impl Pair {
    /// Delivers a datagram to the server from the client's address, and runs both ends.
    pub(crate) fn send_to_server(&mut self, bytes: Vec<u8>) {
        let (from, to) = (self.client.address, self.server.address);
        self.deliver(Datagram {
            from,
            to,
            ecn: Ecn::NotEct,
            bytes,
        });
        self.drive();
    }

    /// Delivers datagrams of one length to the server in one receive buffer.
    pub(crate) fn send_batch_to_server(&mut self, datagrams: &[Vec<u8>]) {
        let meta = ReceiveMeta {
            path: FourTuple::to(self.client.address),
            ecn: Ecn::NotEct,
            segment_size: datagrams[0].len(),
        };
        let now = self.now;
        self.server
            .endpoint
            .handle_datagrams(now, &mut datagrams.concat(), &meta);
        self.drive();
    }

    /// Delivers a datagram to the client from the server's address, and runs both ends.
    pub(crate) fn send_to_client(&mut self, bytes: Vec<u8>) {
        let (from, to) = (self.server.address, self.client.address);
        self.deliver(Datagram {
            from,
            to,
            ecn: Ecn::NotEct,
            bytes,
        });
        self.drive();
    }

    /// Seals as the client and delivers to the server.
    pub(crate) fn client_forges(&mut self, space: SpaceId, forgery: &Forgery) {
        let bytes = forgery.seal(&mut self.client, space);
        self.send_to_server(bytes);
    }

    /// Seals as the server and delivers to the client.
    pub(crate) fn server_forges(&mut self, space: SpaceId, forgery: &Forgery) {
        let bytes = forgery.seal(&mut self.server, space);
        self.send_to_client(bytes);
    }
}
