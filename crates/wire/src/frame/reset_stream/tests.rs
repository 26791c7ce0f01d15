use proptest::prelude::*;

use super::*;
use crate::frame::Frame;
use crate::frame::testing::{assert_round_trip, assert_vector};
use crate::testing::varints;

#[test]
fn encoding_matches_the_rfc() {
    let frame = ResetStream {
        id: StreamId::from_value(0x104),
        error_code: 10,
        final_size: 0x1_0000,
    };
    assert_vector(&Frame::ResetStream(frame), "04 4104 0a 80010000");
}

proptest! {
    #[test]
    fn round_trips(
        id in varints(), error_code in varints(), final_size in varints(),
    ) {
        let id = StreamId::from_value(id);
        assert_round_trip(&Frame::ResetStream(ResetStream { id, error_code, final_size }));
    }
}
