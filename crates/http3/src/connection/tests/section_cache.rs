use super::*;
use crate::connection::section_cache::{Caches, ENTRIES, MAX_TOTAL};

/// Returns the header section of a request with these fields, encoded by `client`. `server` has received its
/// inserts.
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
    let fields = FieldsToSend::request(&parts).expect("valid fields");
    client.encode(stream, &fields, &mut out).expect("small");
    carry(client, server);
    section_of(&out)
}

/// Decodes a section on the server and formats it.
fn decoded(server: &mut Connection, stream: u64, section: &[u8]) -> String {
    let head = server.decode_request(stream, section);
    let protocol = match &head {
        Ok(Section::Decoded(Ok((request, _)))) => request.extensions().get::<Protocol>().cloned(),
        _ => None,
    };
    format!("{head:?} {protocol:?}")
}

/// Returns a server whose dynamic table has an entry with this field line.
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
fn identical_section_is_the_same_request() {
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
        // Each section is acknowledged; otherwise the encoder would report an error.
        carry(&mut server, &mut client);
    }
    assert_eq!(server.compression.section_cache.requests.counts().1, 1);
    assert!(heads[0].contains("\"b\""), "{}", heads[0]);
    assert!(heads[1..].iter().all(|head| *head == heads[0]), "{heads:?}");
    let again = client.handle_uni(NOW, 11, Bytes::from_static(&[0x90]), false);
    assert_eq!(again.map_err(|error| error.code.value()), Err(0x202));
}

#[test]
fn identical_section_is_the_same_response() {
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
    assert_eq!(client.compression.section_cache.responses.counts().1, 1);
    assert!(heads[0].contains("\"value\""), "{}", heads[0]);
    assert!(heads[1..].iter().all(|head| *head == heads[0]), "{heads:?}");
}

/// The bytes are the same, but the entry to which they refer was evicted meanwhile, which is an error (RFC 9204
/// §2.2.3).
#[test]
fn sections_with_evicted_entries_are_not_cached() {
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
    assert_eq!(server.compression.section_cache.requests.counts().1, 1);
    let another = [&[0xc0, 11][..], b"example.com"].concat();
    assert_eq!(uni(&mut server, 6, &another, false), Ok(UniFate::Read));
    let result = server.decode_request(12, &section);
    let error = result.expect_err("an entry that is gone");
    assert_eq!(
        (error.code, error.scope),
        (Code::QPACK_DECOMPRESSION_FAILED, Scope::Connection)
    );
}

/// RFC 9204 §7.1.3: field lines that must not be in tables are not cached either.
#[test]
fn secrets_are_not_cached() {
    for field in [("authorization", "Basic 0123456789"), ("cookie", "id=1")] {
        let (mut client, mut server) = pair();
        for stream in 0..5 {
            let section = section(&mut client, &mut server, 4 * stream, &[field]);
            let head = decoded(&mut server, 4 * stream, &section);
            assert!(head.contains(field.0), "{head}");
            carry(&mut server, &mut client);
        }
        assert_eq!(
            server.compression.section_cache.requests.counts(),
            (0, 0),
            "{field:?}"
        );
    }
    // A path that must not be in tables, with the bit for it and without.
    for (bit, kept) in [(0x20, 0), (0x00, 1)] {
        let mut server = begun(Side::Server);
        let head = [0x00, 0x00, 0xd1, 0xd7, 0x50, 1, b'h', 0x51 | bit, 3];
        let section = [&head[..], b"/tk"].concat();
        for stream in 0..3 {
            decoded(&mut server, 4 * stream, &section);
        }
        assert_eq!(server.compression.section_cache.requests.counts().1, kept);
    }
}

/// A short section may refer to long field lines, including many that are joined.
#[test]
fn large_messages_are_not_cached() {
    // 1024 with :method, :scheme, :path and :authority.
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
            server.compression.section_cache.requests.counts().1,
            kept,
            "{size} bytes"
        );
        let kept = if kept == 1 { size } else { 0 };
        assert_eq!(server.compression.section_cache.requests.memory(), kept);
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
    assert_eq!(server.compression.section_cache.requests.counts(), (0, 0));
}

/// RFC 9220.
#[test]
fn protocol_of_an_extended_connect_is_cached() {
    let (mut client, mut server) = pair();
    let mut heads = Vec::new();
    for stream in 0..6 {
        let request = Request::connect("https://example.org/chat")
            .extension(Protocol::WEBSOCKET)
            .body(())
            .expect("a request");
        let (parts, ()) = request.into_parts();
        let mut out = Vec::new();
        let fields = FieldsToSend::request(&parts).expect("valid fields");
        client.encode(4 * stream, &fields, &mut out).expect("small");
        carry(&mut client, &mut server);
        heads.push(decoded(&mut server, 4 * stream, &section_of(&out)));
        carry(&mut server, &mut client);
    }
    assert_eq!(server.compression.section_cache.requests.counts().1, 1);
    assert!(heads.iter().all(|head| *head == heads[0]), "{heads:?}");
    assert!(
        heads[0].ends_with("Some(Protocol(b\"websocket\"))"),
        "{}",
        heads[0]
    );
}

/// The limits are 16 fields, sections of 64 bytes, and a number of entries.
#[test]
fn cache_is_limited_in_fields_bytes_and_entries() {
    for (count, is_kept) in [(16, true), (17, false)] {
        let (mut client, mut server) = pair();
        let fields = vec![("accept", "*/*"); count];
        for stream in 0..5 {
            let section = section(&mut client, &mut server, 4 * stream, &fields);
            decoded(&mut server, 4 * stream, &section);
        }
        assert_eq!(
            server.compression.section_cache.requests.counts().1 == 1,
            is_kept,
            "{count} fields"
        );
    }
    // :method GET, :scheme https, :authority of one letter, and a literal path.
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
            server.compression.section_cache.requests.counts().1 == 1,
            is_kept,
            "{len} bytes"
        );
    }
    let (mut client, mut server) = pair();
    for n in 0..=ENTRIES as u8 {
        let agent = (n + 10).to_string();
        let fields = [("user-agent", agent.as_str())];
        let section = section(&mut client, &mut server, 4 * u64::from(n), &fields);
        decoded(&mut server, 4 * u64::from(n), &section);
        carry(&mut server, &mut client);
    }
    assert_eq!(
        server.compression.section_cache.requests.counts().0,
        ENTRIES
    );
}

/// Messages of the largest size reach the limit of all messages before that of entries.
#[test]
fn cached_messages_are_limited_in_total() {
    let others = (7 + 3) + (7 + 5) + (5 + 2) + (10 + 1) + 5 * 32;
    let value = "v".repeat(1024 - others - "x-long".len());
    let mut server = with_entry("x-long", &value);
    let letters = b'a'..b'a' + (MAX_TOTAL / 1024) as u8 + 1;
    for (stream, letter) in (0..)
        .map(|n| 4 * n)
        .zip([letters.clone(), letters].into_iter().flatten())
    {
        // A distinct path as a literal.
        let head = [
            0x02, 0x00, 0xd1, 0xd7, 0x51, 2, b'/', letter, 0x50, 1, b'h', 0x80,
        ];
        let head = decoded(&mut server, stream, &head);
        assert!(head.contains(&value), "{head}");
    }
    assert_eq!(
        server.compression.section_cache.requests.memory(),
        MAX_TOTAL
    );
    assert_eq!(
        server.compression.section_cache.requests.counts().1,
        MAX_TOTAL / 1024
    );
}

proptest! {
    /// The results and the decoder stream are the same as without a cache.
    #[test]
    fn cache_does_not_change_results(ops in prop::collection::vec((0u8..4, 0u8..3, any::<u8>()), 1..80)) {
        let (mut client, mut server) = pair();
        let mut other = begun(Side::Server);
        other.config = server.config.clone();
        for (stream, (a, b, what)) in (0..).map(|n| 4 * n).zip(ops) {
            let mut request = Request::get("https://example.org/path")
                .header("x-a", a.to_string())
                .header("x-b", b.to_string());
            if what & 1 == 0 {
                // So long that entries are evicted.
                request = request.header("x-long", "l".repeat(500 * usize::from(what >> 6)));
            }
            let (parts, ()) = request.body(()).expect("a request").into_parts();
            let mut out = Vec::new();
            let fields = FieldsToSend::request(&parts).expect("valid fields");
            client.encode(stream, &fields, &mut out).expect("small");
            let instructions = Bytes::from(std::mem::take(client.outgoing(UniStream::Encoder)));
            for end in [&mut server, &mut other] {
                let fate = end.handle_uni(NOW, 6, instructions.clone(), false);
                prop_assert_eq!(fate, Ok(UniFate::Read));
            }
            let section = section_of(&out);
            other.compression.section_cache = Caches::default();
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
