use std::ops::Range;

use courser_base::{EcnCounts, RangeSet};
use proptest::prelude::*;

use super::*;
use crate::connection_id::ConnectionId;
use crate::error::DecodeErrorKind;
use crate::frame::testing::{assert_refused, assert_round_trip, assert_vector, decode_first};
use crate::frame::{Frame, NewConnectionId, RetireConnectionId};
use crate::testing::varints;
use crate::writer::Writer;

const TOKEN: &str = "000102030405060708090a0b0c0d0e0f";

fn issued() -> NewConnectionId {
    NewConnectionId {
        sequence: 3,
        retire_prior_to: 1,
        id: ConnectionId::new(&[0xab; 4]).unwrap(),
        reset_token: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    }
}

fn ranges(all: &[Range<u64>]) -> RangeSet {
    let mut ranges = RangeSet::default();
    for range in all {
        ranges.insert(range.clone());
    }
    ranges
}

#[test]
fn encodings_match_the_rfc() {
    let path_id = 2;
    let status = PathStatus {
        path_id,
        sequence: 5,
    };
    let abandon = PathAbandon {
        path_id,
        error_code: 0x3e76,
    };
    let retired = PathRetireConnectionId {
        path_id,
        retired: RetireConnectionId { sequence: 1 },
    };
    let blocked = PathCidsBlocked {
        path_id,
        next_sequence: 4,
    };
    let new = PathNewConnectionId {
        path_id,
        issued: issued(),
    };
    let new_digits = format!("7e78 02 03 01 04 abababab {TOKEN}");
    let vectors = [
        (Frame::PathAbandon(abandon), "7e75 02 7e76"),
        (Frame::PathStatusBackup(status), "7e76 02 05"),
        (Frame::PathStatusAvailable(status), "7e77 02 05"),
        (Frame::PathNewConnectionId(new), &new_digits),
        (Frame::PathRetireConnectionId(retired), "7e79 02 01"),
        (Frame::MaxPathId(MaxPathId { limit: 7 }), "7e7a 07"),
        (Frame::PathsBlocked(PathsBlocked { limit: 7 }), "7e7b 07"),
        (Frame::PathCidsBlocked(blocked), "7e7c 02 04"),
    ];
    for (frame, digits) in &vectors {
        assert_vector(frame, digits);
    }
}

#[test]
fn invalid_connection_ids_are_refused() {
    let length = DecodeErrorKind::Invalid("connection id is not 1 to 20 bytes long");
    assert_refused(&format!("7e78 02 03 01 00 {TOKEN}"), length, 0x3e78);
    let long = "ab".repeat(21);
    assert_refused(&format!("7e78 02 03 01 15 {long} {TOKEN}"), length, 0x3e78);
    let order = DecodeErrorKind::Invalid("retire prior to is above sequence");
    let later = format!("7e78 02 03 04 04 abababab {TOKEN}");
    assert_refused(&later, order, 0x3e78);
}

#[test]
fn path_ack_is_an_ack_behind_a_path_id() {
    let ranges = ranges(&[1..2, 4..8]);
    let ecn = EcnCounts {
        ect0: 5,
        ect1: 0,
        ce: 1,
    };
    for (ecn, digits) in [
        (None, "3e 4064 07 0a 01 03 01 00"),
        (Some(&ecn), "3f 4064 07 0a 01 03 01 00 05 00 01"),
    ] {
        let mut buffer = [0; 40];
        let mut writer = Writer::new(&mut buffer);
        assert!(PathAck::write(&mut writer, 100, &ranges, 10, ecn, 8));
        let bytes = writer.written();
        let Ok(frame @ Frame::PathAck(path_ack)) = decode_first(bytes) else {
            panic!("{bytes:x?} is a PATH_ACK frame");
        };
        assert_vector(&frame, digits);
        assert_eq!(path_ack.path_id, 100);
        assert_eq!(path_ack.ack.ecn.as_ref(), ecn);
        assert_eq!(path_ack.ack.ranges().collect::<Vec<_>>(), [4..=7, 1..=1]);
    }
}

#[test]
fn path_ack_leaves_room_for_its_path_id() {
    let ranges = ranges(&[1..2, 4..8, 10..12]);
    for size in 0..24 {
        let mut buffer = vec![0; size];
        let mut writer = Writer::new(&mut buffer);
        // The type, a path ID of eight bytes, and the fields of one range take 13 bytes.
        let path_id = 1 << 40;
        let is_written = PathAck::write(&mut writer, path_id, &ranges, 10, None, 8);
        assert_eq!(is_written, size >= 13, "{size}");
        assert_eq!(!writer.written().is_empty(), is_written);
    }
}

proptest! {
    #[test]
    fn frames_of_numbers_round_trip(path_id in varints(), number in varints()) {
        let status = PathStatus { path_id, sequence: number };
        let retired = RetireConnectionId { sequence: number };
        for frame in [
            Frame::PathAbandon(PathAbandon { path_id, error_code: number }),
            Frame::PathStatusBackup(status),
            Frame::PathStatusAvailable(status),
            Frame::PathRetireConnectionId(PathRetireConnectionId { path_id, retired }),
            Frame::MaxPathId(MaxPathId { limit: number }),
            Frame::PathsBlocked(PathsBlocked { limit: number }),
            Frame::PathCidsBlocked(PathCidsBlocked { path_id, next_sequence: number }),
            Frame::PathNewConnectionId(PathNewConnectionId { path_id, issued: issued() }),
        ] {
            assert_round_trip(&frame);
        }
    }
}
