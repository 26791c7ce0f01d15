use super::*;
use crate::error::DecodeErrorKind;
use crate::frame::testing::frames;
use crate::testing::hex;

#[test]
fn an_empty_payload_has_no_frames() {
    assert!(frames(&[]).is_empty());
}

#[test]
fn iteration_ends_with_the_first_error() {
    let bytes = hex("01 20 01 01");
    let found = frames(&bytes);
    assert_eq!(found.len(), 2);
    assert_eq!(
        found[1].unwrap_err().error.kind,
        DecodeErrorKind::UnknownFrame(0x20)
    );
}

#[test]
fn fields_may_be_in_longer_varints_than_needed() {
    let bytes = hex("01 10 40 01 01");
    let limit = crate::MaxData { limit: 1 };
    assert_eq!(
        frames(&bytes),
        [Ok(Frame::Ping), Ok(Frame::MaxData(limit)), Ok(Frame::Ping)]
    );
}

#[test]
fn errors_name_frame_reason_and_offset() {
    let error = frames(&hex("01 12 d000000000000001"))[1].unwrap_err();
    assert_eq!(
        error.to_string(),
        "MAX_STREAMS: MAX_STREAMS is above 2^60 at byte 2"
    );
}
