use proptest::prelude::*;

use super::*;
use crate::frame::Frame;
use crate::frame::testing::{assert_round_trip, assert_vector};
use crate::testing::varints;

#[test]
fn encoding_matches_the_rfc() {
    let frame = RetireConnectionId { sequence: 2 };
    assert_vector(&Frame::RetireConnectionId(frame), "19 02");
}

proptest! {
    #[test]
    fn round_trips(sequence in varints()) {
        assert_round_trip(&Frame::RetireConnectionId(RetireConnectionId { sequence }));
    }
}
