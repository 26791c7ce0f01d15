//! A pattern of bytes from which the offset can be recognized.

use std::sync::OnceLock;

use bytes::Bytes;

use crate::seed::mix;

/// The period of the pattern: a prime, so that every shift by a packet, a buffer or a window is
/// detected.
const PERIOD: usize = 65_521;
/// Maximum length of one slice of the pattern.
const MAX_LEN: usize = 64 * 1024;

/// Returns one period, and the longest slice that may start at its end.
fn pattern() -> &'static Bytes {
    static PATTERN: OnceLock<Bytes> = OnceLock::new();
    PATTERN.get_or_init(|| {
        let byte = |at: usize| {
            let [byte, ..] = mix((at % PERIOD) as u64).to_le_bytes();
            byte
        };
        (0..PERIOD + MAX_LEN).map(byte).collect()
    })
}

fn phase(offset: u64) -> usize {
    usize::try_from(offset % PERIOD as u64).expect("the remainder is below the period")
}

/// Returns up to `len` bytes of the pattern at `offset`, at most 64 KiB, without a copy.
pub fn pattern_at(offset: u64, len: u64) -> Bytes {
    let start = phase(offset);
    let len = usize::try_from(len).unwrap_or(MAX_LEN).min(MAX_LEN);
    pattern().slice(start..start + len)
}

/// Returns true if `bytes` are the pattern at `offset`.
pub fn is_pattern_at(offset: u64, bytes: &[u8]) -> bool {
    let mut offset = offset;
    bytes.chunks(MAX_LEN).all(|part| {
        let start = phase(offset);
        offset += part.len() as u64;
        pattern()[start..start + part.len()] == *part
    })
}
