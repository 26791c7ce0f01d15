use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;
use crate::encoder_stream::Instruction;
use crate::{Decoder, DecoderLimits, Progress};

mod repeats;

type Lines = Vec<(String, String)>;

fn encoder(capacity: u32, blocked: u32) -> Encoder {
    let mut encoder = Encoder::new(
        EncoderLimits {
            max_table_capacity: capacity,
            max_blocked_streams: blocked,
        },
        1,
    );
    encoder.set_peer_limits(u64::from(capacity), u64::from(blocked));
    encoder
}

fn decoder(capacity: u32, blocked: u32) -> Decoder {
    Decoder::new(DecoderLimits {
        max_table_capacity: capacity,
        max_blocked_streams: blocked,
    })
}

fn encode(encoder: &mut Encoder, stream: u64, lines: &[(&str, &str)]) -> Vec<u8> {
    let lines = || {
        let lines = lines.iter();
        lines.map(|(name, value)| FieldLine::new(name.as_bytes(), value.as_bytes()))
    };
    let mut section = Vec::new();
    encoder.encode(stream, lines, &mut section);
    section
}

fn decode(decoder: &mut Decoder, stream: u64, section: &[u8]) -> Option<Lines> {
    let mut lines = Lines::new();
    let text = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
    let progress = decoder
        .decode(stream, section, |line| {
            lines.push((text(line.name.as_bytes()), text(line.value.as_bytes())));
        })
        .expect("a section from our encoder");
    (progress == Progress::Decoded).then_some(lines)
}

fn owned(lines: &[(&str, &str)]) -> Lines {
    let owned = lines
        .iter()
        .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
    owned.collect()
}

fn is_decoder_stream_error(result: Result<(), Error>) -> bool {
    matches!(result, Err(error @ Error::DecoderStream(_)) if error.code() == 0x202)
}

const LINES: [(&str, &str); 3] = [
    (":method", "GET"),
    ("user-agent", "courser"),
    ("x-custom", "value"),
];

/// §3.2.3: without a dynamic table, the encoder sends no instructions.
#[test]
fn without_a_table_sends_no_instructions() {
    let mut encoder = encoder(0, 0);
    for stream in 0..3 {
        let section = encode(&mut encoder, stream, &LINES);
        assert_eq!(
            decode(&mut decoder(0, 0), stream, &section),
            Some(owned(&LINES))
        );
    }
    assert!(encoder.instructions().is_empty());
    // The peer allows a dynamic table, but the encoder's own limit is zero.
    encoder.set_peer_limits(4096, 100);
    encode(&mut encoder, 4, &LINES);
    assert!(encoder.instructions().is_empty());
    // The encoder may use a table, but the peer allows none.
    let limits = EncoderLimits {
        max_table_capacity: 4096,
        max_blocked_streams: 100,
    };
    let mut encoder = Encoder::new(limits, 1);
    encoder.set_peer_limits(0, 100);
    for stream in 0..3 {
        encode(&mut encoder, stream, &LINES);
    }
    assert!(encoder.instructions().is_empty());
}

/// §3.2.3: the capacity stays within both limits.
#[test]
fn uses_the_smaller_of_both_capacities() {
    for (ours, theirs) in [(100, 4096), (4096, 100_u32)] {
        let limits = EncoderLimits {
            max_table_capacity: ours,
            max_blocked_streams: 10,
        };
        let mut encoder = Encoder::new(limits, 1);
        encoder.set_peer_limits(u64::from(theirs), 10);
        encode(&mut encoder, 0, &LINES);
        // 100 = 31 + 69.
        assert_eq!(encoder.instructions()[..2], [0x3f, 69]);
    }
}

/// A repeated field line takes one byte.
#[test]
fn refers_to_inserted_entries() {
    let (mut encoder, mut decoder) = (encoder(4096, 10), decoder(4096, 10));
    let first = encode(&mut encoder, 0, &LINES);
    decoder
        .on_encoder_stream(encoder.instructions())
        .expect("valid instructions");
    encoder.instructions().clear();
    let second = encode(&mut encoder, 4, &LINES);
    assert!(encoder.instructions().is_empty());
    assert_eq!(second.len(), 2 + LINES.len());
    for (stream, section) in [(0, &first), (4, &second)] {
        assert_eq!(decode(&mut decoder, stream, section), Some(owned(&LINES)));
    }
}

/// §2.1.2: if no stream may block, sections refer only to acknowledged entries.
#[test]
fn blocks_no_stream_if_the_limit_is_zero() {
    let (mut encoder, mut decoder) = (encoder(4096, 0), decoder(4096, 0));
    let mut lens = Vec::new();
    for stream in 0..4 {
        let section = encode(&mut encoder, stream, &LINES);
        lens.push(section.len());
        assert_eq!(decode(&mut decoder, stream, &section), Some(owned(&LINES)));
        let instructions = std::mem::take(encoder.instructions());
        decoder
            .on_encoder_stream(&instructions)
            .expect("valid instructions");
        let answers = std::mem::take(decoder.answers());
        encoder
            .on_decoder_stream(&answers)
            .expect("valid instructions");
    }
    // Recorded by the first section, inserted by the second, referred to by the third.
    assert_eq!(lens[0], lens[1]);
    assert_eq!(lens[2..], [2 + LINES.len(); 2]);
}

/// §2.1.2.
#[test]
fn blocks_no_more_streams_than_allowed() {
    let mut encoder = encoder(4096, 2);
    let mut decoder = decoder(4096, 2);
    // None of the instructions arrives.
    let sections: Vec<_> = (0..5)
        .map(|stream| {
            let value = stream.to_string();
            encode(&mut encoder, stream, &[("x-a", &value), ("x-b", "same")])
        })
        .collect();
    for (stream, section) in (0..).zip(&sections) {
        decode(&mut decoder, stream, section);
    }
    assert_eq!(decoder.blocked_streams(), 2);
    // A stream that may already be blocked may refer to further unacknowledged entries.
    let again = encode(&mut encoder, 1, &[("x-b", "same")]);
    assert_eq!(again.len(), 3);
}

/// §2.1.1, §3.2.2: entries that are referred to or unacknowledged are not evicted.
#[test]
fn evicts_no_entry_that_is_needed() {
    let mut encoder = encoder(100, 10);
    let mut decoder = decoder(100, 10);
    let first = encode(&mut encoder, 0, &[("x-a", "1"), ("x-b", "2")]);
    // The table is full, so these stay literals however often they repeat.
    for stream in [4, 8, 12] {
        let section = encode(&mut encoder, stream, &[("x-c", "3")]);
        assert_eq!(
            decode(&mut decoder, stream, &section),
            Some(owned(&[("x-c", "3")]))
        );
    }
    let instructions = std::mem::take(encoder.instructions());
    decoder
        .on_encoder_stream(&instructions)
        .expect("valid instructions");
    assert_eq!(
        decode(&mut decoder, 0, &first),
        Some(owned(&[("x-a", "1"), ("x-b", "2")]))
    );
    // Once acknowledged, entries can be evicted.
    let answers = std::mem::take(decoder.answers());
    encoder
        .on_decoder_stream(&answers)
        .expect("valid instructions");
    let section = encode(&mut encoder, 16, &[("x-c", "3")]);
    let instructions = std::mem::take(encoder.instructions());
    assert!(!instructions.is_empty());
    decoder
        .on_encoder_stream(&instructions)
        .expect("valid instructions");
    assert_eq!(
        decode(&mut decoder, 16, &section),
        Some(owned(&[("x-c", "3")]))
    );
}

/// §4.4.2.
#[test]
fn cancelled_stream_releases_its_entries() {
    let mut encoder = encoder(100, 10);
    encode(&mut encoder, 0, &[("x-a", "1"), ("x-b", "2")]);
    encoder
        .on_decoder_stream(&[0x02])
        .expect("both entries arrived");
    let waiting = encoder.instructions().len();
    encode(&mut encoder, 4, &[("x-c", "3")]);
    encode(&mut encoder, 8, &[("x-c", "3")]);
    assert_eq!(
        encoder.instructions().len(),
        waiting,
        "stream 0 refers to both entries"
    );
    encoder
        .on_decoder_stream(&[0x40])
        .expect("stream 0 is cancelled");
    encoder
        .on_decoder_stream(&[0x44, 0x7f, 0x00])
        .expect("streams without a section");
    encode(&mut encoder, 12, &[("x-c", "3")]);
    assert!(encoder.instructions().len() > waiting);
}

/// §4.4.1, §4.4.3, §4.1.1.
#[test]
fn refuses_acknowledgments_of_nothing_sent() {
    let new = || {
        let mut encoder = encoder(4096, 10);
        encode(&mut encoder, 4, &LINES);
        encoder
    };
    assert_eq!(
        new().on_decoder_stream(&[0x84, 0x01]),
        Err(Error::DecoderStream("increment above the insert count"))
    );
    assert_eq!(new().on_decoder_stream(&[0x02]), Ok(()));
    assert!(is_decoder_stream_error(
        new().on_decoder_stream(&[0x84, 0x84])
    ));
    assert!(is_decoder_stream_error(new().on_decoder_stream(&[0x80])));
    assert!(is_decoder_stream_error(new().on_decoder_stream(&[0x00])));
    assert!(is_decoder_stream_error(new().on_decoder_stream(&[0x03])));
    let most = [0x3f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
    assert!(is_decoder_stream_error(new().on_decoder_stream(&most)));
    let endless = [0xff; 11];
    assert!(is_decoder_stream_error(new().on_decoder_stream(&endless)));
    // Split into single bytes.
    let mut encoder = new();
    for byte in [0x3f, 0x00] {
        let result = encoder.on_decoder_stream(&[byte]);
        assert_eq!(is_decoder_stream_error(result), byte == 0);
    }
}

/// §7.1.3.
#[test]
fn never_indexes_secrets() {
    let mut encoder = encoder(4096, 10);
    for stream in 0..4 {
        let mut section = Vec::new();
        let lines = [
            FieldLine::new(b"authorization", b"Basic 0123456789"),
            FieldLine::new(b"cookie", b"id=1"),
            FieldLine {
                is_sensitive: true,
                ..FieldLine::new(b"x-key", b"0123456789")
            },
        ];
        encoder.encode(stream, || lines, &mut section);
        let mut seen = Vec::new();
        let progress = decoder(0, 0).decode(stream, &section, |line| seen.push(line.is_sensitive));
        assert_eq!(progress, Ok(Progress::Decoded));
        assert_eq!(seen, [true; 3]);
    }
    assert!(encoder.instructions().is_empty());
}

/// §4.3.1: the capacity is set once, before the first entry, and never lowered. So no change of it can
/// evict an entry that is referred to.
#[test]
fn sets_the_capacity_once_and_never_lowers_it() {
    let mut encoder = encoder(200, 10);
    let mut decoder = decoder(200, 10);
    let mut capacities = Vec::new();
    let mut inserts = 0;
    for number in 0..50_u64 {
        let name = format!("x-{}", number / 3);
        let section = encode(&mut encoder, 4 * number, &[(&name, "value")]);
        let instructions = std::mem::take(encoder.instructions());
        let mut rest = &instructions[..];
        while !rest.is_empty() {
            match Instruction::decode(&mut rest, 100).expect("a whole instruction") {
                Instruction::SetCapacity(capacity) => capacities.push((inserts, capacity)),
                _ => inserts += 1,
            }
        }
        decoder.on_encoder_stream(&instructions).expect("valid");
        assert!(decode(&mut decoder, 4 * number, &section).is_some());
        let answers = std::mem::take(decoder.answers());
        encoder.on_decoder_stream(&answers).expect("valid");
    }
    assert_eq!(capacities, [(0, 200)]);
    // The table has room for five entries, so most of them were evicted.
    assert!(inserts > 10, "{inserts}");
}

/// §2.1.3.
#[test]
fn writes_no_instruction_without_credit() {
    let mut encoder = encoder(4096, 10);
    encoder.set_credit(30);
    let section = encode(
        &mut encoder,
        0,
        &[("x-a", "1"), ("x-b", "2"), ("x-c", "3"), ("x-d", "4")],
    );
    let waiting = encoder.instructions().len();
    assert!(waiting > 0 && waiting <= 30, "{waiting}");
    let mut decoder = decoder(4096, 10);
    decoder
        .on_encoder_stream(encoder.instructions())
        .expect("complete instructions");
    assert_eq!(
        decode(&mut decoder, 0, &section).map(|lines| lines.len()),
        Some(4)
    );
}

/// The memory for a peer that acknowledges nothing stays bounded.
#[test]
fn unacknowledged_sections_are_bounded() {
    let mut encoder = encoder(4096, 10);
    encode(&mut encoder, 0, &LINES);
    encoder
        .on_decoder_stream(&[0x02])
        .expect("both entries arrived");
    for stream in 1..10_000 {
        encode(&mut encoder, stream, &LINES);
    }
    assert!(encoder.outstanding.is_full());
    assert!(encode(&mut encoder, 10_001, &LINES).len() > 10, "literals");
}

/// A frequent field line stays in the table while rare ones are evicted from it.
#[test]
fn duplicates_frequent_lines_before_eviction() {
    let (mut encoder, mut decoder) = (encoder(400, 10), decoder(400, 10));
    let mut referred = 0;
    for stream in 0..200 {
        let rare = format!("{}", stream / 2);
        let lines = [("x-often", "the same"), ("x-rare", &rare)];
        let section = encode(&mut encoder, stream, &lines);
        let instructions = std::mem::take(encoder.instructions());
        decoder
            .on_encoder_stream(&instructions)
            .expect("valid instructions");
        assert_eq!(decode(&mut decoder, stream, &section), Some(owned(&lines)));
        let answers = std::mem::take(decoder.answers());
        encoder
            .on_decoder_stream(&answers)
            .expect("valid instructions");
        referred += usize::from(section.len() < 12);
    }
    assert!(encoder.table.insert_count() > 90);
    assert!(referred > 190, "{referred}");
}

proptest! {
    /// Every section decodes to its input, however late instructions arrive in either direction, and
    /// neither end reports an error.
    #[test]
    fn decoder_restores_every_section(
        capacity in 0u32..600,
        blocked in 0u32..4,
        ops in prop::collection::vec((0u8..12, 0u8..12, 0u8..12), 1..60),
    ) {
        let (mut encoder, mut decoder) = (encoder(capacity, blocked), decoder(capacity, blocked));
        let mut in_transit = VecDeque::new();
        let mut waiting = Vec::new();
        for (stream, (a, b, what)) in (0..).zip(ops) {
            let (a, b) = (a.to_string(), b.to_string());
            let lines = [(":method", "GET"), ("x-a", &a), ("x-b", &b), ("x-same", "same")];
            let section = encode(&mut encoder, stream, &lines);
            in_transit.extend(encoder.instructions().drain(..));
            match decode(&mut decoder, stream, &section) {
                Some(decoded) => prop_assert_eq!(decoded, owned(&lines)),
                None => waiting.push((stream, section, owned(&lines))),
            }
            let share = in_transit.len() * usize::from(what) / 11;
            let arrived: Vec<_> = in_transit.drain(..share).collect();
            decoder.on_encoder_stream(&arrived).expect("instructions from our encoder");
            while let Some(stream) = decoder.poll_unblocked() {
                let index = waiting.iter().position(|(waiting, ..)| *waiting == stream);
                let (stream, section, lines) = waiting.remove(index.expect("a blocked section"));
                if what % 3 == 0 {
                    decoder.cancel(stream);
                } else {
                    prop_assert_eq!(decode(&mut decoder, stream, &section), Some(lines));
                }
            }
            if what % 2 == 0 {
                let answers = std::mem::take(decoder.answers());
                encoder.on_decoder_stream(&answers).expect("instructions from our decoder");
            }
            prop_assert!(waiting.len() <= blocked as usize);
        }
    }

    #[test]
    fn survives_any_decoder_instructions(answers: Vec<u8>) {
        let (mut encoder, mut decoder) = (encoder(4096, 10), decoder(4096, 10));
        let first = encode(&mut encoder, 4, &LINES);
        let _ = encoder.on_decoder_stream(&answers);
        let second = encode(&mut encoder, 8, &LINES);
        prop_assert!(encoder.cancellations() <= answers.len() as u64);
        decoder
            .on_encoder_stream(encoder.instructions())
            .expect("valid instructions");
        prop_assert_eq!(decode(&mut decoder, 4, &first), Some(owned(&LINES)));
        prop_assert_eq!(decode(&mut decoder, 8, &second), Some(owned(&LINES)));
    }
}
