//! The types of the peer's unidirectional streams, RFC 9114 §6.2.

use std::collections::HashMap;

use bytes::{Buf as _, Bytes};
use courser_wire::Reader;

use crate::error::{Code, Error};
use crate::stream_type;

/// A stream that must not be closed. There is one of each (§6.2.1, RFC 9204 §4.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Critical {
    Control,
    Encoder,
    Decoder,
}

impl Critical {
    /// All roles.
    pub(super) const ALL: [Self; 3] = [Self::Control, Self::Encoder, Self::Decoder];

    /// Returns the type of the stream.
    pub(super) const fn stream_type(self) -> u64 {
        match self {
            Self::Control => stream_type::CONTROL,
            Self::Encoder => stream_type::QPACK_ENCODER,
            Self::Decoder => stream_type::QPACK_DECODER,
        }
    }
}

/// The streams that the peer has opened.
#[derive(Debug, Default)]
pub(super) struct Unidirectional {
    /// The streams whose type is incomplete, with its first bytes.
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

    /// Returns the stream with this role, once it is open.
    pub(super) const fn of(&self, role: Critical) -> Option<u64> {
        match role {
            Critical::Control => self.control,
            Critical::Encoder => self.encoder,
            Critical::Decoder => self.decoder,
        }
    }

    /// Takes the first bytes of a stream off `chunk`. Returns its type once that is complete.
    pub(super) fn read_type(&mut self, stream: u64, chunk: &mut Bytes) -> Option<u64> {
        let partial = self.untyped.entry(stream).or_default();
        let held = partial.len();
        // A type has at most eight bytes.
        partial.extend_from_slice(&chunk[..chunk.len().min(8 - held)]);
        let mut reader = Reader::new(partial);
        let value = reader.varint().ok()?;
        chunk.advance(reader.offset() - held);
        self.forget(stream);
        Some(value)
    }

    /// Gives a stream its role.
    ///
    /// # Errors
    ///
    /// Returns an error of the connection if another stream has this role.
    pub(super) fn open(&mut self, role: Critical, stream: u64) -> Result<(), Error> {
        let place = match role {
            Critical::Control => &mut self.control,
            Critical::Encoder => &mut self.encoder,
            Critical::Decoder => &mut self.decoder,
        };
        if place.replace(stream).is_some() {
            return Err(Error::connection(
                Code::STREAM_CREATION_ERROR,
                "a critical stream twice",
            ));
        }
        Ok(())
    }

    /// Forgets the first bytes of a stream that has ended.
    pub(super) fn forget(&mut self, stream: u64) {
        self.untyped.remove(&stream);
        if self.untyped.is_empty() {
            // There are rarely more: the table does not keep its room.
            self.untyped = HashMap::new();
        }
    }
}
