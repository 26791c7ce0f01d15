mod random;

use courser_wire::Direction;

use super::*;
use crate::limits::Limits;
use crate::testing::{NOW, after, browser, peer, request, session};

/// Returns a server whose client supports the newest dialect.
fn server() -> Sessions {
    let mut server = unknown();
    let settings = Config::new().settings(Side::Client);
    server.on_peer(&peer(&settings)).expect("valid settings");
    server
}

/// Returns a server that has not received the SETTINGS of its client.
fn unknown() -> Sessions {
    Sessions::new(Side::Server, Config::new())
}

fn client() -> Sessions {
    let mut client = Sessions::new(Side::Client, Config::new());
    let settings = Config::new().settings(Side::Server);
    client.on_peer(&peer(&settings)).expect("valid settings");
    client
}

fn admit(server: &mut Sessions, index: u64) -> Admission {
    let request = request(Dialect::NEWEST);
    server.on_request(NOW, session(index), &request, false)
}

fn establish(server: &mut Sessions, index: u64) -> Session {
    assert!(matches!(admit(server, index), Admission::Open(_)));
    server.accept(session(index)).expect("requested")
}

fn status_of(admission: &Admission) -> Option<u16> {
    match admission {
        Admission::Refuse(Refusal::Status { status, .. }) => Some(status.as_u16()),
        _ => None,
    }
}

fn code_of(admission: &Admission) -> Option<Code> {
    match admission {
        Admission::Refuse(Refusal::Reset { code, .. }) => Some(*code),
        _ => None,
    }
}

/// draft-ietf-webtrans-http3-16 §7.1; WT-v-004, WT-h3-012, A251.
#[test]
fn requests_wait_for_the_settings_of_the_client() {
    let mut server = unknown();
    assert_eq!(admit(&mut server, 0), Admission::Hold);
    assert!(server.accept(session(0)).is_none());
    let settings = Config::new().settings(Side::Client);
    server.on_peer(&peer(&settings)).expect("valid settings");
    assert!(matches!(admit(&mut server, 0), Admission::Open(_)));
    assert!(server.accept(session(0)).is_some());
}

/// draft-ietf-webtrans-http3-16 §3.1; WT-h3-003, WT-h3-025, WT-v-007, A251.
#[test]
fn sessions_of_a_client_that_lacks_a_requirement_are_malformed() {
    let mut server = unknown();
    assert_eq!(admit(&mut server, 0), Admission::Hold);
    let settings = [(Dialect::NEWEST.setting(), 1)];
    let client = Peer {
        reset_stream_at: false,
        ..peer(&settings)
    };
    server.on_peer(&client).expect("valid settings");
    for index in [0, 1] {
        let admission = admit(&mut server, index);
        assert_eq!(code_of(&admission), Some(Code::MESSAGE_ERROR));
    }
}

/// draft-ietf-webtrans-http3-16 §3.2; WT-v-008, WT-v-009, WT-h2-001.
#[test]
fn token_fits_the_dialect() {
    for (settings, token, expected) in [
        (Config::new().settings(Side::Client), Dialect::Draft16, None),
        // The capsule protocol over one stream.
        (
            Config::new().settings(Side::Client),
            Dialect::Draft02,
            Some(501),
        ),
        (vec![], Dialect::Draft02, Some(501)),
        (browser(), Dialect::Draft02, None),
        (browser(), Dialect::Draft16, Some(501)),
        (
            vec![(Dialect::Draft14.setting(), 1)],
            Dialect::Draft14,
            None,
        ),
        (
            vec![(Dialect::Draft14.setting(), 1)],
            Dialect::Draft16,
            Some(501),
        ),
    ] {
        let mut server = unknown();
        server.on_peer(&peer(&settings)).expect("valid settings");
        let admission = server.on_request(NOW, session(0), &request(token), false);
        assert_eq!(
            status_of(&admission),
            expected,
            "{token} with {settings:x?}"
        );
        assert_eq!(matches!(admission, Admission::Open(_)), expected.is_none());
    }
}

/// draft-ietf-webtrans-http3-16 §3.2; WT-h3-034.
#[test]
fn request_as_early_data_is_too_early() {
    let mut server = server();
    let request = request(Dialect::NEWEST);
    let admission = server.on_request(NOW, session(0), &request, true);
    assert_eq!(status_of(&admission), Some(425));
    assert!(server.is_empty());
}

/// draft-ietf-webtrans-http3-16 §3.2, §4.3; WT-h3-007, WT-h3-036, WT-h3-059.
#[test]
fn session_that_reads_capsules_exists_once_the_request_is_accepted() {
    let mut server = server();
    assert!(server.accept(session(0)).is_none());
    assert!(matches!(admit(&mut server, 0), Admission::Open(_)));
    let mut accepted = server.accept(session(0)).expect("requested");
    // Bytes that arrived before are read now.
    accepted.on_content(NOW, crate::SessionCapsule::Drain.encode());
    assert_eq!(accepted.poll_event(), Some(crate::SessionEvent::Draining));
    assert!(
        server.accept(session(0)).is_none(),
        "a request is accepted once"
    );
}

/// draft-ietf-webtrans-http3-16 §5.2; WT-h3-082, A251.
#[test]
fn sessions_above_the_limit_of_the_connection_are_rejected() {
    let mut server = server();
    for index in 0..16 {
        establish(&mut server, index);
    }
    let admission = admit(&mut server, 16);
    assert_eq!(code_of(&admission), Some(Code::REQUEST_REJECTED));
    server.on_ended(session(3));
    establish(&mut server, 17);
    assert_eq!((server.len(), server.ids().count()), (16, 16));
}

/// draft-ietf-webtrans-http3-16 §5.1; WT-h3-014.
#[test]
fn second_session_without_flow_control_is_rejected() {
    let mut server = unknown();
    let settings = [(Dialect::NEWEST.setting(), 1)];
    server.on_peer(&peer(&settings)).expect("valid settings");
    assert!(!establish(&mut server, 0).has_flow_control());
    let admission = admit(&mut server, 1);
    assert_eq!(code_of(&admission), Some(Code::REQUEST_REJECTED));
    server.on_ended(session(0));
    establish(&mut server, 2);
}

/// draft-ietf-webtrans-http3-16 §5.2; WT-h3-082, A251.
#[test]
fn requests_in_quick_succession_are_answered_with_429() {
    let mut server = server();
    let mut answers = [0; 2];
    for index in 0..10_000 {
        let admission = admit(&mut server, index % 1000);
        match &admission {
            Admission::Open(_) => answers[0] += 1,
            Admission::Refuse(Refusal::Status {
                status, headers, ..
            }) => {
                assert_eq!(
                    (status.as_u16(), &headers["retry-after"]),
                    (429, &"1".parse().expect("a value"))
                );
                answers[1] += 1;
            }
            other => panic!("{other:?}"),
        }
        server.on_ended(session(index % 1000));
    }
    assert_eq!(answers, [100, 9900]);
    let request = request(Dialect::NEWEST);
    let admission = server.on_request(after(1000), session(1), &request, false);
    assert!(matches!(admission, Admission::Open(_)));
}

/// draft-ietf-webtrans-http3-16 §3.1, §4.7, §5.1; WT-h3-002, WT-h3-026, WT-h3-027, WT-h3-073.
#[test]
fn client_requests_a_session_only_where_it_may() {
    let mut client = Sessions::new(Side::Client, Config::new());
    assert_eq!(client.check_available(), Err(Unavailable::NotYet));
    assert!(client.on_requested(session(0)).is_err());
    client.on_peer(&peer(&[])).expect("valid settings");
    let expected = Unavailable::Unsupported(Unsupported::NotAnnounced);
    assert_eq!(client.check_available(), Err(expected));
    let mut client = self::client();
    assert_eq!(client.check_available(), Ok(Dialect::NEWEST));
    client.on_goaway();
    assert_eq!(client.check_available(), Err(Unavailable::GoingAway));
}

/// draft-ietf-webtrans-http3-16 §5.1, §5.2, §8; WT-h3-081, WT-h3-083.
#[test]
fn sessions_of_a_client_on_a_connection_are_bounded() {
    let mut client = client();
    for index in 0..16 {
        client
            .on_requested(session(index))
            .expect("within the limit");
    }
    assert_eq!(client.check_available(), Err(Unavailable::TooMany(16)));
    client.on_ended(session(0));
    assert!(client.check_available().is_ok());
    // Without flow control there is one.
    let config = Config {
        limits: Limits::NONE,
        ..Config::new()
    };
    let mut client = Sessions::new(Side::Client, config);
    let settings = Config::new().settings(Side::Server);
    client.on_peer(&peer(&settings)).expect("valid settings");
    client.on_requested(session(0)).expect("the first");
    assert_eq!(client.check_available(), Err(Unavailable::TooMany(1)));
}

/// draft-ietf-webtrans-http3-16 §3.2, §4; WT-h3-038, WT-h3-051.
#[test]
fn client_may_open_streams_before_the_response_establishes_the_session() {
    let mut client = client();
    let mut own = client.on_requested(session(0)).expect("available");
    assert_eq!(own.open_stream(Direction::Bidirectional), Ok(()));
    assert!(client.on_accepted(session(0)));
    assert!(!client.on_accepted(session(0)) && !client.on_accepted(session(1)));
    client.on_requested(session(1)).expect("available");
    client.refuse(session(1));
    assert!(!client.on_accepted(session(1)));
}

#[test]
fn settings_are_processed_once() {
    let mut server = server();
    let settings = browser();
    server.on_peer(&peer(&settings)).expect("valid settings");
    let agreement = server.agreement().expect("support");
    assert_eq!(agreement.dialect, Dialect::NEWEST);
}

/// draft-ietf-webtrans-http3-16 §3.1; WT-h3-001.
#[test]
fn invalid_setting_of_the_server_is_an_error_of_the_connection() {
    let mut client = Sessions::new(Side::Client, Config::new());
    let settings = [(Dialect::NEWEST.setting(), 2)];
    let error = client.on_peer(&peer(&settings)).expect_err("above 1");
    assert_eq!(error.code, Code::SETTINGS_ERROR);
}
