use super::*;
use crate::{Decoder, DecoderLimits, Encoder, EncoderLimits, FieldLine, Progress};
use courser_telemetry::Record;

fn pair(capacity: u32) -> (Encoder, Decoder) {
    let mut encoder = Encoder::new(
        EncoderLimits {
            max_table_capacity: capacity,
            max_blocked_streams: 8,
        },
        1,
    );
    encoder.set_peer_limits(u64::from(capacity), 8);
    let mut decoder = Decoder::new(DecoderLimits {
        max_table_capacity: capacity,
        max_blocked_streams: 8,
    });
    encoder.records().set_enabled(true);
    decoder.records().set_enabled(true);
    (encoder, decoder)
}

fn taken(pending: &mut Pending) -> Vec<QpackRecord> {
    let records = pending.take().into_iter();
    let qpack = records.map(|record| match record {
        Record::Qpack(record) => record,
        other => panic!("{other:?}"),
    });
    qpack.collect()
}

fn updated(of_peer: bool, state: QpackState) -> QpackRecord {
    QpackRecord::StateUpdated { of_peer, state }
}

/// `x-page: start`, in Huffman codes.
const LITERAL: QpackInstruction = QpackInstruction::InsertWithLiteralName {
    is_huffman_name: true,
    name_len: 5,
    is_huffman_value: true,
    value_len: 4,
};

/// Both ends record the same instructions, entries and states, and the decoder records the blocked stream.
#[test]
fn both_ends_record_an_insertion_that_blocks_a_stream() {
    let (mut encoder, mut decoder) = pair(4096);
    let lines = || [FieldLine::new(b"x-page", b"start")];
    let mut section = Vec::new();
    encoder.encode(4, lines, &mut section);
    let instructions = std::mem::take(encoder.instructions());
    let set = QpackInstruction::SetCapacity { capacity: 4096 };
    let insert = LITERAL;
    let state = QpackState {
        capacity: 4096,
        size: 32 + 6 + 5,
        insert_count: 1,
        known_received_count: 0,
    };
    let inserted = |of_peer| QpackRecord::EntryInserted {
        of_peer,
        index: 0,
        field: Field::new(b"x-page", b"start", false),
    };
    assert_eq!(
        taken(encoder.records()),
        [
            QpackRecord::InstructionCreated(set),
            QpackRecord::InstructionCreated(insert),
            inserted(false),
            updated(false, state),
        ]
    );

    // The section arrives before the insert. A second attempt is the same wait.
    let decode = |decoder: &mut Decoder| {
        let progress = decoder.decode(4, &section, |_| {});
        progress.expect("a valid section")
    };
    assert_eq!(decode(&mut decoder), Progress::Blocked);
    assert_eq!(decode(&mut decoder), Progress::Blocked);
    let processed = decoder.on_encoder_stream(&instructions);
    processed.expect("valid instructions");
    assert_eq!(decoder.poll_unblocked(), Some(4));
    assert_eq!(decode(&mut decoder), Progress::Decoded);
    let answers = std::mem::take(decoder.answers());
    let acknowledgment = QpackInstruction::SectionAcknowledgment { stream: 4 };
    let blocked = |is_blocked| QpackRecord::StreamStateUpdated {
        stream: 4,
        is_blocked,
    };
    let known = QpackState {
        known_received_count: 1,
        ..state
    };
    assert_eq!(
        taken(decoder.records()),
        [
            blocked(true),
            QpackRecord::InstructionParsed(set),
            QpackRecord::InstructionParsed(insert),
            inserted(true),
            updated(true, state),
            blocked(false),
            QpackRecord::InstructionCreated(acknowledgment),
            updated(true, known),
        ]
    );

    let processed = encoder.on_decoder_stream(&answers);
    processed.expect("a valid acknowledgment");
    assert_eq!(
        taken(encoder.records()),
        [
            QpackRecord::InstructionParsed(acknowledgment),
            updated(false, known),
        ]
    );
}

#[test]
fn evictions_cancellations_and_increments_are_recorded() {
    let (_, mut decoder) = pair(100);
    // Capacity 100, two insertions of 40 bytes each, a duplicate of the newer one.
    let instructions = b"\x3f\x45\x44abcd\x04efgh\x44ABCD\x04EFGH\x00";
    decoder
        .on_encoder_stream(instructions)
        .expect("valid instructions");
    decoder.cancel(8);
    decoder.answers();
    let records = taken(decoder.records());
    let evicted = QpackRecord::EntriesEvicted {
        of_peer: true,
        first: 0,
        count: 1,
    };
    assert!(records.contains(&evicted), "{records:?}");
    for instruction in [
        QpackInstruction::StreamCancellation { stream: 8 },
        QpackInstruction::InsertCountIncrement { increment: 3 },
    ] {
        let created = QpackRecord::InstructionCreated(instruction);
        assert!(records.contains(&created), "{records:?}");
    }
    let duplicate = QpackInstruction::Duplicate { index: 0 };
    assert!(records.contains(&QpackRecord::InstructionParsed(duplicate)));
}

/// A peer that fills its stream with the shortest instructions does not exceed the limit of records.
#[test]
fn records_of_a_flood_are_bounded() {
    let (_, mut decoder) = pair(4096);
    let mut flood = b"\x3f\xe1\x1f\x41a\x01b".to_vec();
    flood.resize(20_000, 0);
    decoder.on_encoder_stream(&flood).expect("duplicates");
    let records = decoder.records().take();
    assert_eq!(records.len(), 257);
    let Some(Record::RecordsMissed(missed)) = records.last() else {
        panic!("{:?}", records.last());
    };
    assert!(missed.count > 19_000, "{missed:?}");
}

#[test]
fn values_of_credentials_are_not_recorded() {
    let (mut encoder, _) = pair(4096);
    let lines = || [FieldLine::new(b"cookie", b"a-cookie-of-more-than-20-bytes")];
    encoder.encode(0, lines, &mut Vec::new());
    let records = taken(encoder.records());
    let values = records.iter().filter_map(|record| match record {
        QpackRecord::EntryInserted { field, .. } => Some(field.value.clone()),
        _ => None,
    });
    assert_eq!(values.collect::<Vec<_>>(), [None], "{records:?}");
}
