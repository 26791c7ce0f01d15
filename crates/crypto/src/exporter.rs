//! Keying material for the application. RFC 8446 §7.5.

use std::fmt;

use aws_lc_rs::digest;
use zeroize::Zeroizing;

use crate::Secret;
use crate::hkdf_label::expand_label;

/// The exporter secret of a finished handshake.
///
/// It is all that keying material is derived from, so the TLS session need not be kept for it.
#[derive(Debug)]
pub struct Exporter(Secret);

impl Exporter {
    /// Takes the exporter secret of TLS.
    pub fn new(secret: Secret) -> Self {
        Self(secret)
    }

    /// Fills `out` with keying material that both ends derive alike from `label` and `context`;
    /// no context is the same as an empty one.
    ///
    /// # Errors
    /// [`ExportError`] when `label` is longer than 249 bytes or `out` longer than 255 hashes.
    pub fn export(
        &self,
        out: &mut [u8],
        label: &[u8],
        context: Option<&[u8]>,
    ) -> Result<(), ExportError> {
        let hash = self.0.suite().hash();
        let digest = |bytes| digest::digest(hash.digest(), bytes);
        let mut derived = Zeroizing::new([0; 48]);
        let derived = &mut derived[..hash.output_len()];
        expand_label(
            hash,
            self.0.as_bytes(),
            label,
            digest(&[]).as_ref(),
            derived,
        )
        .ok_or(ExportError)?;
        let context = digest(context.unwrap_or_default());
        expand_label(hash, derived, b"exporter", context.as_ref(), out).ok_or(ExportError)
    }
}

/// The label or the output asked for is too long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExportError;

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("label or output too long for a TLS exporter")
    }
}

impl std::error::Error for ExportError {}
