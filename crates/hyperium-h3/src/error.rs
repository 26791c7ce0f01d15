//! Conversion of courser's errors to those of `h3`.

use std::sync::Arc;

use courser::{ConnectionError, ReadError, VarInt, WriteError};
use h3::quic::{ConnectionErrorIncoming, StreamErrorIncoming};

pub(crate) fn connection_error(error: ConnectionError) -> ConnectionErrorIncoming {
    match error {
        ConnectionError::ApplicationClosed { code, .. } => {
            ConnectionErrorIncoming::ApplicationClose {
                error_code: code.value(),
            }
        }
        error if error.is_timeout() => ConnectionErrorIncoming::Timeout,
        error => ConnectionErrorIncoming::Undefined(Arc::new(error)),
    }
}

/// Returns the error of a stream whose connection was lost.
pub(crate) fn connection_lost(error: ConnectionError) -> StreamErrorIncoming {
    StreamErrorIncoming::ConnectionErrorIncoming {
        connection_error: connection_error(error),
    }
}

pub(crate) fn read_error(error: ReadError) -> StreamErrorIncoming {
    match error {
        ReadError::Reset(code) => terminated(code),
        ReadError::ConnectionLost(error) => connection_lost(error),
        error => StreamErrorIncoming::Unknown(Box::new(error)),
    }
}

pub(crate) fn write_error(error: WriteError) -> StreamErrorIncoming {
    match error {
        WriteError::Stopped(code) => terminated(code),
        WriteError::ConnectionLost(error) => connection_lost(error),
        error => StreamErrorIncoming::Unknown(Box::new(error)),
    }
}

fn terminated(code: VarInt) -> StreamErrorIncoming {
    StreamErrorIncoming::StreamTerminated {
        error_code: code.into_inner(),
    }
}

/// Converts an error code. A code above the range becomes the largest, so that the stream is still reset or
/// stopped.
pub(crate) fn saturating_var_int(code: u64) -> VarInt {
    VarInt::from_u64(code).unwrap_or(VarInt::MAX)
}

#[cfg(test)]
mod tests;
