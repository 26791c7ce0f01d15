use super::*;
use crate::testing::hex;

#[test]
fn connection_ids_of_255_bytes_are_read() {
    let mut bytes = hex("ff 12345678 ff");
    bytes.extend([1; 255]);
    bytes.push(255);
    bytes.extend([2; 255]);
    bytes.extend([3; 10]);
    let fields = decode(&bytes, 0).unwrap();
    assert_eq!((fields.first_byte, fields.version), (0xff, 0x1234_5678));
    assert_eq!(bytes[fields.destination], [1; 255]);
    assert_eq!(bytes[fields.source], [2; 255]);
    assert_eq!(fields.end, bytes.len() - 10);
    assert_eq!(destination_of(&bytes, 8), Some([1; 255].as_slice()));
}

#[test]
fn invariants_cut_anywhere_are_truncated() {
    let bytes = hex("c0 00000001 02 aabb 01 cc");
    assert!(decode(&bytes, 0).is_ok());
    for end in 0..bytes.len() {
        assert!(decode(&bytes[..end], 0).is_err(), "cut at {end}");
    }
}

#[test]
fn destination_of_a_short_header_has_our_own_length() {
    let bytes = hex("40 0102030405060708 09");
    assert_eq!(
        destination_of(&bytes, 8),
        Some(hex("0102030405060708").as_slice())
    );
    assert_eq!(destination_of(&bytes, 0), Some([].as_slice()));
    assert_eq!(destination_of(&bytes, 9).map(<[u8]>::len), Some(9));
    assert_eq!(destination_of(&bytes, 10), None);
}

#[test]
fn destination_of_a_datagram_too_short_is_none() {
    assert_eq!(destination_of(&[], 0), None);
    let bytes = hex("c0 00000001 04 aabbcc");
    for end in 0..bytes.len() {
        assert_eq!(destination_of(&bytes[..end], 0), None, "cut at {end}");
    }
    assert_eq!(destination_of(&bytes, 0), None);
}
