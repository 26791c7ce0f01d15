//! The Internet checksum (RFC 1071).
//!
//! Sums are of words in the byte order of the machine: the sum of swapped words is the swapped sum (RFC 1071 §2 (B)), so
//! that no word has to be swapped. The result is stored in the order of the machine too.

/// Returns the sum of the words of `bytes`. An odd last byte counts as if a zero followed.
///
/// The sum is below 2^36, so that many of them can be added. Each packet is summed whole at both ends of a tunnel, a third
/// of all work when this was a loop over words of 32 bits through iterators that were not inlined.
pub(crate) fn sum(bytes: &[u8]) -> u64 {
    // Words of 64 bits with the carry added at the other end (RFC 1071 §2 (A)), in lanes that do not wait for each other.
    let mut lanes = [0_u64; 4];
    let (chunks, rest) = bytes.as_chunks::<32>();
    for chunk in chunks {
        lanes[0] = add(lanes[0], long(chunk, 0));
        lanes[1] = add(lanes[1], long(chunk, 8));
        lanes[2] = add(lanes[2], long(chunk, 16));
        lanes[3] = add(lanes[3], long(chunk, 24));
    }
    let mut last = [0; 32];
    last[..rest.len()].copy_from_slice(rest);
    let mut total = 0;
    for (index, lane) in lanes.into_iter().enumerate() {
        let lane = add(lane, long(&last, 8 * index));
        total += (lane & 0xffff_ffff) + (lane >> 32);
    }
    total
}

/// Adds numbers, and the carry of the result at its other end.
#[inline]
const fn add(sum: u64, word: u64) -> u64 {
    let (sum, has_carry) = sum.overflowing_add(word);
    // A sum with a carry is at most 2^64 - 2.
    sum + has_carry as u64
}

#[inline]
fn long(bytes: &[u8; 32], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_ne_bytes(word)
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
    fn carries_of_long_words_are_not_lost() {
        for len in [8, 16, 31, 32, 33, 63, 64, 65, 1300, 65_535] {
            let bytes = vec![0xff; len];
            assert_eq!(finish(sum(&bytes)), plain(&bytes), "{len}");
            assert!(sum(&bytes) < 1 << 36, "{len}");
        }
        assert_eq!(sum(&[]), 0);
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
