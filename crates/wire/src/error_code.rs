//! Error codes of the transport and of applications. RFC 9000 §20.

use std::fmt;

/// An error code of the transport, sent in CONNECTION_CLOSE frames of type 0x1c. RFC 9000 §20.1.
///
/// Unregistered codes are valid values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TransportErrorCode(u64);

impl TransportErrorCode {
    /// The connection is closed without an error.
    pub const NO_ERROR: Self = Self(0x00);
    /// The endpoint encountered an internal error and cannot continue.
    pub const INTERNAL_ERROR: Self = Self(0x01);
    /// The server refuses the connection.
    pub const CONNECTION_REFUSED: Self = Self(0x02);
    /// The peer sent more data than the limits allow.
    pub const FLOW_CONTROL_ERROR: Self = Self(0x03);
    /// The peer opened a stream beyond the limit on streams.
    pub const STREAM_LIMIT_ERROR: Self = Self(0x04);
    /// The peer sent a frame that the state of its stream does not permit.
    pub const STREAM_STATE_ERROR: Self = Self(0x05);
    /// The peer sent data past the final size, or changed the final size.
    pub const FINAL_SIZE_ERROR: Self = Self(0x06);
    /// The peer sent a frame that cannot be decoded.
    pub const FRAME_ENCODING_ERROR: Self = Self(0x07);
    /// The peer's transport parameters cannot be decoded, are out of range or contradict the
    /// handshake.
    pub const TRANSPORT_PARAMETER_ERROR: Self = Self(0x08);
    /// The peer issued more connection IDs than the advertised limit.
    pub const CONNECTION_ID_LIMIT_ERROR: Self = Self(0x09);
    /// The peer violated the protocol in a way that no other code describes.
    pub const PROTOCOL_VIOLATION: Self = Self(0x0a);
    /// The client sent an Initial packet with an invalid Retry token.
    pub const INVALID_TOKEN: Self = Self(0x0b);
    /// The application closed the connection before a frame with its own code could be sent.
    pub const APPLICATION_ERROR: Self = Self(0x0c);
    /// The peer sent more CRYPTO data than can be buffered.
    pub const CRYPTO_BUFFER_EXCEEDED: Self = Self(0x0d);
    /// The peer updated its keys against the rules. RFC 9001 §6.
    pub const KEY_UPDATE_ERROR: Self = Self(0x0e);
    /// The keys of the connection reached the limit of their safe use. RFC 9001 §6.6.
    pub const AEAD_LIMIT_REACHED: Self = Self(0x0f);
    /// No path can carry QUIC.
    pub const NO_VIABLE_PATH: Self = Self(0x10);
    /// The ends disagree on the version of the connection, as if an attacker had interfered with
    /// its negotiation. RFC 9368 §4.
    pub const VERSION_NEGOTIATION_ERROR: Self = Self(0x11);

    /// The path is abandoned at the request of the application. RFC 10069 §4.2.1.
    pub const APPLICATION_ABANDON_PATH: Self = Self(0x3e);
    /// The path is abandoned because resources are short. RFC 10069 §4.2.1.
    pub const PATH_RESOURCE_LIMIT_REACHED: Self = Self(0x3e75);
    /// The path is abandoned because it is unstable or performs poorly. RFC 10069 §4.2.1.
    pub const PATH_UNSTABLE_OR_POOR: Self = Self(0x3e76);
    /// The path is abandoned because it has no connection ID. RFC 10069 §4.2.1.
    pub const NO_CID_AVAILABLE_FOR_PATH: Self = Self(0x3e77);

    /// Returns the CRYPTO_ERROR code of a TLS handshake that failed with this alert. RFC 9001 §4.8.
    pub const fn crypto(alert: u8) -> Self {
        Self(CRYPTO_ERROR | alert as u64)
    }

    /// Returns the code with this number on the wire.
    pub const fn from_value(value: u64) -> Self {
        Self(value)
    }

    /// Returns the number on the wire.
    pub const fn value(self) -> u64 {
        self.0
    }

    /// Returns the TLS alert if this is a CRYPTO_ERROR.
    pub const fn alert(self) -> Option<u8> {
        match self.0 {
            CRYPTO_ERROR..=CRYPTO_ERROR_LAST => Some((self.0 & 0xff) as u8),
            _ => None,
        }
    }

    /// Returns the registered name, if there is one. Codes of TLS alerts have none.
    pub const fn name(self) -> Option<&'static str> {
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
            Self::VERSION_NEGOTIATION_ERROR => "VERSION_NEGOTIATION_ERROR",
            Self::APPLICATION_ABANDON_PATH => "APPLICATION_ABANDON_PATH",
            Self::PATH_RESOURCE_LIMIT_REACHED => "PATH_RESOURCE_LIMIT_REACHED",
            Self::PATH_UNSTABLE_OR_POOR => "PATH_UNSTABLE_OR_POOR",
            Self::NO_CID_AVAILABLE_FOR_PATH => "NO_CID_AVAILABLE_FOR_PATH",
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

/// An error code of the application, which alone defines its meaning. RFC 9000 §20.2.
///
/// The code must fit a varint to be sent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ApplicationErrorCode(pub u64);

impl ApplicationErrorCode {
    /// Returns the number on the wire.
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
