use bytes::Bytes;
use courser_wire::{MAX_VARINT, Reader};
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use proptest::prelude::*;

use super::*;
use crate::error::Scope;
use crate::fields::{FieldLimits, FieldsError, FieldsToSend, Protocol, RequestError};

mod claimed;
mod frames;
mod limits;
mod recorded;
mod records;
mod section_cache;
mod streams;

pub(crate) const NOW: Time = Time::from_nanos(1_000_000);

fn connection(side: Side) -> Connection {
    Connection::new(side, Config::new(side), 1, NOW)
}

/// Returns a connection whose peer has sent SETTINGS on stream 3 (of a server) or 2 (of a client).
fn begun(side: Side) -> Connection {
    let mut connection = connection(side);
    let bytes = [&[0x00][..], &frame(frame::SETTINGS, &[])].concat();
    assert_eq!(control(&mut connection, &bytes), Ok(UniFate::Read));
    connection.set_request_limit(100);
    connection
}

fn control(connection: &mut Connection, bytes: &[u8]) -> Result<UniFate, (Code, Scope)> {
    uni(connection, 2, bytes, false)
}

fn uni(
    connection: &mut Connection,
    stream: u64,
    bytes: &[u8],
    fin: bool,
) -> Result<UniFate, (Code, Scope)> {
    connection
        .handle_uni(NOW, stream, Bytes::copy_from_slice(bytes), fin)
        .map_err(|error| (error.code, error.scope))
}

fn frame(value: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::encode_header(&mut out, value, payload.len());
    out.extend_from_slice(payload);
    out
}

fn integer(value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, value);
    out
}

fn code(code: Code) -> Result<UniFate, (Code, Scope)> {
    Err((code, Scope::Connection))
}

const SIDES: [Side; 2] = [Side::Client, Side::Server];

/// Moves the bytes that wait on the three streams of one end to the other.
pub(crate) fn carry(from: &mut Connection, to: &mut Connection) {
    let first = if from.side.is_client() { 2 } else { 3 };
    for (index, stream) in (0..).zip(UniStream::ALL) {
        let bytes = Bytes::from(std::mem::take(from.outgoing(stream)));
        if !bytes.is_empty() {
            let fate = to.handle_uni(NOW, first + 4 * index, bytes, false);
            assert_eq!(fate, Ok(UniFate::Read));
        }
    }
}

pub(crate) fn pair() -> (Connection, Connection) {
    let mut config = Config::new(Side::Server);
    config.extended_connect = true;
    config.datagrams = true;
    config.origins = vec![
        "https://example.org".to_owned(),
        "https://example.com".to_owned(),
    ];
    let mut server = Connection::new(Side::Server, config, 5, NOW);
    let mut config = Config::new(Side::Client);
    config.datagrams = true;
    let mut client = Connection::new(Side::Client, config, 6, NOW);
    carry(&mut server, &mut client);
    carry(&mut client, &mut server);
    (client, server)
}

pub(crate) fn events(connection: &mut Connection) -> Vec<Event> {
    std::iter::from_fn(|| connection.poll_event()).collect()
}

#[test]
fn both_ends_receive_the_settings() {
    let (mut client, mut server) = pair();
    let Event::Settings(settings) = events(&mut server).remove(0) else {
        panic!("settings first");
    };
    assert!(settings.h3_datagram && !settings.enable_connect_protocol);
    assert_eq!(
        settings.max_field_section_size,
        Some(FieldLimits::RESPONSE.size)
    );
    let seen = events(&mut client);
    assert!(
        client
            .peer_settings()
            .is_some_and(|settings| settings.enable_connect_protocol)
    );
    let origins = vec![
        "https://example.org".to_owned(),
        "https://example.com".to_owned(),
    ];
    assert_eq!(seen.last(), Some(&Event::Origins(origins)));
    assert!(client.has_datagrams() && server.has_datagrams());
}

#[test]
fn request_and_response_are_exchanged() {
    let (mut client, mut server) = pair();
    for round in 0..3 {
        let stream = 4 * round;
        let request = Request::get("https://example.org/path")
            .header("user-agent", "courser")
            .header("x-custom", "always the same")
            .body(())
            .expect("a request");
        let (parts, ()) = request.into_parts();
        let mut out = Vec::new();
        let fields = FieldsToSend::request(&parts).expect("valid fields");
        client.encode(stream, &fields, &mut out).expect("small");
        carry(&mut client, &mut server);
        let section = section_of(&out);
        let Ok(Section::Decoded(Ok((decoded, None)))) = server.decode_request(stream, &section)
        else {
            panic!("a request");
        };
        assert_eq!(decoded.uri(), &parts.uri);
        assert_eq!(decoded.headers(), &parts.headers);
        assert_eq!(server.on_request_opened(stream), None);

        let mut headers = HeaderMap::new();
        headers.insert("server", HeaderValue::from_static("courser"));
        let status = StatusCode::IM_A_TEAPOT;
        let mut out = Vec::new();
        let fields = FieldsToSend::response(&status, &headers);
        server.encode(stream, &fields, &mut out).expect("small");
        carry(&mut server, &mut client);
        let Ok(Section::Decoded(Ok((decoded, _)))) =
            client.decode_response(stream, &section_of(&out))
        else {
            panic!("a response");
        };
        assert_eq!((decoded.status(), decoded.headers()), (status, &headers));
        carry(&mut client, &mut server);
        if round == 2 {
            assert!(
                section.len() < 16,
                "by then all lines are in the table: {}",
                section.len()
            );
        }
    }
}

fn section_of(bytes: &[u8]) -> Vec<u8> {
    let (value, len, header) = frame::decode_header(bytes).expect("a frame");
    assert_eq!(
        (value, len as usize),
        (frame::HEADERS, bytes.len() - header)
    );
    bytes[header..].to_vec()
}

/// RFC 9204 §2.2.1.
#[test]
fn section_waits_for_its_inserts() {
    let (mut client, mut server) = pair();
    events(&mut server);
    let request = Request::get("https://example.org/a/long/path/to/be/inserted")
        .header("x-custom", "value")
        .body(())
        .expect("a request");
    let (parts, ()) = request.into_parts();
    let mut out = Vec::new();
    let fields = FieldsToSend::request(&parts).expect("valid fields");
    client.encode(0, &fields, &mut out).expect("small");
    let section = section_of(&out);
    assert!(matches!(
        server.decode_request(0, &section),
        Ok(Section::Blocked)
    ));
    carry(&mut client, &mut server);
    assert_eq!(events(&mut server), [Event::Unblocked { stream: 0 }]);
    assert!(matches!(
        server.decode_request(0, &section),
        Ok(Section::Decoded(Ok(_)))
    ));
}

/// RFC 9204 §2.1.3. The credit includes the stream type, which is sent first.
#[test]
fn instruction_is_sent_only_with_credit_for_all_of_it() {
    let mut sizes = std::collections::BTreeSet::new();
    for credit in 0..400 {
        let (mut client, mut server) = pair();
        events(&mut server);
        let request = Request::get("https://example.org/a/long/path/to/be/inserted")
            .header("x-first", "a value of the first field")
            .header("x-second", "a value of the second field")
            .body(())
            .expect("a request");
        let (parts, ()) = request.into_parts();
        let fields = FieldsToSend::request(&parts).expect("valid fields");
        let mut out = Vec::new();
        client
            .encode_within(0, &fields, || credit, &mut out)
            .expect("small");
        let instructions = client.outgoing(UniStream::Encoder).len() as u64;
        assert!(instructions <= credit, "{instructions} of {credit}");
        sizes.insert(instructions);
        // All instructions are complete.
        carry(&mut client, &mut server);
        let section = section_of(&out);
        assert!(
            matches!(
                server.decode_request(0, &section),
                Ok(Section::Decoded(Ok(_)))
            ),
            "credit {credit}"
        );
        // Waiting bytes count, so no instruction is added.
        let (mut client, _) = pair();
        for stream in [0, 4] {
            client
                .encode_within(stream, &fields, || credit, &mut Vec::new())
                .expect("small");
        }
        let instructions = client.outgoing(UniStream::Encoder).len() as u64;
        assert!(instructions <= credit, "{instructions} of {credit}");
    }
    assert!(sizes.len() > 2 && sizes.contains(&0), "{sizes:?}");
}

/// RFC 9114 §4.2.2.
#[test]
fn section_beyond_the_limit_of_the_peer_is_not_sent() {
    let (_, mut server) = pair();
    let mut headers = HeaderMap::new();
    for n in 0..25 {
        let value = HeaderValue::from_str(&"v".repeat(14_000)).expect("a value");
        headers.insert(
            http::HeaderName::from_bytes(format!("x-{n}").as_bytes()).expect("a name"),
            value,
        );
    }
    let status = StatusCode::OK;
    let fields = FieldsToSend::response(&status, &headers);
    let result = server.encode(0, &fields, &mut Vec::new());
    assert!(
        matches!(
            result,
            Err(RequestError::TooLarge {
                allowed: 307_200,
                ..
            })
        ),
        "{result:?}"
    );
}

/// RFC 9220 §3.
#[test]
fn extended_connect_waits_for_the_setting_of_the_server() {
    let mut request = Request::connect("https://example.org/chat")
        .body(())
        .expect("a request");
    request.extensions_mut().insert(Protocol::WEBSOCKET);
    let (parts, ()) = request.into_parts();
    let refused = Err(RequestError::ExtendedConnect);
    assert_eq!(connection(Side::Client).check_request(&parts), refused);
    assert_eq!(begun(Side::Client).check_request(&parts), refused);
    assert_eq!(pair().0.check_request(&parts), Ok(()));
}

/// RFC 9297 §2.1.
#[test]
fn datagrams_belong_to_requests() {
    let (client, mut server) = pair();
    server.set_request_limit(100);
    let datagram = |stream: u64| [&Connection::datagram_header(stream)[..], b"payload"].concat();
    for connection in [&client, &server] {
        let result = connection.handle_datagram(datagram(44).into());
        assert_eq!(result, Ok((44, Bytes::from_static(b"payload"))));
        let error = connection.handle_datagram(Bytes::new()).expect_err("empty");
        assert_eq!(error.code, Code::DATAGRAM_ERROR);
        let above = Bytes::from(integer(1 << 60));
        let error = connection
            .handle_datagram(above)
            .expect_err("above all streams");
        assert_eq!(error.code, Code::DATAGRAM_ERROR);
    }
    let error = server
        .handle_datagram(datagram(400).into())
        .expect_err("above the limit");
    assert_eq!(error.code, Code::ID_ERROR);
}

/// RFC 9297 §2.1.1.
#[test]
fn datagrams_require_both_ends() {
    let (client, _) = pair();
    assert!(client.has_datagrams());
    assert!(!begun(Side::Client).has_datagrams(), "without SETTINGS");
    let mut config = Config::new(Side::Client);
    config.datagrams = true;
    let mut client = Connection::new(Side::Client, config, 1, NOW);
    let settings = [&[0x00][..], &frame(frame::SETTINGS, &[])].concat();
    assert_eq!(control(&mut client, &settings), Ok(UniFate::Read));
    assert!(!client.has_datagrams(), "not the server");
}
