//! Tests of unidirectional streams.

use super::*;

/// RFC 9114 §6.2.1, §6.2.2, RFC 9204 §4.2.
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

/// RFC 9114 §6.2.1, RFC 9204 §4.2.
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

/// RFC 9204 §4.2: both streams may exist even if the settings make them useless.
#[test]
fn unused_qpack_streams_may_be_opened() {
    let mut config = Config::new(Side::Server);
    config.decoder.max_table_capacity = 0;
    config.decoder.max_blocked_streams = 0;
    let mut connection = Connection::new(Side::Server, config, 1, NOW);
    assert_eq!(uni(&mut connection, 2, &[0x02], false), Ok(UniFate::Read));
    assert_eq!(uni(&mut connection, 6, &[0x03], false), Ok(UniFate::Read));
}

/// RFC 9114 §6.2, §6.2.3.
#[test]
fn unknown_streams_are_stopped() {
    let reserved = integer(frame::reserved(1000));
    let mut connection = connection(Side::Server);
    for byte in &reserved[..reserved.len() - 1] {
        assert_eq!(uni(&mut connection, 2, &[*byte], false), Ok(UniFate::Read));
    }
    let last = &reserved[reserved.len() - 1..];
    let stop = UniFate::Stop(Code::STREAM_CREATION_ERROR);
    assert_eq!(uni(&mut connection, 2, last, false), Ok(stop.clone()));
    assert_eq!(uni(&mut connection, 6, &[0x1f, 1, 2, 3], false), Ok(stop));
    assert_eq!(
        uni(&mut connection, 10, &[0x40, 0x54], true),
        Ok(UniFate::Ended)
    );
}

/// RFC 9114 §6.2.
#[test]
fn stream_may_end_before_its_type() {
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

/// RFC 9114 §4.6, §6.2.2.
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

/// §4.6, §10.4: a client allows no pushes, and a server sends none even if its client allows them. So no promise
/// can have a wrong authority, fields or resource.
#[test]
fn pushes_are_neither_allowed_nor_sent() {
    for side in SIDES {
        let mut connection = begun(side);
        if side.is_server() {
            let allowed = frame(frame::MAX_PUSH_ID, &[60]);
            assert_eq!(control(&mut connection, &allowed), Ok(UniFate::Read));
        }
        connection.update_priority(0, Priority::default());
        connection.announce_going_away();
        connection.go_away(0);
        let control = std::mem::take(connection.outgoing(UniStream::Control));
        let mut rest = &control[1..];
        let mut types = Vec::new();
        while let Some((frame_type, len, header)) = frame::decode_header(rest) {
            types.push(frame_type);
            rest = &rest[header + len as usize..];
        }
        assert!(
            rest.is_empty() && types.contains(&frame::GOAWAY),
            "{types:?}"
        );
        for push in [frame::CANCEL_PUSH, frame::PUSH_PROMISE, frame::MAX_PUSH_ID] {
            assert!(!types.contains(&push), "{push:#x} in {types:?}");
        }
        // All other streams have these types, and none is a push stream.
        for stream in UniStream::ALL {
            let begun = connection.outgoing(stream).first().copied();
            assert_ne!(begun, Some(0x01), "{stream:?}");
        }
    }
}

/// §4.1, §4.6, §6.2.2: without a MAX_PUSH_ID, push streams are refused because of their push ID, whatever they
/// contain.
#[test]
fn push_streams_are_refused_before_their_content() {
    let promise = [&[0x01, 0x00][..], &frame(frame::PUSH_PROMISE, &[0, 0, 0])].concat();
    let response = [&[0x01, 0x00][..], &frame(frame::HEADERS, &[0, 0, 0xd9])].concat();
    for bytes in [promise, response] {
        let mut client = begun(Side::Client);
        events(&mut client);
        for stream in [7, 11] {
            assert_eq!(
                uni(&mut client, stream, &bytes, false),
                code(Code::ID_ERROR)
            );
        }
        assert!(events(&mut client).is_empty(), "nothing of it is used");
    }
}

/// RFC 9114 §6.1.
#[test]
fn server_opens_no_bidirectional_stream() {
    assert_eq!(connection(Side::Server).check_bidirectional(), Ok(()));
    let error = connection(Side::Client)
        .check_bidirectional()
        .expect_err("refused");
    assert_eq!(error.code, Code::STREAM_CREATION_ERROR);
}

/// §6.2: the stream type is sent first, and streams without content are not opened.
#[test]
fn opened_streams_start_with_their_type() {
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

/// The reader of the control stream keeps incomplete frames.
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

/// Section Acknowledgments may be delayed, and other instructions are sent at once.
#[test]
fn only_acknowledgments_may_be_delayed() {
    let (mut client, mut server) = pair();
    carry(&mut server, &mut client);
    assert!(!server.may_delay_answers(), "nothing waits");

    let request = Request::get("https://example.org/inserted")
        .body(())
        .expect("a request");
    let (parts, ()) = request.into_parts();
    let fields = FieldsToSend::request(&parts).expect("valid fields");
    let section = |client: &mut Connection, stream| {
        let mut out = Vec::new();
        client.encode(stream, &fields, &mut out).expect("small");
        section_of(&out)
    };
    let first = section(&mut client, 0);
    carry(&mut client, &mut server);
    assert!(server.has_answers(), "an insert count");
    assert!(!server.may_delay_answers());
    carry(&mut server, &mut client);
    assert!(!server.has_answers());

    let decoded = server.decode_request(0, &first);
    assert!(matches!(decoded, Ok(Section::Decoded(Ok(_)))));
    assert!(server.may_delay_answers(), "an acknowledgment");
    server.forget(4);
    assert!(!server.may_delay_answers(), "a cancellation");
    let second = section(&mut client, 8);
    carry(&mut client, &mut server);
    carry(&mut server, &mut client);
    let decoded = server.decode_request(8, &second);
    assert!(matches!(decoded, Ok(Section::Decoded(Ok(_)))));
    assert!(server.may_delay_answers(), "another acknowledgment");
}
