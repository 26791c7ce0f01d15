//! The three ways in which QPACK fails, RFC 9204 §6. All of them end the connection.

use thiserror::Error;

/// What is wrong with the bytes of the peer.
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
    /// The code to close the connection with.
    pub const fn code(self) -> u64 {
        match self {
            Self::DecompressionFailed(_) => 0x200,
            Self::EncoderStream(_) => 0x201,
            Self::DecoderStream(_) => 0x202,
        }
    }
}

/// Why a piece of a section or an instruction was not read. Whose fault that is depends on where
/// it stands, so the caller turns it into an [`Error`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Malformed {
    /// More bytes may make it whole.
    Incomplete,
    /// No more bytes can.
    Invalid(&'static str),
}

impl Malformed {
    /// For places where no more bytes will come.
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::Incomplete => "ends in the middle of a field",
            Self::Invalid(reason) => reason,
        }
    }
}
