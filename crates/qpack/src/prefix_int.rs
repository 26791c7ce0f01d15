//! Integers that begin in the low bits of a byte, RFC 9204 §4.1.1 and RFC 7541 §5.1.

use crate::error::Malformed;

/// The largest value that a decoder must accept and the largest that we do.
pub(crate) const MAX: u64 = (1 << 62) - 1;

/// Reads an integer whose first `prefix` bits (1 to 8) are the low ones of the first byte, and
/// moves `bytes` past it. The bits above it are not looked at.
pub(crate) fn decode(bytes: &mut &[u8], prefix: u8) -> Result<u64, Malformed> {
    let (&first, mut rest) = bytes.split_first().ok_or(Malformed::Incomplete)?;
    let mask = mask(prefix);
    let mut value = u64::from(first & mask);
    if value == u64::from(mask) {
        let mut shift = 0;
        loop {
            let (&byte, after) = rest.split_first().ok_or(Malformed::Incomplete)?;
            rest = after;
            // Nine groups of seven bits hold all that is allowed, and zeros may not go on for ever.
            if shift > 56 {
                return Err(Malformed::Invalid("integer longer than 62 bits"));
            }
            value += u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    if value > MAX {
        return Err(Malformed::Invalid("integer longer than 62 bits"));
    }
    *bytes = rest;
    Ok(value)
}

/// Writes `value` with the bits of `pattern` above the prefix.
pub(crate) fn encode(out: &mut Vec<u8>, pattern: u8, prefix: u8, value: u64) {
    let mask = mask(prefix);
    if value < u64::from(mask) {
        out.push(pattern | value as u8); // Below the mask, which is a byte.
        return;
    }
    out.push(pattern | mask);
    let mut rest = value - u64::from(mask);
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80); // The low seven bits; the eighth is set anyway.
        rest >>= 7;
    }
    out.push(rest as u8); // Below 0x80.
}

/// Bytes that [`encode`] writes.
pub(crate) fn encoded_len(prefix: u8, value: u64) -> usize {
    let mask = u64::from(mask(prefix));
    if value < mask {
        return 1;
    }
    let bits = 64 - (value - mask).leading_zeros() as usize;
    1 + bits.div_ceil(7).max(1)
}

const fn mask(prefix: u8) -> u8 {
    0xff >> (8 - prefix)
}

#[cfg(test)]
mod tests;
