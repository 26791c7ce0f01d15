use proptest::prelude::*;

use super::*;
use crate::error::DecodeErrorKind;
use crate::frame::Frame;
use crate::frame::testing::{assert_refused, assert_round_trip, assert_vector, decode_first};
use crate::testing::{hex, varints};

#[test]
fn rfc_9001_a2_client_hello_decodes() {
    let mut bytes = hex("060040f1010000ed0303ebf8fa56f129");
    bytes.resize(4 + 0xf1, 0);
    let Ok(Frame::Crypto(crypto)) = decode_first(&bytes) else {
        panic!("not CRYPTO")
    };
    assert_eq!((crypto.offset, crypto.data), (0, &bytes[4..]));
    assert_round_trip(&Frame::Crypto(crypto));
}

#[test]
fn offset_is_always_written() {
    let frame = Crypto {
        offset: 0,
        data: &[0xaa],
    };
    assert_vector(&Frame::Crypto(frame), "06 00 01 aa");
    let frame = Crypto {
        offset: 0x4000,
        data: &[],
    };
    assert_vector(&Frame::Crypto(frame), "06 80004000 00");
}

#[test]
fn data_that_ends_at_the_largest_offset_is_accepted() {
    let frame = Crypto {
        offset: MAX_VARINT - 2,
        data: &[1, 2],
    };
    assert_round_trip(&Frame::Crypto(frame));
}

#[test]
fn data_beyond_the_largest_offset_is_refused() {
    let kind = DecodeErrorKind::Invalid("CRYPTO data ends above 2^62 - 1");
    assert_refused("06 ffffffffffffffff 01 aa", kind, 0x06);
    assert_refused("06 fffffffffffffffe 02 aabb", kind, 0x06);
}

#[test]
fn length_beyond_the_packet_is_refused() {
    assert_refused("06 00 03 aabb", DecodeErrorKind::Truncated, 0x06);
    assert_refused(
        "06 00 ffffffffffffffff aabb",
        DecodeErrorKind::Truncated,
        0x06,
    );
}

proptest! {
    #[test]
    fn round_trips(
        offset in varints(), data in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let offset = offset.min(MAX_VARINT - data.len() as u64);
        assert_round_trip(&Frame::Crypto(Crypto { offset, data: &data }));
        let mut buffer = [0; 20];
        let mut writer = Writer::new(&mut buffer);
        Crypto::encode_header(&mut writer, offset, data.len());
        prop_assert_eq!(writer.position(), Crypto::header_len(offset, data.len()));
    }
}
