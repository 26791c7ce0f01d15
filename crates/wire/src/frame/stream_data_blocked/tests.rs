use proptest::prelude::*;

use super::*;
use crate::frame::Frame;
use crate::frame::testing::{assert_round_trip, assert_vector};
use crate::testing::varints;

#[test]
fn encoding_matches_the_rfc() {
    let frame = StreamDataBlocked {
        id: StreamId::from_value(5),
        limit: 0x400,
    };
    assert_vector(&Frame::StreamDataBlocked(frame), "15 05 4400");
}

proptest! {
    #[test]
    fn round_trips(id in varints(), limit in varints()) {
        let id = StreamId::from_value(id);
        assert_round_trip(&Frame::StreamDataBlocked(StreamDataBlocked { id, limit }));
    }
}
