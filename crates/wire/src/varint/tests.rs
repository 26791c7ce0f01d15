use proptest::prelude::*;

use super::*;
use crate::testing::{hex, varints};
use crate::{Reader, Writer};

/// The examples of RFC 9000 §A.1. The last is longer than necessary.
const EXAMPLES: [(&str, u64); 5] = [
    ("c2197c5eff14e88c", 151_288_809_941_952_652),
    ("9d7f3e7d", 494_878_333),
    ("7bbd", 15_293),
    ("25", 37),
    ("4025", 37),
];

fn encode(value: u64) -> Vec<u8> {
    let mut buffer = [0; 8];
    let mut writer = Writer::new(&mut buffer);
    writer.varint(value);
    writer.written().to_vec()
}

#[test]
fn rfc_9000_a1_examples_decode() {
    for (digits, value) in EXAMPLES {
        let bytes = hex(digits);
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.varint(), Ok(value), "{digits}");
        assert!(reader.is_empty(), "{digits}");
    }
}

#[test]
fn rfc_9000_a1_examples_decode_with_trailing_bytes() {
    for (digits, value) in EXAMPLES {
        let mut bytes = hex(digits);
        let len = bytes.len();
        bytes.extend([0xff; 8]);
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.varint(), Ok(value), "{digits}");
        assert_eq!(reader.offset(), len, "{digits}");
    }
}

#[test]
fn rfc_9000_a1_examples_encode_in_the_shortest_form() {
    for (digits, value) in &EXAMPLES[..4] {
        assert_eq!(encode(*value), hex(digits), "{digits}");
    }
}

#[test]
fn encoded_lengths_match_rfc_9000_table_4() {
    let ends = [(0x3f, 1), (0x3fff, 2), (0x3fff_ffff, 4), (MAX_VARINT, 8)];
    for (last, len) in ends {
        assert_eq!(varint_len(last), len, "{last}");
        assert_eq!(encode(last).len(), len, "{last}");
        assert_eq!(varint_len(last + 1), (2 * len).min(8), "{last} + 1");
    }
}

#[test]
#[should_panic(expected = "varint above 2^62 - 1")]
fn writing_more_than_62_bits_panics() {
    encode(MAX_VARINT + 1);
}

proptest! {
    #[test]
    fn every_value_round_trips_in_every_length_that_holds_it(value in varints()) {
        for len in [1, 2, 4, 8].into_iter().filter(|&len| len >= varint_len(value)) {
            let mut buffer = [0xff; 16];
            let mut writer = Writer::new(&mut buffer);
            writer.varint_of_len(value, len);
            prop_assert_eq!(writer.position(), len);
            for end in [len, 16] {
                let mut reader = Reader::new(&buffer[..end]);
                prop_assert_eq!(reader.varint(), Ok(value));
                prop_assert_eq!(reader.offset(), len);
            }
            for end in 0..len {
                let mut reader = Reader::new(&buffer[..end]);
                prop_assert!(reader.varint().is_err());
                prop_assert_eq!(reader.offset(), 0);
            }
        }
    }
}
