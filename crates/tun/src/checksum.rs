//! The Internet checksum (RFC 1071).
//!
//! Sums are of words in the byte order of the machine: the sum of swapped words is the swapped sum (RFC 1071 §2 (B)), so
//! that no word has to be swapped. The result is stored in the order of the machine too.

/// Returns the sum of the words of `bytes`. An odd last byte counts as if a zero followed.
///
/// The sum of 64 KiB is below 2^47, so that a few of them can be added.
pub(crate) fn sum(bytes: &[u8]) -> u64 {
    // Independent lanes of 32-bit words, which compilers turn into instructions for several words.
    let mut lanes = [0_u64; 8];
    let mut chunks = bytes.chunks_exact(32);
    for chunk in &mut chunks {
        for (lane, word) in lanes.iter_mut().zip(chunk.chunks_exact(4)) {
            *lane += u64::from(u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
        }
    }
    let mut total: u64 = lanes.iter().sum();
    let mut words = chunks.remainder().chunks_exact(2);
    for word in &mut words {
        total += u64::from(u16::from_ne_bytes([word[0], word[1]]));
    }
    if let [last] = words.remainder() {
        total += u64::from(u16::from_ne_bytes([*last, 0]));
    }
    total
}

/// Returns a number of a header as it counts in a sum.
pub(crate) const fn word(number: u16) -> u64 {
    number.to_be() as u64
}

/// Folds a sum into 16 bits.
pub(crate) const fn fold(sum: u64) -> u16 {
    let mut sum = (sum & 0xffff_ffff) + (sum >> 32);
    sum = (sum & 0xffff_ffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    // At most 0xffff: the second step leaves at most 16 bits and a carry, which the third adds.
    (sum & 0xffff) as u16 + (sum >> 16) as u16
}

/// Returns the bytes of a checksum field for a sum.
pub(crate) const fn finish(sum: u64) -> [u8; 2] {
    (!fold(sum)).to_ne_bytes()
}

/// Returns the bytes of a checksum field of UDP, in which 0 means that there is no checksum (RFC 768).
pub(crate) const fn finish_udp(sum: u64) -> [u8; 2] {
    match finish(sum) {
        [0, 0] => [0xff, 0xff],
        field => field,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 1071 §4.1, word by word in network order.
    fn plain(bytes: &[u8]) -> [u8; 2] {
        let mut sum = 0_u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        (!(sum as u16)).to_be_bytes()
    }

    #[test]
    fn example_of_rfc_1071_has_its_sum() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(finish(sum(&bytes)), (!0xddf2_u16).to_be_bytes());
    }

    #[test]
    fn largest_sums_fold_to_all_ones() {
        assert_eq!(fold(sum(&[0xff; 65_535 + 1])), 0xffff);
        assert_eq!(fold(u64::MAX), 0xffff);
        assert_eq!(finish_udp(sum(&[0xff; 8])), [0xff, 0xff]);
        assert_eq!(finish(0), [0xff, 0xff]);
    }

    proptest! {
        #[test]
        fn sums_equal_those_of_single_words(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert_eq!(finish(sum(&bytes)), plain(&bytes));
        }

        #[test]
        fn sums_of_parts_add_up(bytes in proptest::collection::vec(any::<u8>(), 0..300), at in 0_usize..300) {
            let at = at.min(bytes.len()) & !1;
            let (first, second) = bytes.split_at(at);
            prop_assert_eq!(finish(sum(first) + sum(second)), plain(&bytes));
        }
    }
}
