//! Tests of frames and streams of extensions (RFC 9114 §9).

use super::*;
use crate::extensions::{Extensions, FrameStream};

const FRAME: u64 = 0x1000;

fn extensions() -> Extensions {
    Extensions::new()
        .frame(FRAME, FrameStream::Request, 100)
        .and_then(|it| it.bidirectional_stream(0x41))
        .expect("free numbers")
}

/// Returns the steps for the application, in order.
fn read(bytes: &[u8], cut: usize, has_fin: bool) -> Result<Vec<String>, (Code, Scope)> {
    let mut stream = RequestStream::request(ID, FieldLimits::REQUEST);
    stream.set_extensions(&extensions());
    let mut connection = Connection::new(Side::Server, Config::new(Side::Server), 1, NOW);
    let mut chunks = bytes.chunks(cut).map(Bytes::copy_from_slice).peekable();
    let mut seen: Vec<String> = Vec::new();
    loop {
        match stream.poll() {
            Step::Read => match chunks.next() {
                Some(chunk) => {
                    stream.push(chunk);
                    if has_fin && chunks.peek().is_none() {
                        stream.on_fin();
                    }
                }
                None => return Ok(seen),
            },
            Step::Decode => assert_eq!(stream.decode(&mut connection), Decoding::Done),
            Step::Charge => {
                if let Err(error) = stream.charge(&mut connection, NOW) {
                    return Err((error.code, error.scope));
                }
                seen.push("counted".to_owned());
            }
            Step::Headers => seen.push("headers".to_owned()),
            Step::Content(data) => seen.push(format!("content {}", data.len())),
            Step::Frame { payload, .. } => {
                seen.push(format!("frame {}", String::from_utf8_lossy(&payload)));
            }
            Step::Claimed { signal, first } => {
                // Further bytes are read from the transport.
                let rest: usize = chunks.map(|chunk| chunk.len()).sum();
                seen.push(format!("claimed {signal:#x} {}", first.len() + rest));
                assert!(stream.is_over() && stream.stop_code().is_none());
                return Ok(seen);
            }
            Step::Trailers(_) | Step::TooLarge(_) => seen.push("other".to_owned()),
            Step::End => return Ok(seen),
        }
    }
}

fn read_every_way(bytes: &[u8], has_fin: bool) -> Result<Vec<String>, (Code, Scope)> {
    let whole = read(bytes, usize::MAX, has_fin);
    for cut in [1, 2, 3] {
        let merged = read(bytes, cut, has_fin);
        assert_eq!(merged.is_ok(), whole.is_ok(), "chunks of {cut}");
        if let (Ok(merged), Ok(whole)) = (merged, &whole) {
            let without = |seen: &[String]| -> Vec<String> {
                let frames = seen.iter().filter(|seen| !seen.starts_with("content"));
                frames.cloned().collect()
            };
            assert_eq!(without(&merged), without(whole), "chunks of {cut}");
        }
    }
    whole
}

fn frame(frame_type: u64, payload: &[u8]) -> Vec<u8> {
    Connection::encode_frame(frame_type, payload)
}

/// Returns the HEADERS frame of GET https://a/, encoded with the static table.
fn head() -> Vec<u8> {
    frame(0x01, &[0x00, 0x00, 0xd1, 0xd7, 0x50, 0x01, b'a', 0xc1])
}

#[test]
fn frames_come_before_between_and_after_content() {
    let bytes = [
        frame(FRAME, b"first frame"),
        head(),
        frame(FRAME, b"second frame"),
        frame(0x00, b"content"),
        frame(FRAME + 1, b"unknown"),
        frame(FRAME, b"third frame"),
    ]
    .concat();
    let seen = read_every_way(&bytes, true).expect("a request");
    let expected = [
        "frame first frame",
        "headers",
        "frame second frame",
        "content 7",
        "frame third frame",
    ];
    assert_eq!(seen, expected);
}

#[test]
fn frame_longer_than_claimed_ends_the_connection() {
    let bytes = frame(FRAME, &[0; 101]);
    assert_eq!(
        read(&bytes, 1000, false),
        Err((Code::EXCESSIVE_LOAD, Scope::Connection))
    );
}

/// A122: tiny frames count like tiny DATA frames (K85).
#[test]
fn tiny_frames_beyond_the_ordinary_number_are_counted() {
    let tiny = frame(FRAME, b"x").repeat(300);
    let seen = read(&tiny, usize::MAX, false).expect("within the budget");
    assert_eq!(
        seen.iter().filter(|seen| *seen == "counted").count(),
        300 - 256
    );
    let tiny = frame(FRAME, b"x").repeat(1000);
    assert_eq!(
        read(&tiny, usize::MAX, false),
        Err((Code::EXCESSIVE_LOAD, Scope::Connection))
    );
}

/// draft-ietf-webtrans-http3-12 §4.2.
#[test]
fn signal_at_the_start_claims_the_stream() {
    for has_fin in [false, true] {
        let seen = read_every_way(&[0x40, 0x41, 4, 1, 2, 3], has_fin).expect("claimed");
        assert_eq!(seen, ["claimed 0x41 4"]);
        assert_eq!(
            read_every_way(&[0x40, 0x41], has_fin).expect("claimed"),
            ["claimed 0x41 0"]
        );
    }
}

/// draft-ietf-webtrans-http3-12 §4.2.
#[test]
fn signal_elsewhere_is_a_frame_error() {
    let error = Err((Code::FRAME_ERROR, Scope::Connection));
    for before in [
        head(),
        frame(FRAME + 1, b"unknown"),
        frame(FRAME, b"claimed"),
    ] {
        let bytes = [&before[..], &[0x40, 0x41, 0x04]].concat();
        assert_eq!(read_every_way(&bytes, false), error);
    }
    // Responses never start with it.
    let mut stream = RequestStream::response(ID, FieldLimits::RESPONSE, &Method::GET);
    stream.set_extensions(&extensions());
    let mut connection = Connection::new(Side::Client, Config::new(Side::Client), 1, NOW);
    stream.push(Bytes::from_static(&[0x40, 0x41, 0x04]));
    assert!(matches!(stream.poll(), Step::Charge));
    let error = stream.charge(&mut connection, NOW).expect_err("no frame");
    assert_eq!(error.code, Code::FRAME_ERROR);
}

#[test]
fn streams_with_other_first_integers_are_requests() {
    for cut in [1, 2, 1000] {
        let bytes = [head(), frame(0x00, b"content")].concat();
        let seen = read(&bytes, cut, true).expect("a request");
        assert_eq!(seen[0], "headers", "chunks of {cut}");
    }
    for bytes in [&[][..], &[0x40]] {
        let mut stream = RequestStream::request(ID, FieldLimits::REQUEST);
        stream.set_extensions(&extensions());
        let mut connection = Connection::new(Side::Server, Config::new(Side::Server), 1, NOW);
        stream.push(Bytes::copy_from_slice(bytes));
        assert!(matches!(stream.poll(), Step::Read));
        stream.on_fin();
        assert!(matches!(stream.poll(), Step::Charge));
        let error = stream.charge(&mut connection, NOW).expect_err("incomplete");
        let expected = match bytes {
            [] => Code::REQUEST_INCOMPLETE,
            _ => Code::FRAME_ERROR,
        };
        assert_eq!(error.code, expected);
    }
}
