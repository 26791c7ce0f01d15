//! Error codes of the transport and of applications. RFC 9000 §20.

use std::fmt;

/// An error code of the transport, as in CONNECTION_CLOSE of type 0x1c. RFC 9000 §20.1.
///
/// Codes that nobody has registered are values like any other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TransportErrorCode(u64);

impl TransportErrorCode {
    /// The connection ends without an error.
    pub const NO_ERROR: Self = Self(0x00);
    /// The endpoint has an error of its own and cannot go on.
    pub const INTERNAL_ERROR: Self = Self(0x01);
    /// The server does not accept the connection.
    pub const CONNECTION_REFUSED: Self = Self(0x02);
    /// More data than the limits allow.
    pub const FLOW_CONTROL_ERROR: Self = Self(0x03);
    /// A stream beyond the limit on streams.
    pub const STREAM_LIMIT_ERROR: Self = Self(0x04);
    /// A frame that the state of its stream does not permit.
    pub const STREAM_STATE_ERROR: Self = Self(0x05);
    /// Data past the final size, or a final size that changes.
    pub const FINAL_SIZE_ERROR: Self = Self(0x06);
    /// A frame that does not decode.
    pub const FRAME_ENCODING_ERROR: Self = Self(0x07);
    /// Transport parameters that do not decode, are out of range or contradict the handshake.
    pub const TRANSPORT_PARAMETER_ERROR: Self = Self(0x08);
    /// More connection IDs than the advertised limit.
    pub const CONNECTION_ID_LIMIT_ERROR: Self = Self(0x09);
    /// A breach of the protocol that no other code names.
    pub const PROTOCOL_VIOLATION: Self = Self(0x0a);
    /// An Initial with an invalid Retry token.
    pub const INVALID_TOKEN: Self = Self(0x0b);
    /// The application closed the connection while this could not be said in its own words.
    pub const APPLICATION_ERROR: Self = Self(0x0c);
    /// More CRYPTO data than can be buffered.
    pub const CRYPTO_BUFFER_EXCEEDED: Self = Self(0x0d);
    /// A key update that breaks the rules. RFC 9001 §6.
    pub const KEY_UPDATE_ERROR: Self = Self(0x0e);
    /// The keys of the connection have been used as often as is safe. RFC 9001 §6.6.
    pub const AEAD_LIMIT_REACHED: Self = Self(0x0f);
    /// No path that can carry QUIC.
    pub const NO_VIABLE_PATH: Self = Self(0x10);

    /// CRYPTO_ERROR: the TLS handshake failed with this alert. RFC 9001 §4.8.
    pub const fn crypto(alert: u8) -> Self {
        Self(CRYPTO_ERROR | alert as u64)
    }

    /// The code with this number on the wire.
    pub const fn from_value(value: u64) -> Self {
        Self(value)
    }

    /// The number on the wire.
    pub const fn value(self) -> u64 {
        self.0
    }

    /// The TLS alert, when this is a CRYPTO_ERROR.
    pub const fn alert(self) -> Option<u8> {
        match self.0 {
            CRYPTO_ERROR..=CRYPTO_ERROR_LAST => Some((self.0 & 0xff) as u8),
            _ => None,
        }
    }

    const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::NO_ERROR => "NO_ERROR",
            Self::INTERNAL_ERROR => "INTERNAL_ERROR",
            Self::CONNECTION_REFUSED => "CONNECTION_REFUSED",
            Self::FLOW_CONTROL_ERROR => "FLOW_CONTROL_ERROR",
            Self::STREAM_LIMIT_ERROR => "STREAM_LIMIT_ERROR",
            Self::STREAM_STATE_ERROR => "STREAM_STATE_ERROR",
            Self::FINAL_SIZE_ERROR => "FINAL_SIZE_ERROR",
            Self::FRAME_ENCODING_ERROR => "FRAME_ENCODING_ERROR",
            Self::TRANSPORT_PARAMETER_ERROR => "TRANSPORT_PARAMETER_ERROR",
            Self::CONNECTION_ID_LIMIT_ERROR => "CONNECTION_ID_LIMIT_ERROR",
            Self::PROTOCOL_VIOLATION => "PROTOCOL_VIOLATION",
            Self::INVALID_TOKEN => "INVALID_TOKEN",
            Self::APPLICATION_ERROR => "APPLICATION_ERROR",
            Self::CRYPTO_BUFFER_EXCEEDED => "CRYPTO_BUFFER_EXCEEDED",
            Self::KEY_UPDATE_ERROR => "KEY_UPDATE_ERROR",
            Self::AEAD_LIMIT_REACHED => "AEAD_LIMIT_REACHED",
            Self::NO_VIABLE_PATH => "NO_VIABLE_PATH",
            _ => return None,
        })
    }
}

impl fmt::Display for TransportErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.name(), self.alert()) {
            (Some(name), _) => f.write_str(name),
            (None, Some(alert)) => write!(f, "CRYPTO_ERROR {:#x} (TLS alert {alert})", self.0),
            (None, None) => write!(f, "transport error {:#x}", self.0),
        }
    }
}

/// An error code of the application; only the application knows what it means. RFC 9000 §20.2.
///
/// It must fit a varint to be sent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ApplicationErrorCode(pub u64);

impl ApplicationErrorCode {
    /// The number on the wire.
    pub const fn value(self) -> u64 {
        self.0
    }
}

impl fmt::Display for ApplicationErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "application error {:#x}", self.0)
    }
}

const CRYPTO_ERROR: u64 = 0x100;
const CRYPTO_ERROR_LAST: u64 = 0x1ff;

#[cfg(test)]
mod tests;
