//! Helpers for the tests of frames.

use super::{Frame, FrameError, Frames};
use crate::error::DecodeErrorKind;
use crate::reader::Reader;
use crate::testing::hex;
use crate::varint::varint_len;
use crate::writer::Writer;

/// Encodes the frame and checks that `encoded_len` is correct.
pub(super) fn encode(frame: &Frame<'_>) -> Vec<u8> {
    let mut buffer = vec![0xee; frame.encoded_len()];
    let mut writer = Writer::new(&mut buffer);
    frame.encode(&mut writer);
    assert_eq!(writer.remaining(), 0, "encoded_len of {frame:?}");
    buffer
}

/// Decodes the first frame of a payload.
pub(super) fn decode_first(bytes: &[u8]) -> Result<Frame<'_>, FrameError> {
    Frames::new(bytes).next().expect("the payload has bytes")
}

/// Checks that the encoded frame decodes to itself, alone and with a PING behind it, and that no
/// truncation of it decodes.
pub(super) fn assert_round_trip(frame: &Frame<'_>) {
    let mut bytes = encode(frame);
    let len = bytes.len();
    bytes.push(0x01);
    assert_eq!(frames(&bytes[..len]), [Ok(*frame)]);
    assert_eq!(frames(&bytes), [Ok(*frame), Ok(Frame::Ping)]);
    let frame_type = frame.frame_type().value();
    let type_len = varint_len(frame_type);
    assert_eq!(Reader::new(&bytes).varint(), Ok(frame_type));
    for end in 1..len {
        let error = decode_first(&bytes[..end]).expect_err("a truncated frame is refused");
        assert_eq!(
            error.error.kind,
            DecodeErrorKind::Truncated,
            "{frame:?} cut at {end}"
        );
        let known = if end < type_len { 0 } else { frame_type };
        assert_eq!(error.frame_type, known, "{frame:?} cut at {end}");
        assert!(error.error.offset <= end, "{frame:?} cut at {end}");
    }
}

/// Checks that the frame encodes to these bytes and round-trips.
pub(super) fn assert_vector(frame: &Frame<'_>, digits: &str) {
    assert_eq!(encode(frame), hex(digits));
    assert_round_trip(frame);
}

/// Checks that decoding fails with this error and that the iteration ends there.
pub(super) fn assert_refused(digits: &str, kind: DecodeErrorKind, frame_type: u64) {
    let bytes = hex(digits);
    let found = frames(&bytes);
    assert_eq!(found.len(), 1, "{digits}");
    let error = found[0].expect_err("must be refused");
    assert_eq!(
        (error.error.kind, error.frame_type),
        (kind, frame_type),
        "{digits}"
    );
}

/// Decodes all items of a payload.
pub(super) fn frames(bytes: &[u8]) -> Vec<Result<Frame<'_>, FrameError>> {
    Frames::new(bytes).collect()
}
