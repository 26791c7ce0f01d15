//! What rustls does not look at in a ClientHello.

use courser_crypto::TlsError;

/// Watches the first bytes of a client for a compatibility mode that QUIC has no use for.
///
/// A QUIC client leaves legacy_session_id empty, and a server should treat one that is not as
/// PROTOCOL_VIOLATION (RFC 9001 §8.4).
#[derive(Debug, Default)]
pub(crate) struct ClientHelloCheck {
    /// Bytes seen so far; stops counting behind the one of interest.
    seen: usize,
}

impl ClientHelloCheck {
    /// Looks at the next bytes of the Initial CRYPTO stream.
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

/// Type and length of the message, version and random of the client come first. RFC 8446 §4.1.2.
const SESSION_ID_LEN_OFFSET: usize = 1 + 3 + 2 + 32;
