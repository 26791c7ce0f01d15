//! Variable-length integers: two bits for the length, then 6, 14, 30 or 62 bits. RFC 9000 §16.
//!
//! [`Reader::varint`](crate::Reader::varint) reads them, [`Writer::varint`](crate::Writer::varint)
//! writes them.

/// The largest value that fits a varint: 2^62 - 1.
pub const MAX_VARINT: u64 = (1 << 62) - 1;

/// Returns the length of the shortest encoding in bytes: 1, 2, 4 or 8.
///
/// Values above [`MAX_VARINT`] have no encoding. The result for them is 8, and the writer refuses
/// them.
#[inline]
pub const fn varint_len(value: u64) -> usize {
    match value {
        0..=0x3f => 1,
        0x40..=0x3fff => 2,
        0x4000..=0x3fff_ffff => 4,
        _ => 8,
    }
}

#[cfg(test)]
mod tests;
