//! Closes of connections, and the codes of the transport. RFC 9000 §19.19, §20.1.

use std::fmt;

use bytes::Bytes;
use courser_quic as quic;

use crate::VarInt;

/// The code of an error of the transport. RFC 9000 §20.1.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TransportErrorCode(quic::TransportErrorCode);

macro_rules! codes {
    ($($name:ident)*) => {
        impl TransportErrorCode {
            $(
                #[doc = concat!("The code ", stringify!($name), " of RFC 9000 §20.1.")]
                pub const $name: Self = Self(quic::TransportErrorCode::$name);
            )*
        }
    };
}

codes! {
    NO_ERROR INTERNAL_ERROR CONNECTION_REFUSED FLOW_CONTROL_ERROR STREAM_LIMIT_ERROR STREAM_STATE_ERROR
    FINAL_SIZE_ERROR FRAME_ENCODING_ERROR TRANSPORT_PARAMETER_ERROR CONNECTION_ID_LIMIT_ERROR
    PROTOCOL_VIOLATION INVALID_TOKEN APPLICATION_ERROR CRYPTO_BUFFER_EXCEEDED KEY_UPDATE_ERROR
    AEAD_LIMIT_REACHED NO_VIABLE_PATH
}

impl TransportErrorCode {
    /// Returns the code for an alert of TLS. RFC 9001 §4.8.
    pub fn crypto(alert: u8) -> Self {
        Self(quic::TransportErrorCode::crypto(alert))
    }
}

impl From<quic::TransportErrorCode> for TransportErrorCode {
    fn from(code: quic::TransportErrorCode) -> Self {
        Self(code)
    }
}

impl From<TransportErrorCode> for u64 {
    fn from(code: TransportErrorCode) -> Self {
        code.0.value()
    }
}

impl fmt::Debug for TransportErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for TransportErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The type of a frame. RFC 9000 §19.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FrameType(u64);

impl FrameType {
    /// Returns the type with this number, unless that is 0, which stands for none.
    pub(crate) fn of(value: u64) -> Option<Self> {
        (value != 0).then_some(Self(value))
    }
}

impl fmt::Debug for FrameType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FrameType({:#x})", self.0)
    }
}

impl fmt::Display for FrameType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "frame of type {:#x}", self.0)
    }
}

/// A violation of the protocol by the peer, or a failure of TLS on this end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransportError {
    /// The code that the peer receives.
    pub code: TransportErrorCode,
    /// The type of the frame that caused it, if there is one.
    pub frame: Option<FrameType>,
    /// A description for humans.
    pub reason: String,
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code)?;
        if let Some(frame) = self.frame {
            write!(f, " in {frame}")?;
        }
        write_reason(f, self.reason.as_bytes())
    }
}

impl std::error::Error for TransportError {}

impl From<TransportErrorCode> for TransportError {
    fn from(code: TransportErrorCode) -> Self {
        Self {
            code,
            frame: None,
            reason: String::new(),
        }
    }
}

impl From<quic::TransportError> for TransportError {
    fn from(error: quic::TransportError) -> Self {
        Self {
            code: error.code.into(),
            frame: error.frame_type.and_then(FrameType::of),
            reason: error.reason.into(),
        }
    }
}

/// A close by the transport of the peer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConnectionClose {
    /// The code that the peer sent.
    pub error_code: TransportErrorCode,
    /// The type of the frame that caused it, if there is one.
    pub frame_type: Option<FrameType>,
    /// A description for humans, in any bytes.
    pub reason: Bytes,
}

impl fmt::Display for ConnectionClose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.error_code)?;
        write_reason(f, &self.reason)
    }
}

impl From<TransportError> for ConnectionClose {
    fn from(error: TransportError) -> Self {
        Self {
            error_code: error.code,
            frame_type: error.frame,
            reason: error.reason.into(),
        }
    }
}

/// A close by the application of the peer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApplicationClose {
    /// The code, whose meaning the application defines.
    pub error_code: VarInt,
    /// A description for humans, in any bytes.
    pub reason: Bytes,
}

impl fmt::Display for ApplicationClose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "code {}", self.error_code)?;
        write_reason(f, &self.reason)
    }
}

/// Writes a reason escaped and cut to 256 bytes, because the peer can choose any bytes.
fn write_reason(f: &mut fmt::Formatter<'_>, reason: &[u8]) -> fmt::Result {
    if reason.is_empty() {
        return Ok(());
    }
    let shown = String::from_utf8_lossy(&reason[..reason.len().min(256)]);
    write!(f, ": {}", shown.escape_debug())
}
