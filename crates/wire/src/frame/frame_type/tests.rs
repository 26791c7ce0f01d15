use super::*;
use crate::frame::testing::assert_refused;

#[test]
fn overlong_frame_types_are_a_distinct_error() {
    let kind = DecodeErrorKind::OverlongFrameType;
    assert_refused("4001", kind, 0x01);
    assert_refused("8000000a 04 00", kind, 0x0a);
    assert_refused("c000000000000000", kind, 0x00);
    assert_refused("80003fff", kind, 0x3fff);
}

#[test]
fn unknown_types_are_refused_by_number() {
    let unknown = [
        ("20", 0x20),
        ("21", 0x21),
        ("40ff 00", 0xff),
        ("c0000001 00000000", 1 << 32),
    ];
    for (digits, number) in unknown {
        assert_refused(digits, DecodeErrorKind::UnknownFrame(number), number);
    }
}

#[test]
fn types_cut_short_are_truncated() {
    for digits in ["40", "80 00 00", "c0 00 00 00 00 00 00"] {
        assert_refused(digits, DecodeErrorKind::Truncated, 0);
    }
}

#[test]
fn all_types_of_rfc_9000_take_one_byte() {
    for value in 0..=FrameType::HANDSHAKE_DONE.0 {
        let mut buffer = [0; 8];
        let mut writer = Writer::new(&mut buffer);
        FrameType(value).encode(&mut writer);
        assert_eq!(writer.written(), [u8::try_from(value).unwrap()]);
    }
}

#[test]
fn only_eight_types_are_streams() {
    let streams: Vec<_> = (0..0x100)
        .filter(|&value| FrameType(value).is_stream())
        .collect();
    assert_eq!(streams, (0x08..=0x0f).collect::<Vec<_>>());
}

#[test]
fn displays_as_the_name_in_the_rfc() {
    assert_eq!(FrameType(0x03).to_string(), "ACK");
    assert_eq!(FrameType(0x0b).to_string(), "STREAM");
    assert_eq!(FrameType(0x1d).to_string(), "CONNECTION_CLOSE");
    assert_eq!(FrameType(0x1e).to_string(), "HANDSHAKE_DONE");
    assert_eq!(FrameType(0x2f).to_string(), "frame type 0x2f");
    assert_eq!(FrameType(0x30).to_string(), "DATAGRAM");
    assert_eq!(FrameType(0x31).to_string(), "DATAGRAM");
    assert_eq!(FrameType(0x1f).to_string(), "IMMEDIATE_ACK");
    assert_eq!(FrameType(0xaf).to_string(), "ACK_FREQUENCY");
    for value in 0..=FrameType::HANDSHAKE_DONE.0 {
        assert!(FrameType(value).kind().is_some(), "{value:#x}");
    }
}
