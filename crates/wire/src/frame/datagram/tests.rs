use proptest::prelude::*;

use super::*;
use crate::error::DecodeErrorKind;
use crate::frame::Frame;
use crate::frame::testing::{assert_refused, assert_round_trip, assert_vector, encode, frames};

fn with_length(data: &[u8]) -> Datagram<'_> {
    Datagram {
        data,
        has_length: true,
    }
}

fn to_the_end(data: &[u8]) -> Datagram<'_> {
    Datagram {
        data,
        has_length: false,
    }
}

#[test]
fn encoding_matches_rfc_9221_4() {
    assert_vector(&Frame::Datagram(with_length(b"abc")), "31 03 616263");
    let bytes = encode(&Frame::Datagram(to_the_end(b"abc")));
    assert_eq!(bytes, crate::testing::hex("30 616263"));
}

#[test]
fn without_a_length_it_extends_to_the_end_of_the_packet() {
    let bytes = crate::testing::hex("01 30 6101 00");
    let expected = [
        Ok(Frame::Ping),
        Ok(Frame::Datagram(to_the_end(&[0x61, 1, 0]))),
    ];
    assert_eq!(frames(&bytes), expected);
}

#[test]
fn empty_datagrams_are_valid() {
    assert_vector(&Frame::Datagram(with_length(b"")), "31 00");
    assert_eq!(frames(&[0x30]), [Ok(Frame::Datagram(to_the_end(b"")))]);
}

#[test]
fn length_beyond_the_packet_is_refused() {
    assert_refused("31 04 616263", DecodeErrorKind::Truncated, 0x31);
    assert_refused("31 ffffffffffffffff 61", DecodeErrorKind::Truncated, 0x31);
}

proptest! {
    #[test]
    fn round_trips(data in prop::collection::vec(any::<u8>(), 0..200)) {
        assert_round_trip(&Frame::Datagram(with_length(&data)));
        let frame = Frame::Datagram(to_the_end(&data));
        let bytes = encode(&frame);
        prop_assert_eq!(frames(&bytes), [Ok(frame)]);
    }
}
