use proptest::prelude::*;

use super::*;
use crate::frame::Frame;
use crate::frame::testing::{assert_round_trip, assert_vector};
use crate::testing::varints;

#[test]
fn encoding_matches_the_rfc() {
    let frame = StopSending {
        id: StreamId::from_value(3),
        error_code: 0x40,
    };
    assert_vector(&Frame::StopSending(frame), "05 03 4040");
}

proptest! {
    #[test]
    fn round_trips(id in varints(), error_code in varints()) {
        let id = StreamId::from_value(id);
        assert_round_trip(&Frame::StopSending(StopSending { id, error_code }));
    }
}
