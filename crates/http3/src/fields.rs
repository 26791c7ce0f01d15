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

/// The limits of a field section, the same for header sections, interim responses and trailers. Each
/// is at least 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FieldLimits {
    /// The bytes of all names and values plus 32 per field line, after decompression.
    pub size: u64,
    /// The number of field lines.
    pub lines: usize,
    /// The bytes of one name.
    pub name: usize,
    /// The bytes of one value.
    pub value: usize,
}

impl FieldLimits {
    /// The default limits of a server for requests. Browsers send each cookie in a field line of its
    /// own.
    pub const REQUEST: Self = Self {
        size: 64 * 1024,
        lines: 1024,
        name: 256,
        value: 64 * 1024,
    };
    /// The default limits of a client for responses.
    pub const RESPONSE: Self = Self {
        size: 64 * 1024,
        lines: 1024,
        name: 256,
        value: 64 * 1024,
    };

    /// Returns the maximum length of a section before decompression. A section within the limits has
    /// no reason to be longer, except for the length prefix of each string. Longer ones are not
    /// decoded.
    pub(crate) const fn encoded(&self) -> u64 {
        self.size + 16 * self.lines as u64
    }
}

/// The reason why a section is not a valid message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum FieldsError {
    /// The section breaks a rule of HTTP. The stream ends with `H3_MESSAGE_ERROR`.
    #[error("malformed message: {0}")]
    Malformed(&'static str),
    /// The section exceeds [`FieldLimits`]. A server answers with 431 (§4.2.2), a client gives up
    /// the request.
    #[error("field section larger than allowed: {0}")]
    TooLarge(&'static str),
}

impl FieldsError {
    /// Returns the error that ends the stream, unless the request is answered.
    pub fn to_error(self) -> Error {
        match self {
            Self::Malformed(reason) => Error::malformed(reason),
            Self::TooLarge(reason) => Error::stream(crate::Code::EXCESSIVE_LOAD, reason),
        }
    }
}

#[cfg(test)]
mod tests;
