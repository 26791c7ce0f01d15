use courser_base::RangeSet;
use courser_wire::Writer;
use courser_wire::frame::{Datagram, MaxData, Stream};

use super::*;

fn payload(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut bytes = vec![0; 2000];
    let mut writer = Writer::new(&mut bytes);
    write(&mut writer);
    let len = writer.position();
    bytes.truncate(len);
    bytes
}

#[test]
fn frames_are_recorded_in_order_without_their_data() {
    let bytes = payload(|writer| {
        let mut ranges = RangeSet::new();
        ranges.insert(4..8);
        ranges.insert_one(1);
        assert!(Ack::write(writer, &ranges, 100, None, 32));
        Frame::Ping.encode(writer);
        let data = b"abc";
        let id = StreamId::from_value(4);
        Stream {
            id,
            offset: 10,
            data,
            fin: true,
        }
        .encode(writer);
        MaxData { limit: 77 }.encode(writer);
        let (data, has_length): (&[u8], _) = (b"secret", true);
        Datagram { data, has_length }.encode(writer);
        writer.zeros(5);
    });
    let expected = vec![
        FrameRecord::Ack {
            delay: Duration::from_micros(800),
            ranges: vec![4..=7, 1..=1],
            ecn: None,
        },
        FrameRecord::Other { frame_type: 1 },
        FrameRecord::Stream {
            id: StreamId::from_value(4),
            offset: 10,
            len: 3,
            fin: true,
        },
        FrameRecord::MaxData { maximum: 77 },
        FrameRecord::Datagram { len: 6 },
        FrameRecord::Padding { len: 5 },
    ];
    assert_eq!(frames_of(&bytes, 3), expected);
}

#[test]
fn undecodable_frame_ends_the_list_with_its_type() {
    let bytes = payload(|writer| {
        Frame::Ping.encode(writer);
        writer.u8(0x3f);
        Frame::Ping.encode(writer);
    });
    let expected = [1, 0x3f].map(|frame_type| FrameRecord::Other { frame_type });
    assert_eq!(frames_of(&bytes, 3), expected);
}

#[test]
fn frame_list_of_a_hostile_packet_is_bounded() {
    assert_eq!(frames_of(&[1; 60_000], 3).len(), MAX_FRAMES);
    let bytes = payload(|writer| {
        let mut ranges = RangeSet::new();
        (0..500).for_each(|at| {
            ranges.insert_one(at * 2);
        });
        assert!(Ack::write(writer, &ranges, u64::MAX >> 2, None, 500));
    });
    let frames = frames_of(&bytes, 255);
    let Some(FrameRecord::Ack { ranges, .. }) = frames.first() else {
        panic!("{frames:?}");
    };
    assert_eq!(ranges.len(), MAX_ACK_RANGES);
}

#[test]
fn frames_of_the_ack_frequency_extension_are_recorded() {
    let bytes = payload(|writer| {
        Frame::ImmediateAck.encode(writer);
        courser_wire::frame::AckFrequency {
            sequence: 3,
            ack_eliciting_threshold: 9,
            requested_max_ack_delay: 40_000,
            reordering_threshold: 1,
        }
        .encode(writer);
    });
    let expected = vec![
        FrameRecord::ImmediateAck,
        FrameRecord::AckFrequency {
            sequence: 3,
            ack_eliciting_threshold: 9,
            max_ack_delay: Duration::from_millis(40),
            reordering_threshold: 1,
        },
    ];
    assert_eq!(frames_of(&bytes, 3), expected);
}

mod multipath;
