//! Tests of header sections that are not valid messages, and of their cost.

use http::Request;

use super::*;
use crate::connection::UniStream;
use crate::connection::tests::{carry, events, pair};
use crate::fields::FieldsToSend;

/// RFC 9114 §4.1.2, §4.3.
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

/// RFC 9204 §6: QPACK_DECOMPRESSION_FAILED.
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

/// §4.2.2: a server responds to a request that is too large, and cancels other messages.
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

/// §4.2.2, RFC 9204 §2.2.2.2: a section that is too long to be decoded ends only its stream, and its references
/// are cancelled. Inserts that arrived with it remain usable.
#[test]
fn oversized_sections_end_their_stream_and_are_cancelled() {
    let (mut client, mut server) = pair();
    events(&mut server);
    let mut request = |id: u64, len: usize| {
        let request = Request::get("https://example.org/a/long/path/to/be/inserted")
            .header("x-custom", "value")
            .header("x-large", "v".repeat(len))
            .body(())
            .expect("a request");
        let (parts, ()) = request.into_parts();
        let fields = FieldsToSend::request(&parts).expect("valid fields");
        let mut out = Vec::new();
        // The peer ignores the settings.
        client.append_section(id, &fields, || u64::MAX, &mut out);
        out
    };
    let frames = [request(0, 200_000), request(4, 200_000), request(8, 10)];
    carry(&mut client, &mut server);
    assert_eq!(events(&mut server), []);
    for (id, bytes) in (0..).step_by(4).zip(frames) {
        let mut stream = RequestStream::request(id, FieldLimits::REQUEST);
        let mut chunks = bytes.chunks(1000);
        let seen = loop {
            match next(&mut stream, &mut server).expect("no error") {
                Some(seen) => break seen,
                None => stream.push(Bytes::copy_from_slice(chunks.next().expect("more chunks"))),
            }
        };
        if id == 8 {
            assert!(matches!(seen, Seen::Request(..)), "{seen:?}");
            continue;
        }
        assert_eq!(seen, Seen::TooLarge);
        assert!(stream.memory() <= 1000, "{}", stream.memory());
        assert_eq!(stream.stop_code(), Some(Code::NO_ERROR));
        stream.abandon(&mut server);
        // Stream Cancellation (RFC 9204 §4.4.2).
        let answers = server.outgoing(UniStream::Decoder);
        assert_eq!(answers.last(), Some(&(0x40 | id as u8)));
        carry(&mut server, &mut client);
    }
}

/// Trailers, and responses to a client: the message fails, but not the connection.
#[test]
fn oversized_sections_that_cannot_be_answered_end_their_stream() {
    let large = frame(frame::HEADERS, &vec![0; 100_000]);
    for reading in [
        Reading::server(&[get(), data(b"x"), large.clone()]),
        Reading::client(std::slice::from_ref(&large)),
        Reading::client(&[response_with("103", &[]), large.clone()]),
        Reading::client(&[ok(), data(b"x"), large]),
    ] {
        assert_eq!(reading.read_cut(1000), Err(EXCESSIVE));
    }
}

/// Limits K81, K116: a large part of a section is withheld from flow control until the section is complete.
#[test]
fn parts_of_sections_are_held() {
    let (mut client, mut server) = pair();
    events(&mut server);
    let request = request_with("GET", &[("cookie", &"c".repeat(60_000))]);
    let mut stream = RequestStream::request(ID, FieldLimits::REQUEST);
    let (mut held, mut times) = (0, 0);
    for chunk in request[..request.len() - 1].chunks(1200) {
        stream.push(Bytes::copy_from_slice(chunk));
        assert_eq!(next(&mut stream, &mut server), Ok(None));
        let more = stream.hold_partial();
        assert!(more == 0 || more >= 2048, "{more}");
        (held, times) = (held + more, times + usize::from(more > 0));
        assert!(stream.memory() as u64 <= held + 2400 + 2048, "{held}");
    }
    assert!(times <= 7, "{times}");
    assert!(held <= request.len() as u64, "{held}");
    stream.push(Bytes::copy_from_slice(&request[request.len() - 1..]));
    let seen = next(&mut stream, &mut server);
    assert_eq!(seen, Ok(Some(Seen::Request(Method::GET, None))));
    assert_eq!((stream.take_held(), stream.memory()), (held, 0));
    // Small parts are not withheld.
    let mut stream = RequestStream::request(4, FieldLimits::REQUEST);
    for chunk in get().chunks(1) {
        stream.push(Bytes::copy_from_slice(chunk));
        let _ = next(&mut stream, &mut server);
        assert_eq!(stream.hold_partial(), 0);
    }
    carry(&mut server, &mut client);
}

/// The rest of a request that is answered with 431 is stopped, like that of one that is answered early.
#[test]
fn request_that_is_too_large_has_not_ended() {
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

/// A71, A72, K270: failed requests count like cancelled ones.
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

/// A81, K17: frames without progress use the budget.
#[test]
fn frames_without_progress_are_counted() {
    let mut reading = Reading::server(&[get()]);
    // Two do not count, and the header section offsets four.
    reading.bytes.extend(data(b"").repeat(2 + 4 + 501));
    assert_eq!(
        reading.read(),
        Err((Code::EXCESSIVE_LOAD, Scope::Connection))
    );
}
