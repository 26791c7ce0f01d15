use proptest::prelude::*;

use super::*;
use crate::error::DecodeErrorKind;
use crate::frame::Frame;
use crate::frame::testing::{assert_refused, assert_round_trip, assert_vector};
use crate::testing::varints;

#[test]
fn frame_type_depends_on_the_direction() {
    let bidi = StreamsBlocked {
        direction: Direction::Bidirectional,
        limit: 100,
    };
    assert_vector(&Frame::StreamsBlocked(bidi), "16 4064");
    let uni = StreamsBlocked {
        direction: Direction::Unidirectional,
        limit: 3,
    };
    assert_vector(&Frame::StreamsBlocked(uni), "17 03");
}

#[test]
fn limit_of_2_60_is_accepted() {
    for direction in [Direction::Bidirectional, Direction::Unidirectional] {
        assert_round_trip(&Frame::StreamsBlocked(StreamsBlocked {
            direction,
            limit: MAX_STREAMS,
        }));
    }
}

#[test]
fn limit_above_2_60_is_refused() {
    let kind = DecodeErrorKind::Invalid("STREAMS_BLOCKED is above 2^60");
    assert_refused("16 d000000000000001", kind, 0x16);
    assert_refused("17 d000000000000001", kind, 0x17);
    assert_refused("17 ffffffffffffffff", kind, 0x17);
}

proptest! {
    #[test]
    fn round_trips(limit in varints(), is_bidi: bool) {
        let direction =
            if is_bidi { Direction::Bidirectional } else { Direction::Unidirectional };
        let limit = limit.min(MAX_STREAMS);
        assert_round_trip(&Frame::StreamsBlocked(StreamsBlocked { direction, limit }));
    }
}
