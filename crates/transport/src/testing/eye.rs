//! An observer that opens every packet that the two ends of a pair have sent.

use courser_base::Side;
use courser_crypto::{HeaderKey, Keys, PacketKey, header_protection, initial};
use courser_wire::frame::{Frame, Frames};
use courser_wire::packet::{self, Packet, PacketKind, short::key_phase_bit};
use courser_wire::{ConnectionId, Version, packet_number};

use super::forgery::Forgery;
use super::link::Datagram;
use super::tampering::{Secrets, Tampered};
use super::{End, Pair, Setup};

/// The keys with which the two ends of a connection seal.
pub(crate) struct Eye {
    pub(crate) client: Secrets,
    pub(crate) server: Secrets,
}

/// A packet as it was sent.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) kind: PacketKind,
    pub(crate) number: u64,
    /// Generation of the 1-RTT keys that sealed it.
    pub(crate) generation: usize,
    pub(crate) destination: ConnectionId,
    pub(crate) source: ConnectionId,
    pub(crate) token: Vec<u8>,
    pub(crate) payload: Vec<u8>,
    /// The first byte without its protection.
    pub(crate) first_byte: u8,
    /// Index of its datagram, in order of sending, and the datagram's length.
    pub(crate) datagram: usize,
    pub(crate) datagram_len: usize,
}

impl Seen {
    pub(crate) fn frames(&self) -> impl Iterator<Item = Frame<'_>> {
        Frames::new(&self.payload).map(|frame| frame.expect("honest ends send valid frames"))
    }

    pub(crate) fn has(&self, is_chosen: impl Fn(&Frame<'_>) -> bool) -> bool {
        self.frames().any(|frame| is_chosen(&frame))
    }

    pub(crate) fn is_ack_eliciting(&self) -> bool {
        self.has(|frame| frame.is_ack_eliciting())
    }
}

impl Setup {
    /// Adds an observer, which gets the keys of both ends.
    pub(crate) fn with_eye(mut self) -> (Self, Eye) {
        let (client_tls, client) = Tampered::keys(self.client_tls);
        let (server_tls, server) = Tampered::keys(self.server.tls);
        self.client_tls = client_tls;
        self.server.tls = server_tls;
        (self, Eye { client, server })
    }
}

impl Pair {
    /// Creates a new pair with an observer.
    pub(crate) fn watched() -> (Self, Eye) {
        let (setup, eye) = Setup::default().with_eye();
        (Self::with(setup), eye)
    }

    /// Creates a connected pair with an observer.
    pub(crate) fn watched_and_connected() -> (Self, Eye) {
        let (mut pair, eye) = Self::watched();
        pair.connect();
        (pair, eye)
    }
}

impl Eye {
    /// Returns every packet that the client has sent.
    pub(crate) fn client_sent(&self, pair: &Pair) -> Vec<Seen> {
        read(
            &pair.client,
            &self.client,
            Side::Client,
            &destinations(&pair.client),
        )
    }

    /// Returns every packet that the server has sent, without Retry and Version Negotiation.
    pub(crate) fn server_sent(&self, pair: &Pair) -> Vec<Seen> {
        read(
            &pair.server,
            &self.server,
            Side::Server,
            &destinations(&pair.client),
        )
    }
}

impl Eye {
    /// Forges a 1-RTT packet of the client with the keys of any generation and any packet number.
    pub(crate) fn forge_client(
        &self,
        pair: &mut Pair,
        generation: usize,
        packet: &Forgery,
    ) -> Vec<u8> {
        let taken = self.client.lock().expect("not poisoned");
        packet.seal_with(
            &mut pair.client,
            &taken.one_rtt[generation],
            generation % 2 == 1,
        )
    }

    /// Like [`Eye::forge_client`] for the server.
    pub(crate) fn forge_server(
        &self,
        pair: &mut Pair,
        generation: usize,
        packet: &Forgery,
    ) -> Vec<u8> {
        let taken = self.server.lock().expect("not poisoned");
        packet.seal_with(
            &mut pair.server,
            &taken.one_rtt[generation],
            generation % 2 == 1,
        )
    }
}

/// Returns all IDs from which Initial keys may be derived.
fn destinations(client: &End) -> Vec<ConnectionId> {
    let mut ids = Vec::new();
    for datagram in &client.sent {
        if let Ok(packet) = packet::decode(&datagram.bytes, 0, ID_LEN)
            && packet.kind == PacketKind::Initial
            && !ids.contains(&packet.destination)
        {
            ids.push(packet.destination);
        }
    }
    ids
}

const ID_LEN: usize = 8;

fn read(end: &End, secrets: &Secrets, side: Side, initial_ids: &[ConnectionId]) -> Vec<Seen> {
    let taken = secrets.lock().expect("not poisoned");
    let initial: Vec<Keys> = initial_ids
        .iter()
        .flat_map(|id| {
            let versions = Version::ALL.into_iter();
            versions.map(move |it| initial::initial_keys(it.value(), id, side).local)
        })
        .collect();
    let mut largest = [0; 3];
    let mut all = Vec::new();
    for (index, datagram) in end.sent.iter().enumerate() {
        for (packet, bytes) in split(datagram) {
            let initial = initial.iter().map(|keys| (&keys.header, &keys.packet));
            let handshake = taken
                .handshake
                .iter()
                .map(|keys| (&keys.header, &keys.packet));
            let one_rtt = taken
                .header
                .iter()
                .flat_map(|header| taken.one_rtt.iter().map(move |packet| (header, packet)));
            let (space, keys): (usize, Vec<_>) = match packet.kind {
                PacketKind::Initial => (0, initial.collect()),
                PacketKind::Handshake => (1, handshake.collect()),
                PacketKind::OneRtt => (2, one_rtt.collect()),
                _ => continue,
            };
            let Some(seen) = open(&packet, &bytes, &keys, largest[space]) else {
                continue;
            };
            largest[space] = seen.number + 1;
            all.push(Seen {
                datagram: index,
                datagram_len: datagram.bytes.len(),
                ..seen
            });
        }
    }
    all
}

fn split(datagram: &Datagram) -> Vec<(Packet, Vec<u8>)> {
    let mut packets = Vec::new();
    let mut rest = &datagram.bytes[..];
    while let Ok(packet) = packet::decode(rest, 0, ID_LEN) {
        let (this, next) = rest.split_at(packet.end);
        packets.push((packet, this.to_vec()));
        rest = next;
    }
    packets
}

fn open(
    packet: &Packet,
    bytes: &[u8],
    keys: &[(&HeaderKey, &PacketKey)],
    expected: u64,
) -> Option<Seen> {
    keys.iter()
        .enumerate()
        .find_map(|(generation, (header_key, key))| {
            let mut bytes = bytes.to_vec();
            let offset = packet.packet_number_offset;
            let (len, truncated) = header_protection::unprotect(header_key, &mut bytes, offset)?;
            let number = packet_number::expand(truncated, len, expected);
            let (header, payload) = bytes.split_at_mut(offset + len);
            let is_one_rtt = packet.kind == PacketKind::OneRtt;
            if is_one_rtt && key_phase_bit(header[0]) != (generation % 2 == 1) {
                return None;
            }
            let payload_len = key.open(number, header, payload).ok()?;
            Some(Seen {
                kind: packet.kind,
                number,
                generation,
                destination: packet.destination,
                source: packet.source,
                token: header[packet.token.clone()].to_vec(),
                payload: payload[..payload_len].to_vec(),
                first_byte: header[0],
                datagram: 0,
                datagram_len: 0,
            })
        })
}
