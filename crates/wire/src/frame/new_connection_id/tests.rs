use proptest::prelude::*;

use super::*;
use crate::error::DecodeErrorKind;
use crate::frame::Frame;
use crate::frame::testing::{assert_refused, assert_round_trip, assert_vector};
use crate::testing::varints;

const TOKEN: &str = "000102030405060708090a0b0c0d0e0f";

fn frame() -> NewConnectionId {
    NewConnectionId {
        sequence: 3,
        retire_prior_to: 1,
        id: ConnectionId::new(&[0xab; 4]).unwrap(),
        reset_token: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    }
}

#[test]
fn encoding_matches_the_rfc() {
    assert_vector(
        &Frame::NewConnectionId(frame()),
        &format!("18 03 01 04 abababab {TOKEN}"),
    );
}

#[test]
fn connection_id_without_bytes_is_refused() {
    let kind = DecodeErrorKind::Invalid("connection id is not 1 to 20 bytes long");
    assert_refused(&format!("18 03 01 00 {TOKEN}"), kind, 0x18);
}

#[test]
fn connection_id_above_20_bytes_is_refused() {
    let kind = DecodeErrorKind::Invalid("connection id is not 1 to 20 bytes long");
    assert_refused(
        &format!("18 03 01 15 {} {TOKEN}", "ab".repeat(21)),
        kind,
        0x18,
    );
    assert_refused(
        &format!("18 03 01 ff {} {TOKEN}", "ab".repeat(255)),
        kind,
        0x18,
    );
}

#[test]
fn retire_prior_to_above_sequence_is_refused() {
    let kind = DecodeErrorKind::Invalid("retire prior to is above sequence");
    assert_refused(&format!("18 03 04 04 abababab {TOKEN}"), kind, 0x18);
}

#[test]
fn retire_prior_to_equal_to_sequence_is_accepted() {
    let frame = NewConnectionId {
        retire_prior_to: 3,
        ..frame()
    };
    assert_round_trip(&Frame::NewConnectionId(frame));
}

#[test]
#[should_panic(expected = "connection id of NEW_CONNECTION_ID is empty")]
fn connection_id_without_bytes_is_never_written() {
    let frame = NewConnectionId {
        id: ConnectionId::EMPTY,
        ..frame()
    };
    frame.encode(&mut Writer::new(&mut [0; 64]));
}

#[test]
#[should_panic(expected = "retire_prior_to is above sequence")]
fn retire_prior_to_above_sequence_is_never_written() {
    let frame = NewConnectionId {
        retire_prior_to: 4,
        ..frame()
    };
    frame.encode(&mut Writer::new(&mut [0; 64]));
}

proptest! {
    #[test]
    fn round_trips(
        sequence in varints(),
        retire_prior_to in varints(),
        id in prop::collection::vec(any::<u8>(), 1..=20),
        reset_token: [u8; 16],
    ) {
        assert_round_trip(&Frame::NewConnectionId(NewConnectionId {
            sequence,
            retire_prior_to: retire_prior_to.min(sequence),
            id: ConnectionId::new(&id).unwrap(),
            reset_token,
        }));
    }
}
