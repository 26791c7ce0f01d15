use super::*;

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

/// What a section is to the server, as text.
fn decoded(server: &mut Connection, stream: u64, section: &[u8]) -> String {
    format!("{:?}", server.decode_request(stream, section))
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
    assert_eq!(server.requests.kept().1, 1);
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
    assert_eq!(client.responses.kept().1, 1);
    assert!(heads[0].contains("\"value\""), "{}", heads[0]);
    assert!(heads[1..].iter().all(|head| *head == heads[0]), "{heads:?}");
}

/// The bytes are the same, but the entry they name has made room for another since: that is an
/// error (RFC 9204 §2.2.3), whatever they meant before.
#[test]
fn what_is_evicted_is_not_repeated() {
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
    assert_eq!(server.requests.kept().1, 1);
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
    let (mut client, mut server) = pair();
    for stream in 0..4 {
        let fields = [("authorization", "Basic 0123456789")];
        let section = section(&mut client, &mut server, 4 * stream, &fields);
        let head = decoded(&mut server, 4 * stream, &section);
        assert!(head.contains("authorization"), "{head}");
        carry(&mut server, &mut client);
    }
    assert_eq!(server.requests.kept(), (0, 0));
}

/// Sixteen fields, sections of 64 bytes, four of them.
#[test]
fn little_is_kept() {
    for (count, is_kept) in [(16, true), (17, false)] {
        let (mut client, mut server) = pair();
        let fields = vec![("accept", "*/*"); count];
        for stream in 0..5 {
            let section = section(&mut client, &mut server, 4 * stream, &fields);
            decoded(&mut server, 4 * stream, &section);
        }
        assert_eq!(server.requests.kept().1 == 1, is_kept, "{count} fields");
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
        assert_eq!(server.requests.kept().1 == 1, is_kept, "{len} bytes");
    }
    let (mut client, mut server) = pair();
    for n in 0..20_u8 {
        let agent = (n % 5).to_string();
        let fields = [("user-agent", agent.as_str())];
        let section = section(&mut client, &mut server, 4 * u64::from(n), &fields);
        decoded(&mut server, 4 * u64::from(n), &section);
        carry(&mut server, &mut client);
    }
    assert_eq!(server.requests.kept().0, 4);
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
            other.requests = Repeats::default();
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
