use proptest::prelude::*;

use super::*;
use crate::frame::Frame;
use crate::frame::testing::{assert_round_trip, assert_vector};
use crate::testing::varints;

#[test]
fn encoding_matches_the_draft() {
    let frame = AckFrequency {
        sequence: 1,
        ack_eliciting_threshold: 0x40,
        requested_max_ack_delay: 25_000,
        reordering_threshold: 3,
    };
    assert_vector(&Frame::AckFrequency(frame), "40af 01 4040 800061a8 03");
}

#[test]
fn immediate_ack_is_one_byte() {
    assert_vector(&Frame::ImmediateAck, "1f");
}

proptest! {
    #[test]
    fn round_trips(
        sequence in varints(),
        ack_eliciting_threshold in varints(),
        requested_max_ack_delay in varints(),
        reordering_threshold in varints(),
    ) {
        assert_round_trip(&Frame::AckFrequency(AckFrequency {
            sequence,
            ack_eliciting_threshold,
            requested_max_ack_delay,
            reordering_threshold,
        }));
    }
}
