use proptest::prelude::*;

use super::*;
use crate::error::DecodeErrorKind;
use crate::frame::Frame;
use crate::frame::testing::{assert_refused, assert_round_trip, assert_vector};
use crate::testing::varints;

#[test]
fn frame_type_depends_on_the_direction() {
    let bidi = MaxStreams {
        direction: Direction::Bidirectional,
        limit: 100,
    };
    assert_vector(&Frame::MaxStreams(bidi), "12 4064");
    let uni = MaxStreams {
        direction: Direction::Unidirectional,
        limit: 3,
    };
    assert_vector(&Frame::MaxStreams(uni), "13 03");
}

#[test]
fn limit_of_2_60_is_accepted() {
    for direction in [Direction::Bidirectional, Direction::Unidirectional] {
        assert_round_trip(&Frame::MaxStreams(MaxStreams {
            direction,
            limit: MAX_STREAMS,
        }));
    }
}

#[test]
fn limit_above_2_60_is_refused() {
    let kind = DecodeErrorKind::Invalid("MAX_STREAMS is above 2^60");
    assert_refused("12 d000000000000001", kind, 0x12);
    assert_refused("13 d000000000000001", kind, 0x13);
    assert_refused("13 ffffffffffffffff", kind, 0x13);
}

proptest! {
    #[test]
    fn round_trips(limit in varints(), is_bidi: bool) {
        let direction =
            if is_bidi { Direction::Bidirectional } else { Direction::Unidirectional };
        let limit = limit.min(MAX_STREAMS);
        assert_round_trip(&Frame::MaxStreams(MaxStreams { direction, limit }));
    }
}
