use proptest::prelude::*;

use super::*;
use crate::error::DecodeErrorKind;
use crate::frame::Frame;
use crate::frame::testing::{assert_refused, assert_round_trip, assert_vector, decode_first};
use crate::testing::{hex, varints};

fn id(value: u64) -> StreamId {
    StreamId::from_value(value)
}

#[test]
fn offset_zero_without_fin_sets_no_bits() {
    let frame = Stream {
        id: id(4),
        offset: 0,
        data: &[0xaa, 0xbb],
        fin: false,
    };
    assert_vector(&Frame::Stream(frame), "0a 04 02 aabb");
}

#[test]
fn offset_and_end_set_their_bits() {
    let frame = Stream {
        id: id(0x40),
        offset: 0x4000,
        data: &[0xaa],
        fin: true,
    };
    assert_vector(&Frame::Stream(frame), "0f 4040 80004000 01 aa");
    let frame = Stream {
        id: id(0),
        offset: 1,
        data: &[],
        fin: false,
    };
    assert_vector(&Frame::Stream(frame), "0e 00 01 00");
    let frame = Stream {
        id: id(0),
        offset: 0,
        data: &[],
        fin: true,
    };
    assert_vector(&Frame::Stream(frame), "0b 00 00");
}

#[test]
fn without_a_length_the_data_is_the_rest_of_the_packet() {
    let table = [
        ("08 04 aabb", 0, false),
        ("09 04 aabb", 0, true),
        ("0c 04 07 aabb", 7, false),
        ("0d 04 07 aabb", 7, true),
    ];
    for (digits, offset, fin) in table {
        let bytes = hex(digits);
        let stream = Stream {
            id: id(4),
            offset,
            data: &[0xaa, 0xbb],
            fin,
        };
        assert_eq!(decode_first(&bytes), Ok(Frame::Stream(stream)), "{digits}");
    }
}

#[test]
fn without_a_length_the_data_may_be_empty() {
    let bytes = hex("09 04");
    let stream = Stream {
        id: id(4),
        offset: 0,
        data: &[],
        fin: true,
    };
    assert_eq!(decode_first(&bytes), Ok(Frame::Stream(stream)));
}

#[test]
fn offset_zero_may_be_spelled_out() {
    let bytes = hex("0e 04 00 01 aa");
    let stream = Stream {
        id: id(4),
        offset: 0,
        data: &[0xaa],
        fin: false,
    };
    assert_eq!(decode_first(&bytes), Ok(Frame::Stream(stream)));
}

#[test]
fn length_beyond_the_packet_is_refused() {
    assert_refused("0a 04 03 aabb", DecodeErrorKind::Truncated, 0x0a);
    assert_refused(
        "0f 04 07 ffffffffffffffff aabb",
        DecodeErrorKind::Truncated,
        0x0f,
    );
}

#[test]
fn data_that_ends_at_the_largest_offset_is_accepted() {
    let frame = Stream {
        id: id(0),
        offset: MAX_VARINT - 2,
        data: &[1, 2],
        fin: true,
    };
    assert_round_trip(&Frame::Stream(frame));
}

#[test]
fn data_beyond_the_largest_offset_is_refused() {
    let kind = DecodeErrorKind::Invalid("stream data ends above 2^62 - 1");
    assert_refused("0e 00 ffffffffffffffff 01 aa", kind, 0x0e);
    assert_refused("0c 00 fffffffffffffffe aabb", kind, 0x0c);
}

#[test]
fn id_and_offset_cut_short_are_refused_without_a_length_too() {
    for digits in ["08", "08 40", "0c 04", "0c 04 40", "0d c0000000"] {
        let frame_type = hex(digits)[0].into();
        assert_refused(digits, DecodeErrorKind::Truncated, frame_type);
    }
}

proptest! {
    #[test]
    fn round_trips(
        value in varints(),
        offset in varints(),
        data in prop::collection::vec(any::<u8>(), 0..100),
        fin: bool,
    ) {
        let offset = offset.min(MAX_VARINT - data.len() as u64);
        assert_round_trip(&Frame::Stream(Stream { id: id(value), offset, data: &data, fin }));
    }

    #[test]
    fn header_without_a_length_decodes_with_all_data_that_follows(
        value in varints(),
        offset in varints(),
        data in prop::collection::vec(any::<u8>(), 0..100),
        fin: bool,
    ) {
        let offset = offset.min(MAX_VARINT - data.len() as u64);
        let mut buffer = [0; 200];
        let mut writer = Writer::new(&mut buffer);
        Stream::encode_header(&mut writer, id(value), offset, None, fin);
        prop_assert_eq!(writer.position(), Stream::header_len(id(value), offset, None));
        writer.bytes(&data);
        let stream = Stream { id: id(value), offset, data: &data, fin };
        prop_assert_eq!(decode_first(writer.written()), Ok(Frame::Stream(stream)));
    }
}
