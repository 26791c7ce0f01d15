use proptest::prelude::*;

use super::*;
use crate::frame::Frame;
use crate::frame::testing::{assert_round_trip, assert_vector};
use crate::testing::varints;

#[test]
fn encoding_matches_the_rfc() {
    let frame = DataBlocked { limit: 1 << 32 };
    assert_vector(&Frame::DataBlocked(frame), "14 c000000100000000");
}

proptest! {
    #[test]
    fn round_trips(limit in varints()) {
        assert_round_trip(&Frame::DataBlocked(DataBlocked { limit }));
    }
}
