//! Field sections and the messages they make: RFC 9114 §4.2, §4.3.

mod cache;
mod collect;
mod outgoing;
mod request;
mod response;

use thiserror::Error;

pub(crate) use self::cache::LineCache;
pub(crate) use self::collect::{Collector, Kind};
pub use self::outgoing::FieldsToSend;
pub use self::request::{Protocol, RequestError};

use crate::error::Error;

/// Bounds on a section, the same for heads, interim responses and trailers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FieldLimits {
    /// Bytes of names and values and 32 for each line, after decompression.
    pub size: u64,
    /// Lines.
    pub lines: usize,
    /// Bytes of one name.
    pub name: usize,
    /// Bytes of one value.
    pub value: usize,
}

impl FieldLimits {
    /// What a server should take of a request.
    pub const REQUEST: Self = Self {
        size: 16 * 1024,
        lines: 128,
        name: 256,
        value: 16 * 1024,
    };
    /// What a client should take of a response.
    pub const RESPONSE: Self = Self {
        size: 64 * 1024,
        lines: 128,
        name: 256,
        value: 16 * 1024,
    };

    /// Bytes that a section may have before decompression: what fits has no reason to be longer,
    /// bar the length of each string.
    pub(crate) const fn encoded(&self) -> u64 {
        self.size + 16 * self.lines as u64
    }
}

/// Why a section makes no message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum FieldsError {
    /// A rule of HTTP is broken: the stream ends with `H3_MESSAGE_ERROR`.
    #[error("malformed message: {0}")]
    Malformed(&'static str),
    /// More than [`FieldLimits`] allow. A server answers with 431 (§4.2.2), a client gives the
    /// request up.
    #[error("field section larger than allowed: {0}")]
    TooLarge(&'static str),
}

impl FieldsError {
    /// As the error that the stream ends with if nothing better is done about it.
    pub fn to_error(self) -> Error {
        match self {
            Self::Malformed(reason) => Error::malformed(reason),
            Self::TooLarge(reason) => Error::stream(crate::Code::EXCESSIVE_LOAD, reason),
        }
    }
}

#[cfg(test)]
mod tests;
