use super::*;
use crate::encoder::repeats::PLACES;

/// What it keeps for repeats, or nothing.
fn kept(encoder: &Encoder) -> Vec<usize> {
    encoder.repeats.sections().collect()
}

#[test]
fn sends_the_same_again() {
    let (mut encoder, mut decoder) = (encoder(4096, 10), decoder(4096, 10));
    let mut sections = Vec::new();
    for stream in 0..4 {
        let section = encode(&mut encoder, stream, &LINES);
        let instructions = std::mem::take(encoder.instructions());
        decoder.on_encoder_stream(&instructions).expect("followed");
        assert_eq!(decode(&mut decoder, stream, &section), Some(owned(&LINES)));
        sections.push(section);
    }
    // The first inserts, the second says nothing but indices, the others are the second.
    assert_ne!(sections[0], sections[1]);
    assert_eq!(kept(&encoder), [2 + LINES.len()]);
    assert!(sections[2..].iter().all(|section| *section == sections[1]));
    // Each of them is one to acknowledge, and none more.
    let answers = std::mem::take(decoder.answers());
    encoder.on_decoder_stream(&answers).expect("all were sent");
    assert!(is_decoder_stream_error(encoder.on_decoder_stream(&[0x83])));
}

/// Lines are told apart by where names and values end.
#[test]
fn does_not_mix_names_and_values() {
    let (mut encoder, mut decoder) = (encoder(4096, 10), decoder(4096, 10));
    for stream in 0..12 {
        let lines = [[("ab", "c")], [("a", "bc")], [("abc", "")]][stream as usize % 3];
        let section = encode(&mut encoder, stream, &lines);
        let instructions = std::mem::take(encoder.instructions());
        decoder.on_encoder_stream(&instructions).expect("followed");
        assert_eq!(decode(&mut decoder, stream, &section), Some(owned(&lines)));
    }
    assert_eq!(kept(&encoder), [3; 3]);
    assert_eq!(encode(&mut encoder, 99, &[]), [0, 0]);
}

/// A value of two letters is written out for ever, one of three goes into the table.
#[test]
fn keeps_literals_that_are_short() {
    for (value, is_inserted) in [("12", false), ("123", true)] {
        let (mut encoder, mut decoder) = (encoder(4096, 10), decoder(4096, 10));
        let lines = [(":status", "200"), ("content-length", value)];
        for stream in 0..4 {
            let section = encode(&mut encoder, stream, &lines);
            let instructions = std::mem::take(encoder.instructions());
            decoder.on_encoder_stream(&instructions).expect("followed");
            assert_eq!(decode(&mut decoder, stream, &section), Some(owned(&lines)));
            // Two of prefix and an index; name, length and what is two letters in Huffman code.
            let expected = if is_inserted && stream > 0 { 4 } else { 7 };
            assert_eq!(section.len(), expected, "{value} on {stream}");
        }
        assert_eq!(encoder.table.insert_count(), u64::from(is_inserted));
        // Nothing to acknowledge where nothing was referred to.
        assert_eq!(decoder.answers().is_empty(), !is_inserted);
        assert_eq!(kept(&encoder).len(), 1);
    }
}

#[test]
fn keeps_no_secret() {
    let mut encoder = encoder(4096, 10);
    for stream in 0..3 {
        encode(&mut encoder, stream, &[("authorization", "Basic 0123")]);
        let line = FieldLine {
            is_sensitive: true,
            ..FieldLine::new(b":method", b"GET")
        };
        encoder.encode(stream, || [line], &mut Vec::new());
    }
    assert_eq!(kept(&encoder), []);
}

/// A line that has become one since it was kept (§7.1.3).
#[test]
fn does_not_repeat_what_has_become_a_secret() {
    let mut encoder = encoder(4096, 10);
    for stream in 0..3 {
        encode(&mut encoder, stream, &[("x-key", "0123456789")]);
    }
    assert_eq!(kept(&encoder), [3]);
    let line = FieldLine {
        is_sensitive: true,
        ..FieldLine::new(b"x-key", b"0123456789")
    };
    let mut section = Vec::new();
    encoder.encode(3, || [line], &mut section);
    assert_eq!(section[2] & 0xf0, 0x30, "a literal that is never indexed");
}

/// Sections of up to 64 bytes, for lines that take up to 512.
#[test]
fn keeps_little() {
    // Two bytes of prefix, and one each.
    for (count, is_kept) in [(62, true), (63, false)] {
        let mut encoder = encoder(4096, 10);
        let lines = vec![("age", "0"); count];
        encode(&mut encoder, 0, &lines);
        assert_eq!(!kept(&encoder).is_empty(), is_kept, "{count} lines");
    }
    // A name of two, and four for the lengths.
    for (len, is_kept) in [(506, true), (507, false)] {
        let mut encoder = encoder(4096, 10);
        let value = "v".repeat(len);
        for stream in 0..3 {
            encode(&mut encoder, stream, &[("x-", &value)]);
        }
        assert_eq!(!kept(&encoder).is_empty(), is_kept, "a value of {len}");
    }
    let mut encoder = encoder(4096, 10);
    for number in 10..10 + PLACES + 1 {
        encode(&mut encoder, 0, &[("age", &number.to_string())]);
    }
    assert_eq!(kept(&encoder).len(), PLACES);
}

proptest! {
    /// Not a byte differs from what an encoder sends that keeps nothing.
    #[test]
    fn changes_no_byte(
        capacity in 30u32..400,
        blocked in 0u32..4,
        ops in prop::collection::vec((0u8..3, 0u8..5, any::<u8>()), 1..120),
    ) {
        let (mut encoder, mut other) = (encoder(capacity, blocked), encoder(capacity, blocked));
        let mut decoder = decoder(capacity, blocked);
        let (mut on_the_way, mut waiting) = (Vec::new(), Vec::new());
        for (stream, (a, b, what)) in (0..).zip(ops) {
            let (a, b) = (a.to_string(), b.to_string());
            let lines = [("age", a.as_str()), ("x-a", &a), ("x-same", "same"), ("x-b", &b)];
            let lines = &lines[..1 + usize::from(what >> 6)];
            let section = encode(&mut encoder, stream, lines);
            other.repeats = Repeats::default();
            prop_assert_eq!(&section, &encode(&mut other, stream, lines));
            prop_assert_eq!(&*encoder.instructions(), &*other.instructions());
            other.instructions().clear();
            on_the_way.append(encoder.instructions());
            waiting.push((stream, section));
            if what & 1 == 0 {
                let arrived = std::mem::take(&mut on_the_way);
                decoder.on_encoder_stream(&arrived).expect("instructions of ours");
                waiting.retain(|(stream, section)| {
                    let is_cancelled = what & 6 == 0 && stream % 5 == 0;
                    if is_cancelled {
                        decoder.cancel(*stream);
                    }
                    !is_cancelled && decode(&mut decoder, *stream, section).is_none()
                });
                let answers = std::mem::take(decoder.answers());
                for encoder in [&mut encoder, &mut other] {
                    encoder.on_decoder_stream(&answers).expect("answers of ours");
                }
            }
        }
    }
}
