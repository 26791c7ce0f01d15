use proptest::prelude::*;

use super::*;
use crate::error::DecodeErrorKind;
use crate::frame::Frame;
use crate::frame::testing::{assert_refused, assert_round_trip, assert_vector};

#[test]
fn encoding_matches_the_rfc() {
    let frame = NewToken {
        token: &[0xaa, 0xbb, 0xcc],
    };
    assert_vector(&Frame::NewToken(frame), "07 03 aabbcc");
}

#[test]
fn empty_token_is_refused() {
    let kind = DecodeErrorKind::Invalid("NEW_TOKEN has no token");
    assert_refused("07 00", kind, 0x07);
    assert_refused("07 4000", kind, 0x07);
}

#[test]
#[should_panic(expected = "the token of NEW_TOKEN is empty")]
fn empty_token_is_never_written() {
    NewToken { token: &[] }.encode(&mut Writer::new(&mut [0; 8]));
}

#[test]
fn token_longer_than_the_packet_is_refused() {
    assert_refused("07 04 aabbcc", DecodeErrorKind::Truncated, 0x07);
}

proptest! {
    #[test]
    fn round_trips(token in prop::collection::vec(any::<u8>(), 1..300)) {
        assert_round_trip(&Frame::NewToken(NewToken { token: &token }));
    }
}
