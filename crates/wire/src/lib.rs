//! Encoding and decoding of QUIC: packets, frames, transport parameters.
//!
//! All types borrow their input and allocate nothing. The only output that grows a vector is the
//! caller's own, in [`TransportParameters::encode`]. Nothing in this crate depends on the state of
//! a connection: the caller decides what a frame may do. All decoders accept bytes of an attacker.
//! They return an error, never panic, and take time linear in the input.

pub mod frame;
pub mod packet;
pub mod packet_number;
pub mod transport_parameters;
pub mod varint;
pub mod version;

mod connection_id;
mod error;
mod error_code;
mod multiplex;
mod path_id;
mod reader;
mod stream_id;
mod var_int;
mod writer;

#[cfg(test)]
mod testing;

pub use connection_id::ConnectionId;
pub use error::{DecodeError, DecodeErrorKind};
pub use error_code::{ApplicationErrorCode, TransportErrorCode};
pub use frame::{
    Ack, AckRanges, AddAddress, CloseKind, ConnectionClose, Crypto, DataBlocked, Datagram, Frame,
    FrameError, FrameKind, FrameType, Frames, MaxData, MaxPathId, MaxStreamData, MaxStreams,
    NewConnectionId, NewToken, ObservedAddress, PathAbandon, PathAck, PathChallenge,
    PathCidsBlocked, PathNewConnectionId, PathResponse, PathRetireConnectionId, PathStatus,
    PathsBlocked, ReachOut, RemoveAddress, ResetStream, ResetStreamAt, RetireConnectionId,
    StopSending, Stream, StreamDataBlocked, StreamsBlocked,
};
pub use multiplex::DatagramProtocol;
pub use packet::{
    LongHeader, MIN_INITIAL_DATAGRAM, Packet, PacketError, PacketKind, Packets, RetryParts,
    ShortHeader, VersionNegotiation,
};
pub use packet_number::{MAX_PACKET_NUMBER, PacketNumber};
pub use path_id::PathId;
pub use reader::Reader;
pub use stream_id::{Direction, MAX_STREAMS, StreamId};
pub use transport_parameters::{
    AddressDiscovery, ParameterError, PreferredAddress, TransportParameters, VersionInformation,
};
pub use var_int::{TooLarge, VarInt};
pub use varint::{MAX_VARINT, varint_len};
pub use version::{VERSION_1, VERSION_2, Version, Versions};
pub use writer::Writer;
