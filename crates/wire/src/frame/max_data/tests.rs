use proptest::prelude::*;

use super::*;
use crate::frame::Frame;
use crate::frame::testing::{assert_round_trip, assert_vector};
use crate::testing::varints;

#[test]
fn encoding_matches_the_rfc() {
    let frame = MaxData { limit: 0x10_0000 };
    assert_vector(&Frame::MaxData(frame), "10 80100000");
}

proptest! {
    #[test]
    fn round_trips(limit in varints()) {
        assert_round_trip(&Frame::MaxData(MaxData { limit }));
    }
}
