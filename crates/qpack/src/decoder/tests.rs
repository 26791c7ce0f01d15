use proptest::prelude::*;

use super::*;

type Lines = Vec<(String, String)>;

fn decoder(capacity: u32, blocked: u32) -> Decoder {
    Decoder::new(DecoderLimits {
        max_table_capacity: capacity,
        max_blocked_streams: blocked,
    })
}

fn decode(decoder: &mut Decoder, stream: u64, section: &[u8]) -> Result<Option<Lines>, Error> {
    let mut lines = Lines::new();
    let text = |text: Text<'_>| String::from_utf8_lossy(text.as_bytes()).into_owned();
    let progress = decoder.decode(stream, section, |line| {
        lines.push((text(line.name), text(line.value)));
    })?;
    Ok((progress == Progress::Decoded).then_some(lines))
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .filter_map(|digit| digit.to_digit(16))
        .map(|digit| digit as u8)
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

fn lines(lines: &[(&str, &str)]) -> Option<Lines> {
    let owned = lines
        .iter()
        .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
    Some(owned.collect())
}

fn is_decompression_failed<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(error @ Error::DecompressionFailed(_)) if error.code() == 0x200)
}

fn is_encoder_stream_error(result: Result<(), Error>) -> bool {
    matches!(result, Err(error @ Error::EncoderStream(_)) if error.code() == 0x201)
}

/// Returns a decoder with a table of 220 bytes that contains `:authority: www.example.com` and
/// `:path: /sample/path`.
fn filled() -> Decoder {
    let mut decoder = decoder(220, 2);
    let instructions =
        hex("3fbd01 c00f 7777772e6578616d706c652e636f6d c10c 2f73616d706c652f70617468");
    decoder
        .on_encoder_stream(&instructions)
        .expect("valid instructions");
    decoder
}

/// All of RFC 9204 appendix B, from the perspective of the decoder.
#[test]
fn decodes_the_examples() {
    let mut decoder = decoder(220, 100);
    let section = hex("0000 510b 2f696e6465782e68746d6c");
    let decoded = decode(&mut decoder, 0, &section);
    assert_eq!(decoded, Ok(lines(&[(":path", "/index.html")])));
    assert!(
        decoder.answers().is_empty(),
        "no reference to the dynamic table"
    );

    let section = hex("0381 10 11");
    assert_eq!(decode(&mut decoder, 4, &section), Ok(None), "blocked");
    let instructions =
        hex("3fbd01 c00f 7777772e6578616d706c652e636f6d c10c 2f73616d706c652f70617468");
    decoder
        .on_encoder_stream(&instructions)
        .expect("valid instructions");
    assert_eq!(decoder.poll_unblocked(), Some(4));
    assert_eq!(decoder.poll_unblocked(), None);
    let expected = [(":authority", "www.example.com"), (":path", "/sample/path")];
    assert_eq!(decode(&mut decoder, 4, &section), Ok(lines(&expected)));
    assert_eq!(std::mem::take(decoder.answers()), hex("84"));

    let instruction = hex("4a 637573746f6d2d6b6579 0c 637573746f6d2d76616c7565");
    decoder
        .on_encoder_stream(&instruction)
        .expect("valid instructions");
    assert_eq!(std::mem::take(decoder.answers()), hex("01"));

    decode(&mut decoder, 8, &hex("0500 80 c1 81")).expect("blocked");
    decoder.cancel(8);
    assert_eq!(std::mem::take(decoder.answers()), hex("48"));
    decoder
        .on_encoder_stream(&hex("02"))
        .expect("valid instructions");
    assert_eq!(decoder.poll_unblocked(), None, "stream 8 was cancelled");
    let expected = [
        (":authority", "www.example.com"),
        (":path", "/"),
        ("custom-key", "custom-value"),
    ];
    assert_eq!(
        decode(&mut decoder, 12, &hex("0500 80 c1 81")),
        Ok(lines(&expected))
    );

    let instruction = hex("810d 637573746f6d2d76616c756532");
    decoder
        .on_encoder_stream(&instruction)
        .expect("valid instructions");
    assert_eq!(decoder.memory() - decoder.answers.len(), 215);
}

/// §2.1.2.
#[test]
fn refuses_more_blocked_streams_than_allowed() {
    let mut decoder = decoder(220, 2);
    assert_eq!(decode(&mut decoder, 0, &hex("0200 80")), Ok(None));
    assert_eq!(decode(&mut decoder, 4, &hex("0200 80")), Ok(None));
    assert_eq!(
        decode(&mut decoder, 4, &hex("0200 80")),
        Ok(None),
        "decoding the same section again"
    );
    assert_eq!(decoder.blocked_streams(), 2);
    assert!(is_decompression_failed(decode(
        &mut decoder,
        8,
        &hex("0200 80")
    )));
}

/// §4.5.1.1: after many inserts the same bytes mean a larger count. The section still requires the count that it
/// had when it arrived, whose entries are gone.
#[test]
fn blocked_sections_keep_their_required_insert_count() {
    // Six entries at most, so that counts are encoded modulo twelve.
    let mut decoder = decoder(220, 2);
    decoder
        .on_encoder_stream(&hex("3fbd01"))
        .expect("a capacity of 220");
    let section = hex("0200 80");
    assert_eq!(decode(&mut decoder, 4, &section), Ok(None), "blocked");
    for _ in 0..13 {
        // Insert With Literal Name a: b.
        decoder
            .on_encoder_stream(&hex("41 61 01 62"))
            .expect("an insertion");
    }
    assert_eq!(decoder.poll_unblocked(), Some(4));
    assert!(is_decompression_failed(decode(&mut decoder, 4, &section)));
    // The first section of another stream requires the last entry.
    let result = decode(&mut decoder, 8, &section);
    assert_eq!(result, Ok(lines(&[("a", "b")])));
}

/// §2.2.1, §4.5.3.
#[test]
fn refuses_references_beyond_the_required_insert_count() {
    // A Required Insert Count of one, with references to the second entry: relative, post-Base, and
    // as a name.
    for section in ["0201 80", "0200 10", "0280 11", "0200 0000", "0201 4000"] {
        let result = decode(&mut filled(), 0, &hex(section));
        assert!(is_decompression_failed(result), "{section}");
    }
    // A Required Insert Count of zero permits no reference.
    assert!(is_decompression_failed(decode(
        &mut filled(),
        0,
        &hex("0000 80")
    )));
}

/// §2.2.1 permits treating this as an error. An encoder has no reason to send it.
#[test]
fn refuses_a_required_insert_count_larger_than_the_references() {
    assert_eq!(
        decode(&mut filled(), 0, &hex("0300 81 80")),
        Ok(lines(&[
            (":authority", "www.example.com"),
            (":path", "/sample/path")
        ]))
    );
    assert!(is_decompression_failed(decode(
        &mut filled(),
        0,
        &hex("0300 81")
    )));
    assert!(is_decompression_failed(decode(
        &mut filled(),
        0,
        &hex("0300 c1")
    )));
}

/// §2.2.3.
#[test]
fn refuses_references_to_evicted_entries() {
    let mut decoder = filled();
    // A third entry of 140 bytes evicts the first.
    let mut instruction = hex("416b 7f1b");
    instruction.extend_from_slice(&[b'v'; 154]);
    decoder
        .on_encoder_stream(&instruction[..])
        .expect("valid instructions");
    assert!(is_decompression_failed(decode(
        &mut decoder,
        0,
        &hex("0400 82")
    )));
    let mut decoder = filled();
    decoder
        .on_encoder_stream(&hex("20"))
        .expect("a capacity of zero");
    assert!(is_decompression_failed(decode(
        &mut decoder,
        0,
        &hex("0300 80")
    )));
}

/// §2.2.3, §4.3.2, §4.3.4.
#[test]
fn refuses_instructions_about_missing_entries() {
    assert!(is_encoder_stream_error(
        filled().on_encoder_stream(&hex("02"))
    ));
    assert!(is_encoder_stream_error(
        filled().on_encoder_stream(&hex("82 00"))
    ));
    let mut decoder = filled();
    decoder
        .on_encoder_stream(&hex("20 3fbd01"))
        .expect("the table is emptied");
    assert!(is_encoder_stream_error(
        decoder.on_encoder_stream(&hex("00"))
    ));
}

/// §3.1.
#[test]
fn refuses_static_indices_above_98() {
    assert_eq!(
        decode(&mut filled(), 0, &hex("0000 ff23")),
        Ok(lines(&[("x-frame-options", "sameorigin")]))
    );
    assert!(is_decompression_failed(decode(
        &mut filled(),
        0,
        &hex("0000 ff24")
    )));
    assert!(is_decompression_failed(decode(
        &mut filled(),
        0,
        &hex("0000 5f54 00")
    )));
    assert!(is_encoder_stream_error(
        filled().on_encoder_stream(&hex("ff24 00"))
    ));
}

/// §3.2: duplicate entries are valid.
#[test]
fn accepts_the_same_entry_twice() {
    let mut decoder = decoder(220, 0);
    decoder
        .on_encoder_stream(&hex("3fbd01 416b 0176 416b 0176"))
        .expect("valid instructions");
    let decoded = decode(&mut decoder, 0, &hex("0300 80 81"));
    assert_eq!(decoded, Ok(lines(&[("k", "v"), ("k", "v")])));
}

/// §3.2.2.
#[test]
fn refuses_an_entry_larger_than_the_table() {
    let mut decoder = decoder(220, 0);
    assert!(is_encoder_stream_error(
        decoder.on_encoder_stream(&hex("416b 0176"))
    ));
    let mut decoder = self::decoder(220, 0);
    decoder
        .on_encoder_stream(&hex("3f03"))
        .expect("a capacity of 34");
    decoder
        .on_encoder_stream(&hex("416b 0176"))
        .expect("as large as the table");
    assert!(is_encoder_stream_error(
        decoder.on_encoder_stream(&hex("416b 027676"))
    ));
}

/// §4.3.1.
#[test]
fn refuses_a_capacity_above_the_maximum() {
    assert_eq!(decoder(220, 0).on_encoder_stream(&hex("3fbd01")), Ok(()));
    assert!(is_encoder_stream_error(
        decoder(220, 0).on_encoder_stream(&hex("3fbe01"))
    ));
    assert!(is_encoder_stream_error(
        decoder(0, 0).on_encoder_stream(&hex("21"))
    ));
}

/// §4.1.1, §7.4: the error does not wait for the rest of the integer or string.
#[test]
fn refuses_integers_and_strings_that_are_too_long() {
    let endless = hex("3fffffffffffffffffffff");
    assert!(is_encoder_stream_error(
        decoder(220, 0).on_encoder_stream(&endless)
    ));
    // A value of one gigabyte for a table of 220 bytes.
    assert!(is_encoder_stream_error(
        filled().on_encoder_stream(&hex("c0 7f81ffffff03"))
    ));
    assert!(is_decompression_failed(decode(
        &mut filled(),
        0,
        &hex("0000 5f8080808080808080808000 00")
    )));
    assert!(is_decompression_failed(decode(
        &mut filled(),
        0,
        &hex("0000 51 7f81ffffff03")
    )));
}

/// §4.1.2.
#[test]
fn refuses_bad_huffman_coding() {
    assert_eq!(
        decode(&mut filled(), 0, &hex("0000 51 81 07")),
        Ok(lines(&[(":path", "0")]))
    );
    for coded in ["81 06", "82 07ff", "84 ffffffff"] {
        let result = decode(&mut filled(), 0, &hex(&format!("0000 51 {coded}")));
        assert!(is_decompression_failed(result), "{coded}");
        let result = filled().on_encoder_stream(&hex(&format!("c1 {coded}")));
        assert!(is_encoder_stream_error(result), "{coded}");
    }
}

/// §4.5.1.
#[test]
fn refuses_invalid_prefixes() {
    // MaxEntries is six (of 32 bytes), so the encoded insert count is at most twelve.
    assert!(is_decompression_failed(decode(
        &mut filled(),
        0,
        &hex("0d00 80")
    )));
    assert!(is_decompression_failed(decode(
        &mut decoder(0, 0),
        0,
        &hex("0100 80")
    )));
    // A negative Base.
    assert!(is_decompression_failed(decode(
        &mut filled(),
        0,
        &hex("0080")
    )));
    assert!(is_decompression_failed(decode(
        &mut filled(),
        0,
        &hex("0382 10")
    )));
    assert_eq!(
        decode(&mut filled(), 0, &hex("0381 10 11")).map(|lines| lines.map(|lines| lines.len())),
        Ok(Some(2))
    );
}

/// §4.5.
#[test]
fn refuses_truncated_sections() {
    for section in [
        "",
        "00",
        "0000 5f",
        "0000 51",
        "0000 5103 61",
        "0000 2161",
        "0000 27",
    ] {
        let result = decode(&mut filled(), 0, &hex(section));
        assert!(is_decompression_failed(result), "{section}");
    }
    assert_eq!(decode(&mut filled(), 0, &hex("0000")), Ok(lines(&[])));
}

/// §4.5.4, §7.1.3.
#[test]
fn reports_which_lines_must_stay_literals() {
    for (section, is_sensitive) in [
        ("0000 5100", false),
        ("0000 7100", true),
        ("0000 216b 00", false),
        ("0000 316b 00", true),
        ("0200 4000", false),
        ("0200 6000", true),
        ("0280 0000", false),
        ("0280 0800", true),
    ] {
        let mut seen = Vec::new();
        let progress = filled().decode(0, &hex(section), |line| seen.push(line.is_sensitive));
        assert_eq!(progress, Ok(Progress::Decoded), "{section}");
        assert_eq!(seen, [is_sensitive], "{section}");
    }
}

/// Strings of the tables are shared, and references report their entry.
#[test]
fn reports_the_origin_of_lines() {
    let mut decoder = filled();
    let mut origins = Vec::new();
    let mut shared = Vec::new();
    let progress = decoder.decode(0, &hex("0300 81 80 c1 5100"), |line| {
        origins.push(line.origin);
        shared.push(!matches!(line.value, Text::Literal(_)));
    });
    assert_eq!(progress, Ok(Progress::Decoded));
    let expected = [
        Origin::Dynamic(0),
        Origin::Dynamic(1),
        Origin::Static(1),
        Origin::Literal,
    ];
    assert_eq!(origins, expected);
    assert_eq!(shared, [true, true, true, false]);
}

#[test]
fn cancel_without_a_table_sends_nothing() {
    let mut decoder = decoder(0, 0);
    decoder.cancel(4);
    assert!(decoder.answers().is_empty());
}

proptest! {
    #[test]
    fn survives_any_bytes(instructions: Vec<u8>, section: Vec<u8>) {
        let mut decoder = filled();
        let _ = decoder.on_encoder_stream(&instructions);
        let _ = decode(&mut decoder, 0, &section);
        prop_assert!(decoder.memory() < 220 * 5 + instructions.len() + 16);
    }
}
