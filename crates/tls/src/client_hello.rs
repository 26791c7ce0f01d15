//! Checks of a ClientHello that rustls does not perform.

use courser_crypto::TlsError;

/// Checks the first bytes of a client for the compatibility mode, which QUIC does not use.
///
/// A QUIC client leaves legacy_session_id empty. A server should treat any other value as
/// PROTOCOL_VIOLATION (RFC 9001 §8.4).
#[derive(Debug, Default)]
pub(crate) struct ClientHelloCheck {
    /// Number of bytes checked so far. Stays unchanged once the length of legacy_session_id was
    /// checked.
    seen: usize,
}

impl ClientHelloCheck {
    /// Checks the next bytes of the Initial CRYPTO stream.
    pub(crate) fn on_bytes(&mut self, data: &[u8]) -> Result<(), TlsError> {
        let Some(ahead) = SESSION_ID_LEN_OFFSET.checked_sub(self.seen) else {
            return Ok(());
        };
        self.seen += data.len().min(ahead + 1);
        match data.get(ahead) {
            None | Some(0) => Ok(()),
            Some(_) => Err(TlsError::protocol_violation(
                "legacy_session_id is not empty",
            )),
        }
    }
}

/// Offset of the length of legacy_session_id. The message type and length, the version and the
/// client's random come first. RFC 8446 §4.1.2.
const SESSION_ID_LEN_OFFSET: usize = 1 + 3 + 2 + 32;
