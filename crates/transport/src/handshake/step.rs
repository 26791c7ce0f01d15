//! Steps of a handshake.

use courser_crypto::{KeyChange, TlsError, session::UNEXPECTED_MESSAGE};
use courser_wire::TransportErrorCode;
use courser_wire::transport_parameters::TransportParameters;

use super::early_data::EarlyKeys;
use crate::error::TransportError;

/// A step of the handshake to which other parts of the connection have to react.
#[derive(Debug)]
pub(crate) enum Step {
    /// The peer's transport parameters have arrived. They are not checked yet.
    Parameters(Box<TransportParameters>),
    /// TLS has derived the secret of 0-RTT packets.
    EarlyKeys(EarlyKeys),
    /// The server has rejected early data before its parameters are known: no more is sent.
    EarlyDataStopped,
    /// TLS has derived keys.
    Keys(KeyChange),
    /// ALPN and server name are known.
    DataReady,
    /// Both ends have completed TLS.
    Complete,
}

/// The next action of a handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Turn {
    /// TLS reads the bytes that have arrived.
    Read,
    /// TLS writes until it has no more bytes and keys.
    Write,
    /// The values that TLS has negotiated are examined.
    Settle,
    /// The handshake is checked for completion.
    Complete,
}

/// Returns the transport error for a TLS error.
pub(super) fn tls_error(error: TlsError) -> TransportError {
    TransportError::new(error.code(), error.message)
}

/// Returns the error for CRYPTO data after the end of the session (RFC 9001 §6, §8.3).
pub(super) fn unexpected_message() -> TransportError {
    let code = TransportErrorCode::crypto(UNEXPECTED_MESSAGE);
    TransportError::new(code, "TLS message after the handshake")
}
