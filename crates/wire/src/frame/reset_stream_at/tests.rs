use proptest::prelude::*;

use super::*;
use crate::frame::Frame;
use crate::frame::testing::{assert_round_trip, assert_vector};
use crate::testing::varints;

#[test]
fn encoding_matches_the_draft() {
    let frame = ResetStreamAt {
        id: StreamId::from_value(0x104),
        error_code: 10,
        final_size: 0x1_0000,
        reliable_size: 7,
    };
    assert_vector(&Frame::ResetStreamAt(frame), "24 4104 0a 80010000 07");
}

proptest! {
    #[test]
    fn round_trips(
        id in varints(),
        error_code in varints(),
        final_size in varints(),
        reliable_size in varints(),
    ) {
        let id = StreamId::from_value(id);
        let frame = ResetStreamAt { id, error_code, final_size, reliable_size };
        assert_round_trip(&Frame::ResetStreamAt(frame));
    }
}
