use proptest::prelude::*;

use super::*;
use crate::error::DecodeErrorKind;
use crate::testing::hostile_bytes;

#[test]
fn fields_come_in_order_and_in_network_byte_order() {
    let bytes: Vec<u8> = (1..=17).collect();
    let mut reader = Reader::new(&bytes);
    assert_eq!(reader.peek(), Some(1));
    assert_eq!(reader.u8(), Ok(1));
    assert_eq!(reader.u16(), Ok(0x0203));
    assert_eq!(reader.u32(), Ok(0x0405_0607));
    assert_eq!(reader.u64(), Ok(0x0809_0a0b_0c0d_0e0f));
    assert_eq!((reader.offset(), reader.remaining()), (15, 2));
    assert_eq!(reader.rest(), [16, 17]);
    assert!(reader.is_empty());
    assert_eq!(reader.offset(), 17);
    assert_eq!(reader.peek(), None);
}

#[test]
fn failed_read_reports_its_offset_and_does_not_move() {
    let mut reader = Reader::new(&[1, 2, 3]);
    reader.u8().unwrap();
    let error = DecodeError {
        kind: DecodeErrorKind::Truncated,
        offset: 1,
    };
    assert_eq!(reader.u32(), Err(error));
    assert_eq!(reader.u64(), Err(error));
    assert_eq!(reader.bytes(3), Err(error));
    assert_eq!(reader.array::<3>(), Err(error));
    assert_eq!(reader.bytes(2), Ok([2, 3].as_slice()));
    assert!(reader.u8().is_err());
    assert!(reader.varint().is_err());
}

#[test]
fn length_prefixed_bytes_end_at_their_length() {
    let mut reader = Reader::new(&[0x40, 2, 7, 8, 9]);
    assert_eq!(reader.varint_bytes(), Ok([7, 8].as_slice()));
    assert_eq!(reader.unread(), [9]);
}

#[test]
fn length_prefixed_bytes_longer_than_the_input_are_truncated() {
    for bytes in [&[3, 7, 8][..], &[0xff; 12], &[0xc0], &[]] {
        let mut reader = Reader::new(bytes);
        let error = DecodeError {
            kind: DecodeErrorKind::Truncated,
            offset: 0,
        };
        assert_eq!(reader.varint_bytes(), Err(error), "{bytes:?}");
        assert_eq!(reader.offset(), 0, "{bytes:?}");
    }
}

#[test]
fn a_reader_that_starts_inside_counts_offsets_from_the_front() {
    let mut reader = Reader::starting_at(&[1, 2, 3], 2);
    assert_eq!(reader.offset(), 2);
    assert_eq!(reader.u8(), Ok(3));
    let past = Reader::starting_at(&[1, 2, 3], 4);
    assert!(past.is_empty());
}

proptest! {
    #[test]
    fn random_reads_never_panic_and_never_go_back(
        bytes in hostile_bytes(64),
        reads in prop::collection::vec(0..8_u8, 0..32),
    ) {
        let mut reader = Reader::new(&bytes);
        for read in reads {
            let before = reader.offset();
            let failed = match read {
                0 => reader.u8().is_err(),
                1 => reader.u16().is_err(),
                2 => reader.u32().is_err(),
                3 => reader.u64().is_err(),
                4 => reader.varint().is_err(),
                5 => reader.varint_bytes().is_err(),
                6 => reader.array::<5>().is_err(),
                _ => reader.bytes(7).is_err(),
            };
            prop_assert!(reader.offset() >= before);
            prop_assert!(!failed || reader.offset() == before);
            prop_assert_eq!(reader.offset() + reader.remaining(), bytes.len());
        }
    }
}
