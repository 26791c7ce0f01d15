//! Tests of sections that are blocked on the dynamic table (RFC 9204 §2.1.2, §2.2.1).

use http::Request;

use super::*;
use crate::connection::tests::{carry, events, pair};
use crate::connection::{Event, UniStream};
use crate::fields::FieldsToSend;

/// Returns the HEADERS frame of a request whose fields must be inserted first.
fn blocked_request(client: &mut Connection, id: u64) -> Vec<u8> {
    let request = Request::post("https://example.org/a/long/path/to/be/inserted")
        .header("x-custom", format!("value {id}"))
        .body(())
        .expect("a request");
    let (parts, ()) = request.into_parts();
    encode(
        client,
        id,
        &FieldsToSend::request(&parts).expect("valid fields"),
    )
}

fn encode(from: &mut Connection, id: u64, fields: &FieldsToSend<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    from.encode(id, fields, &mut out).expect("small");
    out
}

/// Returns a stream that is blocked after these bytes, and the number of bytes that it withholds.
fn blocked(server: &mut Connection, id: u64, bytes: &[u8]) -> (RequestStream, u64) {
    let mut stream = RequestStream::request(id, FieldLimits::REQUEST);
    stream.push(Bytes::copy_from_slice(bytes));
    assert!(matches!(stream.poll(), Step::Decode));
    match stream.decode(server) {
        Decoding::Blocked { hold } => (stream, hold),
        Decoding::Done => panic!("not blocked"),
    }
}

fn is_blocked(stream: &mut RequestStream, connection: &mut Connection) -> bool {
    matches!(stream.poll(), Step::Decode)
        && stream.decode(connection) == Decoding::Blocked { hold: 0 }
}

#[test]
fn blocked_request_continues_when_the_entries_arrive() {
    let (mut client, mut server) = pair();
    events(&mut server);
    let head = blocked_request(&mut client, ID);
    let content = data(b"behind");
    let (mut stream, hold) = blocked(&mut server, ID, &[&head[..], &content].concat());
    // The whole chunk except the header of its first frame.
    assert_eq!(hold, (head.len() - 2 + content.len()) as u64);
    assert_eq!(hold, stream.memory() as u64);
    // An early attempt has no effect.
    assert!(is_blocked(&mut stream, &mut server));

    carry(&mut client, &mut server);
    assert_eq!(events(&mut server), [Event::Unblocked { stream: ID }]);
    let seen = next(&mut stream, &mut server);
    assert_eq!(seen, Ok(Some(Seen::Request(Method::POST, None))));
    assert_eq!((stream.take_held(), stream.take_held()), (hold, 0));
    let seen = next(&mut stream, &mut server);
    assert_eq!(seen, Ok(Some(Seen::Content(b"behind".to_vec()))));
    assert_eq!(server.blocked_bytes(), 0);
}

#[test]
fn blocked_response_continues_when_the_entries_arrive() {
    let (mut client, mut server) = pair();
    let mut fields = HeaderMap::new();
    fields.insert("x-custom", http::HeaderValue::from_static("value"));
    let mut stream = RequestStream::response(ID, FieldLimits::RESPONSE, &Method::GET);
    // Each section is blocked and continues independently.
    for status in [StatusCode::EARLY_HINTS, StatusCode::OK] {
        fields.insert("x-other", http::HeaderValue::from(status.as_u16()));
        let response = FieldsToSend::response(&status, &fields);
        let head = encode(&mut server, ID, &response);
        stream.push(head.into());
        assert_eq!(next(&mut stream, &mut client), Ok(None));
        assert!(is_blocked(&mut stream, &mut client));
        carry(&mut server, &mut client);
        let seen = next(&mut stream, &mut client);
        assert_eq!(seen, Ok(Some(Seen::Response(status, None))));
        assert!(stream.take_held() > 0);
    }
}

#[test]
fn blocked_trailers_wait_and_hold_credit() {
    let (mut client, mut server) = pair();
    let mut stream = RequestStream::request(ID, FieldLimits::REQUEST);
    let mut trailers = HeaderMap::new();
    trailers.insert("x-checksum", http::HeaderValue::from_static("inserted"));
    let last = encode(&mut client, ID, &FieldsToSend::trailers(&trailers));
    stream.push([get(), data(b"x"), last.clone()].concat().into());
    stream.on_fin();
    let mut seen = Vec::new();
    while let Some(more) = next(&mut stream, &mut server).expect("no error") {
        seen.push(more);
    }
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert!(!stream.is_over());
    assert_eq!(stream.take_held(), (last.len() - 2) as u64);
    carry(&mut client, &mut server);
    assert_eq!(next(&mut stream, &mut server), Ok(Some(Seen::Trailers(1))));
    assert_eq!(stream.take_held(), 0);
}

type End = fn(&mut RequestStream, &mut Connection);

/// RFC 9204 §2.2.2.2.
#[test]
fn blocked_stream_can_end_in_every_way() {
    let ends: [(&str, End); 4] = [
        ("reset", |stream, server| {
            assert_eq!(stream.on_reset(server, NOW), Ok(()));
        }),
        ("abandoned", |stream, server| {
            assert_eq!(stream.stop_code(), Some(Code::NO_ERROR));
            stream.abandon(server);
        }),
        ("failed", |stream, server| {
            let late = Error::stream(Code::REQUEST_REJECTED, "too late");
            assert_eq!(stream.fail(server, NOW, late), late);
        }),
        ("lost", |stream, _| stream.on_connection_lost()),
    ];
    for (name, end) in ends {
        let (mut client, mut server) = pair();
        let head = blocked_request(&mut client, ID);
        let (mut stream, hold) = blocked(&mut server, ID, &head);
        events(&mut server);
        server.outgoing(UniStream::Decoder).clear();
        end(&mut stream, &mut server);
        assert!(stream.is_over(), "{name}");
        assert_eq!(stream.take_held(), hold, "{name}");
        assert_eq!(stream.decode(&mut server), Decoding::Done, "{name}");
        assert_eq!(
            next(&mut stream, &mut server),
            Ok(Some(Seen::End)),
            "{name}"
        );
        if name != "lost" {
            // Stream Cancellation (RFC 9204 §4.4.2).
            assert_eq!(
                server.outgoing(UniStream::Decoder).last(),
                Some(&0x40),
                "{name}"
            );
            assert_eq!(server.blocked_bytes(), 0, "{name}");
            carry(&mut client, &mut server);
            assert_eq!(events(&mut server), [], "{name}");
        }
    }
}

/// K25, A75: blocked sections are limited in bytes.
#[test]
fn sections_beyond_the_limit_of_blocked_bytes_are_cancelled() {
    let (mut client, _) = pair();
    let head = blocked_request(&mut client, ID);
    let mut config = Config::new(Side::Server);
    config.blocked_bytes = head.len();
    let mut limited = Connection::new(Side::Server, config, 1, NOW);
    let _first = blocked(&mut limited, ID, &head);
    let second = blocked_request(&mut client, 4);
    let mut stream = RequestStream::request(4, FieldLimits::REQUEST);
    stream.push(second.into());
    let error = next(&mut stream, &mut limited).expect_err("too much");
    assert_eq!(failed(error), EXCESSIVE);
    assert_eq!(stream.take_held(), 0);
}
