use proptest::prelude::*;

use super::*;
use crate::error::DecodeErrorKind;
use crate::frame::Frame;
use crate::frame::testing::{assert_refused, assert_round_trip, decode_first, encode};
use crate::testing::{hex, hostile_bytes, varints};

const COUNTS: EcnCounts = EcnCounts {
    ect0: 1,
    ect1: 0x40,
    ce: 0x4000,
};

fn decode(bytes: &[u8]) -> Ack<'_> {
    match decode_first(bytes) {
        Ok(Frame::Ack(ack)) => ack,
        other => panic!("{other:?} is no ACK"),
    }
}

fn set(ranges: &[Range<u64>]) -> RangeSet {
    let mut set = RangeSet::new();
    ranges.iter().for_each(|range| set.insert(range.clone()));
    set
}

fn write(
    room: usize,
    ranges: &RangeSet,
    ecn: Option<&EcnCounts>,
    max_ranges: usize,
) -> Option<Vec<u8>> {
    let mut buffer = vec![0xee; room];
    let mut writer = Writer::new(&mut buffer);
    let is_written = Ack::write(&mut writer, ranges, 5, ecn, max_ranges);
    assert!(is_written || writer.position() == 0);
    is_written.then(|| writer.written().to_vec())
}

#[test]
fn rfc_9001_a3_server_initial_acknowledges_packet_0() {
    let bytes = hex("0200000000");
    let ack = decode(&bytes);
    assert_eq!(
        (ack.largest, ack.delay, ack.ecn, ack.range_count()),
        (0, 0, None, 1)
    );
    assert_eq!(ack.ranges().collect::<Vec<_>>(), [0..=0]);
    assert_round_trip(&Frame::Ack(ack));
}

#[test]
fn ranges_come_newest_first() {
    // 100..=98, then 95..=90 with 96 and 97 missing, then 0 with 1 to 89 missing.
    let bytes = hex("02 4064 07 02 02 01 05 4058 00");
    let ack = decode(&bytes);
    assert_eq!(ack.ranges().collect::<Vec<_>>(), [98..=100, 90..=95, 0..=0]);
    assert_eq!((ack.range_count(), ack.delay), (3, 7));
    assert_round_trip(&Frame::Ack(ack));
}

#[test]
fn both_types_are_read_and_only_0x03_has_counts() {
    let plain = hex("02 05 00 00 01");
    assert_eq!(decode(&plain).ecn, None);
    let bytes = hex("03 05 00 00 01 01 4040 80004000");
    let ack = decode(&bytes);
    assert_eq!(ack.ecn, Some(COUNTS));
    assert_eq!(ack.frame_type(), FrameType::ACK_ECN);
    assert_round_trip(&Frame::Ack(ack));
}

#[test]
fn first_range_below_zero_is_refused() {
    let kind = DecodeErrorKind::Invalid("acknowledged range is below packet number 0");
    assert_refused("02 05 00 00 06", kind, 0x02);
    assert_refused("02 05 00 00 ffffffffffffffff", kind, 0x02);
}

#[test]
fn gap_below_zero_is_refused() {
    let kind = DecodeErrorKind::Invalid("acknowledged range is below packet number 0");
    assert_refused("02 05 00 01 03 01 00", kind, 0x02);
    assert_refused("03 05 00 01 03 ffffffffffffffff 00 00 00 00", kind, 0x03);
}

#[test]
fn further_range_below_zero_is_refused() {
    let kind = DecodeErrorKind::Invalid("acknowledged range is below packet number 0");
    assert_refused("02 05 00 01 03 00 01", kind, 0x02);
    assert_refused("02 05 00 01 03 00 ffffffffffffffff", kind, 0x02);
}

#[test]
fn the_smallest_gap_and_the_last_number_are_accepted() {
    let bytes = hex("02 05 00 01 03 00 00");
    assert_eq!(decode(&bytes).ranges().collect::<Vec<_>>(), [2..=5, 0..=0]);
}

#[test]
fn more_ranges_than_bytes_are_refused_before_any_is_read() {
    assert_refused(
        "02 ffffffffffffffff 00 ffffffffffffffff 00",
        DecodeErrorKind::Truncated,
        2,
    );
    let error = decode_first(&hex("02 4064 00 03 00 00 00 00 00 00")).unwrap_err();
    assert_eq!(error.error, DecodeError::truncated(4));
}

#[test]
fn missing_counts_are_refused() {
    assert_refused("03 05 00 00 01 01 01", DecodeErrorKind::Truncated, 0x03);
}

#[test]
fn encoding_matches_the_rfc() {
    let ranges = set(&[0..1, 90..96, 98..101]);
    assert_eq!(
        write(64, &ranges, None, 32).unwrap(),
        hex("02 4064 05 02 02 01 05 4058 00")
    );
    let mut ranges = RangeSet::new();
    ranges.insert(4..6);
    let expected = hex("03 05 05 00 01 01 4040 80004000");
    assert_eq!(write(64, &ranges, Some(&COUNTS), 32).unwrap(), expected);
}

#[test]
fn the_newest_ranges_are_written_when_not_all_fit() {
    let ranges = set(&[0..1, 2..3, 4..5, 6..7]);
    for (room, count) in [
        (4, 0),
        (5, 1),
        (6, 1),
        (7, 2),
        (9, 3),
        (10, 3),
        (11, 4),
        (64, 4),
    ] {
        let bytes = write(room, &ranges, None, 32);
        let found: Vec<_> = bytes
            .iter()
            .flat_map(|bytes| decode(bytes).ranges())
            .map(|range| *range.end())
            .collect();
        assert_eq!(found, [6, 4, 2, 0][..count], "room {room}");
    }
}

#[test]
fn no_more_ranges_than_asked_for_are_written() {
    let ranges = set(&[0..1, 2..3, 4..5]);
    assert_eq!(write(64, &ranges, None, 0), None);
    for max in 1..=3 {
        let bytes = write(64, &ranges, None, max).unwrap();
        assert_eq!(decode(&bytes).range_count(), max as u64);
    }
}

#[test]
fn empty_set_writes_nothing() {
    assert_eq!(write(64, &RangeSet::new(), None, 32), None);
}

#[test]
fn range_count_of_two_bytes_is_accounted_for() {
    let mut ranges = RangeSet::new();
    (0..100).for_each(|number| ranges.insert(2 * number..2 * number + 1));
    // Bytes: 1 for the type, 2 for the largest number, 1 for the delay, 1 for the first range, and
    // 2 for each of up to 63 further ranges.
    assert_eq!(
        decode(&write(132, &ranges, None, 200).unwrap()).range_count(),
        64
    );
    assert_eq!(
        decode(&write(133, &ranges, None, 200).unwrap()).range_count(),
        64
    );
    assert_eq!(
        decode(&write(134, &ranges, None, 200).unwrap()).range_count(),
        64
    );
    assert_eq!(
        decode(&write(135, &ranges, None, 200).unwrap()).range_count(),
        65
    );
}

proptest! {
    #[test]
    fn written_ranges_are_read_back(
        spans in prop::collection::vec((varints(), 1..1000_u64), 1..40),
        delay in varints(),
        ecn in prop::option::of((varints(), varints(), varints())),
    ) {
        let ranges =
            set(&spans.iter().map(|&(start, len)| start..start + len).collect::<Vec<_>>());
        prop_assume!(ranges.max() <= Some(crate::MAX_PACKET_NUMBER));
        let ecn = ecn.map(|(ect0, ect1, ce)| EcnCounts { ect0, ect1, ce });
        let mut buffer = vec![0; 2000];
        let mut writer = Writer::new(&mut buffer);
        prop_assert!(Ack::write(&mut writer, &ranges, delay, ecn.as_ref(), usize::MAX));
        let ack = decode(writer.written());
        prop_assert_eq!((ack.delay, ack.ecn, Some(ack.largest)), (delay, ecn, ranges.max()));
        let expected: Vec<_> =
            ranges.iter().rev().map(|range| range.start..=range.end - 1).collect();
        prop_assert_eq!(ack.ranges().collect::<Vec<_>>(), expected);
        prop_assert_eq!(encode(&Frame::Ack(ack)), writer.written());
        assert_round_trip(&Frame::Ack(ack));
    }

    #[test]
    fn as_many_ranges_as_fit_are_written(
        spans in prop::collection::vec((0..3000_u64, 1..100_u64), 1..40), room in 0..150_usize,
    ) {
        let ranges =
            set(&spans.iter().map(|&(start, len)| start..start + len).collect::<Vec<_>>());
        let full = write(500, &ranges, None, usize::MAX).unwrap();
        match write(room, &ranges, None, usize::MAX) {
            None => prop_assert!(room < full.len()),
            Some(bytes) => {
                let count = usize::try_from(decode(&bytes).range_count()).unwrap();
                let is_all = count == ranges.len();
                prop_assert_eq!(bytes.len() == full.len(), is_all);
                let one_more = write(500, &ranges, None, count + 1).unwrap();
                prop_assert!(is_all || one_more.len() > room);
            }
        }
    }

    #[test]
    fn ranges_of_hostile_frames_descend_and_are_as_many_as_announced(bytes in hostile_bytes(64)) {
        for frame_type in [FrameType::ACK, FrameType::ACK_ECN] {
            if let Ok(ack) = Ack::decode(&mut Reader::new(&bytes), frame_type == FrameType::ACK_ECN) {
                let ranges: Vec<_> = ack.ranges().collect();
                prop_assert_eq!(ranges.len() as u64, ack.range_count());
                prop_assert_eq!(*ranges[0].end(), ack.largest);
                prop_assert!(ranges.iter().all(|range| range.start() <= range.end()));
                prop_assert!(ranges.windows(2).all(|pair| *pair[1].end() + 1 < *pair[0].start()));
            }
        }
    }
}
