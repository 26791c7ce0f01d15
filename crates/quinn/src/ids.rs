//! Identifiers of streams and connections.

use std::fmt;
use std::ops::{Deref, Not};

use bytes::Buf;
use courser_quic as quic;

use crate::VarInt;

/// One end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Side {
    /// The end that began the connection.
    Client = 0,
    /// The end that accepted it.
    Server = 1,
}

impl Side {
    /// Returns true for [`Side::Client`].
    pub fn is_client(self) -> bool {
        self == Self::Client
    }

    /// Returns true for [`Side::Server`].
    pub fn is_server(self) -> bool {
        self == Self::Server
    }
}

impl Not for Side {
    type Output = Self;
    fn not(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

impl From<quic::Side> for Side {
    fn from(side: quic::Side) -> Self {
        match side {
            quic::Side::Client => Self::Client,
            quic::Side::Server => Self::Server,
        }
    }
}

/// The directions of a stream.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Dir {
    /// Both ends send on the stream.
    Bi = 0,
    /// Only the end that opened it sends.
    Uni = 1,
}

impl fmt::Display for Dir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Bi => "bidirectional",
            Self::Uni => "unidirectional",
        })
    }
}

/// The number of a stream. RFC 9000 §2.1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StreamId(u64);

impl StreamId {
    /// Returns the ID of the stream of this kind with this index, counted from 0.
    pub fn new(initiator: Side, dir: Dir, index: u64) -> Self {
        Self(index << 2 | (dir as u64) << 1 | initiator as u64)
    }

    /// Returns the end that opened the stream.
    pub fn initiator(self) -> Side {
        match self.0 & 1 {
            0 => Side::Client,
            _ => Side::Server,
        }
    }

    /// Returns the directions of the stream.
    pub fn dir(self) -> Dir {
        match self.0 & 2 {
            0 => Dir::Bi,
            _ => Dir::Uni,
        }
    }

    /// Returns the index among the streams of its kind.
    pub fn index(self) -> u64 {
        self.0 >> 2
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let initiator = match self.initiator() {
            Side::Client => "client",
            Side::Server => "server",
        };
        write!(f, "{initiator} {} stream {}", self.dir(), self.index())
    }
}

impl From<StreamId> for VarInt {
    fn from(id: StreamId) -> Self {
        Self::from_u64_unchecked(id.0)
    }
}

impl From<VarInt> for StreamId {
    fn from(value: VarInt) -> Self {
        Self(value.into_inner())
    }
}

impl From<StreamId> for u64 {
    fn from(id: StreamId) -> Self {
        id.0
    }
}

impl From<quic::StreamId> for StreamId {
    fn from(id: quic::StreamId) -> Self {
        Self(id.value())
    }
}

/// A connection ID of up to 20 bytes. RFC 9000 §5.1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    len: u8,
    bytes: [u8; MAX_CONNECTION_ID],
}

/// The length of the longest connection ID.
pub(crate) const MAX_CONNECTION_ID: usize = 20;

impl ConnectionId {
    /// Creates an ID of these bytes.
    ///
    /// # Panics
    /// Panics if there are more than 20.
    pub fn new(bytes: &[u8]) -> Self {
        assert!(bytes.len() <= MAX_CONNECTION_ID, "at most 20 bytes");
        let mut id = Self {
            len: bytes.len() as u8,
            bytes: [0; MAX_CONNECTION_ID],
        };
        id.bytes[..bytes.len()].copy_from_slice(bytes);
        id
    }

    /// Takes an ID of `len` bytes from the front of a buffer.
    ///
    /// # Panics
    /// Panics if `len` exceeds 20 or the length of the buffer.
    pub fn from_buf(buf: &mut (impl Buf + ?Sized), len: usize) -> Self {
        let mut bytes = [0; MAX_CONNECTION_ID];
        buf.copy_to_slice(&mut bytes[..len]);
        Self::new(&bytes[..len])
    }
}

impl Deref for ConnectionId {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ConnectionId").field(&&**self).finish()
    }
}

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl From<quic::ConnectionId> for ConnectionId {
    fn from(id: quic::ConnectionId) -> Self {
        Self::new(&id)
    }
}
