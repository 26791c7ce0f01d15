use proptest::prelude::*;

use super::*;
use crate::frame::Frame;
use crate::frame::testing::{assert_round_trip, assert_vector};

#[test]
fn encoding_matches_the_rfc() {
    let frame = PathResponse {
        data: [1, 2, 3, 4, 5, 6, 7, 8],
    };
    assert_vector(&Frame::PathResponse(frame), "1b 0102030405060708");
}

proptest! {
    #[test]
    fn round_trips(data: [u8; 8]) {
        assert_round_trip(&Frame::PathResponse(PathResponse { data }));
    }
}
