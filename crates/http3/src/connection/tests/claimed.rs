//! Tests of streams, frames and settings of extensions (RFC 9114 §9).

use super::*;
use crate::extensions::{Extensions, FrameStream, Group};

const SETTING: u64 = 0xc671_706a;
const FRAME: u64 = 0x1000;

fn extensions() -> Extensions {
    Extensions::new()
        .setting(SETTING, 3)
        .and_then(|it| it.unidirectional_stream(0x54))
        .and_then(|it| it.bidirectional_stream(0x41))
        .and_then(|it| it.frame(FRAME, FrameStream::Control, 100))
        .expect("free numbers")
        .announced_by(SETTING)
}

fn claiming(side: Side) -> Connection {
    let mut config = Config::new(side);
    config.extensions = extensions();
    Connection::new(side, config, 1, NOW)
}

fn settings(settings: &[(u64, u64)]) -> Vec<u8> {
    let mut payload = Vec::new();
    for &(id, value) in settings {
        put_varint(&mut payload, id);
        put_varint(&mut payload, value);
    }
    frame(frame::SETTINGS, &payload)
}

/// Returns a connection whose peer's control stream starts with these settings.
fn with_peer(side: Side, peer: &[(u64, u64)]) -> Connection {
    let mut connection = claiming(side);
    let bytes = [&[0x00][..], &settings(peer)].concat();
    assert_eq!(control(&mut connection, &bytes), Ok(UniFate::Read));
    connection
}

fn claimed(stream_type: u64, first: &[u8]) -> Result<UniFate, (Code, Scope)> {
    Ok(UniFate::Claimed {
        stream_type,
        len: courser_wire::varint_len(stream_type),
        first: Bytes::copy_from_slice(first),
    })
}

fn refused() -> Result<UniFate, (Code, Scope)> {
    Ok(UniFate::Stop(Code::STREAM_CREATION_ERROR))
}

#[test]
fn both_ends_receive_settings_of_extensions() {
    let (mut client, mut server) = (claiming(Side::Client), claiming(Side::Server));
    assert_eq!(client.peer_supports(Group::FIRST), None);
    carry(&mut server, &mut client);
    carry(&mut client, &mut server);
    for end in [&client, &server] {
        assert_eq!(end.peer_supports(Group::FIRST), Some(true));
        assert!(end.peer_other_settings().contains(&(SETTING, 3)));
        // No setting that has a field in `Settings`.
        assert!(
            end.peer_other_settings()
                .iter()
                .all(|(id, _)| *id > 0x33 || *id == 0x21)
        );
    }
}

/// An application without extensions needs no memory for settings.
#[test]
fn without_extensions_unknown_settings_are_dropped() {
    let mut connection = connection(Side::Server);
    let bytes = [&[0x00][..], &settings(&[(SETTING, 3)])].concat();
    assert_eq!(control(&mut connection, &bytes), Ok(UniFate::Read));
    assert_eq!(connection.peer_other_settings(), []);
    let mut config = Config::new(Side::Server);
    config.extensions = Extensions::new();
    let mut connection = Connection::new(Side::Server, config, 1, NOW);
    assert_eq!(control(&mut connection, &bytes), Ok(UniFate::Read));
    assert_eq!(connection.peer_other_settings(), [(SETTING, 3)]);
}

/// RFC 9114 §6.2.
#[test]
fn claimed_stream_is_passed_to_the_application_with_its_first_bytes() {
    for side in SIDES {
        let mut connection = with_peer(side, &[(SETTING, 1)]);
        assert_eq!(uni(&mut connection, 6, &[0x40], false), Ok(UniFate::Read));
        assert_eq!(
            uni(&mut connection, 6, &[0x54, 8, 9], false),
            claimed(0x54, &[8, 9])
        );
        // The whole stream with its end.
        assert_eq!(
            uni(&mut connection, 10, &[0x40, 0x54, 7], true),
            claimed(0x54, &[7])
        );
        assert_eq!(uni(&mut connection, 14, &[0x40, 0x55], false), refused());
        assert!(connection.unidirectional.untyped.is_empty());
    }
}

/// §9: an extension is used only with peers that support it.
#[test]
fn streams_and_frames_of_peers_without_the_extension_are_ignored() {
    for peer in [&[][..], &[(SETTING, 0)], &[(SETTING + 1, 1)]] {
        let mut connection = with_peer(Side::Server, peer);
        assert_eq!(connection.peer_supports(Group::FIRST), Some(false));
        assert_eq!(uni(&mut connection, 6, &[0x40, 0x54], false), refused());
        assert_eq!(
            control(&mut connection, &frame(FRAME, b"x")),
            Ok(UniFate::Read)
        );
        let seen = events(&mut connection);
        assert!(matches!(seen[..], [Event::Settings(_)]), "{seen:?}");
    }
    // The SETTINGS of the peer may still be in flight.
    let mut connection = claiming(Side::Server);
    assert_eq!(
        uni(&mut connection, 6, &[0x40, 0x54], false),
        claimed(0x54, &[])
    );
}

#[test]
fn claimed_frames_of_the_control_stream_are_events() {
    for side in SIDES {
        let mut connection = with_peer(side, &[(SETTING, 1)]);
        let frames = [
            frame(FRAME, b"one"),
            frame(FRAME + 1, b"no"),
            frame(FRAME, b""),
        ]
        .concat();
        for byte in frames {
            assert_eq!(control(&mut connection, &[byte]), Ok(UniFate::Read));
        }
        let event = |payload: &'static [u8]| Event::Frame {
            frame_type: FRAME,
            payload: Bytes::from_static(payload),
        };
        assert_eq!(events(&mut connection)[1..], [event(b"one"), event(b"")]);
        let long = frame(FRAME, &[0; 101]);
        assert_eq!(control(&mut connection, &long), code(Code::EXCESSIVE_LOAD));
    }
}

/// A122, K17: the queue of the application limits the frames that it receives (K203), and all others count.
#[test]
fn too_many_claimed_frames_or_refused_streams_close_the_connection() {
    for (peer, most) in [(1, 256), (0, 500)] {
        let mut connection = with_peer(Side::Server, &[(SETTING, peer)]);
        events(&mut connection);
        for _ in 0..most {
            assert_eq!(
                control(&mut connection, &frame(FRAME, b"x")),
                Ok(UniFate::Read)
            );
        }
        assert_eq!(
            control(&mut connection, &frame(FRAME, b"x")),
            code(Code::EXCESSIVE_LOAD)
        );
    }
    let mut connection = with_peer(Side::Server, &[(SETTING, 1)]);
    for _ in 0..10_000 {
        assert_eq!(
            control(&mut connection, &frame(FRAME, b"x")),
            Ok(UniFate::Read)
        );
        assert!(!events(&mut connection).is_empty());
    }

    let mut connection = with_peer(Side::Server, &[(SETTING, 1)]);
    for _ in 0..500 {
        assert_eq!(connection.on_claimed_refused(NOW), Ok(()));
    }
    let error = connection.on_claimed_refused(NOW).expect_err("too many");
    assert_eq!(
        (error.code, error.scope),
        (Code::EXCESSIVE_LOAD, Scope::Connection)
    );
}

/// The signal of a bidirectional stream is not a frame (draft-ietf-webtrans-http3-12 §4.2).
#[test]
fn signal_on_the_control_stream_is_a_frame_error() {
    let mut connection = with_peer(Side::Server, &[(SETTING, 1)]);
    assert_eq!(
        control(&mut connection, &frame(0x41, b"")),
        code(Code::FRAME_ERROR)
    );
}

/// RFC 9114 §6.1.
#[test]
fn server_opens_claimed_bidirectional_streams_only() {
    let take = |connection: &mut Connection, bytes: &[u8], fin| {
        connection
            .handle_bidirectional(1, Bytes::copy_from_slice(bytes), fin)
            .map_err(|error| (error.code, error.scope))
    };
    let mut connection = with_peer(Side::Client, &[(SETTING, 1)]);
    assert_eq!(connection.check_bidirectional(), Ok(()));
    assert_eq!(take(&mut connection, &[0x40], false), Ok(UniFate::Read));
    assert_eq!(
        take(&mut connection, &[0x41, 4, 5], false),
        claimed(0x41, &[4, 5])
    );
    assert_eq!(
        take(&mut connection, &[0x40, 0x41], true),
        claimed(0x41, &[])
    );
    for (bytes, fin) in [(&[0x01, 0x00][..], false), (&[0x40], true), (&[], true)] {
        let mut connection = with_peer(Side::Client, &[(SETTING, 1)]);
        assert_eq!(
            take(&mut connection, bytes, fin),
            code(Code::STREAM_CREATION_ERROR)
        );
    }
    let mut connection = with_peer(Side::Client, &[]);
    assert_eq!(
        take(&mut connection, &[0x40, 0x41], false),
        code(Code::STREAM_CREATION_ERROR)
    );
    let mut connection = with_peer(Side::Client, &[(SETTING, 1)]);
    assert_eq!(take(&mut connection, &[0x40], false), Ok(UniFate::Read));
    assert_eq!(connection.handle_bidirectional_reset(NOW, 1), Ok(()));
    assert!(connection.unidirectional.untyped.is_empty());
}

#[test]
fn frames_of_the_application_follow_the_settings() {
    let (mut client, mut server) = (claiming(Side::Client), claiming(Side::Server));
    client.send_frame(FRAME, b"hello");
    carry(&mut client, &mut server);
    let expected = Event::Frame {
        frame_type: FRAME,
        payload: Bytes::from_static(b"hello"),
    };
    assert_eq!(events(&mut server).last(), Some(&expected));
}

/// RFC 9412 §2: only servers send ORIGIN.
#[test]
fn origins_of_a_client_are_ignored() {
    let origin = frame(frame::ORIGIN, b"\0\x0ehttps://a.test");
    let expected = [Event::Origins(vec!["https://a.test".to_owned()])];
    for (side, expected) in [(Side::Server, &[][..]), (Side::Client, &expected)] {
        let mut connection = begun(side);
        events(&mut connection);
        assert_eq!(control(&mut connection, &origin), Ok(UniFate::Read));
        assert_eq!(events(&mut connection), expected);
    }
}

/// A group may be announced by any of several settings, and each group has its own.
#[test]
fn groups_are_supported_independently() {
    let webtransport = Extensions::new()
        .named("webtransport")
        .announced_by(0x2c7c_f000)
        .announced_by(0x2b60_3742)
        .unidirectional_stream(0x54);
    let chat = Extensions::new()
        .named("chat")
        .announced_by(0x7a11)
        .unidirectional_stream(0x55)
        .and_then(|it| it.frame(FRAME, FrameStream::Control, 10));
    let mut config = Config::new(Side::Server);
    config.extensions = webtransport
        .and_then(|it| it.and(chat?))
        .expect("free numbers");
    let groups: Vec<_> = config.extensions.groups().collect();
    assert_eq!(config.extensions.group("chat"), Some(groups[1]));
    for (peer, announced, supported) in [
        (
            &[(0x2b60_3742, 1)][..],
            &[(0x2b60_3742, 1)][..],
            [true, false],
        ),
        (&[(0x7a11, 1), (0x2c7c_f000, 0)], &[], [false, true]),
        (
            &[(0x2b60_3742, 1), (0x7a11, 2), (0x2c7c_f000, 3)],
            &[(0x2c7c_f000, 3), (0x2b60_3742, 1)],
            [true, true],
        ),
    ] {
        let mut server = Connection::new(Side::Server, config.clone(), 1, NOW);
        let bytes = [&[0x00][..], &settings(peer)].concat();
        assert_eq!(control(&mut server, &bytes), Ok(UniFate::Read));
        let found: Vec<_> = server.peer_announced(groups[0]).collect();
        assert_eq!(found, announced);
        for ((group, is_supported), (id, stream_type)) in
            groups.iter().zip(supported).zip([(6, 0x54), (10, 0x55)])
        {
            assert_eq!(server.peer_supports(*group), Some(is_supported));
            let expected = match is_supported {
                true => claimed(stream_type, &[]),
                false => refused(),
            };
            let bytes = [0x40, u8::try_from(stream_type).expect("a byte")];
            assert_eq!(uni(&mut server, id, &bytes, false), expected);
        }
        events(&mut server);
        let sent = control(&mut server, &frame(FRAME, b"x"));
        assert_eq!(sent, Ok(UniFate::Read));
        assert_eq!(events(&mut server).len(), usize::from(supported[1]));
    }
}
