//! The bits of the first byte of a packet. RFC 9000 §17.2, §17.3.1.

/// Returns the length of the packet number in bytes, given a first byte without header protection.
/// RFC 9000 §17.1.
#[inline]
pub const fn packet_number_len(first_byte: u8) -> usize {
    (first_byte & PACKET_NUMBER_LEN) as usize + 1
}

/// Returns true if the reserved bits of a first byte without header protection are zero, as
/// required in every packet that opens. RFC 9000 §17.2, §17.3.1.
#[inline]
pub const fn reserved_bits_are_zero(first_byte: u8) -> bool {
    let reserved = if first_byte & LONG_FORM == 0 {
        SHORT_RESERVED
    } else {
        LONG_RESERVED
    };
    first_byte & reserved == 0
}

/// Clears the Fixed Bit of a first byte, which only a peer accepts that advertised grease_quic_bit.
/// RFC 9287 §3.1.
#[inline]
pub const fn clear_fixed_bit(first_byte: &mut u8) {
    *first_byte &= !FIXED_BIT;
}

/// Returns true if the Fixed Bit of a first byte is 1.
#[inline]
pub const fn has_fixed_bit(first_byte: u8) -> bool {
    first_byte & FIXED_BIT != 0
}

/// The bit that distinguishes long headers from short ones in every version. RFC 8999 §5.
pub(super) const LONG_FORM: u8 = 0x80;
/// The bit that distinguishes QUIC from other protocols on the same port. RFC 9000 §17.2.
pub(super) const FIXED_BIT: u8 = 0x40;
const LONG_RESERVED: u8 = 0x0c;
const SHORT_RESERVED: u8 = 0x18;
const PACKET_NUMBER_LEN: u8 = 0x03;
