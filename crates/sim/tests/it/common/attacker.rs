//! An attacker beside the client who reads every packet and may send any (RFC 9000 §21.1.1): copies
//! that race, forged packets, replays. The original packets pass.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use courser_base::{Ecn, Side};
use courser_sim::packet::Packet;
use courser_wire::ConnectionId;
use courser_wire::packet::{self, PacketKind};

use super::forged::{self, Ids};
use super::random::SeededRandom;

/// The attacks, in per cent of the datagrams that pass.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attack {
    /// A copy of a datagram of the client arrives first, from another address (F25).
    pub race: u64,
    /// A forged packet arrives first (F26). Only kinds that must be ignored: Retry, Version
    /// Negotiation and Initials with CONNECTION_CLOSE once the client has Handshake keys, and at
    /// any time packets like a stateless reset and invalid packets.
    pub forge: u64,
    /// An earlier datagram arrives again (F27), from its original address or from another one.
    pub replay: u64,
}

impl Attack {
    pub fn is_on(&self) -> bool {
        self.race + self.forge + self.replay > 0
    }
}

/// A packet that arrives at the client before the first one of the server, and that the client has
/// to accept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Early {
    Close,
    Versions,
    Retry,
}

/// An attacker on the path, at the client's end.
pub struct Attacker {
    pub attack: Attack,
    pub early: Option<Early>,
    random: SeededRandom,
    known: BTreeMap<ConnectionId, Known>,
    /// Some of the datagrams that have passed to the server.
    kept: Vec<Packet>,
    /// Bytes that the attacker sent from its own address.
    pub sent: usize,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    ids: Ids,
    /// True once the client has sent a Handshake packet: it has keys and ignores Initials.
    has_handshake_keys: bool,
}

/// The address that the attacker sends from unless it forges the source.
pub const ATTACKER: SocketAddr = SocketAddr::V4(std::net::SocketAddrV4::new(
    std::net::Ipv4Addr::new(10, 66, 0, 6),
    6666,
));

/// The maximum number of datagrams that the attacker keeps.
const MAX_KEPT: usize = 300;

impl Attacker {
    pub fn new(attack: Attack, random: SeededRandom) -> Self {
        Self {
            attack,
            early: None,
            random,
            known: BTreeMap::new(),
            kept: Vec::new(),
            sent: 0,
        }
    }

    /// Replays all recorded datagrams, from `from` if that is given.
    pub fn replay_all(&mut self, from: Option<SocketAddr>) -> Vec<Packet> {
        let mut all = self.kept.clone();
        if from.is_some() {
            all = all.into_iter().map(from_attacker).collect();
            self.sent += all.iter().map(|it| it.payload.len()).sum::<usize>();
        }
        all
    }

    /// Returns the datagrams that travel to the server in place of one from the client.
    pub fn pass_out(&mut self, packet: Packet, out: &mut impl Extend<Packet>) {
        self.record_ids(&packet);
        let mut first = Vec::new();
        // The winner of the race of the first datagram owns the connection: the server accepts no
        // migration before the handshake is confirmed (RFC 9000 §9).
        let is_short = packet.payload.first().is_some_and(|byte| byte & 0x80 == 0);
        if self.random.percent(self.attack.race) && is_short {
            first.push(from_attacker(packet.clone()));
        }
        if self.random.percent(self.attack.forge)
            && let Some(payload) = self.forge_to_server(&packet)
        {
            first.push(Packet {
                payload: payload.into(),
                ..packet.clone()
            });
        }
        if self.random.percent(self.attack.replay) && !self.kept.is_empty() {
            let at = usize::try_from(self.random.below(self.kept.len() as u64))
                .expect("the index fits into usize");
            let again = self.kept[at].clone();
            first.push(match self.random.percent(50) {
                true => from_attacker(again),
                false => again,
            });
        }
        let spoofed = first.iter().filter(|it| it.source == ATTACKER);
        self.sent += spoofed.map(|it| it.payload.len()).sum::<usize>();
        if self.attack.replay > 0 && self.kept.len() < MAX_KEPT {
            self.kept.push(packet.clone());
        }
        out.extend(first.into_iter().chain([packet]));
    }

    /// Returns the datagrams that arrive at the client before this one.
    pub fn pass_in(&mut self, packet: &Packet) -> Option<Packet> {
        if let Some(early) = self.early.take() {
            let ids = self.ids_of(packet)?.ids;
            let payload = match early {
                Early::Close => forged::initial_close(Side::Server, &ids, 0),
                Early::Versions => forged::versions_to_client(&ids),
                Early::Retry => {
                    let source =
                        ConnectionId::new(b"not mine").expect("the connection ID has eight bytes");
                    forged::retry_to_client(&ids, &source)
                }
            };
            return Some(Packet {
                payload: payload.into(),
                ..packet.clone()
            });
        }
        if !self.random.percent(self.attack.forge) {
            return None;
        }
        let known = *self.ids_of(packet)?;
        let kind = self.random.below(5);
        let payload = match kind {
            0 if known.has_handshake_keys => forged::versions_to_client(&known.ids),
            1 if known.has_handshake_keys => {
                let source = ConnectionId::new(&self.random.draw().to_le_bytes())
                    .expect("the connection ID has eight bytes");
                forged::retry_to_client(&known.ids, &source)
            }
            2 if known.has_handshake_keys => {
                let number = self.random.below(1000);
                forged::initial_close(Side::Server, &known.ids, number)
            }
            3 => self.garbage(packet),
            _ => self.reset(&known.ids.client),
        };
        Some(Packet {
            payload: payload.into(),
            ecn: Ecn::NotEct,
            ..packet.clone()
        })
    }

    fn forge_to_server(&mut self, packet: &Packet) -> Option<Vec<u8>> {
        let known = *self.known.values().next_back()?;
        Some(match self.random.below(4) {
            // A server accepts neither of these packets.
            0 => forged::versions_to_client(&known.ids),
            1 => forged::retry_to_client(&known.ids, &known.ids.server),
            2 => self.garbage(packet),
            _ => self.reset(&known.ids.server),
        })
    }

    /// Returns the header of a passing packet with other bytes behind it.
    fn garbage(&mut self, packet: &Packet) -> Vec<u8> {
        let mut bytes = packet.payload.to_vec();
        for byte in bytes.iter_mut().skip(30) {
            *byte = self.random.draw().to_le_bytes()[0];
        }
        bytes
    }

    fn reset(&mut self, destination: &ConnectionId) -> Vec<u8> {
        let len =
            usize::try_from(self.random.between(43, 1200)).expect("the length fits into usize");
        let mut bytes = forged::reset_of(|| self.random.draw(), len);
        // For an existing connection, or for none.
        if self.random.percent(50) {
            let end = 1 + destination.len();
            bytes[1..end].copy_from_slice(destination);
        }
        bytes
    }

    fn ids_of(&self, packet: &Packet) -> Option<&Known> {
        let first = packet::decode(&packet.payload, 0, CID_LEN).ok()?;
        let found = self.known.get(&first.destination);
        found.or_else(|| self.known.values().next_back())
    }

    /// Records a datagram of the client.
    fn record_ids(&mut self, packet: &Packet) {
        for packet in packet::Packets::new(&packet.payload, CID_LEN).flatten() {
            match packet.kind {
                PacketKind::Initial => {
                    let known = self.known.entry(packet.source).or_insert(Known {
                        ids: Ids {
                            first: packet.destination,
                            client: packet.source,
                            server: packet.destination,
                        },
                        has_handshake_keys: false,
                    });
                    known.ids.server = packet.destination;
                }
                PacketKind::Handshake => {
                    if let Some(known) = self.known.get_mut(&packet.source) {
                        known.has_handshake_keys = true;
                    }
                }
                _ => {}
            }
        }
    }
}

fn from_attacker(packet: Packet) -> Packet {
    Packet {
        source: ATTACKER,
        ..packet
    }
}

/// The length of the connection IDs of hosts.
const CID_LEN: usize = 8;
