//! Helpers for the tests of this crate.

use proptest::prelude::*;

use crate::varint::MAX_VARINT;

/// Decodes hex digits. White space between them is ignored.
pub(crate) fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits
        .chars()
        .filter(|digit| !digit.is_whitespace())
        .map(|digit| u8::try_from(digit.to_digit(16).unwrap()).unwrap())
        .collect();
    digits
        .chunks_exact(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

/// Generates numbers of all four encoded lengths with equal probability, and the values at their
/// limits.
pub(crate) fn varints() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..=0x3f_u64,
        0x40..=0x3fff_u64,
        0x4000..=0x3fff_ffff_u64,
        0x4000_0000..=MAX_VARINT,
        prop::sample::select(vec![
            0,
            0x3f,
            0x40,
            0x3fff,
            0x4000,
            0x3fff_ffff,
            0x4000_0000,
            MAX_VARINT
        ]),
    ]
}

/// Generates bytes, many of them small, so that they often decode to plausible lengths and types.
pub(crate) fn hostile_bytes(max_len: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop_oneof![any::<u8>(), 0..0x20_u8], 0..max_len)
}
