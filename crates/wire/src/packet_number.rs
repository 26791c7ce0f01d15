//! Packet numbers: 62 bits in memory, the lowest 8 to 32 of them on the wire. RFC 9000 §17.1.

use crate::varint::MAX_VARINT;
use crate::writer::Writer;

/// A full packet number.
pub type PacketNumber = u64;

/// The largest packet number of a space. RFC 9000 §12.3.
pub const MAX_PACKET_NUMBER: PacketNumber = MAX_VARINT;

/// Returns the number of bytes that encode `number` if the peer has acknowledged packets up to
/// `largest_acked`: 1 to 4.
///
/// The encoding covers more than twice the distance to the largest acknowledged number, so that the
/// peer expands it correctly regardless of the packets it lost in between. RFC 9000 §17.1, §A.2.
/// Four bytes are the maximum, so a sender may be at most 2^31 ahead of the largest acknowledged
/// number.
#[inline]
pub fn encoded_len(number: PacketNumber, largest_acked: Option<PacketNumber>) -> usize {
    let distance = match largest_acked {
        None => number.saturating_add(1),
        Some(acked) => number.saturating_sub(acked),
    };
    match distance {
        0..0x80 => 1,
        0x80..0x8000 => 2,
        0x8000..0x80_0000 => 3,
        _ => 4,
    }
}

/// Writes the lowest `len` bytes of `number`.
///
/// # Panics
/// Panics if `len` is not 1 to 4, or if the bytes do not fit.
#[inline]
pub fn write(writer: &mut Writer<'_>, number: PacketNumber, len: usize) {
    let bytes = number.to_be_bytes();
    match (len, bytes) {
        (1, [.., d]) => writer.bytes(&[d]),
        (2, [.., c, d]) => writer.bytes(&[c, d]),
        (3, [.., b, c, d]) => writer.bytes(&[b, c, d]),
        (4, [.., a, b, c, d]) => writer.bytes(&[a, b, c, d]),
        _ => panic!("a packet number has 1 to 4 bytes"),
    }
}

/// Returns the packet number closest to `expected_next` that ends in the `len` bytes of
/// `truncated`. RFC 9000 §A.3.
///
/// `expected_next` is one more than the largest number received in the space, or zero. A `len`
/// below 1 counts as 1, and one above 4 as 4.
#[inline]
pub fn expand(truncated: u64, len: usize, expected_next: PacketNumber) -> PacketNumber {
    let window = 1u64 << (8 * len.clamp(1, 4));
    let half = window / 2;
    let mask = window - 1;
    let expected = expected_next.min(MAX_PACKET_NUMBER + 1);
    let candidate = (expected & !mask) | (truncated & mask);
    // Additions replace the subtractions of the RFC. They cannot overflow, because no value here
    // exceeds 2^62 + 2^33.
    if candidate + half <= expected && candidate + window <= MAX_PACKET_NUMBER {
        candidate + window
    } else if (candidate > expected + half || candidate > MAX_PACKET_NUMBER) && candidate >= window
    {
        candidate - window
    } else {
        candidate
    }
}

#[cfg(test)]
mod tests;
