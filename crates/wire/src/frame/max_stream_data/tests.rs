use proptest::prelude::*;

use super::*;
use crate::frame::Frame;
use crate::frame::testing::{assert_round_trip, assert_vector};
use crate::testing::varints;

#[test]
fn encoding_matches_the_rfc() {
    let frame = MaxStreamData {
        id: StreamId::from_value(8),
        limit: 0x3fff,
    };
    assert_vector(&Frame::MaxStreamData(frame), "11 08 7fff");
}

proptest! {
    #[test]
    fn round_trips(id in varints(), limit in varints()) {
        let id = StreamId::from_value(id);
        assert_round_trip(&Frame::MaxStreamData(MaxStreamData { id, limit }));
    }
}
