//! HKDF-Expand-Label of TLS 1.3. RFC 8446 §7.1.

use aws_lc_rs::hkdf;

use crate::HashAlgorithm;

/// Fills `out` with HKDF-Expand-Label(secret, label, context, out.len()).
///
/// Returns `None` if a length does not fit its field or the hash cannot produce that much output.
/// The labels and lengths of packet protection never cause this.
pub(crate) fn expand_label(
    hash: HashAlgorithm,
    secret: &[u8],
    label: &[u8],
    context: &[u8],
    out: &mut [u8],
) -> Option<()> {
    let out_len = u16::try_from(out.len()).ok()?.to_be_bytes();
    let label_len = [u8::try_from(PREFIX.len() + label.len()).ok()?];
    let context_len = [u8::try_from(context.len()).ok()?];
    let info = [
        &out_len[..],
        &label_len,
        PREFIX,
        label,
        &context_len,
        context,
    ];
    let prk = hkdf::Prk::new_less_safe(hash.hkdf(), secret);
    prk.expand(&info, OutputLen(out.len())).ok()?.fill(out).ok()
}

struct OutputLen(usize);

impl hkdf::KeyType for OutputLen {
    fn len(&self) -> usize {
        self.0
    }
}

const PREFIX: &[u8] = b"tls13 ";
