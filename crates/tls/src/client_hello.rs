//! Checks of a ClientHello that rustls does not perform, and its transport parameters before rustls
//! reads it.

use courser_crypto::TlsError;
use courser_wire::Reader;

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

/// Returns true if more bytes are needed to read the message at the start of `bytes`. False if it is
/// another message than a ClientHello.
pub(crate) fn is_incomplete(bytes: &[u8]) -> bool {
    let Some((&kind, rest)) = bytes.split_first() else {
        return true;
    };
    let Some(&[high, middle, low]) = rest.first_chunk() else {
        return kind == CLIENT_HELLO;
    };
    let len = u32::from_be_bytes([0, high, middle, low]);
    kind == CLIENT_HELLO && rest.len() - 3 < len as usize
}

/// Returns the encoded transport parameters in a ClientHello, or `None` if it has none or is
/// malformed, which TLS finds out too. RFC 8446 §4.1.2, RFC 9001 §8.2.
pub(crate) fn transport_parameters(hello: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader::new(hello);
    // Message type and length, version and random.
    reader.bytes(1 + 3 + 2 + 32).ok()?;
    let session_id = reader.u8().ok()?;
    reader.bytes(session_id.into()).ok()?;
    let suites = reader.u16().ok()?;
    reader.bytes(suites.into()).ok()?;
    let compression = reader.u8().ok()?;
    reader.bytes(compression.into()).ok()?;
    let extensions = reader.u16().ok()?;
    let mut extensions = Reader::new(reader.bytes(extensions.into()).ok()?);
    while !extensions.is_empty() {
        let kind = extensions.u16().ok()?;
        let len = extensions.u16().ok()?;
        let content = extensions.bytes(len.into()).ok()?;
        if kind == QUIC_TRANSPORT_PARAMETERS {
            return Some(content);
        }
    }
    None
}

/// The type of a ClientHello. RFC 8446 §4.
const CLIENT_HELLO: u8 = 1;

/// The type of the extension quic_transport_parameters. RFC 9001 §8.2.
const QUIC_TRANSPORT_PARAMETERS: u16 = 0x39;
