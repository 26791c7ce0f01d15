//! The record of packets and frames received from the peer.

use std::collections::{BTreeMap, VecDeque};

use courser_wire::{CloseKind, ConnectionId, Direction, Frame, Stream, StreamId};

/// Counts and contents of packets and frames received on a connection.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The first CONNECTION_CLOSE of the peer.
    pub close: Option<Close>,
    /// HANDSHAKE_DONE was received, so that the handshake of a client is confirmed.
    pub handshake_done: bool,
    /// Datagrams received, including invalid ones.
    pub datagrams: u64,
    /// 1-RTT packets that were opened.
    pub packets: u64,
    /// ACK frames in 1-RTT packets.
    pub acks: u64,
    /// Bytes in STREAM frames, including repetitions.
    pub stream_bytes: u64,
    /// PATH_RESPONSE frames in 1-RTT packets.
    pub path_responses: u64,
    /// RESET_STREAM frames by error code.
    pub resets: BTreeMap<u64, u64>,
    /// STOP_SENDING frames by error code.
    pub stops: BTreeMap<u64, u64>,
    /// Responses of HTTP/3 by status, if their header section begins with it, as it has to.
    pub statuses: BTreeMap<u16, u64>,
    /// DATAGRAM frames.
    pub datagram_frames: u64,
    /// Connection IDs that the peer issued, oldest first, with their sequence numbers.
    pub issued: VecDeque<(u64, ConnectionId)>,
    /// The largest limit in a MAX_STREAMS frame for bidirectional streams, or zero.
    pub max_streams_bidi: u64,
    /// The largest limit in a MAX_STREAMS frame for unidirectional streams, or zero.
    pub max_streams_uni: u64,
    /// The largest 1-RTT packet number that the peer acknowledged.
    pub largest_acked: Option<u64>,
    streams: BTreeMap<u64, Kept>,
}

/// The content of a stream in pieces as received.
#[derive(Clone, Debug, Default)]
struct Kept {
    pieces: BTreeMap<u64, Vec<u8>>,
    size: Option<u64>,
}

/// The largest number of recorded connection IDs.
const MAX_ISSUED: usize = 64;

/// The largest number of distinct stream error codes that are counted.
const MAX_RESET_CODES: usize = 64;

impl Seen {
    /// Returns the contiguous content of a stream from its start, and true if it is complete. Empty
    /// unless the hooks keep streams.
    pub fn stream(&self, id: StreamId) -> (Vec<u8>, bool) {
        let Some(kept) = self.streams.get(&id.value()) else {
            return (Vec::new(), false);
        };
        let mut content: Vec<u8> = Vec::new();
        for (offset, piece) in &kept.pieces {
            let Some(known) = (content.len() as u64).checked_sub(*offset) else {
                break;
            };
            let fresh = usize::try_from(known)
                .ok()
                .and_then(|known| piece.get(known..));
            content.extend_from_slice(fresh.unwrap_or_default());
        }
        let is_complete = kept.size == Some(content.len() as u64);
        (content, is_complete)
    }

    /// Keeps the content of a STREAM frame.
    pub(super) fn keep(&mut self, frame: &Stream<'_>) {
        let kept = self.streams.entry(frame.id.value()).or_default();
        let piece = kept.pieces.entry(frame.offset).or_default();
        if piece.len() < frame.data.len() {
            *piece = frame.data.to_vec();
        }
        if frame.fin {
            kept.size = Some(frame.offset + frame.data.len() as u64);
        }
    }

    /// Counts a frame of a 1-RTT packet.
    pub(super) fn on_frame(&mut self, frame: &Frame<'_>) {
        match frame {
            Frame::Ack(ack) => {
                self.acks += 1;
                self.largest_acked = self.largest_acked.max(Some(ack.largest));
            }
            Frame::Stream(stream) => {
                self.stream_bytes += stream.data.len() as u64;
                if let Some(status) = status_in(stream) {
                    *self.statuses.entry(status).or_default() += 1;
                }
            }
            Frame::PathResponse(_) => self.path_responses += 1,
            Frame::ResetStream(reset) => count(&mut self.resets, reset.error_code),
            Frame::ResetStreamAt(reset) => count(&mut self.resets, reset.error_code),
            Frame::StopSending(stop) => count(&mut self.stops, stop.error_code),
            Frame::Datagram(_) => self.datagram_frames += 1,
            Frame::NewConnectionId(new) => {
                let is_known = self.issued.iter().any(|(known, _)| *known == new.sequence);
                if !is_known {
                    self.issued.push_back((new.sequence, new.id));
                    self.issued.truncate(MAX_ISSUED);
                }
            }
            Frame::MaxStreams(max) => {
                let known = match max.direction {
                    Direction::Bidirectional => &mut self.max_streams_bidi,
                    Direction::Unidirectional => &mut self.max_streams_uni,
                };
                *known = max.limit.max(*known);
            }
            Frame::HandshakeDone => self.handshake_done = true,
            _ => {}
        }
    }
}

fn count(codes: &mut BTreeMap<u64, u64>, code: u64) {
    if codes.len() < MAX_RESET_CODES || codes.contains_key(&code) {
        *codes.entry(code).or_default() += 1;
    }
}

/// Returns the status of the response that begins in a frame.
fn status_in(frame: &Stream<'_>) -> Option<u16> {
    let is_response = frame.offset == 0 && frame.id.direction() == Direction::Bidirectional;
    crate::status::status(frame.data).filter(|_| is_response)
}

/// A received CONNECTION_CLOSE frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Close {
    /// The error code and its layer.
    pub kind: CloseKind,
    /// The reason phrase, in which invalid UTF-8 is replaced.
    pub reason: String,
}

impl Close {
    /// Returns the error code as text that states its layer.
    pub fn code(&self) -> String {
        match self.kind {
            CloseKind::Transport { error_code, .. } => error_code.to_string(),
            CloseKind::Application { error_code } => format!("H3 {:#x}", error_code.value()),
        }
    }

    /// Returns the error code if the application closed the connection.
    pub fn application_code(&self) -> Option<u64> {
        match self.kind {
            CloseKind::Transport { .. } => None,
            CloseKind::Application { error_code } => Some(error_code.value()),
        }
    }

    /// Returns the error code if the transport closed the connection.
    pub fn transport_code(&self) -> Option<u64> {
        match self.kind {
            CloseKind::Transport { error_code, .. } => Some(error_code.value()),
            CloseKind::Application { .. } => None,
        }
    }
}
