//! Prefixed integers, which start in the low bits of a byte (RFC 9204 §4.1.1, RFC 7541 §5.1).

use crate::error::Malformed;

/// Largest value that a decoder must accept, and the largest that this one accepts.
pub(crate) const MAX: u64 = (1 << 62) - 1;

/// Decodes an integer whose prefix is the low `prefix` bits (1 to 8) of the first byte, and advances
/// `bytes` past it. The bits above the prefix are ignored.
pub(crate) fn decode(bytes: &mut &[u8], prefix: u8) -> Result<u64, Malformed> {
    let (&first, mut rest) = bytes.split_first().ok_or(Malformed::Incomplete)?;
    let mask = mask(prefix);
    let mut value = u64::from(first & mask);
    if value == u64::from(mask) {
        let mut shift = 0;
        loop {
            let (&byte, after) = rest.split_first().ok_or(Malformed::Incomplete)?;
            rest = after;
            // Nine groups of seven bits hold every valid value. The limit also ends runs of zeros.
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

/// Appends `value` with the bits of `pattern` above the prefix.
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

/// Returns the number of bytes that [`encode`] appends.
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
