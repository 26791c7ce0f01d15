//! The encoding of the Required Insert Count, modulo twice the largest possible number of table
//! entries (RFC 9204 §4.5.1.1).

/// Returns `MaxEntries`: how many entries of the smallest size fit into the largest capacity.
pub(crate) const fn max_entries(max_capacity: u64) -> u64 {
    max_capacity / 32
}

pub(crate) const fn encode(required: u64, max_capacity: u64) -> u64 {
    if required == 0 {
        return 0;
    }
    required % (2 * max_entries(max_capacity)) + 1
}

/// Decodes a Required Insert Count after `inserted` insertions. Returns `None` for a value that no
/// conforming encoder sends.
pub(crate) const fn decode(encoded: u64, inserted: u64, max_capacity: u64) -> Option<u64> {
    if encoded == 0 {
        return Some(0);
    }
    let full_range = 2 * max_entries(max_capacity);
    if encoded > full_range {
        return None;
    }
    let max_value = inserted + max_entries(max_capacity);
    let max_wrapped = max_value / full_range * full_range;
    let required = max_wrapped + encoded - 1;
    if required <= max_value {
        // A count of zero is always encoded as zero.
        return if required == 0 { None } else { Some(required) };
    }
    match required.checked_sub(full_range) {
        None | Some(0) => None,
        required => required,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The example of RFC 9204 §4.5.1.1: a table of 100 bytes holds three entries, and ten
    /// insertions were received.
    #[test]
    fn decodes_the_example() {
        assert_eq!(decode(4, 10, 100), Some(9));
    }

    #[test]
    fn refuses_invalid_values() {
        assert_eq!(decode(7, 10, 100), None);
        assert_eq!(decode(1, 0, 100), None);
        assert_eq!(decode(1, 0, 0), None);
        assert_eq!(decode(u64::MAX, 10, 100), None);
        // Above what the table can hold, with an insert count of zero.
        assert_eq!(decode(5, 0, 100), None);
    }

    proptest! {
        /// Covers every count that a section may require: entries that may be in the table, and
        /// those that may be inserted before it is completely replaced.
        #[test]
        fn round_trips(inserted in 0u64..1 << 40, capacity in 32u64..1 << 20, back: u64) {
            let entries = max_entries(capacity);
            let highest = inserted + entries;
            let lowest = (inserted + 1).saturating_sub(entries).max(1);
            let required = highest - back % (highest - lowest + 1);
            prop_assert_eq!(decode(encode(required, capacity), inserted, capacity), Some(required));
        }
    }
}
