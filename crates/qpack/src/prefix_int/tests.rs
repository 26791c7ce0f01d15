use proptest::prelude::*;

use super::*;

fn decoded(mut bytes: &[u8], prefix: u8) -> Result<(u64, usize), Malformed> {
    let value = decode(&mut bytes, prefix)?;
    Ok((value, bytes.len()))
}

/// RFC 7541 §C.1.
#[test]
fn decodes_the_examples() {
    assert_eq!(decoded(&[0b1110_1010], 5), Ok((10, 0)));
    assert_eq!(
        decoded(&[0b0101_1111, 0b1001_1010, 0b0000_1010], 5),
        Ok((1337, 0))
    );
    assert_eq!(decoded(&[0b0010_1010, 7], 8), Ok((42, 1)));
}

/// RFC 9204 §4.1.1, §7.4.
#[test]
fn accepts_62_bits_and_refuses_more() {
    let mut bytes = Vec::new();
    encode(&mut bytes, 0, 5, MAX);
    assert_eq!(decoded(&bytes, 5), Ok((MAX, 0)));
    bytes.clear();
    encode(&mut bytes, 0, 5, MAX + 1);
    assert!(matches!(decoded(&bytes, 5), Err(Malformed::Invalid(_))));
    bytes.clear();
    encode(&mut bytes, 0, 8, u64::MAX);
    assert!(matches!(decoded(&bytes, 8), Err(Malformed::Invalid(_))));
}

#[test]
fn refuses_an_integer_without_an_end() {
    let mut bytes = vec![0xff; 12];
    assert!(matches!(decoded(&bytes, 7), Err(Malformed::Invalid(_))));
    bytes[1..].fill(0x80);
    bytes.push(0);
    assert!(matches!(decoded(&bytes, 7), Err(Malformed::Invalid(_))));
}

#[test]
fn incomplete_input_is_left_unchanged() {
    let mut bytes = &[0x1f, 0x9a][..];
    assert_eq!(decode(&mut bytes, 5), Err(Malformed::Incomplete));
    assert_eq!(bytes.len(), 2);
    assert_eq!(decoded(&[], 5), Err(Malformed::Incomplete));
}

proptest! {
    #[test]
    fn round_trips(value in 0..=MAX, shift in 0u32..62, prefix in 1u8..=8, pattern: u8) {
        let value = value >> shift;
        let pattern = pattern & !mask(prefix);
        let mut bytes = Vec::new();
        encode(&mut bytes, pattern, prefix, value);
        prop_assert_eq!(bytes.len(), encoded_len(prefix, value));
        prop_assert_eq!(bytes[0] & !mask(prefix), pattern);
        prop_assert_eq!(decoded(&bytes, prefix), Ok((value, 0)));
    }
}
