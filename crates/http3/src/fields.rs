//! Field sections and messages (RFC 9114 §4.2, §4.3).

mod cache;
mod collect;
mod outgoing;
mod request;
mod response;
mod target;

use thiserror::Error;

pub(crate) use self::cache::LineCache;
pub use self::collect::is_connection_specific;
pub(crate) use self::collect::{Collector, Kind};
pub use self::outgoing::{FieldsToSend, HttpDate};
pub use self::request::{Protocol, RequestError};
pub use self::target::{Target, must_be_escaped, put_escaped};

use crate::error::Error;

/// Limits of a field section, for header sections, interim responses and trailers. Each must be at least 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FieldLimits {
    /// The size of all names and values plus 32 bytes per field line, after decompression.
    pub size: u64,
    /// Number of field lines.
    pub lines: usize,
    /// Length of a name in bytes.
    pub name: usize,
    /// Length of a value in bytes.
    pub value: usize,
}

impl FieldLimits {
    /// Default limits of a server for requests. Browsers send each cookie as a separate field line.
    pub const REQUEST: Self = Self {
        size: 64 * 1024,
        lines: 1024,
        name: 256,
        value: 64 * 1024,
    };
    /// Default limits of a client for responses.
    pub const RESPONSE: Self = Self {
        size: 300 * 1024,
        lines: 1024,
        name: 256,
        value: 300 * 1024,
    };

    /// Returns the longest encoded section that is decoded. A section within the limits is longer only because
    /// of the length prefixes of its strings.
    pub(crate) const fn encoded(&self) -> u64 {
        self.size + 16 * self.lines as u64
    }
}

/// The reason why a section is not a valid message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum FieldsError {
    /// The section violates a rule of HTTP. The stream ends with `H3_MESSAGE_ERROR`.
    #[error("malformed message: {0}")]
    Malformed(&'static str),
    /// The section exceeds [`FieldLimits`]. A server responds with 431 (§4.2.2), and a client cancels the
    /// request.
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
