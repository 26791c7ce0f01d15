use proptest::prelude::*;

use super::*;
use crate::frame::Frame;
use crate::frame::testing::{assert_round_trip, assert_vector};
use crate::testing::varints;

#[test]
fn written_as_the_rfc_lays_it_out() {
    let frame = RetireConnectionId { sequence: 2 };
    assert_vector(&Frame::RetireConnectionId(frame), "19 02");
}

proptest! {
    #[test]
    fn comes_back_from_its_bytes(sequence in varints()) {
        assert_round_trip(&Frame::RetireConnectionId(RetireConnectionId { sequence }));
    }
}
