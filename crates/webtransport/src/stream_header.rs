//! Headers of streams: the type or signal, and the number of the session (draft-ietf-webtrans-http3-16 §4.2, §4.3).

use bytes::{Buf as _, Bytes};
use courser_http3::{Code, Error, Scope};
use courser_wire::{Direction, Reader, Writer};

use crate::session_id::SessionId;

/// The encoded header of a stream of a session, three to ten bytes.
///
/// ```
/// use courser_webtransport::{SessionId, StreamHeader};
/// use courser_wire::Direction;
/// let header = StreamHeader::new(Direction::Unidirectional, SessionId::new(4)?);
/// assert_eq!(header.as_ref(), [0x40, 0x54, 4]);
/// # Ok::<(), courser_http3::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct StreamHeader {
    bytes: [u8; LONGEST],
    len: u8,
}

impl StreamHeader {
    /// The type of unidirectional streams, `WT_STREAM` (draft-ietf-webtrans-http3-16 §4.2).
    pub const UNIDIRECTIONAL: u64 = 0x54;
    /// The signal at the start of bidirectional streams of both ends (draft-ietf-webtrans-http3-16 §4.3).
    pub const BIDIRECTIONAL: u64 = 0x41;

    /// Encodes the header of a stream that this end opens.
    pub fn new(direction: Direction, session: SessionId) -> Self {
        let mut bytes = [0; LONGEST];
        let mut writer = Writer::new(&mut bytes);
        writer.varint(first(direction));
        writer.varint(session.value());
        let len = writer.position() as u8; // At most ten.
        Self { bytes, len }
    }

    /// Returns the length, which is the least reliable size of a reset of the stream.
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Returns false: a header has at least three bytes.
    pub const fn is_empty(&self) -> bool {
        false
    }
}

impl AsRef<[u8]> for StreamHeader {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.len()]
    }
}

/// Reads the header of a stream of the peer, whose bytes arrive in pieces of any length.
#[derive(Clone, Debug)]
pub struct StreamHeaderReader {
    partial: [u8; LONGEST_READ],
    held: u8,
    /// Present if the type or signal is part of the bytes.
    direction: Option<Direction>,
}

/// The result of reading a piece of a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HeaderStep {
    /// The header is incomplete. If the stream ends or is reset now, it is dropped without an effect on any session.
    Incomplete,
    /// The header is complete.
    Complete {
        /// The session of the stream.
        session: SessionId,
        /// The length of the header in bytes, without the type if that was read before.
        len: usize,
        /// The first bytes of the body.
        rest: Bytes,
    },
}

impl StreamHeaderReader {
    /// Reads the number of the session. The type or signal was read before.
    pub const fn after_type() -> Self {
        Self {
            partial: [0; LONGEST_READ],
            held: 0,
            direction: None,
        }
    }

    /// Reads the whole header of a stream of this direction.
    pub const fn whole(direction: Direction) -> Self {
        Self {
            direction: Some(direction),
            ..Self::after_type()
        }
    }

    /// Reads a piece of the stream. Copies at most 15 bytes until the header is complete.
    ///
    /// # Errors
    ///
    /// Returns a connection error: `H3_ID_ERROR` for a session ID that no session can have, and
    /// `H3_STREAM_CREATION_ERROR` for another type or signal.
    pub fn read(&mut self, mut piece: Bytes) -> Result<HeaderStep, Error> {
        let held = usize::from(self.held);
        if held == 0 {
            // The common case: the header is in one piece.
            return match self.parse(&piece)? {
                Some((session, len)) => {
                    piece.advance(len);
                    Ok(complete(session, len, piece))
                }
                None => Ok(self.keep(&piece)),
            };
        }
        let more = piece.len().min(LONGEST_READ - held);
        let mut joined = self.partial;
        joined[held..held + more].copy_from_slice(&piece[..more]);
        match self.parse(&joined[..held + more])? {
            Some((session, len)) => {
                // A header that was incomplete before ends in this piece.
                piece.advance(len.saturating_sub(held));
                Ok(complete(session, len, piece))
            }
            None => Ok(self.keep(&piece)),
        }
    }

    /// Returns the session and the length of the header, or `None` if it is incomplete.
    fn parse(&self, bytes: &[u8]) -> Result<Option<(SessionId, usize)>, Error> {
        let mut reader = Reader::new(bytes);
        if let Some(direction) = self.direction {
            match reader.varint() {
                Ok(value) if value == first(direction) => {}
                Ok(_) => return Err(OTHER_STREAM),
                Err(_) => return Ok(None),
            }
        }
        let Ok(number) = reader.varint() else {
            return Ok(None);
        };
        Ok(Some((SessionId::new(number)?, reader.offset())))
    }

    /// Keeps the bytes of an incomplete header, of which there are at most 15.
    fn keep(&mut self, piece: &[u8]) -> HeaderStep {
        let held = usize::from(self.held);
        let more = piece.len().min(LONGEST_READ - held);
        self.partial[held..held + more].copy_from_slice(&piece[..more]);
        self.held = (held + more) as u8; // At most 16.
        HeaderStep::Incomplete
    }
}

const fn complete(session: SessionId, len: usize, rest: Bytes) -> HeaderStep {
    HeaderStep::Complete { session, len, rest }
}

const fn first(direction: Direction) -> u64 {
    match direction {
        Direction::Bidirectional => StreamHeader::BIDIRECTIONAL,
        Direction::Unidirectional => StreamHeader::UNIDIRECTIONAL,
    }
}

const OTHER_STREAM: Error = Error {
    code: Code::STREAM_CREATION_ERROR,
    scope: Scope::Connection,
    reason: "a stream that does not begin with the type of WebTransport",
};

/// The longest header that is written: two bytes of type and eight of session ID.
const LONGEST: usize = 10;
/// The longest header of a peer: two integers of eight bytes.
const LONGEST_READ: usize = 16;

#[cfg(test)]
mod tests;
