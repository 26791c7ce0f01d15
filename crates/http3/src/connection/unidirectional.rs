//! The types of the peer's unidirectional streams (RFC 9114 §6.2).

use std::collections::HashMap;

use bytes::{Buf as _, Bytes};
use courser_wire::Reader;

use crate::error::{Code, Error};
use crate::stream_type;

/// A critical stream, which must not be closed. Each end has one of each (§6.2.1, RFC 9204 §4.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Critical {
    Control,
    Encoder,
    Decoder,
}

impl Critical {
    /// All critical streams, in the order in which they are recorded.
    pub(super) const ALL: [Self; 3] = [Self::Control, Self::Encoder, Self::Decoder];

    /// Returns the stream type.
    pub(super) const fn stream_type(self) -> u64 {
        match self {
            Self::Control => stream_type::CONTROL,
            Self::Encoder => stream_type::QPACK_ENCODER,
            Self::Decoder => stream_type::QPACK_DECODER,
        }
    }
}

/// The unidirectional streams that the peer has opened.
#[derive(Debug, Default)]
pub(super) struct Unidirectional {
    /// Streams whose type is incomplete, with its first bytes.
    pub(super) untyped: HashMap<u64, Vec<u8>>,
    control: Option<u64>,
    encoder: Option<u64>,
    decoder: Option<u64>,
}

impl Unidirectional {
    /// Returns the role of a critical stream, or `None` for other streams.
    pub(super) fn critical(&self, stream: u64) -> Option<Critical> {
        let roles = [
            (self.control, Critical::Control),
            (self.encoder, Critical::Encoder),
            (self.decoder, Critical::Decoder),
        ];
        let mut roles = roles.into_iter();
        roles.find_map(|(id, role)| (id == Some(stream)).then_some(role))
    }

    /// Returns the ID of the stream with this role, if it is open.
    pub(super) const fn of(&self, role: Critical) -> Option<u64> {
        match role {
            Critical::Control => self.control,
            Critical::Encoder => self.encoder,
            Critical::Decoder => self.decoder,
        }
    }

    /// Removes the stream type from the front of `chunk`. Returns it once it is complete, with its length in bytes.
    pub(super) fn read_type(&mut self, stream: u64, chunk: &mut Bytes) -> Option<(u64, usize)> {
        let mut reader = Reader::new(chunk);
        if let Ok(value) = reader.varint()
            && !self.untyped.contains_key(&stream)
        {
            // The usual case, which needs no memory.
            let len = reader.offset();
            chunk.advance(len);
            return Some((value, len));
        }
        let partial = self.untyped.entry(stream).or_default();
        let held = partial.len();
        // A stream type has at most eight bytes.
        partial.extend_from_slice(&chunk[..chunk.len().min(8 - held)]);
        let mut reader = Reader::new(partial);
        let value = reader.varint().ok()?;
        let len = reader.offset();
        chunk.advance(len - held);
        self.forget(stream);
        Some((value, len))
    }

    /// Assigns a role to a stream.
    ///
    /// # Errors
    ///
    /// Returns a connection error if another stream already has this role.
    pub(super) fn open(&mut self, role: Critical, stream: u64) -> Result<(), Error> {
        let current = match role {
            Critical::Control => &mut self.control,
            Critical::Encoder => &mut self.encoder,
            Critical::Decoder => &mut self.decoder,
        };
        if current.replace(stream).is_some() {
            return Err(Error::connection(
                Code::STREAM_CREATION_ERROR,
                "a second critical stream of the same type",
            ));
        }
        Ok(())
    }

    /// Removes the first bytes of a stream that has ended.
    pub(super) fn forget(&mut self, stream: u64) {
        self.untyped.remove(&stream);
        if self.untyped.is_empty() {
            // More streams are rare, so the memory for them is released.
            self.untyped = HashMap::new();
        }
    }
}
