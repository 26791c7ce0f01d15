use super::*;
use crate::error::DecodeErrorKind;
use crate::packet;
use crate::testing::hex;
use crate::version::{VERSION_1, VERSION_2};

/// The Retry packet of RFC 9001 §A.4.
const RETRY: &str = "ff000000010008f067a5502a4262b5746f6b656e04a265ba2eff4d829058fb3f0f2496ba";

#[test]
fn rfc_9001_a4_retry_is_read() {
    let bytes = hex(RETRY);
    let parts = retry_parts(&bytes).unwrap();
    assert_eq!(parts.destination, ConnectionId::EMPTY);
    assert_eq!(&*parts.source, hex("f067a5502a4262b5"));
    assert_eq!(parts.token, b"token");
    assert_eq!(parts.tag.to_vec(), hex("04a265ba2eff4d829058fb3f0f2496ba"));
    assert_eq!(parts.without_tag, 0..bytes.len() - 16);
    let packet = packet::decode(&bytes, 0, 0).unwrap();
    assert_eq!((packet.kind, packet.token), (PacketKind::Retry, 15..20));
    assert_eq!((packet.packet_number_offset, packet.end), (20, 36));
}

#[test]
fn rfc_9001_a4_retry_is_written() {
    let source = ConnectionId::new(&hex("f067a5502a4262b5")).unwrap();
    let mut buffer = [0; 64];
    let mut writer = Writer::new(&mut buffer);
    encode_retry(
        &mut writer,
        VERSION_1,
        &ConnectionId::EMPTY,
        &source,
        b"token",
    );
    let bytes = hex(RETRY);
    assert_eq!(writer.written(), &bytes[..bytes.len() - TAG_LEN]);
    let len = encoded_retry_len(&ConnectionId::EMPTY, &source, b"token");
    assert_eq!(writer.position(), len);
}

#[test]
fn rfc_9369_a4_retry_is_written_and_read() {
    let bytes = hex("cf6b3343cf0008f067a5502a4262b5746f6b656ec8646ce8bfe33952d955543665dcc7b6");
    let source = ConnectionId::new(&hex("f067a5502a4262b5")).unwrap();
    let mut buffer = [0; 64];
    let mut writer = Writer::new(&mut buffer);
    encode_retry(
        &mut writer,
        VERSION_2,
        &ConnectionId::EMPTY,
        &source,
        b"token",
    );
    assert_eq!(writer.written(), &bytes[..bytes.len() - TAG_LEN]);
    let parts = retry_parts(&bytes).unwrap();
    assert_eq!((&*parts.source, parts.token), (&*source, &b"token"[..]));
    assert_eq!(parts.tag.to_vec(), hex("c8646ce8bfe33952d955543665dcc7b6"));
}

#[test]
fn unused_bits_carry_no_meaning() {
    let mut bytes = hex(RETRY);
    let expected = retry_parts(&bytes).unwrap().token.to_vec();
    for unused in 0..0x10 {
        bytes[0] = 0xf0 | unused;
        assert_eq!(retry_parts(&bytes).unwrap().token, expected, "{unused:#x}");
    }
}

#[test]
fn empty_token_is_refused() {
    let mut bytes = hex("ff000000010008f067a5502a4262b5");
    bytes.extend([0xaa; TAG_LEN]);
    let kind = DecodeErrorKind::Invalid("Retry has no token");
    let error = PacketError::Malformed(DecodeError { kind, offset: 15 });
    assert_eq!(retry_parts(&bytes), Err(error.clone()));
    assert_eq!(packet::decode(&bytes, 0, 0), Err(error));
}

#[test]
#[should_panic(expected = "the token of a Retry is empty")]
fn empty_token_is_never_written() {
    let mut buffer = [0; 64];
    encode_retry(
        &mut Writer::new(&mut buffer),
        VERSION_1,
        &ConnectionId::EMPTY,
        &ConnectionId::EMPTY,
        b"",
    );
}

#[test]
fn a_retry_too_short_for_its_tag_is_refused() {
    let bytes = hex(RETRY);
    for end in 0..15 + TAG_LEN {
        assert!(retry_parts(&bytes[..end]).is_err(), "cut at {end}");
    }
}

#[test]
fn other_packets_are_not_a_retry() {
    let mut bytes = hex("c0 00000001 00 00 00 4014");
    bytes.extend([0; 20]);
    assert!(packet::decode(&bytes, 0, 0).is_ok());
    assert!(matches!(
        retry_parts(&bytes),
        Err(PacketError::Malformed(_))
    ));
}
