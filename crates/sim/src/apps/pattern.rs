//! Bytes that tell where they belong.

use std::sync::OnceLock;

use bytes::Bytes;

use crate::seed::mix;

/// A prime, so that no shift by a packet, a buffer or a window goes unnoticed.
const PERIOD: usize = 65_521;
/// The longest piece that is given out at once.
const LONGEST: usize = 64 * 1024;

/// One period, and as much again as a piece may reach beyond its end.
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

/// Up to `len` bytes of the pattern from `offset` on, at most 64 KiB, without a copy.
pub fn piece(offset: u64, len: u64) -> Bytes {
    let start = phase(offset);
    let len = usize::try_from(len).unwrap_or(LONGEST).min(LONGEST);
    pattern().slice(start..start + len)
}

/// True when `bytes` are the pattern from `offset` on.
pub fn check(offset: u64, bytes: &[u8]) -> bool {
    let mut offset = offset;
    bytes.chunks(LONGEST).all(|part| {
        let start = phase(offset);
        offset += part.len() as u64;
        pattern()[start..start + part.len()] == *part
    })
}
