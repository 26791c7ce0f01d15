//! HTTP/3 errors and their codes (RFC 9114 §8).

use std::fmt;

use thiserror::Error;

/// An application error code of `CONNECTION_CLOSE`, `RESET_STREAM` and `STOP_SENDING`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(u64);

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $value:literal, $text:literal;)*) => {
        impl Code {
            $($(#[$doc])* pub const $name: Self = Self($value);)*

            /// Returns the registered name of the code, if it has one.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($text),)*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    /// The connection or stream is closed without an error.
    NO_ERROR = 0x100, "H3_NO_ERROR";
    /// The peer violated the protocol, and no other code is more specific.
    GENERAL_PROTOCOL_ERROR = 0x101, "H3_GENERAL_PROTOCOL_ERROR";
    /// The sender has an internal error.
    INTERNAL_ERROR = 0x102, "H3_INTERNAL_ERROR";
    /// The peer opened a stream that it must not open.
    STREAM_CREATION_ERROR = 0x103, "H3_STREAM_CREATION_ERROR";
    /// A critical stream was closed.
    CLOSED_CRITICAL_STREAM = 0x104, "H3_CLOSED_CRITICAL_STREAM";
    /// A frame is not allowed in this state or on this stream.
    FRAME_UNEXPECTED = 0x105, "H3_FRAME_UNEXPECTED";
    /// A frame has an invalid layout or size.
    FRAME_ERROR = 0x106, "H3_FRAME_ERROR";
    /// The peer causes excessive load.
    EXCESSIVE_LOAD = 0x107, "H3_EXCESSIVE_LOAD";
    /// A stream ID or push ID was used incorrectly.
    ID_ERROR = 0x108, "H3_ID_ERROR";
    /// A SETTINGS frame contains an invalid, forbidden or duplicate setting.
    SETTINGS_ERROR = 0x109, "H3_SETTINGS_ERROR";
    /// The control stream does not start with SETTINGS.
    MISSING_SETTINGS = 0x10a, "H3_MISSING_SETTINGS";
    /// The request was rejected before any processing and may be repeated.
    REQUEST_REJECTED = 0x10b, "H3_REQUEST_REJECTED";
    /// The request or its response is no longer needed.
    REQUEST_CANCELLED = 0x10c, "H3_REQUEST_CANCELLED";
    /// The stream ended before its request was complete.
    REQUEST_INCOMPLETE = 0x10d, "H3_REQUEST_INCOMPLETE";
    /// A message was malformed (§4.1.2).
    MESSAGE_ERROR = 0x10e, "H3_MESSAGE_ERROR";
    /// The TCP connection of a CONNECT was reset or closed abnormally.
    CONNECT_ERROR = 0x10f, "H3_CONNECT_ERROR";
    /// The request must be repeated over HTTP/1.1.
    VERSION_FALLBACK = 0x110, "H3_VERSION_FALLBACK";
    /// An HTTP Datagram is invalid (RFC 9297 §5.2).
    DATAGRAM_ERROR = 0x33, "H3_DATAGRAM_ERROR";
    /// A field section cannot be decoded (RFC 9204 §6).
    QPACK_DECOMPRESSION_FAILED = 0x200, "QPACK_DECOMPRESSION_FAILED";
    /// An encoder instruction is invalid (RFC 9204 §6).
    QPACK_ENCODER_STREAM_ERROR = 0x201, "QPACK_ENCODER_STREAM_ERROR";
    /// A decoder instruction is invalid (RFC 9204 §6).
    QPACK_DECODER_STREAM_ERROR = 0x202, "QPACK_DECODER_STREAM_ERROR";
}

impl Code {
    /// Returns the code with this value, registered or not.
    pub const fn from_value(value: u64) -> Self {
        Self(value)
    }

    /// Returns the value of the code.
    pub const fn value(self) -> u64 {
        self.0
    }

    /// Returns the reserved code `0x1f * n + 0x21`. It means the same as [`NO_ERROR`](Self::NO_ERROR) and tests
    /// that peers accept unknown codes (§8.1).
    pub const fn reserved(n: u64) -> Self {
        Self(0x1f * (n % (1 << 50)) + 0x21)
    }

    /// Returns true for [`NO_ERROR`](Self::NO_ERROR) and for unknown codes, which are equivalent to it (§8).
    pub const fn is_no_error(self) -> bool {
        self.0 == Self::NO_ERROR.0 || self.name().is_none()
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{:#x}", self.0),
        }
    }
}

/// Whether an error ends the connection or one stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// The connection with all its requests.
    Connection,
    /// One request, whose stream is reset and stopped.
    Stream,
}

/// A violation of the protocol by the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("{code}: {reason}")]
pub struct Error {
    /// The error code to send to the peer.
    pub code: Code,
    /// Whether the connection or only the stream ends.
    pub scope: Scope,
    /// A short description of the violation.
    pub reason: &'static str,
}

impl Error {
    pub(crate) const fn connection(code: Code, reason: &'static str) -> Self {
        Self {
            code,
            scope: Scope::Connection,
            reason,
        }
    }

    pub(crate) const fn stream(code: Code, reason: &'static str) -> Self {
        Self {
            code,
            scope: Scope::Stream,
            reason,
        }
    }

    /// Creates the error of a malformed message (§4.1.2).
    pub(crate) const fn malformed(reason: &'static str) -> Self {
        Self::stream(Code::MESSAGE_ERROR, reason)
    }

    pub(crate) const fn unexpected(reason: &'static str) -> Self {
        Self::connection(Code::FRAME_UNEXPECTED, reason)
    }

    pub(crate) const fn frame(reason: &'static str) -> Self {
        Self::connection(Code::FRAME_ERROR, reason)
    }
}

impl From<courser_qpack::Error> for Error {
    fn from(error: courser_qpack::Error) -> Self {
        let reason = match error {
            courser_qpack::Error::DecompressionFailed(reason)
            | courser_qpack::Error::EncoderStream(reason)
            | courser_qpack::Error::DecoderStream(reason) => reason,
        };
        Self::connection(Code::from_value(error.code()), reason)
    }
}
