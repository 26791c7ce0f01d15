//! Frames: the content of packets. RFC 9000 §12.4, §19.
//!
//! Each frame has a file with its struct, `decode`, `encode` and `encoded_len`. The `decode` of a
//! frame starts after the type. [`Frame::decode`] reads the type and passes it on to frames that
//! have several. The table in `table.rs` has the types of each frame, its names and properties.

mod ack;
mod ack_frequency;
mod addresses;
mod connection_close;
mod crypto;
mod data_blocked;
mod datagram;
mod frame_type;
mod iter;
mod kind;
mod max_data;
mod max_stream_data;
mod max_streams;
mod multipath;
mod new_connection_id;
mod new_token;
mod padding;
mod path_challenge;
mod path_response;
pub mod permitted;
mod reset_stream;
mod reset_stream_at;
mod retire_connection_id;
mod stop_sending;
mod stream;
mod stream_data_blocked;
mod streams_blocked;
mod table;

pub use ack::{Ack, AckRanges};
pub use ack_frequency::AckFrequency;
pub use addresses::{AddAddress, ObservedAddress, ReachOut, RemoveAddress};
pub use connection_close::{CloseKind, ConnectionClose};
pub use crypto::Crypto;
pub use data_blocked::DataBlocked;
pub use datagram::Datagram;
pub use frame_type::{FrameError, FrameType};
pub use iter::Frames;
pub use kind::FrameKind;
pub use max_data::MaxData;
pub use max_stream_data::MaxStreamData;
pub use max_streams::MaxStreams;
pub use multipath::{
    MaxPathId, PathAbandon, PathAck, PathCidsBlocked, PathNewConnectionId, PathRetireConnectionId,
    PathStatus, PathsBlocked,
};
pub use new_connection_id::NewConnectionId;
pub use new_token::NewToken;
pub use path_challenge::PathChallenge;
pub use path_response::PathResponse;
pub use permitted::is_permitted;
pub use reset_stream::ResetStream;
pub use reset_stream_at::ResetStreamAt;
pub use retire_connection_id::RetireConnectionId;
pub use stop_sending::StopSending;
pub use stream::Stream;
pub use stream_data_blocked::StreamDataBlocked;
pub use streams_blocked::StreamsBlocked;

use crate::error::{DecodeError, DecodeErrorKind};
use crate::reader::Reader;
use crate::writer::Writer;

/// A frame that borrows from the payload of its packet. RFC 9000 §19.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Frame<'a> {
    /// A run of PADDING frames and its length. RFC 9000 §19.1.
    Padding(usize),
    /// A PING frame. RFC 9000 §19.2.
    Ping,
    /// An ACK frame. RFC 9000 §19.3.
    Ack(Ack<'a>),
    /// A RESET_STREAM frame. RFC 9000 §19.4.
    ResetStream(ResetStream),
    /// A RESET_STREAM_AT frame. draft-ietf-quic-reliable-stream-reset-10 §4.
    ResetStreamAt(ResetStreamAt),
    /// A STOP_SENDING frame. RFC 9000 §19.5.
    StopSending(StopSending),
    /// A CRYPTO frame. RFC 9000 §19.6.
    Crypto(Crypto<'a>),
    /// A NEW_TOKEN frame. RFC 9000 §19.7.
    NewToken(NewToken<'a>),
    /// A STREAM frame. RFC 9000 §19.8.
    Stream(Stream<'a>),
    /// A MAX_DATA frame. RFC 9000 §19.9.
    MaxData(MaxData),
    /// A MAX_STREAM_DATA frame. RFC 9000 §19.10.
    MaxStreamData(MaxStreamData),
    /// A MAX_STREAMS frame. RFC 9000 §19.11.
    MaxStreams(MaxStreams),
    /// A DATA_BLOCKED frame. RFC 9000 §19.12.
    DataBlocked(DataBlocked),
    /// A STREAM_DATA_BLOCKED frame. RFC 9000 §19.13.
    StreamDataBlocked(StreamDataBlocked),
    /// A STREAMS_BLOCKED frame. RFC 9000 §19.14.
    StreamsBlocked(StreamsBlocked),
    /// A NEW_CONNECTION_ID frame. RFC 9000 §19.15.
    NewConnectionId(NewConnectionId),
    /// A RETIRE_CONNECTION_ID frame. RFC 9000 §19.16.
    RetireConnectionId(RetireConnectionId),
    /// A PATH_CHALLENGE frame. RFC 9000 §19.17.
    PathChallenge(PathChallenge),
    /// A PATH_RESPONSE frame. RFC 9000 §19.18.
    PathResponse(PathResponse),
    /// A CONNECTION_CLOSE frame. RFC 9000 §19.19.
    ConnectionClose(ConnectionClose<'a>),
    /// A HANDSHAKE_DONE frame. RFC 9000 §19.20.
    HandshakeDone,
    /// An IMMEDIATE_ACK frame. draft-ietf-quic-ack-frequency-12 §5.
    ImmediateAck,
    /// An ACK_FREQUENCY frame. draft-ietf-quic-ack-frequency-12 §4.
    AckFrequency(AckFrequency),
    /// A DATAGRAM frame. RFC 9221 §4.
    Datagram(Datagram<'a>),
    /// A PATH_ACK frame. RFC 10069 §4.1.
    PathAck(PathAck<'a>),
    /// A PATH_ABANDON frame. RFC 10069 §4.2.
    PathAbandon(PathAbandon),
    /// A PATH_STATUS_BACKUP frame. RFC 10069 §4.3.
    PathStatusBackup(PathStatus),
    /// A PATH_STATUS_AVAILABLE frame. RFC 10069 §4.3.
    PathStatusAvailable(PathStatus),
    /// A PATH_NEW_CONNECTION_ID frame. RFC 10069 §4.4.
    PathNewConnectionId(PathNewConnectionId),
    /// A PATH_RETIRE_CONNECTION_ID frame. RFC 10069 §4.5.
    PathRetireConnectionId(PathRetireConnectionId),
    /// A MAX_PATH_ID frame. RFC 10069 §4.6.
    MaxPathId(MaxPathId),
    /// A PATHS_BLOCKED frame. RFC 10069 §4.7.
    PathsBlocked(PathsBlocked),
    /// A PATH_CIDS_BLOCKED frame. RFC 10069 §4.7.
    PathCidsBlocked(PathCidsBlocked),
    /// An OBSERVED_ADDRESS frame. draft-ietf-quic-address-discovery-00 §4.1.
    ObservedAddress(ObservedAddress),
    /// An ADD_ADDRESS frame. draft-seemann-quic-nat-traversal-02 §4.
    AddAddress(AddAddress),
    /// A REACH_OUT frame. draft-seemann-quic-nat-traversal-02 §4.
    ReachOut(ReachOut),
    /// A REMOVE_ADDRESS frame. draft-seemann-quic-nat-traversal-02 §4.
    RemoveAddress(RemoveAddress),
}

impl<'a> Frame<'a> {
    /// Reads one frame or one run of PADDING.
    ///
    /// # Errors
    /// Fails if the type is unknown or not in its shortest encoding, or if the fields cannot be
    /// decoded.
    #[inline]
    pub fn decode(reader: &mut Reader<'a>) -> Result<Self, FrameError> {
        let frame_type = FrameType::decode(reader)?;
        let frame = if frame_type.is_stream() {
            Stream::decode(reader, frame_type.0).map(Self::Stream)
        } else {
            Self::decode_rare(reader, frame_type)
        };
        frame.map_err(|error| FrameError {
            error,
            frame_type: frame_type.0,
        })
    }

    /// Reads the fields of any frame but STREAM. A separate function, so that the decoding of
    /// STREAM frames, which carry bulk transfers, can be inlined where they are handled.
    #[inline(never)]
    fn decode_rare(reader: &mut Reader<'a>, frame_type: FrameType) -> Result<Self, DecodeError> {
        Ok(match frame_type {
            FrameType::PADDING => Self::Padding(1 + padding::skip(reader)),
            FrameType::PING => Self::Ping,
            FrameType::ACK | FrameType::ACK_ECN => {
                Self::Ack(Ack::decode(reader, frame_type == FrameType::ACK_ECN)?)
            }
            FrameType::RESET_STREAM => Self::ResetStream(ResetStream::decode(reader)?),
            FrameType::RESET_STREAM_AT => Self::ResetStreamAt(ResetStreamAt::decode(reader)?),
            FrameType::STOP_SENDING => Self::StopSending(StopSending::decode(reader)?),
            FrameType::CRYPTO => Self::Crypto(Crypto::decode(reader)?),
            FrameType::NEW_TOKEN => Self::NewToken(NewToken::decode(reader)?),
            FrameType::MAX_DATA => Self::MaxData(MaxData::decode(reader)?),
            FrameType::MAX_STREAM_DATA => Self::MaxStreamData(MaxStreamData::decode(reader)?),
            FrameType::MAX_STREAMS_BIDI | FrameType::MAX_STREAMS_UNI => {
                Self::MaxStreams(MaxStreams::decode(reader, frame_type.0)?)
            }
            FrameType::DATA_BLOCKED => Self::DataBlocked(DataBlocked::decode(reader)?),
            FrameType::STREAM_DATA_BLOCKED => {
                Self::StreamDataBlocked(StreamDataBlocked::decode(reader)?)
            }
            FrameType::STREAMS_BLOCKED_BIDI | FrameType::STREAMS_BLOCKED_UNI => {
                Self::StreamsBlocked(StreamsBlocked::decode(reader, frame_type.0)?)
            }
            FrameType::NEW_CONNECTION_ID => Self::NewConnectionId(NewConnectionId::decode(reader)?),
            FrameType::RETIRE_CONNECTION_ID => {
                Self::RetireConnectionId(RetireConnectionId::decode(reader)?)
            }
            FrameType::PATH_CHALLENGE => Self::PathChallenge(PathChallenge::decode(reader)?),
            FrameType::PATH_RESPONSE => Self::PathResponse(PathResponse::decode(reader)?),
            FrameType::CONNECTION_CLOSE | FrameType::CONNECTION_CLOSE_APPLICATION => {
                Self::ConnectionClose(ConnectionClose::decode(reader, frame_type.0)?)
            }
            FrameType::HANDSHAKE_DONE => Self::HandshakeDone,
            FrameType::IMMEDIATE_ACK => Self::ImmediateAck,
            FrameType::ACK_FREQUENCY => Self::AckFrequency(AckFrequency::decode(reader)?),
            FrameType::DATAGRAM | FrameType::DATAGRAM_WITH_LENGTH => {
                Self::Datagram(Datagram::decode(reader, frame_type.0)?)
            }
            _ => return Self::decode_of_paths(reader, frame_type),
        })
    }

    /// Reads the fields of a frame of several paths, or one that carries an address.
    fn decode_of_paths(
        reader: &mut Reader<'a>,
        frame_type: FrameType,
    ) -> Result<Self, DecodeError> {
        Ok(match frame_type {
            FrameType::PATH_ACK | FrameType::PATH_ACK_ECN => {
                let has_ecn = frame_type == FrameType::PATH_ACK_ECN;
                Self::PathAck(PathAck::decode(reader, has_ecn)?)
            }
            FrameType::PATH_ABANDON => Self::PathAbandon(PathAbandon::decode(reader)?),
            FrameType::PATH_STATUS_BACKUP => Self::PathStatusBackup(PathStatus::decode(reader)?),
            FrameType::PATH_STATUS_AVAILABLE => {
                Self::PathStatusAvailable(PathStatus::decode(reader)?)
            }
            FrameType::PATH_NEW_CONNECTION_ID => {
                Self::PathNewConnectionId(PathNewConnectionId::decode(reader)?)
            }
            FrameType::PATH_RETIRE_CONNECTION_ID => {
                Self::PathRetireConnectionId(PathRetireConnectionId::decode(reader)?)
            }
            FrameType::MAX_PATH_ID => Self::MaxPathId(MaxPathId::decode(reader)?),
            FrameType::PATHS_BLOCKED => Self::PathsBlocked(PathsBlocked::decode(reader)?),
            FrameType::PATH_CIDS_BLOCKED => Self::PathCidsBlocked(PathCidsBlocked::decode(reader)?),
            FrameType::OBSERVED_ADDRESS_IPV4 | FrameType::OBSERVED_ADDRESS_IPV6 => {
                Self::ObservedAddress(ObservedAddress::decode(reader, frame_type)?)
            }
            FrameType::ADD_ADDRESS_IPV4 | FrameType::ADD_ADDRESS_IPV6 => {
                Self::AddAddress(AddAddress::decode(reader, frame_type)?)
            }
            FrameType::REACH_OUT_IPV4 | FrameType::REACH_OUT_IPV6 => {
                Self::ReachOut(ReachOut::decode(reader, frame_type)?)
            }
            FrameType::REMOVE_ADDRESS => Self::RemoveAddress(RemoveAddress::decode(reader)?),
            FrameType(unknown) => {
                let kind = DecodeErrorKind::UnknownFrame(unknown);
                return Err(DecodeError {
                    kind,
                    offset: reader.offset(),
                });
            }
        })
    }

    /// Writes the frame, including its type.
    ///
    /// # Panics
    /// Panics if the frame does not fit, see [`Frame::encoded_len`].
    pub fn encode(&self, writer: &mut Writer<'_>) {
        match self {
            Self::Padding(count) => writer.zeros(*count),
            Self::Ping => FrameType::PING.encode(writer),
            Self::Ack(frame) => frame.encode(writer),
            Self::ResetStream(frame) => frame.encode(writer),
            Self::ResetStreamAt(frame) => frame.encode(writer),
            Self::StopSending(frame) => frame.encode(writer),
            Self::Crypto(frame) => frame.encode(writer),
            Self::NewToken(frame) => frame.encode(writer),
            Self::Stream(frame) => frame.encode(writer),
            Self::MaxData(frame) => frame.encode(writer),
            Self::MaxStreamData(frame) => frame.encode(writer),
            Self::MaxStreams(frame) => frame.encode(writer),
            Self::DataBlocked(frame) => frame.encode(writer),
            Self::StreamDataBlocked(frame) => frame.encode(writer),
            Self::StreamsBlocked(frame) => frame.encode(writer),
            Self::NewConnectionId(frame) => frame.encode(writer),
            Self::RetireConnectionId(frame) => frame.encode(writer),
            Self::PathChallenge(frame) => frame.encode(writer),
            Self::PathResponse(frame) => frame.encode(writer),
            Self::ConnectionClose(frame) => frame.encode(writer),
            Self::HandshakeDone => FrameType::HANDSHAKE_DONE.encode(writer),
            Self::ImmediateAck => FrameType::IMMEDIATE_ACK.encode(writer),
            Self::AckFrequency(frame) => frame.encode(writer),
            Self::Datagram(frame) => frame.encode(writer),
            Self::PathAck(frame) => frame.encode(writer),
            Self::PathAbandon(frame) => frame.encode(writer),
            Self::PathStatusBackup(frame) => frame.encode(writer, FrameType::PATH_STATUS_BACKUP),
            Self::PathStatusAvailable(frame) => {
                frame.encode(writer, FrameType::PATH_STATUS_AVAILABLE)
            }
            Self::PathNewConnectionId(frame) => frame.encode(writer),
            Self::PathRetireConnectionId(frame) => frame.encode(writer),
            Self::MaxPathId(frame) => frame.encode(writer),
            Self::PathsBlocked(frame) => frame.encode(writer),
            Self::PathCidsBlocked(frame) => frame.encode(writer),
            Self::ObservedAddress(frame) => frame.encode(writer),
            Self::AddAddress(frame) => frame.encode(writer),
            Self::ReachOut(frame) => frame.encode(writer),
            Self::RemoveAddress(frame) => frame.encode(writer),
        }
    }

    /// Returns the number of bytes that [`Frame::encode`] writes.
    pub fn encoded_len(&self) -> usize {
        match self {
            Self::Padding(count) => *count,
            Self::Ping | Self::HandshakeDone | Self::ImmediateAck => 1,
            Self::Ack(frame) => frame.encoded_len(),
            Self::ResetStream(frame) => frame.encoded_len(),
            Self::ResetStreamAt(frame) => frame.encoded_len(),
            Self::StopSending(frame) => frame.encoded_len(),
            Self::Crypto(frame) => frame.encoded_len(),
            Self::NewToken(frame) => frame.encoded_len(),
            Self::Stream(frame) => frame.encoded_len(),
            Self::MaxData(frame) => frame.encoded_len(),
            Self::MaxStreamData(frame) => frame.encoded_len(),
            Self::MaxStreams(frame) => frame.encoded_len(),
            Self::DataBlocked(frame) => frame.encoded_len(),
            Self::StreamDataBlocked(frame) => frame.encoded_len(),
            Self::StreamsBlocked(frame) => frame.encoded_len(),
            Self::NewConnectionId(frame) => frame.encoded_len(),
            Self::RetireConnectionId(frame) => frame.encoded_len(),
            Self::PathChallenge(frame) => frame.encoded_len(),
            Self::PathResponse(frame) => frame.encoded_len(),
            Self::ConnectionClose(frame) => frame.encoded_len(),
            Self::AckFrequency(frame) => frame.encoded_len(),
            Self::Datagram(frame) => frame.encoded_len(),
            Self::PathAck(frame) => frame.encoded_len(),
            Self::PathAbandon(frame) => frame.encoded_len(),
            Self::PathStatusBackup(frame) | Self::PathStatusAvailable(frame) => frame.encoded_len(),
            Self::PathNewConnectionId(frame) => frame.encoded_len(),
            Self::PathRetireConnectionId(frame) => frame.encoded_len(),
            Self::MaxPathId(frame) => frame.encoded_len(),
            Self::PathsBlocked(frame) => frame.encoded_len(),
            Self::PathCidsBlocked(frame) => frame.encoded_len(),
            Self::ObservedAddress(frame) => frame.encoded_len(),
            Self::AddAddress(frame) => frame.encoded_len(),
            Self::ReachOut(frame) => frame.encoded_len(),
            Self::RemoveAddress(frame) => frame.encoded_len(),
        }
    }

    /// Returns the type that [`Frame::encode`] writes. STREAM frames are always written with a LEN
    /// field, so this may differ from the received type.
    #[inline(always)]
    pub fn frame_type(&self) -> FrameType {
        match self {
            Self::Padding(_) => FrameType::PADDING,
            Self::Ping => FrameType::PING,
            Self::Ack(frame) => frame.frame_type(),
            Self::ResetStream(_) => FrameType::RESET_STREAM,
            Self::ResetStreamAt(_) => FrameType::RESET_STREAM_AT,
            Self::StopSending(_) => FrameType::STOP_SENDING,
            Self::Crypto(_) => FrameType::CRYPTO,
            Self::NewToken(_) => FrameType::NEW_TOKEN,
            Self::Stream(frame) => frame.frame_type(),
            Self::MaxData(_) => FrameType::MAX_DATA,
            Self::MaxStreamData(_) => FrameType::MAX_STREAM_DATA,
            Self::MaxStreams(frame) => frame.frame_type(),
            Self::DataBlocked(_) => FrameType::DATA_BLOCKED,
            Self::StreamDataBlocked(_) => FrameType::STREAM_DATA_BLOCKED,
            Self::StreamsBlocked(frame) => frame.frame_type(),
            Self::NewConnectionId(_) => FrameType::NEW_CONNECTION_ID,
            Self::RetireConnectionId(_) => FrameType::RETIRE_CONNECTION_ID,
            Self::PathChallenge(_) => FrameType::PATH_CHALLENGE,
            Self::PathResponse(_) => FrameType::PATH_RESPONSE,
            Self::ConnectionClose(frame) => frame.frame_type(),
            Self::HandshakeDone => FrameType::HANDSHAKE_DONE,
            Self::ImmediateAck => FrameType::IMMEDIATE_ACK,
            Self::AckFrequency(_) => FrameType::ACK_FREQUENCY,
            Self::Datagram(frame) => frame.frame_type(),
            Self::PathAck(frame) => frame.frame_type(),
            Self::PathAbandon(_) => FrameType::PATH_ABANDON,
            Self::PathStatusBackup(_) => FrameType::PATH_STATUS_BACKUP,
            Self::PathStatusAvailable(_) => FrameType::PATH_STATUS_AVAILABLE,
            Self::PathNewConnectionId(_) => FrameType::PATH_NEW_CONNECTION_ID,
            Self::PathRetireConnectionId(_) => FrameType::PATH_RETIRE_CONNECTION_ID,
            Self::MaxPathId(_) => FrameType::MAX_PATH_ID,
            Self::PathsBlocked(_) => FrameType::PATHS_BLOCKED,
            Self::PathCidsBlocked(_) => FrameType::PATH_CIDS_BLOCKED,
            Self::ObservedAddress(frame) => frame.frame_type(),
            Self::AddAddress(frame) => frame.frame_type(),
            Self::ReachOut(frame) => frame.frame_type(),
            Self::RemoveAddress(_) => FrameType::REMOVE_ADDRESS,
        }
    }

    /// Returns true if a packet with this frame must be acknowledged in time: for all frames but
    /// ACK, PADDING and CONNECTION_CLOSE. RFC 9002 §2.
    #[inline]
    pub const fn is_ack_eliciting(&self) -> bool {
        self.kind().is_ack_eliciting()
    }

    /// Returns true if the frame can be sent on a path without migrating the connection to it.
    /// RFC 9000 §9.1.
    #[inline]
    pub const fn is_probing(&self) -> bool {
        self.kind().is_probing()
    }
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
