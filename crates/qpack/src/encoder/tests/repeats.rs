use super::*;
use crate::encoder::repeats::MAX_ENTRIES;

/// Returns the lengths of all cached sections.
fn cached(encoder: &Encoder) -> Vec<usize> {
    encoder.repeats.sections().collect()
}

#[test]
fn repeats_a_cached_section() {
    let (mut encoder, mut decoder) = (encoder(4096, 10), decoder(4096, 10));
    let mut sections = Vec::new();
    for stream in 0..4 {
        let section = encode(&mut encoder, stream, &LINES);
        let instructions = std::mem::take(encoder.instructions());
        decoder
            .on_encoder_stream(&instructions)
            .expect("valid instructions");
        assert_eq!(decode(&mut decoder, stream, &section), Some(owned(&LINES)));
        sections.push(section);
    }
    // The first section inserts, the second consists of indexes only, and later ones repeat the second.
    assert_ne!(sections[0], sections[1]);
    assert_eq!(cached(&encoder), [2 + LINES.len()]);
    assert!(sections[2..].iter().all(|section| *section == sections[1]));
    // Each section is acknowledged once.
    let answers = std::mem::take(decoder.answers());
    encoder
        .on_decoder_stream(&answers)
        .expect("all sections were sent");
    assert!(is_decoder_stream_error(encoder.on_decoder_stream(&[0x83])));
}

/// The cache key separates names from values.
#[test]
fn distinguishes_names_from_values() {
    let (mut encoder, mut decoder) = (encoder(4096, 10), decoder(4096, 10));
    for stream in 0..12 {
        let lines = [[("ab", "c")], [("a", "bc")], [("abc", "")]][stream as usize % 3];
        let section = encode(&mut encoder, stream, &lines);
        let instructions = std::mem::take(encoder.instructions());
        decoder
            .on_encoder_stream(&instructions)
            .expect("valid instructions");
        assert_eq!(decode(&mut decoder, stream, &section), Some(owned(&lines)));
    }
    assert_eq!(cached(&encoder), [3; 3]);
    assert_eq!(encode(&mut encoder, 99, &[]), [0, 0]);
}

/// A value of two bytes always stays a literal, one of three bytes is inserted.
#[test]
fn caches_short_literals() {
    for (value, is_inserted) in [("12", false), ("123", true)] {
        let (mut encoder, mut decoder) = (encoder(4096, 10), decoder(4096, 10));
        let lines = [(":status", "200"), ("content-length", value)];
        for stream in 0..4 {
            let section = encode(&mut encoder, stream, &lines);
            let instructions = std::mem::take(encoder.instructions());
            decoder
                .on_encoder_stream(&instructions)
                .expect("valid instructions");
            assert_eq!(decode(&mut decoder, stream, &section), Some(owned(&lines)));
            // The prefix has two bytes, each index one, and the literal one each for name and
            // length and two for the value in Huffman code.
            let expected = if is_inserted && stream > 0 { 4 } else { 7 };
            assert_eq!(section.len(), expected, "{value} on {stream}");
        }
        assert_eq!(encoder.table.insert_count(), u64::from(is_inserted));
        // A section without references needs no acknowledgment.
        assert_eq!(decoder.answers().is_empty(), !is_inserted);
        assert_eq!(cached(&encoder).len(), 1);
    }
}

#[test]
fn caches_no_secret() {
    let mut encoder = encoder(4096, 10);
    for stream in 0..3 {
        encode(&mut encoder, stream, &[("authorization", "Basic 0123")]);
        let line = FieldLine {
            is_sensitive: true,
            ..FieldLine::new(b":method", b"GET")
        };
        encoder.encode(stream, || [line], &mut Vec::new());
    }
    assert_eq!(cached(&encoder), []);
}

/// §7.1.3: a field line becomes sensitive after its section was cached.
#[test]
fn does_not_repeat_a_line_that_became_sensitive() {
    let mut encoder = encoder(4096, 10);
    for stream in 0..3 {
        encode(&mut encoder, stream, &[("x-key", "0123456789")]);
    }
    assert_eq!(cached(&encoder), [3]);
    let line = FieldLine {
        is_sensitive: true,
        ..FieldLine::new(b"x-key", b"0123456789")
    };
    let mut section = Vec::new();
    encoder.encode(3, || [line], &mut section);
    assert_eq!(section[2] & 0xf0, 0x30, "a never-indexed literal");
}

/// Cached sections have at most 64 bytes, and their keys at most 512.
#[test]
fn cache_size_is_bounded() {
    // Two bytes of prefix, and one for each field line.
    for (count, is_cached) in [(62, true), (63, false)] {
        let mut encoder = encoder(4096, 10);
        let lines = vec![("age", "0"); count];
        encode(&mut encoder, 0, &lines);
        assert_eq!(!cached(&encoder).is_empty(), is_cached, "{count} lines");
    }
    // Two bytes of name, and four for the lengths.
    for (len, is_cached) in [(506, true), (507, false)] {
        let mut encoder = encoder(4096, 10);
        let value = "v".repeat(len);
        for stream in 0..3 {
            encode(&mut encoder, stream, &[("x-", &value)]);
        }
        assert_eq!(!cached(&encoder).is_empty(), is_cached, "a value of {len}");
    }
    let mut encoder = encoder(4096, 10);
    for number in 10..10 + MAX_ENTRIES + 1 {
        encode(&mut encoder, 0, &[("age", &number.to_string())]);
    }
    assert_eq!(cached(&encoder).len(), MAX_ENTRIES);
}

proptest! {
    /// The output equals that of an encoder without the cache.
    #[test]
    fn cache_leaves_the_output_unchanged(
        capacity in 30u32..400,
        blocked in 0u32..4,
        ops in prop::collection::vec((0u8..3, 0u8..5, any::<u8>()), 1..120),
    ) {
        let (mut encoder, mut other) = (encoder(capacity, blocked), encoder(capacity, blocked));
        let mut decoder = decoder(capacity, blocked);
        let (mut in_transit, mut waiting) = (Vec::new(), Vec::new());
        for (stream, (a, b, what)) in (0..).zip(ops) {
            let (a, b) = (a.to_string(), b.to_string());
            let lines = [("age", a.as_str()), ("x-a", &a), ("x-same", "same"), ("x-b", &b)];
            let lines = &lines[..1 + usize::from(what >> 6)];
            let section = encode(&mut encoder, stream, lines);
            other.repeats = Repeats::default();
            prop_assert_eq!(&section, &encode(&mut other, stream, lines));
            prop_assert_eq!(&*encoder.instructions(), &*other.instructions());
            other.instructions().clear();
            in_transit.append(encoder.instructions());
            waiting.push((stream, section));
            if what & 1 == 0 {
                let arrived = std::mem::take(&mut in_transit);
                decoder.on_encoder_stream(&arrived).expect("instructions from our encoder");
                waiting.retain(|(stream, section)| {
                    let is_cancelled = what & 6 == 0 && stream % 5 == 0;
                    if is_cancelled {
                        decoder.cancel(*stream);
                    }
                    !is_cancelled && decode(&mut decoder, *stream, section).is_none()
                });
                let answers = std::mem::take(decoder.answers());
                for encoder in [&mut encoder, &mut other] {
                    encoder.on_decoder_stream(&answers).expect("instructions from our decoder");
                }
            }
        }
    }
}
