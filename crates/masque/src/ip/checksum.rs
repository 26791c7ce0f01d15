//! The checksum of the internet protocols (RFC 1071).

/// Adds bytes to a sum in one's complement.
pub(crate) fn sum(begin: u16, bytes: &[u8]) -> u16 {
    let mut sum = u64::from(begin);
    let mut chunks = bytes.chunks_exact(4);
    for chunk in &mut chunks {
        sum += u64::from(u32::from_be_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]));
    }
    let mut last = [0; 4];
    let rest = chunks.remainder();
    last[..rest.len()].copy_from_slice(rest);
    sum += u64::from(u32::from_be_bytes(last));
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    // The loop has left 16 bits.
    sum as u16
}

/// Returns the checksum after one word has changed (RFC 1624 §3, equation 3).
pub(crate) fn updated(sum: [u8; 2], before: [u8; 2], after: [u8; 2]) -> [u8; 2] {
    let [sum, before, after] = [sum, before, after].map(u16::from_be_bytes);
    let mut new = u32::from(!sum) + u32::from(!before) + u32::from(after);
    while new > 0xffff {
        new = (new & 0xffff) + (new >> 16);
    }
    (!(new as u16)).to_be_bytes()
}
