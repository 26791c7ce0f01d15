use proptest::prelude::*;

use super::*;
use crate::error::DecodeErrorKind;
use crate::frame::Frame;
use crate::frame::testing::{assert_refused, assert_round_trip, assert_vector};
use crate::testing::varints;

fn transport(error_code: u64, frame_type: u64) -> CloseKind {
    let error_code = TransportErrorCode::from_value(error_code);
    CloseKind::Transport {
        error_code,
        frame_type,
    }
}

#[test]
fn close_by_the_transport_names_the_frame() {
    let close = ConnectionClose {
        kind: transport(0x0a, 0x06),
        reason: b"no",
    };
    assert_vector(&Frame::ConnectionClose(close), "1c 0a 06 02 6e6f");
}

#[test]
fn close_by_the_application_has_no_frame_type() {
    let kind = CloseKind::Application {
        error_code: ApplicationErrorCode(0x100),
    };
    assert_vector(
        &Frame::ConnectionClose(ConnectionClose { kind, reason: b"" }),
        "1d 4100 00",
    );
}

#[test]
fn reason_longer_than_the_packet_is_refused() {
    assert_refused("1c 0a 06 03 6e6f", DecodeErrorKind::Truncated, 0x1c);
    assert_refused(
        "1d 0a ffffffffffffffff 6e6f",
        DecodeErrorKind::Truncated,
        0x1d,
    );
}

#[test]
fn reason_need_not_be_utf_8() {
    let close = ConnectionClose {
        kind: transport(0, 0),
        reason: &[0xff, 0x00, 0xfe],
    };
    assert_round_trip(&Frame::ConnectionClose(close));
}

#[test]
fn unknown_error_codes_are_kept() {
    let close = ConnectionClose {
        kind: transport(0x1234_5678, 0x3fff),
        reason: b"",
    };
    assert_round_trip(&Frame::ConnectionClose(close));
}

proptest! {
    #[test]
    fn round_trips(
        error_code in varints(),
        frame_type in prop::option::of(varints()),
        reason in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let kind = match frame_type {
            Some(frame_type) => transport(error_code, frame_type),
            None => CloseKind::Application { error_code: ApplicationErrorCode(error_code) },
        };
        assert_round_trip(&Frame::ConnectionClose(ConnectionClose { kind, reason: &reason }));
    }
}
