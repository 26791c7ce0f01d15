//! A pattern of bytes that identify their own offset.

use std::sync::OnceLock;

use bytes::Bytes;

use crate::seed::mix;

/// The period: a prime, so that every shift by a packet, a buffer or a window is detected.
const PERIOD: usize = 65_521;
/// The longest piece of the pattern.
const LONGEST: usize = 64 * 1024;

/// One period, and the longest piece that may start at its end.
fn pattern() -> &'static Bytes {
    static MADE: OnceLock<Bytes> = OnceLock::new();
    MADE.get_or_init(|| {
        let byte = |at: usize| {
            let [byte, ..] = mix((at % PERIOD) as u64).to_le_bytes();
            byte
        };
        (0..PERIOD + LONGEST).map(byte).collect()
    })
}

fn phase(offset: u64) -> usize {
    usize::try_from(offset % PERIOD as u64).expect("below the period")
}

/// Returns up to `len` bytes of the pattern at `offset`, at most 64 KiB, without a copy.
pub fn piece(offset: u64, len: u64) -> Bytes {
    let start = phase(offset);
    let len = usize::try_from(len).unwrap_or(LONGEST).min(LONGEST);
    pattern().slice(start..start + len)
}

/// Returns true if `bytes` are the pattern at `offset`.
pub fn check(offset: u64, bytes: &[u8]) -> bool {
    let mut offset = offset;
    bytes.chunks(LONGEST).all(|part| {
        let start = phase(offset);
        offset += part.len() as u64;
        pattern()[start..start + part.len()] == *part
    })
}
