//! Tests of control stream frames.

use super::*;

/// RFC 9114 §6.2.1.
#[test]
fn control_stream_begins_with_settings() {
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

/// RFC 9114 §7.2.4.
#[test]
fn settings_are_sent_once() {
    for side in SIDES {
        let mut connection = begun(side);
        let again = frame(frame::SETTINGS, &[]);
        assert_eq!(
            control(&mut connection, &again),
            code(Code::FRAME_UNEXPECTED)
        );
    }
}

/// RFC 9114 §7.2.1, §7.2.2, §7.2.5, §7.2.7, §7.2.8, RFC 9218 §7.2.
#[test]
fn frames_of_other_streams_are_refused() {
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

/// RFC 9114 §7.2.7.
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

/// RFC 9114 §7.1, §10.8.
#[test]
fn payloads_have_exactly_their_fields() {
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

/// K26: long frames are refused before they arrive.
#[test]
fn overlong_frames_are_refused() {
    for (value, most) in [
        (frame::GOAWAY, 8),
        (frame::MAX_PUSH_ID, 8),
        (frame::CANCEL_PUSH, 8),
        (frame::PRIORITY_UPDATE_REQUEST, 256),
        (frame::ORIGIN, 4096),
    ] {
        let mut bytes = Vec::new();
        frame::encode_header(&mut bytes, value, most);
        let result = control(&mut begun(Side::Server), &bytes);
        assert_eq!(result, Ok(UniFate::Read), "{value:#x}");
        bytes.clear();
        frame::encode_header(&mut bytes, value, most + 1);
        let result = control(&mut begun(Side::Server), &bytes);
        assert_eq!(result, code(Code::EXCESSIVE_LOAD), "{value:#x}");
    }
    for (len, expected) in [
        (1024, Ok(UniFate::Read)),
        (1025, code(Code::EXCESSIVE_LOAD)),
    ] {
        let mut bytes = vec![0x00];
        frame::encode_header(&mut bytes, frame::SETTINGS, len);
        assert_eq!(control(&mut connection(Side::Server), &bytes), expected);
    }
}

/// RFC 9114 §5.2, §7.2.6.
#[test]
fn goaway_has_the_id_of_a_request_and_never_increases() {
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
    // The ID of a client's GOAWAY is a push ID, which does not matter without pushes.
    let mut server = begun(Side::Server);
    events(&mut server);
    assert_eq!(
        control(&mut server, &frame(frame::GOAWAY, &[7])),
        Ok(UniFate::Read)
    );
    assert_eq!(events(&mut server), [Event::ClientGoAway]);
    assert!(!server.goes_away());
    assert_eq!(
        control(&mut server, &frame(frame::GOAWAY, &[8])),
        code(Code::ID_ERROR)
    );
}

/// §5.2: the first GOAWAY is a warning, and the second one has the actual ID.
#[test]
fn server_sends_goaway_in_two_steps() {
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
    assert!(client.is_refused(12) && !client.is_refused(8) && !server.is_refused(12));
}

/// RFC 9218 §7.
#[test]
fn priorities_are_passed_to_their_streams() {
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
fn priorities_of_impossible_streams_are_refused() {
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

/// RFC 9218 §7: the number of early priorities is limited.
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
    assert_eq!(kept.count(), 256);
}

/// RFC 9114 §7.2.4.2, RFC 9204 §3.2.3, RFC 9297 §2.1.1.
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
        settings.encode(&mut bytes, &[], None);
        control(&mut client, &bytes)
    };
    assert_eq!(check(remembered), Ok(UniFate::Read));
    let better = Settings {
        qpack_blocked_streams: 17,
        max_field_section_size: Some(10_001),
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
        // No limit is not lower, but a remembered setting must not be omitted.
        Settings {
            max_field_section_size: None,
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

/// §7.2.4.2: the remembered settings or the defaults apply until settings are received.
#[test]
fn remembered_settings_hold_until_new_ones_arrive() {
    let (parts, ()) = Request::get("https://example.org/a/long/path/to/be/inserted")
        .header("x-custom", "v".repeat(100))
        .body(())
        .expect("a request")
        .into_parts();
    let fields = FieldsToSend::request(&parts).expect("valid fields");
    let of_size = |size| Settings {
        max_field_section_size: Some(size),
        ..Settings::default()
    };
    let mut client = connection(Side::Client);
    client.remember(of_size(100));
    let result = client.encode(0, &fields, &mut Vec::new());
    assert!(
        matches!(result, Err(RequestError::TooLarge { allowed: 100, .. })),
        "{result:?}"
    );
    let mut bytes = vec![0x00];
    of_size(1000).encode(&mut bytes, &[], None);
    assert_eq!(control(&mut client, &bytes), Ok(UniFate::Read));
    assert_eq!(client.encode(0, &fields, &mut Vec::new()), Ok(()));

    let mut client = connection(Side::Client);
    assert_eq!(client.encode(0, &fields, &mut Vec::new()), Ok(()));
    assert!(client.outgoing(UniStream::Encoder).is_empty(), "no table");
    let mut bytes = vec![0x00];
    of_size(100).encode(&mut bytes, &[], None);
    assert_eq!(control(&mut client, &bytes), Ok(UniFate::Read));
    let result = client.encode(0, &fields, &mut Vec::new());
    assert!(result.is_err(), "above the setting that has arrived");
}

/// RFC 9204 §3.2.3: a server may raise a capacity of zero and the number of blocked streams.
#[test]
fn table_and_blocked_streams_grow_after_early_data() {
    let (parts, ()) = Request::get("https://example.org/a/long/path/to/be/inserted")
        .header("x-custom", "value")
        .body(())
        .expect("a request")
        .into_parts();
    let fields = FieldsToSend::request(&parts).expect("valid fields");
    for capacity in [0, 4096] {
        let mut server = connection(Side::Server);
        let mut client = connection(Side::Client);
        client.remember(Settings {
            qpack_max_table_capacity: capacity,
            ..Settings::default()
        });
        let mut out = Vec::new();
        assert_eq!(client.encode(0, &fields, &mut out), Ok(()));
        let early = server.decode_request(0, &section_of(&out));
        assert!(matches!(early, Ok(Section::Decoded(Ok(_)))), "{early:?}");
        if capacity == 0 {
            assert!(client.outgoing(UniStream::Encoder).is_empty());
        }
        carry(&mut server, &mut client);
        let mut out = Vec::new();
        assert_eq!(client.encode(4, &fields, &mut out), Ok(()));
        let section = section_of(&out);
        let late = server.decode_request(4, &section);
        assert!(matches!(late, Ok(Section::Blocked)), "{late:?}");
        carry(&mut client, &mut server);
        let late = server.decode_request(4, &section);
        assert!(matches!(late, Ok(Section::Decoded(Ok(_)))), "{late:?}");
    }
}
