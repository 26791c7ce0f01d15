//! What packets carried, without the data.

use std::ops::RangeInclusive;
use std::time::Duration;

use courser_base::EcnCounts;
use courser_wire::frame::{Ack, CloseKind, Frame, Frames};
use courser_wire::{ConnectionId, Direction, StreamId};

/// Ranges of one ACK frame that are recorded, the newest ones. A peer may send hundreds.
pub const MAX_ACK_RANGES: usize = 64;

/// Frames of one packet that are recorded. A hostile packet may hold tens of thousands.
const MAX_FRAMES: usize = 256;

/// One frame of a packet. RFC 9000 §19.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FrameRecord {
    /// PADDING frames in a row.
    Padding {
        /// How many, which is their bytes.
        len: usize,
    },
    /// ACK.
    Ack {
        /// How long the acknowledgement was held back.
        delay: Duration,
        /// What is acknowledged, newest first, at most [`MAX_ACK_RANGES`].
        ranges: Vec<RangeInclusive<u64>>,
        /// Marks counted, if they are reported.
        ecn: Option<EcnCounts>,
    },
    /// CRYPTO.
    Crypto {
        /// First byte.
        offset: u64,
        /// Bytes.
        len: usize,
    },
    /// STREAM.
    Stream {
        /// Which stream.
        id: StreamId,
        /// First byte.
        offset: u64,
        /// Bytes.
        len: usize,
        /// The span ends the stream.
        fin: bool,
    },
    /// RESET_STREAM.
    ResetStream {
        /// Which stream.
        id: StreamId,
        /// The application's code.
        error_code: u64,
        /// Bytes of the stream that count in flow control.
        final_size: u64,
    },
    /// STOP_SENDING.
    StopSending {
        /// Which stream.
        id: StreamId,
        /// The application's code.
        error_code: u64,
    },
    /// NEW_TOKEN.
    NewToken {
        /// Bytes of the token.
        len: usize,
    },
    /// MAX_DATA.
    MaxData {
        /// Bytes in all.
        maximum: u64,
    },
    /// MAX_STREAM_DATA.
    MaxStreamData {
        /// Which stream.
        id: StreamId,
        /// Bytes in all.
        maximum: u64,
    },
    /// MAX_STREAMS.
    MaxStreams {
        /// Which kind of streams.
        direction: Direction,
        /// Streams in all.
        maximum: u64,
    },
    /// DATA_BLOCKED.
    DataBlocked {
        /// The limit that was reached.
        limit: u64,
    },
    /// STREAM_DATA_BLOCKED.
    StreamDataBlocked {
        /// Which stream.
        id: StreamId,
        /// The limit that was reached.
        limit: u64,
    },
    /// STREAMS_BLOCKED.
    StreamsBlocked {
        /// Which kind of streams.
        direction: Direction,
        /// The limit that was reached.
        limit: u64,
    },
    /// NEW_CONNECTION_ID. The stateless reset token stays a secret.
    NewConnectionId {
        /// Its sequence number.
        sequence: u64,
        /// Older ones are to be retired.
        retire_prior_to: u64,
        /// The ID.
        id: ConnectionId,
    },
    /// RETIRE_CONNECTION_ID.
    RetireConnectionId {
        /// Its sequence number.
        sequence: u64,
    },
    /// PATH_CHALLENGE.
    PathChallenge {
        /// What is to be repeated.
        data: [u8; 8],
    },
    /// PATH_RESPONSE.
    PathResponse {
        /// What is repeated.
        data: [u8; 8],
    },
    /// CONNECTION_CLOSE.
    ConnectionClose {
        /// By the application (type 0x1d); else by the transport (type 0x1c).
        by_application: bool,
        /// The code.
        error_code: u64,
        /// The frame type that is blamed, 0 for none.
        frame_type: u64,
        /// For humans; what is not UTF-8 was replaced.
        reason: String,
    },
    /// DATAGRAM.
    Datagram {
        /// Bytes of data.
        len: usize,
    },
    /// Any other frame by its type: PING, HANDSHAKE_DONE, extensions, and at the end of the list
    /// one that could not be read.
    Other {
        /// The type.
        frame_type: u64,
    },
}

/// The frames of a packet's payload, in order, up to the first one that cannot be read.
///
/// `ack_delay_exponent` is that of the packet's sender (RFC 9000 §18.2).
pub fn frames_of(payload: &[u8], ack_delay_exponent: u64) -> Vec<FrameRecord> {
    let mut records = Vec::new();
    for frame in Frames::new(payload).take(MAX_FRAMES) {
        match frame {
            Ok(frame) => records.push(record_of(&frame, ack_delay_exponent)),
            Err(error) => {
                let frame_type = error.frame_type;
                records.push(FrameRecord::Other { frame_type });
                break;
            }
        }
    }
    records
}

fn record_of(frame: &Frame<'_>, ack_delay_exponent: u64) -> FrameRecord {
    match *frame {
        Frame::Padding(len) => FrameRecord::Padding { len },
        Frame::Ack(ref ack) => ack_record(ack, ack_delay_exponent),
        Frame::Crypto(frame) => FrameRecord::Crypto {
            offset: frame.offset,
            len: frame.data.len(),
        },
        Frame::Stream(frame) => FrameRecord::Stream {
            id: frame.id,
            offset: frame.offset,
            len: frame.data.len(),
            fin: frame.fin,
        },
        Frame::Datagram(frame) => FrameRecord::Datagram {
            len: frame.data.len(),
        },
        Frame::ResetStream(frame) => FrameRecord::ResetStream {
            id: frame.id,
            error_code: frame.error_code,
            final_size: frame.final_size,
        },
        Frame::StopSending(frame) => FrameRecord::StopSending {
            id: frame.id,
            error_code: frame.error_code,
        },
        Frame::NewToken(frame) => FrameRecord::NewToken {
            len: frame.token.len(),
        },
        Frame::NewConnectionId(frame) => FrameRecord::NewConnectionId {
            sequence: frame.sequence,
            retire_prior_to: frame.retire_prior_to,
            id: frame.id,
        },
        Frame::RetireConnectionId(frame) => FrameRecord::RetireConnectionId {
            sequence: frame.sequence,
        },
        Frame::PathChallenge(frame) => FrameRecord::PathChallenge { data: frame.data },
        Frame::PathResponse(frame) => FrameRecord::PathResponse { data: frame.data },
        Frame::ConnectionClose(ref close) => {
            let (by_application, error_code, frame_type) = match close.kind {
                CloseKind::Transport {
                    error_code,
                    frame_type,
                } => (false, error_code.value(), frame_type),
                CloseKind::Application { error_code } => (true, error_code.value(), 0),
            };
            FrameRecord::ConnectionClose {
                by_application,
                error_code,
                frame_type,
                reason: String::from_utf8_lossy(close.reason).into_owned(),
            }
        }
        ref other => flow_record(other),
    }
}

fn flow_record(frame: &Frame<'_>) -> FrameRecord {
    match *frame {
        Frame::MaxData(frame) => FrameRecord::MaxData {
            maximum: frame.limit,
        },
        Frame::MaxStreamData(frame) => FrameRecord::MaxStreamData {
            id: frame.id,
            maximum: frame.limit,
        },
        Frame::MaxStreams(frame) => FrameRecord::MaxStreams {
            direction: frame.direction,
            maximum: frame.limit,
        },
        Frame::DataBlocked(frame) => FrameRecord::DataBlocked { limit: frame.limit },
        Frame::StreamDataBlocked(frame) => FrameRecord::StreamDataBlocked {
            id: frame.id,
            limit: frame.limit,
        },
        Frame::StreamsBlocked(frame) => FrameRecord::StreamsBlocked {
            direction: frame.direction,
            limit: frame.limit,
        },
        ref other => FrameRecord::Other {
            frame_type: other.frame_type().value(),
        },
    }
}

fn ack_record(ack: &Ack<'_>, ack_delay_exponent: u64) -> FrameRecord {
    let exponent = ack_delay_exponent.min(20); // RFC 9000 §18.2
    let delay = Duration::from_micros(ack.delay.saturating_mul(1 << exponent));
    FrameRecord::Ack {
        delay,
        ranges: ack.ranges().take(MAX_ACK_RANGES).collect(),
        ecn: ack.ecn,
    }
}

#[cfg(test)]
mod tests;
