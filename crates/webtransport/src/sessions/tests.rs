mod random;

use super::*;
use crate::limits::Limits;
use crate::testing::{NOW, after, browser, peer, request, session};

const BIDI: Direction = Direction::Bidirectional;
const UNI: Direction = Direction::Unidirectional;

/// Returns a server whose client may open 1000 requests and supports the newest dialect.
fn server() -> Sessions<u32> {
    let mut server = unknown();
    let settings = Config::new().settings(Side::Client);
    server.on_peer(&peer(&settings)).expect("valid settings");
    server
}

/// Returns a server that has not received the SETTINGS of its client.
fn unknown() -> Sessions<u32> {
    let mut server = Sessions::new(Side::Server, Config::new());
    server.set_requests(1000);
    server
}

fn client() -> Sessions<u32> {
    let mut client = Sessions::new(Side::Client, Config::new());
    let settings = Config::new().settings(Side::Server);
    client.on_peer(&peer(&settings)).expect("valid settings");
    client
}

fn admit(server: &mut Sessions<u32>, index: u64) -> Admission {
    let request = request(Dialect::NEWEST);
    server.on_request(NOW, session(index), &request, false)
}

fn establish(server: &mut Sessions<u32>, index: u64) -> Session {
    assert!(matches!(admit(server, index), Admission::Open(_)));
    server.accept(session(index)).expect("requested")
}

fn events(sessions: &mut Sessions<u32>) -> Vec<Event<u32>> {
    std::iter::from_fn(|| sessions.poll_event()).collect()
}

fn stream(sessions: &mut Sessions<u32>, index: u64, stream: u32) -> Result<StreamFate<u32>, Code> {
    let fate = sessions.on_stream(NOW, session(index), UNI, stream);
    fate.map_err(|error| error.code)
}

fn refused_with(code: Code, is_charged: bool, stream: u32) -> Result<StreamFate<u32>, Code> {
    Ok(StreamFate::Refuse {
        stream,
        code,
        is_charged,
    })
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
fn requests_and_streams_wait_for_the_settings_of_the_client() {
    let mut server = unknown();
    assert_eq!(admit(&mut server, 0), Admission::Hold);
    assert_eq!(stream(&mut server, 0, 1), Ok(StreamFate::Wait));
    assert!(server.accept(session(0)).is_none());
    let settings = Config::new().settings(Side::Client);
    server.on_peer(&peer(&settings)).expect("valid settings");
    assert_eq!(events(&mut server), [Event::Decide(session(0))]);
    assert!(matches!(admit(&mut server, 0), Admission::Open(_)));
    assert!(server.accept(session(0)).is_some());
    assert_eq!(events(&mut server), [Event::Stream(session(0), UNI, 1)]);
}

/// draft-ietf-webtrans-http3-16 §3.1; WT-h3-003, WT-h3-025, WT-v-007, A251.
#[test]
fn sessions_of_a_client_that_lacks_a_requirement_are_malformed() {
    let mut server = unknown();
    assert_eq!(admit(&mut server, 0), Admission::Hold);
    assert_eq!(stream(&mut server, 0, 1), Ok(StreamFate::Wait));
    let settings = [(Dialect::NEWEST.setting(), 1)];
    let client = Peer {
        reset_stream_at: false,
        ..peer(&settings)
    };
    server.on_peer(&client).expect("valid settings");
    let refused = Event::Refused(1, code::BUFFERED_STREAM_REJECTED);
    assert_eq!(events(&mut server), [refused, Event::Decide(session(0))]);
    for index in [0, 1] {
        let admission = admit(&mut server, index);
        assert_eq!(code_of(&admission), Some(Code::MESSAGE_ERROR));
    }
    let expected = refused_with(code::BUFFERED_STREAM_REJECTED, true, 2);
    assert_eq!(stream(&mut server, 9, 2), expected);
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

/// draft-ietf-webtrans-http3-16 §4.6; WT-h3-012, WT-h3-069, MT-003, A250.
#[test]
fn streams_wait_for_their_session_up_to_a_number_and_a_time() {
    let mut server = server();
    for number in 0..16 {
        assert_eq!(stream(&mut server, 5, number), Ok(StreamFate::Wait));
    }
    for number in 16..100_000 {
        let expected = refused_with(code::BUFFERED_STREAM_REJECTED, true, number);
        assert_eq!(stream(&mut server, 5, number), expected);
    }
    assert_eq!(server.next_timeout(), Some(after(5000)));
    server.on_timeout(after(4999));
    assert_eq!(events(&mut server), []);
    server.on_timeout(after(5000));
    let refused = (0..16).map(|number| Event::Refused(number, code::BUFFERED_STREAM_REJECTED));
    assert_eq!(events(&mut server), refused.collect::<Vec<_>>());
    assert_eq!((server.next_timeout(), server.len()), (None, 0));
}

/// draft-ietf-webtrans-http3-16 §4.6; WT-h3-012, WT-h3-067, WT-h3-070, A250.
#[test]
fn datagrams_wait_for_their_session_up_to_a_number_and_bytes_and_a_time() {
    let mut server = server();
    let id = session(5);
    let send = |server: &mut Sessions<u32>, payload: &'static [u8]| {
        server
            .on_datagram(NOW, id, Bytes::from_static(payload))
            .expect("a session may come")
    };
    static LARGE: [u8; 65_536] = [0; 65_536];
    assert_eq!(send(&mut server, &LARGE), DatagramFate::Wait);
    assert_eq!(send(&mut server, b"x"), DatagramFate::Drop);
    assert_eq!(server.next_timeout(), Some(after(300)));
    server.on_timeout(after(300));
    for _ in 0..32 {
        assert_eq!(send(&mut server, b""), DatagramFate::Wait);
    }
    assert_eq!(send(&mut server, b""), DatagramFate::Drop);
    establish(&mut server, 5);
    let datagram = Event::Datagram(id, Bytes::new());
    assert_eq!(events(&mut server), vec![datagram; 32]);
    let empty = DatagramFate::Deliver(id, Bytes::new());
    assert_eq!(send(&mut server, b""), empty);
    server.on_ended(id);
    assert_eq!(send(&mut server, b""), DatagramFate::Drop);
}

/// draft-ietf-webtrans-http3-16 §4.6; WT-h3-071.
#[test]
fn streams_of_an_established_session_are_never_refused() {
    let mut server = server();
    establish(&mut server, 0);
    for number in 0..10_000 {
        let delivered = Ok(StreamFate::Deliver(session(0), number));
        assert_eq!(stream(&mut server, 0, number), delivered);
    }
}

/// draft-ietf-webtrans-http3-16 §4; WT-h3-009, WT-h3-048, A258.
#[test]
fn number_beyond_the_granted_requests_is_an_error_of_the_connection() {
    let mut server = server();
    assert_eq!(stream(&mut server, 999, 1), Ok(StreamFate::Wait));
    assert_eq!(stream(&mut server, 1000, 1), Err(Code::ID_ERROR));
    let datagram = server.on_datagram(NOW, session(1000), Bytes::new());
    assert_eq!(datagram.map_err(|error| error.code), Err(Code::ID_ERROR));
    server.set_requests(1001);
    assert_eq!(stream(&mut server, 1000, 1), Ok(StreamFate::Wait));
    let mut client = client();
    client.set_requests(2);
    assert_eq!(stream(&mut client, 2, 1), Err(Code::ID_ERROR));
}

/// draft-ietf-webtrans-http3-16 §4, §6; WT-h3-049, WT-h3-104, A258.
#[test]
fn streams_of_a_closed_session_are_gone() {
    let mut server = server();
    establish(&mut server, 3);
    server.on_ended(session(3));
    for number in 0..1024 {
        let gone = refused_with(code::SESSION_GONE, false, number);
        assert_eq!(stream(&mut server, 3, number), gone);
    }
    // More than can have been on their way.
    let gone = refused_with(code::SESSION_GONE, true, 1024);
    assert_eq!(stream(&mut server, 3, 1024), gone);
    assert!(server.is_empty());
}

/// draft-ietf-webtrans-http3-16 §6; WT-h3-104, A251.
#[test]
fn numbers_of_closed_sessions_are_remembered_up_to_a_limit() {
    let mut server = server();
    for index in 0..65 {
        let request = request(Dialect::NEWEST);
        let now = after(1000 * index);
        let admission = server.on_request(now, session(index), &request, false);
        assert!(matches!(admission, Admission::Open(_)));
        server.accept(session(index)).expect("requested");
        server.on_ended(session(index));
    }
    assert_eq!(
        stream(&mut server, 1, 1),
        refused_with(code::SESSION_GONE, false, 1)
    );
    // Forgotten: it waits as for a request on its way, and is refused then.
    assert_eq!(stream(&mut server, 0, 2), Ok(StreamFate::Wait));
}

/// draft-ietf-webtrans-http3-16 §4; WT-h3-050, A258.
#[test]
fn streams_of_a_request_that_is_no_session_are_refused() {
    let mut server = server();
    assert_eq!(stream(&mut server, 1, 1), Ok(StreamFate::Wait));
    assert_eq!(stream(&mut server, 2, 2), Ok(StreamFate::Wait));
    server.on_other_request(session(1));
    let refused = Event::Refused(1, code::BUFFERED_STREAM_REJECTED);
    assert_eq!(events(&mut server), [refused]);
    let mut client = client();
    client.set_requests(2);
    let expected = refused_with(code::BUFFERED_STREAM_REJECTED, true, 3);
    assert_eq!(stream(&mut client, 1, 3), expected);
}

/// draft-ietf-webtrans-http3-16 §3.2, §4.6; WT-h3-039.
#[test]
fn streams_and_datagrams_of_a_refused_request_are_no_error() {
    let mut server = server();
    let id = session(0);
    assert!(matches!(admit(&mut server, 0), Admission::Open(_)));
    assert_eq!(stream(&mut server, 0, 1), Ok(StreamFate::Wait));
    server.refuse(id);
    let refused = Event::Refused(1, code::BUFFERED_STREAM_REJECTED);
    assert_eq!(events(&mut server), [refused]);
    let late = refused_with(code::BUFFERED_STREAM_REJECTED, false, 2);
    assert_eq!(stream(&mut server, 0, 2), late);
    assert_eq!(
        server.on_datagram(NOW, id, Bytes::new()),
        Ok(DatagramFate::Drop)
    );
    assert!(server.accept(id).is_none());
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
    let mut client = Sessions::<u32>::new(Side::Client, Config::new());
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
    let mut client = Sessions::<u32>::new(Side::Client, config);
    let settings = Config::new().settings(Side::Server);
    client.on_peer(&peer(&settings)).expect("valid settings");
    client.on_requested(session(0)).expect("the first");
    assert_eq!(client.check_available(), Err(Unavailable::TooMany(1)));
}

/// draft-ietf-webtrans-http3-16 §4, §4.6; WT-h3-012, WT-h3-038, WT-h3-051.
#[test]
fn streams_of_the_server_wait_for_the_response() {
    let mut client = client();
    let mut own = client.on_requested(session(0)).expect("available");
    client.set_requests(1);
    assert_eq!(own.open_stream(BIDI), Ok(()), "before the response");
    assert_eq!(stream(&mut client, 0, 1), Ok(StreamFate::Wait));
    assert!(client.on_accepted(session(0)));
    assert_eq!(events(&mut client), [Event::Stream(session(0), UNI, 1)]);
    assert!(!client.on_accepted(session(0)) && !client.on_accepted(session(1)));
    client.on_requested(session(1)).expect("available");
    client.set_requests(2);
    assert_eq!(stream(&mut client, 1, 2), Ok(StreamFate::Wait));
    client.refuse(session(1));
    let refused = Event::Refused(2, code::BUFFERED_STREAM_REJECTED);
    assert_eq!(events(&mut client), [refused]);
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
    let mut client = Sessions::<u32>::new(Side::Client, Config::new());
    let settings = [(Dialect::NEWEST.setting(), 2)];
    let error = client.on_peer(&peer(&settings)).expect_err("above 1");
    assert_eq!(error.code, Code::SETTINGS_ERROR);
}
