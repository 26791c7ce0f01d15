use std::time::Duration;

use bytes::Bytes;
use courser_wire::{MAX_VARINT, Reader};
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use proptest::prelude::*;

use super::*;
use crate::error::Scope;
use crate::fields::{FieldsToSend, Protocol, RequestError};

const NOW: Time = Time::from_nanos(1_000_000);

fn connection(side: Side) -> Connection {
    Connection::new(side, Config::new(side), 1, NOW)
}

/// The peer's control stream with SETTINGS has arrived as stream 3 of a server or 2 of a client.
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

/// Moves what waits on the three streams of one end to the other.
fn carry(from: &mut Connection, to: &mut Connection) {
    let first = if from.side.is_client() { 2 } else { 3 };
    for (index, stream) in (0..).zip(UniStream::ALL) {
        let bytes = Bytes::from(std::mem::take(from.outgoing(stream)));
        if !bytes.is_empty() {
            let fate = to.handle_uni(NOW, first + 4 * index, bytes, false);
            assert_eq!(fate, Ok(UniFate::Read));
        }
    }
}

fn pair() -> (Connection, Connection) {
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

fn events(connection: &mut Connection) -> Vec<Event> {
    std::iter::from_fn(|| connection.poll_event()).collect()
}

#[test]
fn both_ends_learn_the_settings() {
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
fn a_request_and_its_response_cross() {
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
        let fields = FieldsToSend::request(&parts).expect("whole");
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
fn a_section_waits_for_the_table() {
    let (mut client, mut server) = pair();
    events(&mut server);
    let request = Request::get("https://example.org/a/long/path/to/be/inserted")
        .header("x-custom", "value")
        .body(())
        .expect("a request");
    let (parts, ()) = request.into_parts();
    let mut out = Vec::new();
    let fields = FieldsToSend::request(&parts).expect("whole");
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

/// RFC 9114 §4.2.2.
#[test]
fn does_not_send_more_than_the_peer_reads() {
    let (_, mut server) = pair();
    let mut headers = HeaderMap::new();
    for n in 0..5 {
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
                allowed: 65_536,
                ..
            })
        ),
        "{result:?}"
    );
}

/// RFC 9220 §3.
#[test]
fn extended_connect_waits_for_the_servers_word() {
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

/// §6.2.1.
#[test]
fn the_control_stream_begins_with_settings() {
    for side in SIDES {
        for first in [
            frame(frame::GOAWAY, &[0]),
            frame(frame::DATA, b""),
            frame(frame::reserved(3), b""),
            frame(0x02, b""),
        ] {
            let mut connection = connection(side);
            let bytes = [&[0x00][..], &first].concat();
            assert_eq!(
                control(&mut connection, &bytes),
                code(Code::MISSING_SETTINGS)
            );
        }
    }
}

/// §7.2.4.
#[test]
fn settings_come_once() {
    for side in SIDES {
        let mut connection = begun(side);
        let again = frame(frame::SETTINGS, &[]);
        assert_eq!(
            control(&mut connection, &again),
            code(Code::FRAME_UNEXPECTED)
        );
    }
}

/// §7.2.1, §7.2.2, §7.2.5, §7.2.7, §7.2.8, RFC 9218 §7.2.
#[test]
fn refuses_frames_that_do_not_belong_there() {
    for side in SIDES {
        for value in [
            frame::DATA,
            frame::HEADERS,
            frame::PUSH_PROMISE,
            0x02,
            0x06,
            0x08,
            0x09,
        ] {
            for payload in [&b""[..], b"\0"] {
                let result = control(&mut begun(side), &frame(value, payload));
                assert_eq!(result, code(Code::FRAME_UNEXPECTED), "{side:?} {value:#x}");
            }
        }
    }
    for value in [
        frame::MAX_PUSH_ID,
        frame::PRIORITY_UPDATE_REQUEST,
        frame::PRIORITY_UPDATE_PUSH,
    ] {
        let result = control(&mut begun(Side::Client), &frame(value, b"\0"));
        assert_eq!(result, code(Code::FRAME_UNEXPECTED), "{value:#x}");
    }
}

/// §6.2.1, §6.2.2, RFC 9204 §4.2.
#[test]
fn there_is_one_of_each_critical_stream() {
    for side in SIDES {
        for stream_type in [0x00, 0x02, 0x03] {
            let mut connection = connection(side);
            assert_eq!(
                uni(&mut connection, 2, &[stream_type], false),
                Ok(UniFate::Read)
            );
            let result = uni(&mut connection, 6, &[stream_type], false);
            assert_eq!(result, code(Code::STREAM_CREATION_ERROR));
        }
    }
}

/// §6.2.1, RFC 9204 §4.2.
#[test]
fn critical_streams_stay_open() {
    for side in SIDES {
        for stream_type in [0x00, 0x02, 0x03] {
            let open = || {
                let mut connection = connection(side);
                assert_eq!(
                    uni(&mut connection, 2, &[stream_type], false),
                    Ok(UniFate::Read)
                );
                connection
            };
            let closed = Code::CLOSED_CRITICAL_STREAM;
            assert_eq!(uni(&mut open(), 2, &[], true), code(closed));
            assert_eq!(
                uni(&mut connection(side), 2, &[stream_type], true),
                code(closed)
            );
            let result = open().handle_uni_reset(NOW, 2);
            assert_eq!(result.map_err(|error| error.code), Err(closed));
        }
        assert_eq!(
            connection(side).on_stopped().code,
            Code::CLOSED_CRITICAL_STREAM
        );
    }
}

/// RFC 9204 §4.2: both may be there though the settings make them useless.
#[test]
fn qpack_streams_may_be_opened_for_nothing() {
    let mut config = Config::new(Side::Server);
    config.decoder.max_table_capacity = 0;
    config.decoder.max_blocked_streams = 0;
    let mut connection = Connection::new(Side::Server, config, 1, NOW);
    assert_eq!(uni(&mut connection, 2, &[0x02], false), Ok(UniFate::Read));
    assert_eq!(uni(&mut connection, 6, &[0x03], false), Ok(UniFate::Read));
}

/// §6.2, §6.2.3.
#[test]
fn streams_that_are_unknown_are_stopped() {
    let reserved = integer(frame::reserved(1000));
    let mut connection = connection(Side::Server);
    for byte in &reserved[..reserved.len() - 1] {
        assert_eq!(uni(&mut connection, 2, &[*byte], false), Ok(UniFate::Read));
    }
    let last = &reserved[reserved.len() - 1..];
    let stop = UniFate::Stop(Code::STREAM_CREATION_ERROR);
    assert_eq!(uni(&mut connection, 2, last, false), Ok(stop));
    assert_eq!(uni(&mut connection, 6, &[0x1f, 1, 2, 3], false), Ok(stop));
    assert_eq!(
        uni(&mut connection, 10, &[0x40, 0x54], true),
        Ok(UniFate::Ended)
    );
}

/// §6.2.
#[test]
fn a_stream_may_end_before_its_type() {
    let mut connection = connection(Side::Server);
    assert_eq!(uni(&mut connection, 2, &[], true), Ok(UniFate::Ended));
    assert_eq!(
        uni(&mut connection, 6, &[0xc0, 1], true),
        Ok(UniFate::Ended)
    );
    assert_eq!(
        uni(&mut connection, 10, &[0xc0, 1], false),
        Ok(UniFate::Read)
    );
    assert_eq!(connection.handle_uni_reset(NOW, 10), Ok(()));
    assert!(connection.unidirectional.untyped.is_empty());
}

/// §4.6, §6.2.2.
#[test]
fn refuses_pushes() {
    let push = [0x01, 0x00];
    assert_eq!(
        uni(&mut connection(Side::Client), 3, &push, false),
        code(Code::ID_ERROR)
    );
    let result = uni(&mut connection(Side::Server), 2, &push, false);
    assert_eq!(result, code(Code::STREAM_CREATION_ERROR));
    for side in SIDES {
        let cancel = frame(frame::CANCEL_PUSH, &[0]);
        assert_eq!(control(&mut begun(side), &cancel), code(Code::ID_ERROR));
    }
    let update = frame(frame::PRIORITY_UPDATE_PUSH, b"\0u=1");
    assert_eq!(
        control(&mut begun(Side::Server), &update),
        code(Code::ID_ERROR)
    );
}

/// §7.2.7.
#[test]
fn max_push_id_does_not_shrink() {
    let mut server = begun(Side::Server);
    for id in [3, 3, 10] {
        let bytes = frame(frame::MAX_PUSH_ID, &integer(id));
        assert_eq!(control(&mut server, &bytes), Ok(UniFate::Read));
    }
    let bytes = frame(frame::MAX_PUSH_ID, &integer(9));
    assert_eq!(control(&mut server, &bytes), code(Code::ID_ERROR));
}

/// §6.1.
#[test]
fn a_server_opens_no_bidirectional_stream() {
    assert_eq!(connection(Side::Server).check_bidirectional(), Ok(()));
    let error = connection(Side::Client)
        .check_bidirectional()
        .expect_err("refused");
    assert_eq!(error.code, Code::STREAM_CREATION_ERROR);
}

/// §7.1, §10.8.
#[test]
fn payloads_are_exactly_their_fields() {
    for value in [frame::GOAWAY, frame::MAX_PUSH_ID, frame::CANCEL_PUSH] {
        for payload in [&[][..], &[0x40], &[0, 0]] {
            let result = control(&mut begun(Side::Server), &frame(value, payload));
            assert_eq!(result, code(Code::FRAME_ERROR), "{value:#x} {payload:?}");
        }
    }
    let result = control(
        &mut begun(Side::Server),
        &frame(frame::PRIORITY_UPDATE_REQUEST, &[0x40]),
    );
    assert_eq!(result, code(Code::FRAME_ERROR));
    let result = control(&mut connection(Side::Server), &[0x00, 0x04, 0x01, 0x06]);
    assert_eq!(result, code(Code::FRAME_ERROR));
    let result = control(
        &mut begun(Side::Client),
        &frame(frame::ORIGIN, &[0, 5, b'h']),
    );
    assert_eq!(result, code(Code::FRAME_ERROR));
}

/// K26: before they arrive.
#[test]
fn frames_are_no_longer_than_sense() {
    for (value, most) in [
        (frame::GOAWAY, 8),
        (frame::MAX_PUSH_ID, 8),
        (frame::CANCEL_PUSH, 8),
        (frame::PRIORITY_UPDATE_REQUEST, 256),
        (frame::ORIGIN, 4096),
    ] {
        let mut bytes = Vec::new();
        frame::encode_header(&mut bytes, value, most + 1);
        let result = control(&mut begun(Side::Server), &bytes);
        assert_eq!(result, code(Code::EXCESSIVE_LOAD), "{value:#x}");
    }
    let mut bytes = vec![0x00];
    frame::encode_header(&mut bytes, frame::SETTINGS, 1025);
    assert_eq!(
        control(&mut connection(Side::Server), &bytes),
        code(Code::EXCESSIVE_LOAD)
    );
}

/// §5.2, §7.2.6.
#[test]
fn goaway_names_a_request_and_never_grows() {
    let mut client = begun(Side::Client);
    events(&mut client);
    for id in [MAX_VARINT - 3, 8, 8, 4] {
        let bytes = frame(frame::GOAWAY, &integer(id));
        assert_eq!(control(&mut client, &bytes), Ok(UniFate::Read));
        assert_eq!(events(&mut client), [Event::GoAway { first_refused: id }]);
    }
    assert!(client.peer_goes_away());
    let grown = frame(frame::GOAWAY, &integer(8));
    assert_eq!(control(&mut client, &grown), code(Code::ID_ERROR));
    for id in [1, 2, 3] {
        let bytes = frame(frame::GOAWAY, &integer(id));
        assert_eq!(
            control(&mut begun(Side::Client), &bytes),
            code(Code::ID_ERROR)
        );
    }
    // A client names a push, of which there are none, so it is of no interest which.
    let mut server = begun(Side::Server);
    assert_eq!(
        control(&mut server, &frame(frame::GOAWAY, &[7])),
        Ok(UniFate::Read)
    );
    assert_eq!(
        control(&mut server, &frame(frame::GOAWAY, &[8])),
        code(Code::ID_ERROR)
    );
}

/// §5.2: first a warning, then what is true.
#[test]
fn a_server_goes_away_in_two_steps() {
    let (mut client, mut server) = pair();
    events(&mut client);
    server.announce_going_away();
    assert!(server.is_served(4000));
    server.go_away(12);
    assert!(server.is_served(8) && !server.is_served(12));
    server.go_away(16);
    server.announce_going_away();
    carry(&mut server, &mut client);
    let expected = [MAX_VARINT - 3, 12].map(|first_refused| Event::GoAway { first_refused });
    assert_eq!(events(&mut client), expected);
}

/// RFC 9218 §7.
#[test]
fn priorities_reach_their_streams() {
    let (mut client, mut server) = pair();
    server.set_request_limit(100);
    events(&mut server);
    let urgent = Priority {
        urgency: 0,
        incremental: true,
    };
    client.update_priority(4, urgent);
    client.update_priority(4, Priority::default());
    client.update_priority(8, urgent);
    carry(&mut client, &mut server);
    assert!(events(&mut server).is_empty(), "before their streams");
    assert_eq!(
        server.on_request_opened(4),
        Some(Priority::default()),
        "the newest"
    );
    assert_eq!(server.on_request_opened(8), Some(urgent));
    client.update_priority(8, Priority::default());
    carry(&mut client, &mut server);
    let expected = Event::Priority {
        stream: 8,
        priority: Priority::default(),
    };
    assert_eq!(events(&mut server), [expected]);
}

/// RFC 9218 §7.2.
#[test]
fn refuses_priorities_of_what_cannot_be() {
    for stream in [1, 2, 3, 400, MAX_VARINT - 3] {
        let payload = [&integer(stream)[..], b"u=1"].concat();
        let result = control(
            &mut begun(Side::Server),
            &frame(frame::PRIORITY_UPDATE_REQUEST, &payload),
        );
        assert_eq!(result, code(Code::ID_ERROR), "{stream}");
    }
    let result = control(
        &mut begun(Side::Server),
        &frame(frame::PRIORITY_UPDATE_REQUEST, b"\0u="),
    );
    assert_eq!(result, code(Code::GENERAL_PROTOCOL_ERROR));
}

/// RFC 9218 §7: bounded.
#[test]
fn early_priorities_are_bounded() {
    let mut server = begun(Side::Server);
    server.set_request_limit(400);
    for index in 0..300 {
        let payload = [&integer(4 * index)[..], b"u=1"].concat();
        let bytes = frame(frame::PRIORITY_UPDATE_REQUEST, &payload);
        assert_eq!(control(&mut server, &bytes), Ok(UniFate::Read));
    }
    let kept = (0..300).filter(|index| server.on_request_opened(4 * index).is_some());
    assert_eq!(kept.count(), 128);
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
fn datagrams_need_both_ends() {
    let (client, _) = pair();
    assert!(client.has_datagrams());
    assert!(!begun(Side::Client).has_datagrams(), "nobody");
    let mut config = Config::new(Side::Client);
    config.datagrams = true;
    let mut client = Connection::new(Side::Client, config, 1, NOW);
    let settings = [&[0x00][..], &frame(frame::SETTINGS, &[])].concat();
    assert_eq!(control(&mut client, &settings), Ok(UniFate::Read));
    assert!(!client.has_datagrams(), "not the server");
}

/// §7.2.4.2, RFC 9204 §3.2.3, RFC 9297 §2.1.1.
#[test]
fn settings_do_not_fall_below_those_of_early_data() {
    let remembered = Settings {
        qpack_max_table_capacity: 4096,
        qpack_blocked_streams: 16,
        max_field_section_size: Some(10_000),
        enable_connect_protocol: true,
        h3_datagram: true,
    };
    let check = |settings: Settings| {
        let mut client = connection(Side::Client);
        client.remember(remembered);
        let mut bytes = vec![0x00];
        settings.encode(&mut bytes, None);
        control(&mut client, &bytes)
    };
    assert_eq!(check(remembered), Ok(UniFate::Read));
    let better = Settings {
        qpack_blocked_streams: 17,
        max_field_section_size: None,
        ..remembered
    };
    assert_eq!(check(better), Ok(UniFate::Read));
    for worse in [
        Settings {
            qpack_max_table_capacity: 4095,
            ..remembered
        },
        Settings {
            qpack_max_table_capacity: 4097,
            ..remembered
        },
        Settings {
            qpack_blocked_streams: 15,
            ..remembered
        },
        Settings {
            max_field_section_size: Some(9_999),
            ..remembered
        },
        Settings {
            enable_connect_protocol: false,
            ..remembered
        },
        Settings {
            h3_datagram: false,
            ..remembered
        },
    ] {
        assert_eq!(check(worse), code(Code::SETTINGS_ERROR), "{worse:?}");
    }
}

/// RFC 9204 §6.
#[test]
fn errors_of_qpack_keep_their_codes() {
    let mut connection = begun(Side::Server);
    let error = connection
        .decode_request(0, b"\0\0\xff\x24")
        .expect_err("no such index");
    assert_eq!(error.code, Code::QPACK_DECOMPRESSION_FAILED);
    assert_eq!(
        uni(&mut connection, 6, &[0x02, 0x02], false),
        code(Code::QPACK_ENCODER_STREAM_ERROR)
    );
    assert_eq!(
        uni(&mut connection, 10, &[0x03, 0x00], false),
        code(Code::QPACK_DECODER_STREAM_ERROR)
    );
}

/// K17, A71: what is allowed is not allowed without end.
#[test]
fn useless_work_is_bounded() {
    let run = |mut step: Box<dyn FnMut(&mut Connection, u64) -> Result<(), Error>>| {
        let mut server = begun(Side::Server);
        let done = (0..10_000)
            .take_while(|&n| step(&mut server, n).is_ok())
            .count();
        let error = step(&mut server, 10_000).expect_err("too many");
        assert_eq!(error.code, Code::EXCESSIVE_LOAD);
        done
    };
    let frames = |bytes: Vec<u8>| {
        run(Box::new(move |server, _| {
            let fate = server.handle_uni(NOW, 2, Bytes::from(bytes.clone()), false);
            fate.map(|_| ())
        }))
    };
    assert_eq!(frames(frame(frame::reserved(7), b"")), 500);
    assert_eq!(frames(frame(frame::PRIORITY_UPDATE_REQUEST, b"\0u=1")), 500);
    assert_eq!(frames(frame(frame::MAX_PUSH_ID, &[1])), 500);
    assert_eq!(frames(frame(frame::GOAWAY, &[0])), 500);
    assert_eq!(
        run(Box::new(|server, n| server.on_cancelled(NOW, 4 * n))),
        500
    );
    assert_eq!(run(Box::new(|server, _| server.on_empty_frame(NOW))), 500);
    assert_eq!(
        run(Box::new(|server, n| {
            server
                .handle_uni(NOW, 6 + 4 * n, Bytes::from_static(&[0x40, 0x54]), true)
                .map(|_| ())
        })),
        500
    );
}

/// RFC 9204 §7.3.
#[test]
fn answers_do_not_pile_up() {
    let mut server = begun(Side::Server);
    assert_eq!(
        uni(&mut server, 6, &[0x02, 0x3f, 0xe1, 0x1f], false),
        Ok(UniFate::Read)
    );
    let mut result = Ok(UniFate::Read);
    for n in 0..200_000 {
        server.forget(4 * (n + 1000));
        result = uni(&mut server, 6, &[0x41, b'k', 0], false);
        if result.is_err() {
            break;
        }
    }
    assert_eq!(result, code(Code::EXCESSIVE_LOAD));
}

/// §6.2: the type goes first, and streams that have nothing to say are not opened.
#[test]
fn our_streams_begin_with_their_type() {
    for side in SIDES {
        let mut connection = connection(side);
        assert_eq!(connection.outgoing(UniStream::Control)[..2], [0x00, 0x04]);
        assert!(connection.outgoing(UniStream::Encoder).is_empty());
        assert!(connection.outgoing(UniStream::Decoder).is_empty());
        connection.outgoing(UniStream::Control).clear();
        connection.forget(0);
        assert_eq!(connection.outgoing(UniStream::Decoder)[..], [0x03, 0x40]);
        connection.outgoing(UniStream::Decoder).clear();
        connection.forget(4);
        assert_eq!(connection.outgoing(UniStream::Decoder)[..], [0x44]);
        connection.go_away(0);
        assert_eq!(
            connection.outgoing(UniStream::Control)[..],
            [0x07, 0x01, 0x00]
        );
    }
}

/// §7.2.4.1, §7.2.8, §8.1.
#[test]
fn grease_is_sent_and_means_nothing() {
    let mut connection = connection(Side::Server);
    let bytes = std::mem::take(connection.outgoing(UniStream::Control));
    let (_, len, header) = frame::decode_header(&bytes[1..]).expect("SETTINGS");
    let mut settings = Reader::new(&bytes[1 + header..][..len as usize]);
    let mut has_grease = false;
    while let (Ok(id), Ok(_)) = (settings.varint(), settings.varint()) {
        has_grease |= id >= 0x21 && (id - 0x21).is_multiple_of(0x1f);
    }
    assert!(has_grease);
    let (value, _, _) = frame::decode_header(&bytes[1 + header + len as usize..]).expect("a frame");
    assert!((value - 0x21).is_multiple_of(0x1f));
    let codes: Vec<_> = (0..8)
        .map(|seed| {
            Connection::new(Side::Client, Config::new(Side::Client), seed, NOW).closing_code()
        })
        .collect();
    assert!(codes.contains(&Code::NO_ERROR) && codes.iter().any(|code| *code != Code::NO_ERROR));
    assert!(codes.iter().all(|code| code.is_no_error()));
}

/// §8.
#[test]
fn unknown_codes_count_as_no_error() {
    assert!(Code::from_value(0x1234_5678).is_no_error());
    assert!(Code::reserved(99).is_no_error());
    assert!(!Code::REQUEST_REJECTED.is_no_error());
}

#[test]
fn the_budget_comes_back() {
    let mut server = begun(Side::Server);
    while server.on_empty_frame(NOW).is_ok() {}
    assert_eq!(server.on_empty_frame(NOW + Duration::from_secs(1)), Ok(()));
}

proptest! {
    /// Whatever arrives on whichever stream: an answer, never a panic, and bounded memory.
    #[test]
    fn survives_any_bytes(chunks in prop::collection::vec((0u64..4, any::<Vec<u8>>(), any::<bool>()), 0..12)) {
        for side in SIDES {
            let mut connection = begun(side);
            for (stream, bytes, fin) in &chunks {
                // After an error of the connection nothing more is read.
                let chunk = Bytes::copy_from_slice(bytes);
                if connection.handle_uni(NOW, 2 + 4 * stream, chunk, *fin).is_err() {
                    break;
                }
                let _ = connection.handle_datagram(Bytes::copy_from_slice(bytes));
                let _ = connection.decode_request(4 * stream, bytes);
                let _ = connection.decode_response(4 * stream, bytes);
            }
            prop_assert!(connection.memory() < 200_000);
        }
    }
}

/// The reader of the control stream keeps what it has not read.
#[test]
fn control_frames_may_come_byte_by_byte() {
    let mut client = connection(Side::Client);
    let bytes = [
        &[0x00][..],
        &frame(frame::SETTINGS, &[0x06, 0x20]),
        &frame(frame::GOAWAY, &[0x40, 0x08]),
    ]
    .concat();
    for byte in bytes {
        assert_eq!(control(&mut client, &[byte]), Ok(UniFate::Read));
    }
    assert_eq!(
        events(&mut client).last(),
        Some(&Event::GoAway { first_refused: 8 })
    );
}
