use super::*;

/// Reads a connection in pieces of this length, and returns what hyper gets, with short marks.
fn read(sent: &[u8], piece: usize) -> (String, State) {
    let marks = Marks::default();
    let mut heads = Heads::new(marks.clone());
    let mut out = Vec::new();
    for piece in sent.chunks(piece) {
        let mut output = Vec::new();
        match heads.read(piece, &mut output) {
            true => out.extend_from_slice(&output),
            false => out.extend_from_slice(piece),
        }
    }
    let mut text = String::from_utf8_lossy(&out).into_owned();
    for (mark, short) in [
        (Mark::Malformed(Cause::InvalidTarget), "mark: malformed"),
        (Mark::Target(b"*".to_vec()), "mark: *"),
    ] {
        let (name, value) = marks.field(&mark).expect("random numbers");
        let line = format!("{name}: {}", String::from_utf8_lossy(&value));
        text = text.replace(&line, short);
    }
    (text, heads.state)
}

#[test]
fn targets_change_in_request_lines_only_wherever_they_are_split() {
    for (sent, expected) in [
        (
            "GET /a?b=\"<c>\" HTTP/1.1\r\n",
            "GET /a?b=%22%3Cc%3E%22 HTTP/1.1\r\n",
        ),
        ("GET /<`\" HTTP/1.1\r\n", "GET /%3C%60\" HTTP/1.1\r\n"),
        ("GET /é HTTP/1.1\r\n", "GET /%C3%A9 HTTP/1.1\r\n"),
        (
            "GET /a#b\" HTTP/1.1\r\n",
            "GET /a#b\" HTTP/1.1\r\nmark: malformed\r\n",
        ),
        ("G\"T / HTTP/1.1\r\n", "G\"T / HTTP/1.1\r\n"),
        (
            "GET https://a\"b/?\" HTTP/1.1\r\n",
            "GET https://a\"b/?%22 HTTP/1.1\r\n",
        ),
        (
            "OPTIONS https://localhost HTTP/1.1\r\n",
            "OPTIONS https://localhost HTTP/1.1\r\nmark: *\r\n",
        ),
        (
            "OPTIONS https://localhost/ HTTP/1.1\r\n",
            "OPTIONS https://localhost/ HTTP/1.1\r\n",
        ),
        (
            "OPTIONS https://localhost?x HTTP/1.1\r\n",
            "OPTIONS https://localhost?x HTTP/1.1\r\n",
        ),
        ("OPTIONS /a HTTP/1.1\r\n", "OPTIONS /a HTTP/1.1\r\n"),
        ("\r\n\nGET /< HTTP/1.1\r\n", "\r\n\nGET /%3C HTTP/1.1\r\n"),
    ] {
        let rest = "Host: a\r\nX: \"#<\r\n\r\n";
        let (sent, expected) = (format!("{sent}{rest}"), format!("{expected}{rest}"));
        for piece in 1..=sent.len() {
            let read = read(sent.as_bytes(), piece);
            assert_eq!(
                read,
                (expected.clone(), State::RequestLine),
                "pieces of {piece}"
            );
        }
    }
}

#[test]
fn content_is_never_changed() {
    let bait = "GET /\" HTTP/1.1\r\n\r\n";
    let chunks = format!(
        "{:x};a=b\r\n{bait}\r\n5\r\n\"\r\n\"\"\r\n0\r\nx: \"\r\n\r\n",
        bait.len()
    );
    let contents = [
        (String::new(), String::new()),
        ("Content-Length: 0\r\n".to_owned(), String::new()),
        (
            format!("content-LENGTH:{}\r\n", bait.len()),
            bait.to_owned(),
        ),
        ("Transfer-Encoding: Chunked\r\n".to_owned(), chunks),
    ];
    for (field, content) in contents {
        let message = format!(" HTTP/1.1\r\nHost: a\r\n{field}\r\n{content}");
        let sent = format!("POST /\"<{message}GET /`{message}");
        let expected = format!("POST /\"%3C{message}GET /%60{message}");
        for piece in 1..=sent.len() {
            let read = read(sent.as_bytes(), piece);
            assert_eq!(
                read,
                (expected.clone(), State::RequestLine),
                "pieces of {piece}"
            );
        }
    }
}

#[test]
fn bytes_pass_unchanged_after_a_message_whose_end_is_not_certain() {
    let long = format!("content-length: {}1\r\n", " ".repeat(MAX_PARTIAL));
    for fields in [
        "content-length: 1\r\ncontent-length: 1\r\n",
        "content-length: 1\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked\r\ncontent-length: 1\r\n",
        "transfer-encoding: gzip, chunked\r\n",
        "content-length: +1\r\n",
        "content-length:\r\n",
        "content-length: 1\r\n 2\r\n",
        "upgrade: websocket\r\n",
        "transfer-encoding: chunked\r\n\r\nx\r\n",
        "transfer-encoding: chunked\r\n\r\n-1\r\n",
        "transfer-encoding: chunked\r\n\r\n1 \r\n",
        "transfer-encoding: chunked\r\n\r\n1\n",
        "x: y\n",
        &long,
    ] {
        let sent = format!("GET / HTTP/1.1\r\n{fields}\r\nGET /\" HTTP/1.1\r\n\r\n");
        for piece in 1..MAX_PARTIAL.min(sent.len()) {
            let read = read(sent.as_bytes(), piece);
            assert_eq!(
                read,
                (sent.clone(), State::Unknown),
                "{fields:?}, pieces of {piece}"
            );
        }
    }
    let tunnel = "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\nGET /\" HTTP/1.1\r\n\r\n";
    assert_eq!(
        read(tunnel.as_bytes(), 9),
        (tunnel.to_owned(), State::Unknown)
    );
}

/// Limit K410.
#[test]
fn long_lines_are_not_kept() {
    let mut heads = Heads::new(Marks::default());
    let mut output = Vec::new();
    heads.read(b"GET / HTTP/1.1\r\nx: ", &mut output);
    for _ in 0..100 {
        heads.read(&[b'y'; 100], &mut output);
        assert!(heads.partial.len() <= MAX_PARTIAL);
    }
    heads.read(b"\r\n\r\n", &mut output);
    assert_eq!(heads.state, State::RequestLine);
    assert!(heads.partial.is_empty() && output.is_empty());
}

/// A line is kept in part if it arrives in parts, and a length must not be read from a part of its digits.
#[test]
fn lines_that_are_kept_in_part_frame_nothing() {
    for line in [
        "Content-Length:{spaces}12",
        "Transfer-Encoding:{spaces}chunked",
    ] {
        for value_at in MAX_PARTIAL - 12..MAX_PARTIAL + 3 {
            let spaces = value_at - line.find('{').expect("a place");
            let line = line.replace("{spaces}", &" ".repeat(spaces));
            let sent = format!("POST / HTTP/1.1\r\n{line}\r\n\r\n\r\n\r\n\r\nGET /< HTTP/1.1\r\n");
            for piece in [1, 100] {
                let (passed, state) = read(sent.as_bytes(), piece);
                assert!(
                    state == State::Unknown || line.len() < MAX_PARTIAL,
                    "{value_at}"
                );
                assert!(state != State::Unknown || passed == sent, "{value_at}");
            }
        }
    }
}
