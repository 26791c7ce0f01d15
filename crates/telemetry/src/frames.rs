//! Frames of packets as they are recorded: everything but their data.

#![deny(
    clippy::wildcard_enum_match_arm,
    reason = "a new frame must not be recorded as another one"
)]

use std::ops::RangeInclusive;
use std::time::Duration;

use courser_base::EcnCounts;
use courser_wire::frame::{
    Ack, AckFrequency, CloseKind, ConnectionClose, Crypto, Frame, FrameType, Frames,
    NewConnectionId, ResetStream, ResetStreamAt, Stream,
};
use courser_wire::{ConnectionId, Direction, StreamId};

/// Maximum number of ranges recorded for one ACK frame, newest first. A peer may send hundreds.
pub const MAX_ACK_RANGES: usize = 64;

/// Maximum number of frames recorded for one packet. A hostile packet may hold tens of thousands.
const MAX_FRAMES: usize = 256;

/// Record of one frame of a packet. RFC 9000 §19.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FrameRecord {
    /// A run of consecutive PADDING frames.
    Padding {
        /// Number of frames, which is also their size in bytes.
        len: usize,
    },
    /// An ACK frame.
    Ack {
        /// Delay of the acknowledgement, as reported in the frame.
        delay: Duration,
        /// Acknowledged ranges, newest first, at most [`MAX_ACK_RANGES`].
        ranges: Vec<RangeInclusive<u64>>,
        /// ECN counts, if the frame carries them.
        ecn: Option<EcnCounts>,
    },
    /// A CRYPTO frame.
    Crypto {
        /// Offset of the first byte.
        offset: u64,
        /// Length of the data in bytes.
        len: usize,
    },
    /// A STREAM frame.
    Stream {
        /// ID of the stream.
        id: StreamId,
        /// Offset of the first byte.
        offset: u64,
        /// Length of the data in bytes.
        len: usize,
        /// True if the data ends the stream.
        fin: bool,
    },
    /// A RESET_STREAM_AT frame.
    ResetStreamAt {
        /// ID of the stream.
        id: StreamId,
        /// The application's error code.
        error_code: u64,
        /// The final size in bytes.
        final_size: u64,
        /// The bytes that are delivered.
        reliable_size: u64,
    },
    /// A RESET_STREAM frame.
    ResetStream {
        /// ID of the stream.
        id: StreamId,
        /// The application's error code.
        error_code: u64,
        /// Final size of the stream in bytes, which flow control counts.
        final_size: u64,
    },
    /// A STOP_SENDING frame.
    StopSending {
        /// ID of the stream.
        id: StreamId,
        /// The application's error code.
        error_code: u64,
    },
    /// A NEW_TOKEN frame.
    NewToken {
        /// Length of the token in bytes.
        len: usize,
    },
    /// A MAX_DATA frame.
    MaxData {
        /// Limit on the bytes sent since the start.
        maximum: u64,
    },
    /// A MAX_STREAM_DATA frame.
    MaxStreamData {
        /// ID of the stream.
        id: StreamId,
        /// Limit on the bytes sent since the start.
        maximum: u64,
    },
    /// A MAX_STREAMS frame.
    MaxStreams {
        /// Direction of the streams.
        direction: Direction,
        /// Limit on the streams opened since the start.
        maximum: u64,
    },
    /// A DATA_BLOCKED frame.
    DataBlocked {
        /// The limit that blocks the sender.
        limit: u64,
    },
    /// A STREAM_DATA_BLOCKED frame.
    StreamDataBlocked {
        /// ID of the stream.
        id: StreamId,
        /// The limit that blocks the sender.
        limit: u64,
    },
    /// A STREAMS_BLOCKED frame.
    StreamsBlocked {
        /// Direction of the streams.
        direction: Direction,
        /// The limit that blocks the sender.
        limit: u64,
    },
    /// A NEW_CONNECTION_ID frame. The stateless reset token is secret and not recorded.
    NewConnectionId {
        /// Sequence number of the connection ID.
        sequence: u64,
        /// Connection IDs with smaller sequence numbers must be retired.
        retire_prior_to: u64,
        /// The connection ID.
        id: ConnectionId,
    },
    /// A RETIRE_CONNECTION_ID frame.
    RetireConnectionId {
        /// Sequence number of the connection ID.
        sequence: u64,
    },
    /// A PATH_CHALLENGE frame.
    PathChallenge {
        /// Data that the answer must repeat.
        data: [u8; 8],
    },
    /// A PATH_RESPONSE frame.
    PathResponse {
        /// Data repeated from the challenge.
        data: [u8; 8],
    },
    /// A CONNECTION_CLOSE frame.
    ConnectionClose {
        /// True for a close by the application (type 0x1d), false for one by the transport (type
        /// 0x1c).
        by_application: bool,
        /// The error code.
        error_code: u64,
        /// Type of the frame that caused the error, 0 for none.
        frame_type: u64,
        /// Reason phrase for humans. Bytes that are not UTF-8 were replaced.
        reason: String,
    },
    /// A DATAGRAM frame.
    Datagram {
        /// Length of the data in bytes.
        len: usize,
    },
    /// An IMMEDIATE_ACK frame.
    ImmediateAck,
    /// An ACK_FREQUENCY frame.
    AckFrequency {
        /// Sequence number of the request.
        sequence: u64,
        /// Ack-eliciting packets that may arrive without an ACK.
        ack_eliciting_threshold: u64,
        /// The largest delay of an ACK.
        max_ack_delay: Duration,
        /// Distance of a missing packet to the newest one at which an ACK is due at once; 0 for never.
        reordering_threshold: u64,
    },
    /// PING or HANDSHAKE_DONE. At the end of the list, a frame that cannot be decoded.
    Other {
        /// Type of the frame.
        frame_type: u64,
    },
}

impl FrameRecord {
    /// Returns the type of the frame, which has its names. STREAM and DATAGRAM frames have several types:
    /// then it is the one without flags.
    pub const fn frame_type(&self) -> FrameType {
        match self {
            Self::Padding { .. } => FrameType::PADDING,
            Self::Ack { ecn: None, .. } => FrameType::ACK,
            Self::Ack { ecn: Some(_), .. } => FrameType::ACK_ECN,
            Self::Crypto { .. } => FrameType::CRYPTO,
            Self::Stream { .. } => FrameType::STREAM,
            Self::ResetStreamAt { .. } => FrameType::RESET_STREAM_AT,
            Self::ResetStream { .. } => FrameType::RESET_STREAM,
            Self::StopSending { .. } => FrameType::STOP_SENDING,
            Self::NewToken { .. } => FrameType::NEW_TOKEN,
            Self::MaxData { .. } => FrameType::MAX_DATA,
            Self::MaxStreamData { .. } => FrameType::MAX_STREAM_DATA,
            Self::MaxStreams { direction, .. } => match direction {
                Direction::Bidirectional => FrameType::MAX_STREAMS_BIDI,
                Direction::Unidirectional => FrameType::MAX_STREAMS_UNI,
            },
            Self::DataBlocked { .. } => FrameType::DATA_BLOCKED,
            Self::StreamDataBlocked { .. } => FrameType::STREAM_DATA_BLOCKED,
            Self::StreamsBlocked { direction, .. } => match direction {
                Direction::Bidirectional => FrameType::STREAMS_BLOCKED_BIDI,
                Direction::Unidirectional => FrameType::STREAMS_BLOCKED_UNI,
            },
            Self::NewConnectionId { .. } => FrameType::NEW_CONNECTION_ID,
            Self::RetireConnectionId { .. } => FrameType::RETIRE_CONNECTION_ID,
            Self::PathChallenge { .. } => FrameType::PATH_CHALLENGE,
            Self::PathResponse { .. } => FrameType::PATH_RESPONSE,
            Self::ConnectionClose {
                by_application: false,
                ..
            } => FrameType::CONNECTION_CLOSE,
            Self::ConnectionClose { .. } => FrameType::CONNECTION_CLOSE_APPLICATION,
            Self::Datagram { .. } => FrameType::DATAGRAM,
            Self::ImmediateAck => FrameType::IMMEDIATE_ACK,
            Self::AckFrequency { .. } => FrameType::ACK_FREQUENCY,
            Self::Other { frame_type } => FrameType(*frame_type),
        }
    }
}

/// Returns the frames of a packet's payload in order, up to the first one that cannot be decoded.
/// The list is limited to 256 frames.
///
/// `ack_delay_exponent` is the transport parameter of the packet's sender (RFC 9000 §18.2).
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
        Frame::Crypto(frame) => crypto_record(frame),
        Frame::Stream(frame) => stream_record(frame),
        Frame::Datagram(frame) => FrameRecord::Datagram {
            len: frame.data.len(),
        },
        Frame::ResetStreamAt(frame) => reset_at_record(frame),
        Frame::ResetStream(frame) => reset_record(frame),
        Frame::StopSending(frame) => FrameRecord::StopSending {
            id: frame.id,
            error_code: frame.error_code,
        },
        Frame::NewToken(frame) => FrameRecord::NewToken {
            len: frame.token.len(),
        },
        Frame::NewConnectionId(frame) => new_id_record(frame),
        Frame::RetireConnectionId(frame) => FrameRecord::RetireConnectionId {
            sequence: frame.sequence,
        },
        Frame::PathChallenge(frame) => FrameRecord::PathChallenge { data: frame.data },
        Frame::PathResponse(frame) => FrameRecord::PathResponse { data: frame.data },
        Frame::ConnectionClose(ref close) => close_record(close),
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
        Frame::ImmediateAck => FrameRecord::ImmediateAck,
        Frame::AckFrequency(frame) => frequency_record(frame),
        Frame::Ping | Frame::HandshakeDone => FrameRecord::Other {
            frame_type: frame.frame_type().value(),
        },
    }
}

fn crypto_record(frame: Crypto<'_>) -> FrameRecord {
    FrameRecord::Crypto {
        offset: frame.offset,
        len: frame.data.len(),
    }
}

fn stream_record(frame: Stream<'_>) -> FrameRecord {
    FrameRecord::Stream {
        id: frame.id,
        offset: frame.offset,
        len: frame.data.len(),
        fin: frame.fin,
    }
}

fn reset_record(frame: ResetStream) -> FrameRecord {
    FrameRecord::ResetStream {
        id: frame.id,
        error_code: frame.error_code,
        final_size: frame.final_size,
    }
}

fn reset_at_record(frame: ResetStreamAt) -> FrameRecord {
    FrameRecord::ResetStreamAt {
        id: frame.id,
        error_code: frame.error_code,
        final_size: frame.final_size,
        reliable_size: frame.reliable_size,
    }
}

fn new_id_record(frame: NewConnectionId) -> FrameRecord {
    FrameRecord::NewConnectionId {
        sequence: frame.sequence,
        retire_prior_to: frame.retire_prior_to,
        id: frame.id,
    }
}

fn close_record(close: &ConnectionClose<'_>) -> FrameRecord {
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

fn frequency_record(frame: AckFrequency) -> FrameRecord {
    FrameRecord::AckFrequency {
        sequence: frame.sequence,
        ack_eliciting_threshold: frame.ack_eliciting_threshold,
        max_ack_delay: Duration::from_micros(frame.requested_max_ack_delay),
        reordering_threshold: frame.reordering_threshold,
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
