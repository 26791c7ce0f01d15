//! Tests both ends together, over a network that loses, repeats and reorders packets.

use courser_wire::Frame;
use proptest::prelude::*;

use super::issued::IssuedIds;
use super::peer::PeerIds;
use super::testing::{frames, id, packet, token};
use super::*;
use crate::space::sent::SentFrame;

/// A packet in flight: its frames as bytes, and as recorded by the end that sent it.
struct Flight {
    bytes: Vec<u8>,
    records: Vec<SentFrame>,
    /// The ID that the packet is addressed to.
    destination: courser_wire::ConnectionId,
}

struct Pair {
    issued: IssuedIds,
    peer: PeerIds,
    to_peer: Vec<Flight>,
    to_issuer: Vec<Flight>,
}

impl Pair {
    fn new(limit: u64) -> Self {
        let mut issued = IssuedIds::new(id(0));
        issued.on_peer_limit(limit);
        let peer = PeerIds::new(id(0));
        Self {
            issued,
            peer,
            to_peer: Vec::new(),
            to_issuer: Vec::new(),
        }
    }

    fn issuer_sends(&mut self) {
        for _ in 0..self.issued.missing() {
            let number = self.issued.next_sequence();
            self.issued.issue(id(number), token(number));
        }
        if self.issued.has_frames_to_send() {
            let (bytes, records) = packet(90, |packet| self.issued.write_frames(packet));
            self.to_peer.push(Flight {
                bytes,
                records,
                destination: id(0),
            });
        }
    }

    fn peer_sends(&mut self) {
        if self.peer.has_frames_to_send() {
            let (bytes, records) = packet(90, |packet| self.peer.write_frames(packet));
            let destination = *self.peer.current();
            self.to_issuer.push(Flight {
                bytes,
                records,
                destination,
            });
        }
    }

    fn peer_receives(&mut self, index: usize, fate: Fate, limit: u64) {
        let flight = self.to_peer.swap_remove(index % self.to_peer.len());
        for _ in 0..fate.copies() {
            for frame in frames(&flight.bytes) {
                let Frame::NewConnectionId(frame) = frame else {
                    panic!("{frame:?}")
                };
                self.peer
                    .on_new_connection_id_frame(&frame, limit)
                    .expect("we are honest");
            }
        }
        for &record in &flight.records {
            let SentFrame::NewConnectionId { sequence } = record else {
                panic!("{record:?}")
            };
            if fate.is_acked() {
                self.issued.on_acked(sequence);
            } else {
                self.issued.on_lost(sequence);
            }
        }
    }

    fn issuer_receives(&mut self, index: usize, fate: Fate) {
        let flight = self.to_issuer.swap_remove(index % self.to_issuer.len());
        // A packet to an ID that is no longer routed is lost as well.
        let is_routed = self.issued.sequence_of(&flight.destination).is_some();
        let fate = if is_routed { fate } else { Fate::Lost };
        if fate.copies() > 0 {
            for frame in frames(&flight.bytes) {
                let Frame::RetireConnectionId(frame) = frame else {
                    panic!("{frame:?}")
                };
                self.issued
                    .on_retire_connection_id_frame(frame.sequence, &flight.destination)
                    .expect("we are honest");
            }
        }
        for &record in &flight.records {
            let SentFrame::RetireConnectionId { sequence } = record else {
                panic!("{record:?}")
            };
            if fate.is_acked() {
                self.peer.on_retirement_acked(sequence);
            } else {
                self.peer.on_retirement_lost(sequence);
            }
        }
    }

    fn deliver_everything(&mut self, limit: u64) {
        for _ in 0..100 {
            self.issuer_sends();
            self.peer_sends();
            while !self.to_peer.is_empty() {
                self.peer_receives(0, Fate::Arrives, limit);
            }
            while !self.to_issuer.is_empty() {
                self.issuer_receives(0, Fate::Arrives);
            }
        }
    }
}

/// The fate of a packet.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Lost,
    Arrives,
    ArrivesTwice,
    /// The packet arrives, but so late that it was declared lost.
    SeemsLost,
}

impl Fate {
    fn copies(self) -> usize {
        match self {
            Self::Lost => 0,
            Self::Arrives | Self::SeemsLost => 1,
            Self::ArrivesTwice => 2,
        }
    }

    fn is_acked(self) -> bool {
        matches!(self, Self::Arrives | Self::ArrivesTwice)
    }
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        1 => Just(Fate::Lost),
        2 => Just(Fate::Arrives),
        1 => Just(Fate::ArrivesTwice),
        1 => Just(Fate::SeemsLost),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn honest_ends_accept_each_others_frames(
        limit in 2..10u64,
        steps in prop::collection::vec((0..7u8, 0..8usize, fate()), 0..200),
    ) {
        let limit = limit.min(ACTIVE_CONNECTION_ID_LIMIT);
        let mut pair = Pair::new(limit);
        for (kind, index, fate) in steps {
            match kind {
                0 | 1 => pair.issuer_sends(),
                2 => pair.peer_sends(),
                3 if !pair.to_peer.is_empty() => pair.peer_receives(index, fate, limit),
                4 if !pair.to_issuer.is_empty() => pair.issuer_receives(index, fate),
                5 => drop(pair.peer.switch_to_next()),
                // An end that rotates once per round trip never has more than that unacknowledged.
                6 if pair.peer.open_retirements() <= retirements::MAX_OWN_RETIREMENTS => {
                    pair.issued.rotate(pair.issued.next_sequence());
                }
                _ => {}
            }
        }
        pair.deliver_everything(limit);
        prop_assert!(!pair.issued.has_frames_to_send() && !pair.peer.has_frames_to_send());
        prop_assert_eq!(pair.issued.active().count() as u64, limit);
        for id in pair.issued.active() {
            let sequence = pair.issued.sequence_of(&id).unwrap();
            prop_assert_eq!(pair.peer.id_of(sequence), Some(&id));
        }
        prop_assert_eq!(pair.peer.spare() as u64, limit - 1);
    }
}
