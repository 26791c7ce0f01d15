use super::*;

use Direction::{Bidirectional, Unidirectional};

fn all() -> Vec<(u64, SessionCapsule)> {
    vec![
        (0x2843, SessionCapsule::Close(CloseReason::new(7, "bye"))),
        (0x78ae, SessionCapsule::Drain),
        (0x190b_4d3d, SessionCapsule::MaxData((1 << 62) - 1)),
        (
            0x190b_4d3f,
            SessionCapsule::MaxStreams(Bidirectional, 1 << 60),
        ),
        (0x190b_4d40, SessionCapsule::MaxStreams(Unidirectional, 3)),
        (0x190b_4d41, SessionCapsule::DataBlocked(64)),
        (
            0x190b_4d43,
            SessionCapsule::StreamsBlocked(Bidirectional, 0),
        ),
        (
            0x190b_4d44,
            SessionCapsule::StreamsBlocked(Unidirectional, 1 << 60),
        ),
    ]
}

fn decode(kind: u64, value: &[u8]) -> Result<SessionCapsule, Error> {
    let value = Bytes::copy_from_slice(value);
    SessionCapsule::decode(&Capsule { kind, value })
}

fn code_of(kind: u64, value: &[u8]) -> Option<Code> {
    decode(kind, value).err().map(|error| error.code)
}

/// The type and the value of an encoded capsule.
fn split(encoded: &[u8]) -> (u64, &[u8]) {
    let mut reader = Reader::new(encoded);
    let (kind, len) = (
        reader.varint().expect("a type"),
        reader.varint().expect("a length"),
    );
    assert_eq!(reader.remaining() as u64, len);
    (kind, reader.unread())
}

/// draft-ietf-webtrans-http3-16 §4.7, §5.6, §6.
#[test]
fn capsules_are_decoded_as_they_were_encoded() {
    for (kind, capsule) in all() {
        let encoded = capsule.encode();
        let (encoded_kind, value) = split(&encoded);
        assert_eq!(encoded_kind, kind);
        assert!(value.len() <= SessionCapsule::longest(kind, true).expect("known"));
        assert_eq!(decode(kind, value), Ok(capsule));
    }
    let close = SessionCapsule::Close(CloseReason::new(7, "bye")).encode();
    assert_eq!(&close[..], b"\x68\x43\x07\0\0\0\x07bye");
}

/// draft-ietf-webtrans-http3-16 §5.6; WT-h3-092, A256.
#[test]
fn limits_that_are_not_one_integer_are_malformed() {
    for (kind, capsule) in all().into_iter().skip(2) {
        let encoded = capsule.encode();
        let (_, value) = split(&encoded);
        for len in 0..value.len() {
            assert_eq!(
                code_of(kind, &value[..len]),
                Some(Code::MESSAGE_ERROR),
                "{kind:x}"
            );
        }
        let longer = [value, &[0]].concat();
        assert_eq!(
            code_of(kind, &longer),
            Some(Code::MESSAGE_ERROR),
            "{kind:x}"
        );
    }
}

/// draft-ietf-webtrans-http3-16 §4.7; WT-h3-075.
#[test]
fn drain_with_content_is_malformed() {
    assert_eq!(code_of(0x78ae, b"x"), Some(Code::MESSAGE_ERROR));
}

/// draft-ietf-webtrans-http3-16 §6; WT-h3-098.
#[test]
fn close_of_less_than_four_bytes_is_malformed() {
    for len in 0..4 {
        assert_eq!(
            code_of(0x2843, &[0; 4][..len]),
            Some(Code::MESSAGE_ERROR),
            "{len}"
        );
    }
    let closed = decode(0x2843, &[0xff; 4]);
    let expected = SessionCapsule::Close(CloseReason::new(u32::MAX, ""));
    assert_eq!(closed, Ok(expected));
}

/// draft-ietf-webtrans-http3-16 §6; WT-h3-021, A254.
#[test]
fn message_has_at_most_1024_bytes_of_utf8() {
    let value = |message: &[u8]| [&[0; 4], message].concat();
    assert_eq!(code_of(0x2843, &value(&[b'a'; 1024])), None);
    assert_eq!(
        code_of(0x2843, &value(&[b'a'; 1025])),
        Some(Code::MESSAGE_ERROR)
    );
    for message in [&b"\xff"[..], b"\xc3", b"a\xed\xa0\x80"] {
        assert_eq!(code_of(0x2843, &value(message)), Some(Code::MESSAGE_ERROR));
    }
}

/// draft-ietf-webtrans-http3-16 §6; WT-h3-099.
#[test]
fn long_messages_are_cut_between_characters() {
    let text = "ä".repeat(600);
    let reason = CloseReason::new(1, &text);
    assert_eq!(reason.message, "ä".repeat(512));
    let reason = CloseReason::new(1, &format!("a{text}"));
    assert_eq!(reason.message.len(), 1023);
    assert!(SessionCapsule::Close(reason).encode().len() < 1040);
}

/// draft-ietf-webtrans-http3-16 §5.6; WT-h3-019, A256.
#[test]
fn more_than_2_to_60_streams_are_refused() {
    let mut value = [0; 8];
    Writer::new(&mut value).varint((1 << 60) + 1);
    for kind in [0x190b_4d3f, 0x190b_4d40, 0x190b_4d43, 0x190b_4d44] {
        assert_eq!(
            code_of(kind, &value),
            Some(code::FLOW_CONTROL_ERROR),
            "{kind:x}"
        );
    }
    assert_eq!(code_of(0x190b_4d3d, &value), None);
}

/// draft-ietf-webtrans-http3-16 §5.4; WT-h3-018, WT-h2-003.
#[test]
fn capsules_of_single_streams_are_prohibited_and_those_of_http2_skipped() {
    for flow_control in [true, false] {
        for kind in [0x190b_4d3e, 0x190b_4d42] {
            assert_eq!(SessionCapsule::longest(kind, flow_control), Some(16));
            assert_eq!(code_of(kind, &[0, 1]), Some(code::FLOW_CONTROL_ERROR));
        }
        for kind in 0x190b_4d38..=0x190b_4d3c {
            assert_eq!(SessionCapsule::longest(kind, flow_control), None);
        }
        assert_eq!(
            SessionCapsule::longest(Capsule::DATAGRAM, flow_control),
            None
        );
    }
}
