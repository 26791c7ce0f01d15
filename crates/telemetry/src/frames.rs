//! Frames of packets as they are recorded, without their data.

#![deny(
    clippy::wildcard_enum_match_arm,
    reason = "a new frame must not be recorded as another one"
)]

mod acks;
mod addresses;
mod multipath;

use std::ops::RangeInclusive;
use std::time::Duration;

use courser_base::EcnCounts;
use courser_wire::frame::{
    Ack, AckFrequency, CloseKind, ConnectionClose, Crypto, Frame, FrameType, Frames,
    NewConnectionId, ResetStream, ResetStreamAt, Stream,
};
use courser_wire::{ConnectionId, Direction, StreamId};

pub use self::acks::MAX_ACK_RANGES;
use self::acks::delay_of;
pub use self::addresses::AddressRecord;
pub use self::multipath::MultipathRecord;

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
    /// An ACK frame, with the ranges that it acknowledges (RFC 9000 §19.3).
    Ack {
        /// Delay of the acknowledgement, as reported in the frame.
        delay: Duration,
        /// Acknowledged ranges, newest first, at most [`MAX_ACK_RANGES`].
        ranges: Vec<RangeInclusive<u64>>,
        /// ECN counts, if the frame carries them.
        ecn: Option<EcnCounts>,
    },
    /// A CRYPTO frame, which carries TLS messages (RFC 9000 §19.6).
    Crypto {
        /// Offset of the first byte.
        offset: u64,
        /// Length of the data in bytes.
        len: usize,
    },
    /// A STREAM frame, which carries data of a stream (RFC 9000 §19.8).
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
    /// A RESET_STREAM_AT frame, which ends a stream after its reliable part
    /// (draft-ietf-quic-reliable-stream-reset-10 §4).
    ResetStreamAt {
        /// ID of the stream.
        id: StreamId,
        /// The application's error code.
        error_code: u64,
        /// The final size in bytes.
        final_size: u64,
        /// Number of bytes from the start of the stream that are still delivered.
        reliable_size: u64,
    },
    /// A RESET_STREAM frame, by which the sender ends a stream abruptly (RFC 9000 §19.4).
    ResetStream {
        /// ID of the stream.
        id: StreamId,
        /// The application's error code.
        error_code: u64,
        /// Final size of the stream in bytes, which flow control counts.
        final_size: u64,
    },
    /// A STOP_SENDING frame, by which the receiver asks for a reset (RFC 9000 §19.5).
    StopSending {
        /// ID of the stream.
        id: StreamId,
        /// The application's error code.
        error_code: u64,
    },
    /// A NEW_TOKEN frame, whose token is secret and not recorded (RFC 9000 §19.7).
    NewToken {
        /// Length of the token in bytes.
        len: usize,
    },
    /// A MAX_DATA frame, which raises the limit of the connection (RFC 9000 §19.9).
    MaxData {
        /// Limit on the bytes sent since the start.
        maximum: u64,
    },
    /// A MAX_STREAM_DATA frame, which raises the limit of a stream (RFC 9000 §19.10).
    MaxStreamData {
        /// ID of the stream.
        id: StreamId,
        /// Limit on the bytes sent since the start.
        maximum: u64,
    },
    /// A MAX_STREAMS frame, which raises the number of streams (RFC 9000 §19.11).
    MaxStreams {
        /// Direction of the streams.
        direction: Direction,
        /// Limit on the streams opened since the start.
        maximum: u64,
    },
    /// A DATA_BLOCKED frame: the sender has reached the limit of the connection (RFC 9000 §19.12).
    DataBlocked {
        /// The limit that blocks the sender.
        limit: u64,
    },
    /// A STREAM_DATA_BLOCKED frame: the sender has reached the limit of a stream (RFC 9000 §19.13).
    StreamDataBlocked {
        /// ID of the stream.
        id: StreamId,
        /// The limit that blocks the sender.
        limit: u64,
    },
    /// A STREAMS_BLOCKED frame: the sender has opened all permitted streams (RFC 9000 §19.14).
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
        /// The connection ID that the receiver may use.
        id: ConnectionId,
    },
    /// A RETIRE_CONNECTION_ID frame: the sender no longer uses an ID of the receiver (RFC 9000
    /// §19.16).
    RetireConnectionId {
        /// Sequence number of the connection ID.
        sequence: u64,
    },
    /// A PATH_CHALLENGE frame, which starts or repeats a path validation (RFC 9000 §19.17).
    PathChallenge {
        /// Data that the answer must repeat.
        data: [u8; 8],
    },
    /// A PATH_RESPONSE frame, which answers a challenge (RFC 9000 §19.18).
    PathResponse {
        /// Data repeated from the challenge.
        data: [u8; 8],
    },
    /// A CONNECTION_CLOSE frame, which ends the connection (RFC 9000 §19.19).
    ConnectionClose {
        /// True for a close by the application (type 0x1d), false for one by the transport (type
        /// 0x1c).
        by_application: bool,
        /// The error code of the transport or of the application.
        error_code: u64,
        /// Type of the frame that caused the error, 0 for none.
        frame_type: u64,
        /// Reason phrase for humans. Bytes that are not UTF-8 were replaced.
        reason: String,
    },
    /// A DATAGRAM frame, which carries unreliable data (RFC 9221 §4).
    Datagram {
        /// Length of the data in bytes.
        len: usize,
    },
    /// An IMMEDIATE_ACK frame, which requests an ACK without delay
    /// (draft-ietf-quic-ack-frequency-12 §5).
    ImmediateAck,
    /// An ACK_FREQUENCY frame, which requests how often to acknowledge
    /// (draft-ietf-quic-ack-frequency-12 §4).
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
    /// A frame of a connection with several paths (RFC 10069 §4).
    Multipath(MultipathRecord),
    /// A frame that carries an address.
    Address(AddressRecord),
    /// PING or HANDSHAKE_DONE. At the end of the list, a frame that cannot be decoded.
    Other {
        /// Type of the frame.
        frame_type: u64,
    },
}

impl FrameRecord {
    /// Returns the type of the frame, which has its names. For STREAM and DATAGRAM frames it is the
    /// type without flags.
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
            Self::Multipath(record) => record.frame_type(),
            Self::Address(record) => record.frame_type(),
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
        Frame::PathAck(ref frame) => {
            FrameRecord::Multipath(multipath::ack(frame, ack_delay_exponent))
        }
        Frame::PathAbandon(frame) => FrameRecord::Multipath(multipath::abandon(frame)),
        Frame::PathStatusBackup(frame) => FrameRecord::Multipath(multipath::status(frame, false)),
        Frame::PathStatusAvailable(frame) => FrameRecord::Multipath(multipath::status(frame, true)),
        Frame::PathNewConnectionId(frame) => FrameRecord::Multipath(multipath::new_id(frame)),
        Frame::PathRetireConnectionId(frame) => FrameRecord::Multipath(multipath::retire_id(frame)),
        Frame::MaxPathId(frame) => FrameRecord::Multipath(multipath::max_path_id(frame)),
        Frame::PathsBlocked(frame) => FrameRecord::Multipath(multipath::paths_blocked(frame)),
        Frame::PathCidsBlocked(frame) => FrameRecord::Multipath(multipath::cids_blocked(frame)),
        Frame::ObservedAddress(frame) => FrameRecord::Address(frame.into()),
        Frame::AddAddress(frame) => FrameRecord::Address(frame.into()),
        Frame::ReachOut(frame) => FrameRecord::Address(frame.into()),
        Frame::RemoveAddress(frame) => FrameRecord::Address(frame.into()),
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
    FrameRecord::Ack {
        delay: delay_of(ack, ack_delay_exponent),
        ranges: ack.ranges().take(MAX_ACK_RANGES).collect(),
        ecn: ack.ecn,
    }
}

#[cfg(test)]
mod tests;
