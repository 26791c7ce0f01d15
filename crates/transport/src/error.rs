//! Errors that end a connection.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;

use courser_wire::TransportErrorCode;

/// A connection error in the sense of RFC 9000 §11.1: it ends the connection with its code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransportError {
    /// The code that CONNECTION_CLOSE carries.
    pub code: TransportErrorCode,
    /// The type of the frame that caused the error; `None` if it was not a frame.
    pub frame_type: Option<u64>,
    /// A description for humans: the value seen and the value allowed.
    pub reason: Cow<'static, str>,
}

impl TransportError {
    /// Creates an error that no particular frame caused.
    pub fn new(code: TransportErrorCode, reason: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            frame_type: None,
            reason: reason.into(),
        }
    }

    /// Sets the frame type that caused the error.
    #[must_use]
    pub fn in_frame(mut self, frame_type: u64) -> Self {
        self.frame_type = Some(frame_type);
        self
    }

    /// Creates an INTERNAL_ERROR, for failures of our own side.
    pub fn internal(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(TransportErrorCode::INTERNAL_ERROR, reason)
    }

    /// Creates a PROTOCOL_VIOLATION, for broken rules without a code of their own (RFC 9000 §20.1).
    pub fn protocol_violation(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(TransportErrorCode::PROTOCOL_VIOLATION, reason)
    }

    /// Creates a FLOW_CONTROL_ERROR for an offset `seen` above `limit`, both in bytes.
    pub fn flow_control(seen: u64, limit: u64) -> Self {
        Self::new(
            TransportErrorCode::FLOW_CONTROL_ERROR,
            format!("offset {seen} exceeds limit {limit}"),
        )
    }

    /// Creates a FINAL_SIZE_ERROR, for a final size that changes or is below received data (RFC 9000 §4.5).
    pub fn final_size(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(TransportErrorCode::FINAL_SIZE_ERROR, reason)
    }

    /// Creates a STREAM_STATE_ERROR, for a frame that the state of its stream does not permit.
    pub fn stream_state(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(TransportErrorCode::STREAM_STATE_ERROR, reason)
    }

    /// Creates a STREAM_LIMIT_ERROR, for a stream above the limit that we announced (RFC 9000 §4.6).
    pub fn stream_limit(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(TransportErrorCode::STREAM_LIMIT_ERROR, reason)
    }

    /// Creates a FRAME_ENCODING_ERROR, for a frame that is malformed or unknown.
    pub fn frame_encoding(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(TransportErrorCode::FRAME_ENCODING_ERROR, reason)
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code)?;
        if let Some(frame_type) = self.frame_type {
            write!(f, " in frame type {frame_type:#x}")?;
        }
        if !self.reason.is_empty() {
            write!(f, ": {}", self.reason)?;
        }
        Ok(())
    }
}

impl std::error::Error for TransportError {}

/// The payload of a caught panic.
pub type PanicPayload = Box<dyn Any + Send>;
