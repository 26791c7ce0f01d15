//! Steps of a handshake.

use courser_crypto::{KeyChange, TlsError, session::UNEXPECTED_MESSAGE};
use courser_wire::TransportErrorCode;
use courser_wire::transport_parameters::TransportParameters;

use super::early_data::EarlyKeys;
use crate::error::TransportError;

/// A step of the handshake, which other parts have to follow.
#[derive(Debug)]
pub(crate) enum Step {
    /// The peer's transport parameters have arrived, and nothing has checked them.
    Parameters(Box<TransportParameters>),
    /// TLS has made the secret of 0-RTT packets.
    EarlyKeys(EarlyKeys),
    /// The server has refused early data before its parameters are known: no more is sent.
    EarlyDataStopped,
    /// TLS has made keys.
    Keys(KeyChange),
    /// ALPN and server name are known.
    DataReady,
    /// Both ends have completed TLS.
    Complete,
}

/// The next action of a handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Turn {
    /// TLS reads what has arrived.
    Read,
    /// TLS writes until it has nothing more.
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

/// Returns the error for CRYPTO data to a session that takes no more (RFC 9001 §6, §8.3).
pub(super) fn unexpected_message() -> TransportError {
    let code = TransportErrorCode::crypto(UNEXPECTED_MESSAGE);
    TransportError::new(code, "TLS message after the handshake")
}
