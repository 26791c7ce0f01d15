//! Header sections that make no message, and what they cost the peer.

use super::*;

/// §7.1: before it arrives.
#[test]
fn refuses_a_section_that_is_too_long() {
    let mut bytes = Vec::new();
    frame::encode_header(&mut bytes, frame::HEADERS, 1 << 20);
    for reading in [Reading::server(&[bytes.clone()]), Reading::client(&[bytes])] {
        let expected = Err((Code::EXCESSIVE_LOAD, Scope::Connection));
        assert_eq!(reading.read(), expected);
    }
}

/// §4.1.2, §4.3.
#[test]
fn malformed_sections_end_the_stream() {
    let requests = [
        headers(&[]),
        headers(&[(":method", "GET")]),
        request_with("GET", &[(":path", "/")]),
        request_with("GET", &[("connection", "close")]),
        request_with("GET", &[("content-length", "x")]),
        ok(),
    ];
    for head in requests {
        assert_eq!(Reading::server(&[head]).read(), Err(MALFORMED));
    }
    for head in [headers(&[]), get(), response_with("200", &[("te", "gzip")])] {
        assert_eq!(Reading::client(&[head]).read(), Err(MALFORMED));
    }
    let pseudo = headers(&[(":status", "200")]);
    assert_eq!(
        Reading::server(&[get(), pseudo.clone()]).read(),
        Err(MALFORMED)
    );
    assert_eq!(Reading::client(&[ok(), pseudo]).read(), Err(MALFORMED));
}

/// RFC 9204 §6.
#[test]
fn sections_that_cannot_be_decoded_end_the_connection() {
    let section = frame(frame::HEADERS, b"\0\0\xff\x24");
    let expected = Err((Code::QPACK_DECOMPRESSION_FAILED, Scope::Connection));
    for frames in [vec![section.clone()], vec![get(), section.clone()]] {
        assert_eq!(Reading::server(&frames).read(), expected);
    }
    for frames in [vec![section.clone()], vec![ok(), section]] {
        assert_eq!(Reading::client(&frames).read(), expected);
    }
}

/// §4.2.2: a server answers a request that is too large, and gives everything else up.
#[test]
fn large_sections_are_refused_by_role() {
    let large = "v".repeat(250);
    let large = [("x-large", &large[..])];
    let limited = |mut reading: Reading| {
        reading.limits.size = 300;
        reading.read()
    };
    let request = [request_with("POST", &large), data(b"x")];
    assert_eq!(limited(Reading::server(&request)), Ok(vec![Seen::TooLarge]));
    let response = [response_with("200", &large)];
    assert_eq!(limited(Reading::client(&response)), Err(EXCESSIVE));
    let end = headers(&[("x-large", &"v".repeat(300))]);
    assert_eq!(
        limited(Reading::server(&[get(), end.clone()])),
        Err(EXCESSIVE)
    );
    assert_eq!(limited(Reading::client(&[ok(), end])), Err(EXCESSIVE));
}

/// A request that is answered with 431 is stopped like one that is answered early.
#[test]
fn a_request_that_is_too_large_is_not_over() {
    let mut reading = Reading::server(&[request_with("GET", &[("x", &"v".repeat(300))])]);
    reading.limits.size = 300;
    let (mut stream, mut connection) = (reading.stream(), reading.connection());
    stream.push(Bytes::copy_from_slice(&reading.bytes));
    stream.on_fin();
    for _ in 0..2 {
        assert_eq!(next(&mut stream, &mut connection), Ok(Some(Seen::TooLarge)));
        assert_eq!(stream.stop_code(), Some(Code::NO_ERROR));
    }
    stream.abandon(&mut connection);
    assert!(stream.is_over());
}

/// A71, A72, K270: requests that fail count like cancelled ones.
#[test]
fn failed_requests_are_counted() {
    let reading = Reading::server(&[request_with("GET", &[("connection", "close")])]);
    let mut connection = reading.connection();
    for n in 0..=1300 {
        let mut stream = RequestStream::request(4 * n, reading.limits);
        stream.push(Bytes::copy_from_slice(&reading.bytes));
        let error = next(&mut stream, &mut connection).expect_err("malformed");
        let expected = match n {
            1300 => (Code::EXCESSIVE_LOAD, Scope::Connection),
            _ => MALFORMED,
        };
        assert_eq!(failed(error), expected, "request {n}");
        assert_eq!(next(&mut stream, &mut connection), Ok(Some(Seen::End)));
    }
}

/// A81, K17.
#[test]
fn frames_without_progress_are_counted() {
    let mut reading = Reading::server(&[get()]);
    // Two are ordinary, and the header section pays for four.
    reading.bytes.extend(data(b"").repeat(2 + 4 + 501));
    assert_eq!(
        reading.read(),
        Err((Code::EXCESSIVE_LOAD, Scope::Connection))
    );
}
