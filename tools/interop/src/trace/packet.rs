//! The parts of a packet that a trace keeps.

use courser_base::Side;
use courser_wire::{CloseKind, ConnectionId, Frame, Frames, PacketKind};

/// A packet as its sender sent it.
#[derive(Clone, Debug)]
pub(crate) struct SeenPacket {
    /// The index of its datagram in the capture.
    pub(crate) datagram: usize,
    pub(crate) from: Side,
    pub(crate) kind: PacketKind,
    pub(crate) version: u32,
    pub(crate) destination: ConnectionId,
    pub(crate) source: ConnectionId,
    /// The token of an Initial or a Retry packet.
    pub(crate) token: Vec<u8>,
    /// Bytes from the packet number to the end.
    pub(crate) len: usize,
    /// The encrypted part, if the keys are known.
    pub(crate) contents: Option<Contents>,
}

/// The encrypted part of a packet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    pub(crate) number: u64,
    pub(crate) key_phase: bool,
    /// The offset and the length of each CRYPTO frame.
    pub(crate) crypto: Vec<(u64, usize)>,
    pub(crate) has_ack_with_ecn: bool,
    pub(crate) challenges: Vec<[u8; 8]>,
    pub(crate) responses: Vec<[u8; 8]>,
    pub(crate) close: Option<CloseKind>,
    /// True if the packet raises a limit on data.
    pub(crate) raises_data_limit: bool,
}

impl Contents {
    /// Notes the frames of a payload.
    pub(crate) fn of(number: u64, key_phase: bool, payload: &[u8]) -> Self {
        let mut contents = Self {
            number,
            key_phase,
            ..Self::default()
        };
        for frame in Frames::new(payload).map_while(Result::ok) {
            contents.note(&frame);
        }
        contents
    }

    fn note(&mut self, frame: &Frame<'_>) {
        match frame {
            Frame::Crypto(crypto) => self.crypto.push((crypto.offset, crypto.data.len())),
            Frame::Ack(ack) => self.has_ack_with_ecn |= ack.ecn.is_some(),
            Frame::PathChallenge(challenge) => self.challenges.push(challenge.data),
            Frame::PathResponse(response) => self.responses.push(response.data),
            Frame::ConnectionClose(close) => self.close = Some(close.kind),
            Frame::MaxData(_) | Frame::MaxStreamData(_) => self.raises_data_limit = true,
            _ => {}
        }
    }
}
