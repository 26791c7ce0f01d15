//! Exporters of keying material for the application. RFC 8446 §7.5.

use std::fmt;

use aws_lc_rs::digest;
use zeroize::Zeroizing;

use crate::Secret;
use crate::hkdf_label::expand_label;

/// The exporter secret of a finished handshake.
///
/// All keying material derives from this secret, so the TLS session can be dropped.
#[derive(Debug)]
pub struct Exporter(Secret);

impl Exporter {
    /// Wraps the exporter secret of TLS.
    pub fn new(secret: Secret) -> Self {
        Self(secret)
    }

    /// Fills `out` with keying material derived from `label` and `context`. Both ends derive the
    /// same bytes. `None` is equivalent to an empty context.
    ///
    /// # Errors
    /// Returns [`ExportError`] if `label` is longer than 249 bytes or `out` is longer than 255
    /// outputs of the hash.
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

/// The error of an export whose label or output is too long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExportError;

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("label or output too long for a TLS exporter")
    }
}

impl std::error::Error for ExportError {}
