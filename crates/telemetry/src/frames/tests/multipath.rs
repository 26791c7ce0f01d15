use courser_wire::ConnectionId;

use super::*;

/// One frame of each type. RFC 10069 §4.
const EACH: &str = "3e 02 05 01 00 01 3f 02 05 01 00 01 07 00 01 7e75 02 3e 7e76 02 05 7e77 02 06
    7e78 02 03 01 01 aa 00000000000000000000000000000000 7e79 02 01 7e7a 07 7e7b 07 7e7c 02 04";

fn expected() -> Vec<(u64, MultipathRecord)> {
    let ecn = EcnCounts {
        ect0: 7,
        ect1: 0,
        ce: 1,
    };
    let ack = |ecn| MultipathRecord::Ack {
        path_id: 2,
        delay: Duration::from_micros(8),
        ranges: vec![4..=5],
        ecn,
    };
    let status = |sequence, is_available| MultipathRecord::Status {
        path_id: 2,
        sequence,
        is_available,
    };
    let abandon = MultipathRecord::Abandon {
        path_id: 2,
        error_code: 0x3e,
    };
    let new_id = MultipathRecord::NewConnectionId {
        path_id: 2,
        sequence: 3,
        retire_prior_to: 1,
        id: ConnectionId::new(&[0xaa]).expect("a short ID"),
    };
    let retire_id = MultipathRecord::RetireConnectionId {
        path_id: 2,
        sequence: 1,
    };
    let blocked = MultipathRecord::CidsBlocked {
        path_id: 2,
        next_sequence: 4,
    };
    vec![
        (0x3e, ack(None)),
        (0x3f, ack(Some(ecn))),
        (0x3e75, abandon),
        (0x3e76, status(5, false)),
        (0x3e77, status(6, true)),
        (0x3e78, new_id),
        (0x3e79, retire_id),
        (0x3e7a, MultipathRecord::MaxPathId { maximum: 7 }),
        (0x3e7b, MultipathRecord::PathsBlocked { maximum: 7 }),
        (0x3e7c, blocked),
    ]
}

#[test]
fn frames_are_recorded_with_their_type_and_fields() {
    let bytes: Vec<u8> = EACH
        .split_whitespace()
        .flat_map(|word| (0..word.len()).step_by(2).map(|at| &word[at..at + 2]))
        .map(|byte| u8::from_str_radix(byte, 16).expect("hexadecimal"))
        .collect();
    let found = frames_of(&bytes, 3);
    let expected = expected();
    assert_eq!(found.len(), expected.len());
    for (found, (frame_type, record)) in found.into_iter().zip(expected) {
        assert_eq!(found.frame_type(), FrameType(frame_type));
        assert_eq!(found, FrameRecord::Multipath(record));
    }
}
