//! Keying material of a session (draft-ietf-webtrans-http3-16 §4.8).

use thiserror::Error;

use crate::session_id::SessionId;

/// The label of the TLS exporter for all sessions. The context that [`exporter_context`] returns tells them apart.
pub const EXPORTER_LABEL: &[u8] = b"EXPORTER-WebTransport";

/// A label or context that does not fit its length byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ExporterError {
    /// The label is too long.
    #[error("exporter label of {0} bytes, allowed are 255")]
    Label(usize),
    /// The context is too long.
    #[error("exporter context of {0} bytes, allowed are 255")]
    Context(usize),
}

/// Returns the context of the TLS exporter for a label and a context of the application. Without a context, pass an
/// empty one.
///
/// ```
/// use courser_webtransport::{SessionId, exporter_context};
/// let context = exporter_context(SessionId::new(4)?, b"key", b"")?;
/// assert_eq!(context, b"\0\0\0\0\0\0\0\x04\x03key\0");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// Returns an error for a label or context of more than 255 bytes.
pub fn exporter_context(
    session: SessionId,
    label: &[u8],
    context: &[u8],
) -> Result<Vec<u8>, ExporterError> {
    let label_len = u8::try_from(label.len()).map_err(|_| ExporterError::Label(label.len()))?;
    let context_len =
        u8::try_from(context.len()).map_err(|_| ExporterError::Context(context.len()))?;
    let mut out = Vec::with_capacity(10 + label.len() + context.len());
    out.extend_from_slice(&session.value().to_be_bytes());
    out.push(label_len);
    out.extend_from_slice(label);
    out.push(context_len);
    out.extend_from_slice(context);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// draft-ietf-webtrans-http3-16 §4.8; WT-h3-078.
    #[test]
    fn context_has_the_session_and_both_lengths() {
        let session = SessionId::new(0x0102_0304).expect("a session ID");
        let context = exporter_context(session, b"label", b"ctx").expect("a context");
        assert_eq!(context, b"\0\0\0\0\x01\x02\x03\x04\x05label\x03ctx");
        assert_eq!(EXPORTER_LABEL, b"EXPORTER-WebTransport");
    }

    /// WT-h3-079.
    #[test]
    fn labels_and_contexts_fit_a_length_byte() {
        let session = SessionId::new(0).expect("a session ID");
        let context = exporter_context(session, &[1; 255], &[2; 255]).expect("longest");
        assert_eq!(context.len(), 8 + 2 * 256);
        let long = exporter_context(session, &[1; 256], b"");
        assert_eq!(long, Err(ExporterError::Label(256)));
        let long = exporter_context(session, b"", &[1; 256]);
        assert_eq!(long, Err(ExporterError::Context(256)));
    }
}
