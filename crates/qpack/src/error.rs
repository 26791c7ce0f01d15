//! The three error codes of QPACK (RFC 9204 §6). All of them close the connection.

use thiserror::Error;

/// A protocol violation in bytes received from the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Error {
    /// A field section cannot be interpreted.
    #[error("field section: {0}")]
    DecompressionFailed(&'static str),
    /// An instruction on the encoder stream cannot be interpreted.
    #[error("encoder stream: {0}")]
    EncoderStream(&'static str),
    /// An instruction on the decoder stream cannot be interpreted.
    #[error("decoder stream: {0}")]
    DecoderStream(&'static str),
}

impl Error {
    /// Returns the application error code for closing the connection.
    pub const fn code(self) -> u64 {
        match self {
            Self::DecompressionFailed(_) => 0x200,
            Self::EncoderStream(_) => 0x201,
            Self::DecoderStream(_) => 0x202,
        }
    }
}

/// A failure to parse part of a section or an instruction. The error code depends on where it
/// occurred, so the caller converts it to an [`Error`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Malformed {
    /// The input ends early. More bytes may complete it.
    Incomplete,
    /// The input is invalid, even with more bytes.
    Invalid(&'static str),
}

impl Malformed {
    /// Returns the reason as text, for input that will not be followed by more bytes.
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::Incomplete => "input ends in the middle of a field",
            Self::Invalid(reason) => reason,
        }
    }
}
