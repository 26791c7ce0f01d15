use super::*;
use crate::connection::repeats::{Caches, MOST_TOTAL, PLACES};

/// The head of a request with these fields, encoded by `client`; `server` has what it needs.
fn section(
    client: &mut Connection,
    server: &mut Connection,
    stream: u64,
    fields: &[(&str, &str)],
) -> Vec<u8> {
    let mut request = Request::get("https://example.org/path");
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let (parts, ()) = request.body(()).expect("a request").into_parts();
    let mut out = Vec::new();
    let fields = FieldsToSend::request(&parts).expect("whole");
    client.encode(stream, &fields, &mut out).expect("small");
    carry(client, server);
    section_of(&out)
}

/// Decodes a section on the server, to text.
fn decoded(server: &mut Connection, stream: u64, section: &[u8]) -> String {
    let head = server.decode_request(stream, section);
    let protocol = match &head {
        Ok(Section::Decoded(Ok((request, _)))) => request.extensions().get::<Protocol>().cloned(),
        _ => None,
    };
    format!("{head:?} {protocol:?}")
}

/// A server whose peer's table may be large, and an instruction that inserts this line.
fn with_entry(name: &str, value: &str) -> Connection {
    let mut server = begun(Side::Server);
    let (name_len, value_len) = (name.len() as u8, value.len());
    assert!(name_len < 31 && (127..4000).contains(&value_len));
    let mut bytes = vec![0x02, 0x3f, 0xe1, 0x1f, 0x40 | name_len];
    bytes.extend_from_slice(name.as_bytes());
    let rest = value_len - 127;
    bytes.extend_from_slice(&[0x7f, rest as u8 & 0x7f | 0x80, (rest >> 7) as u8]);
    bytes.extend_from_slice(value.as_bytes());
    assert_eq!(uni(&mut server, 6, &bytes, false), Ok(UniFate::Read));
    server
}

#[test]
fn the_same_section_is_the_same_request() {
    let (mut client, mut server) = pair();
    let fields = [
        ("user-agent", "courser"),
        ("x-custom", "a"),
        ("x-custom", "b"),
    ];
    let mut heads = Vec::new();
    for stream in 0..5 {
        let section = section(&mut client, &mut server, 4 * stream, &fields);
        heads.push(decoded(&mut server, 4 * stream, &section));
        // Each is acknowledged, or the encoder would complain of it, and of one more.
        carry(&mut server, &mut client);
    }
    assert_eq!(server.compression.repeats.requests.kept().1, 1);
    assert!(heads[0].contains("\"b\""), "{}", heads[0]);
    assert!(heads[1..].iter().all(|head| *head == heads[0]), "{heads:?}");
    let again = client.handle_uni(NOW, 11, Bytes::from_static(&[0x90]), false);
    assert_eq!(again.map_err(|error| error.code.value()), Err(0x202));
}

#[test]
fn the_same_section_is_the_same_response() {
    let (mut client, mut server) = pair();
    let mut headers = HeaderMap::new();
    headers.insert("x-custom", HeaderValue::from_static("value"));
    let mut heads = Vec::new();
    for stream in 0..5 {
        let mut out = Vec::new();
        let fields = FieldsToSend::response(&StatusCode::OK, &headers);
        server.encode(stream, &fields, &mut out).expect("small");
        carry(&mut server, &mut client);
        let head = client.decode_response(stream, &section_of(&out));
        heads.push(format!("{head:?}"));
        carry(&mut client, &mut server);
    }
    assert_eq!(client.compression.repeats.responses.kept().1, 1);
    assert!(heads[0].contains("\"value\""), "{}", heads[0]);
    assert!(heads[1..].iter().all(|head| *head == heads[0]), "{heads:?}");
}

/// The bytes are the same, but the entry they name has made room for another since: that is an
/// error (RFC 9204 §2.2.3), whatever they meant before.
#[test]
fn evicted_entries_are_not_repeated() {
    let mut server = begun(Side::Server);
    // :method GET, :scheme https, :path /, :authority from the table's first entry.
    let section = [0x02, 0x00, 0xd1, 0xd7, 0xc1, 0x80];
    let authority = [&[0xc0, 11][..], b"example.org"].concat();
    let capacity = [0x02, 0x3f, 0x21]; // 64 bytes: room for one.
    assert_eq!(
        uni(&mut server, 6, &[&capacity[..], &authority].concat(), false),
        Ok(UniFate::Read)
    );
    for stream in [0, 4, 8] {
        let head = decoded(&mut server, stream, &section);
        assert!(head.contains("example.org"), "{head}");
    }
    assert_eq!(server.compression.repeats.requests.kept().1, 1);
    let another = [&[0xc0, 11][..], b"example.com"].concat();
    assert_eq!(uni(&mut server, 6, &another, false), Ok(UniFate::Read));
    let result = server.decode_request(12, &section);
    let error = result.expect_err("an entry that is gone");
    assert_eq!(
        (error.code, error.scope),
        (Code::QPACK_DECOMPRESSION_FAILED, Scope::Connection)
    );
}

/// RFC 9204 §7.1.3: what must not be in tables is not kept either.
#[test]
fn secrets_are_not_kept() {
    for field in [("authorization", "Basic 0123456789"), ("cookie", "id=1")] {
        let (mut client, mut server) = pair();
        for stream in 0..5 {
            let section = section(&mut client, &mut server, 4 * stream, &[field]);
            let head = decoded(&mut server, 4 * stream, &section);
            assert!(head.contains(field.0), "{head}");
            carry(&mut server, &mut client);
        }
        assert_eq!(
            server.compression.repeats.requests.kept(),
            (0, 0),
            "{field:?}"
        );
    }
    // A path that must not be, with the bit for it and without.
    for (bit, kept) in [(0x20, 0), (0x00, 1)] {
        let mut server = begun(Side::Server);
        let head = [0x00, 0x00, 0xd1, 0xd7, 0x50, 1, b'h', 0x51 | bit, 3];
        let section = [&head[..], b"/tk"].concat();
        for stream in 0..3 {
            decoded(&mut server, 4 * stream, &section);
        }
        assert_eq!(server.compression.repeats.requests.kept().1, kept);
    }
}

/// A short section may stand for a long message, with one field that is joined from many.
#[test]
fn heads_that_are_large_are_not_kept() {
    // 1024 with :method, :scheme, :path and :authority, and their names.
    let others = (7 + 3) + (7 + 5) + (5 + 1) + (10 + 1) + 5 * 32;
    for (size, kept) in [(1024, 1), (1025, 0)] {
        let value = "v".repeat(size - others - "x-long".len());
        let mut server = with_entry("x-long", &value);
        let section = [0x02, 0x00, 0xd1, 0xd7, 0xc1, 0x50, 1, b'h', 0x80];
        for stream in 0..3 {
            let head = decoded(&mut server, 4 * stream, &section);
            assert!(head.contains(&value), "{head}");
        }
        assert_eq!(
            server.compression.repeats.requests.kept().1,
            kept,
            "{size} bytes"
        );
        let kept = if kept == 1 { size } else { 0 };
        assert_eq!(server.compression.repeats.requests.memory(), kept);
    }
    let mut server = with_entry("cookie", &"c".repeat(300));
    let section = [
        &[0x02, 0x00, 0xd1, 0xd7, 0xc1, 0x50, 1, b'h'][..],
        &[0x80; 4],
    ]
    .concat();
    for stream in 0..3 {
        let head = decoded(&mut server, 4 * stream, &section);
        assert!(head.contains("cookie"), "{head}");
    }
    assert_eq!(server.compression.repeats.requests.kept(), (0, 0));
}

/// RFC 9220.
#[test]
fn the_protocol_of_an_extended_connect_comes_again() {
    let (mut client, mut server) = pair();
    let mut heads = Vec::new();
    for stream in 0..6 {
        let request = Request::connect("https://example.org/chat")
            .extension(Protocol::WEBSOCKET)
            .body(())
            .expect("a request");
        let (parts, ()) = request.into_parts();
        let mut out = Vec::new();
        let fields = FieldsToSend::request(&parts).expect("whole");
        client.encode(4 * stream, &fields, &mut out).expect("small");
        carry(&mut client, &mut server);
        heads.push(decoded(&mut server, 4 * stream, &section_of(&out)));
        carry(&mut server, &mut client);
    }
    assert_eq!(server.compression.repeats.requests.kept().1, 1);
    assert!(heads.iter().all(|head| *head == heads[0]), "{heads:?}");
    assert!(
        heads[0].ends_with("Some(Protocol(b\"websocket\"))"),
        "{}",
        heads[0]
    );
}

/// Sixteen fields, sections of 64 bytes, and so many of them.
#[test]
fn little_is_kept() {
    for (count, is_kept) in [(16, true), (17, false)] {
        let (mut client, mut server) = pair();
        let fields = vec![("accept", "*/*"); count];
        for stream in 0..5 {
            let section = section(&mut client, &mut server, 4 * stream, &fields);
            decoded(&mut server, 4 * stream, &section);
        }
        assert_eq!(
            server.compression.repeats.requests.kept().1 == 1,
            is_kept,
            "{count} fields"
        );
    }
    // :method GET, :scheme https, :authority of one letter, and a path as it is.
    for (len, is_kept) in [(64, true), (65, false)] {
        let mut server = begun(Side::Server);
        let head = [0x00, 0x00, 0xd1, 0xd7, 0x50, 1, b'h', 0x51, len - 9];
        let path = format!("/{}", "p".repeat(usize::from(len) - 10));
        let section = [&head[..], path.as_bytes()].concat();
        assert_eq!(section.len(), usize::from(len));
        for stream in 0..3 {
            let head = decoded(&mut server, 4 * stream, &section);
            assert!(head.contains(&path), "{head}");
        }
        assert_eq!(
            server.compression.repeats.requests.kept().1 == 1,
            is_kept,
            "{len} bytes"
        );
    }
    let (mut client, mut server) = pair();
    for n in 0..=PLACES as u8 {
        let agent = (n + 10).to_string();
        let fields = [("user-agent", agent.as_str())];
        let section = section(&mut client, &mut server, 4 * u64::from(n), &fields);
        decoded(&mut server, 4 * u64::from(n), &section);
        carry(&mut server, &mut client);
    }
    assert_eq!(server.compression.repeats.requests.kept().0, PLACES);
}

/// Heads that are as large as they may be fill the room for all before they fill the places.
#[test]
fn all_heads_together_have_a_limit() {
    let others = (7 + 3) + (7 + 5) + (5 + 2) + (10 + 1) + 5 * 32;
    let value = "v".repeat(1024 - others - "x-long".len());
    let mut server = with_entry("x-long", &value);
    let letters = b'a'..b'a' + (MOST_TOTAL / 1024) as u8 + 1;
    for (stream, letter) in (0..)
        .map(|n| 4 * n)
        .zip([letters.clone(), letters].into_iter().flatten())
    {
        // A path of its own, as a literal.
        let head = [
            0x02, 0x00, 0xd1, 0xd7, 0x51, 2, b'/', letter, 0x50, 1, b'h', 0x80,
        ];
        let head = decoded(&mut server, stream, &head);
        assert!(head.contains(&value), "{head}");
    }
    assert_eq!(server.compression.repeats.requests.memory(), MOST_TOTAL);
    assert_eq!(
        server.compression.repeats.requests.kept().1,
        MOST_TOTAL / 1024
    );
}

proptest! {
    /// Not a word differs from what a connection says that keeps nothing, nor of its answers.
    #[test]
    fn changes_nothing(ops in prop::collection::vec((0u8..4, 0u8..3, any::<u8>()), 1..80)) {
        let (mut client, mut server) = pair();
        let mut other = begun(Side::Server);
        other.config = server.config.clone();
        for (stream, (a, b, what)) in (0..).map(|n| 4 * n).zip(ops) {
            let mut request = Request::get("https://example.org/path")
                .header("x-a", a.to_string())
                .header("x-b", b.to_string());
            if what & 1 == 0 {
                // So long that entries have to go for it.
                request = request.header("x-long", "l".repeat(500 * usize::from(what >> 6)));
            }
            let (parts, ()) = request.body(()).expect("a request").into_parts();
            let mut out = Vec::new();
            let fields = FieldsToSend::request(&parts).expect("whole");
            client.encode(stream, &fields, &mut out).expect("small");
            let instructions = Bytes::from(std::mem::take(client.outgoing(UniStream::Encoder)));
            for end in [&mut server, &mut other] {
                let fate = end.handle_uni(NOW, 6, instructions.clone(), false);
                prop_assert_eq!(fate, Ok(UniFate::Read));
            }
            let section = section_of(&out);
            other.compression.repeats = Caches::default();
            let heads = [&mut server, &mut other].map(|end| decoded(end, stream, &section));
            prop_assert_eq!(&heads[0], &heads[1]);
            let answers = [&mut server, &mut other]
                .map(|end| std::mem::take(end.outgoing(UniStream::Decoder)));
            prop_assert_eq!(&answers[0], &answers[1]);
            let fate = client.handle_uni(NOW, 11, Bytes::from(answers[0].clone()), false);
            prop_assert!(fate.is_ok(), "{:?}", fate);
        }
    }
}
