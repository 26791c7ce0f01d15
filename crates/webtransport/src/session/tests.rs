mod flow;
mod random;

use super::*;
use crate::agreement::Agreement;
use crate::limits::Limits;
use crate::testing::{NOW, after, agreement, session};

const BIDI: Direction = Direction::Bidirectional;
const UNI: Direction = Direction::Unidirectional;

fn new() -> Session {
    Session::new(session(0), &agreement(Limits::default()))
}

/// Returns a session without flow control, as browsers have it.
fn plain() -> Session {
    let agreement = Agreement {
        flow_control: false,
        ..agreement(Limits::default())
    };
    Session::new(session(0), &agreement)
}

fn receive(session: &mut Session, capsule: &SessionCapsule) {
    session.on_content(NOW, capsule.encode());
}

fn raw(kind: u64, value: &[u8]) -> Bytes {
    let mut out = Vec::new();
    Capsule::encode(&mut out, kind, value);
    out.into()
}

fn outputs(session: &mut Session) -> Vec<Output> {
    std::iter::from_fn(|| session.poll_output()).collect()
}

fn events(session: &mut Session) -> Vec<SessionEvent> {
    std::iter::from_fn(|| session.poll_event()).collect()
}

fn bye() -> CloseReason {
    CloseReason::new(7, "bye")
}

/// Returns the code with which the peer's violation has ended a session.
fn violation(session: &mut Session) -> Option<Code> {
    let reset = outputs(session).pop();
    match (session.closed(), reset) {
        (Some(Closed::Violation(error)), Some(Output::Reset(code))) => {
            assert_eq!(error.code, code);
            assert!(session.is_over());
            Some(code)
        }
        _ => None,
    }
}

/// draft-ietf-webtrans-http3-16 §6; WT-h3-096, WT-h3-101.
#[test]
fn close_sends_its_capsule_then_fin_and_ends_everything() {
    for mut session in [new(), plain()] {
        session.close(NOW, bye());
        let capsule = SessionCapsule::Close(bye()).encode();
        assert_eq!(
            outputs(&mut session),
            [Output::Content(capsule), Output::Finish]
        );
        let closed = SessionEvent::Closed(Closed::Local(bye()));
        assert_eq!(events(&mut session), [closed]);
        assert_eq!(session.open_stream(UNI), Err(OpenError::Closed));
        assert_eq!(session.reserve_data(1), 0);
        assert_eq!(session.on_stream(NOW, BIDI), Err(code::SESSION_GONE));
        assert!(!session.is_over());
        session.on_content_end(after(1));
        assert!(session.is_over());
        assert_eq!(
            (events(&mut session).len(), session.next_timeout()),
            (0, None)
        );
    }
}

/// draft-ietf-webtrans-http3-16 §6; WT-h3-097, MT-011.
#[test]
fn close_of_the_peer_is_told_and_answered_with_fin() {
    let mut session = plain();
    receive(&mut session, &SessionCapsule::Close(bye()));
    let closed = Closed::Peer(bye());
    assert_eq!(closed.reason(), Some(&bye()));
    assert_eq!(events(&mut session), [SessionEvent::Closed(closed)]);
    assert_eq!(outputs(&mut session), [Output::Finish]);
    assert!(!session.is_over());
    session.on_content_end(NOW);
    assert!(session.is_over());
}

/// draft-ietf-webtrans-http3-16 §6; WT-h3-022.
#[test]
fn content_after_close_is_malformed() {
    let close = SessionCapsule::Close(bye()).encode();
    for more in [&b"x"[..], &SessionCapsule::Drain.encode(), &close] {
        let mut together = plain();
        together.on_content(NOW, [&close, more].concat().into());
        assert!(matches!(together.closed(), Some(Closed::Peer(_))));
        assert_eq!(outputs(&mut together), [Output::Reset(Code::MESSAGE_ERROR)]);
        for is_finished in [false, true] {
            let mut later = plain();
            later.on_content(NOW, close.clone());
            if is_finished {
                assert_eq!(outputs(&mut later), [Output::Finish]);
            }
            later.on_content(NOW, Bytes::copy_from_slice(more));
            assert_eq!(outputs(&mut later), [Output::Reset(Code::MESSAGE_ERROR)]);
            assert!(later.is_over());
        }
    }
}

/// draft-ietf-webtrans-http3-16 §6; WT-h3-100.
#[test]
fn clean_end_reads_as_code_0() {
    let mut session = plain();
    session.on_content_end(NOW);
    let closed = Closed::Peer(CloseReason::new(0, ""));
    assert_eq!(events(&mut session), [SessionEvent::Closed(closed)]);
    assert_eq!(outputs(&mut session), [Output::Finish]);
    assert!(session.is_over());
}

/// draft-ietf-webtrans-http3-16 §6; WT-h3-095.
#[test]
fn reset_of_the_connect_stream_ends_the_session() {
    let code = Code::REQUEST_CANCELLED;
    let mut session = plain();
    session.on_content_reset(NOW, code);
    assert_eq!(
        events(&mut session),
        [SessionEvent::Closed(Closed::Reset(code))]
    );
    assert_eq!(outputs(&mut session), [Output::Finish]);
    assert!(session.is_over());
    let mut session = plain();
    session.on_stopped(NOW, code::SESSION_GONE);
    assert_eq!(session.closed(), Some(&Closed::Reset(code::SESSION_GONE)));
    // QUIC has reset the sending half.
    assert_eq!(outputs(&mut session), []);
    session.on_content_end(NOW);
    assert!(session.is_over());
}

#[test]
fn content_that_ends_inside_a_capsule_is_malformed() {
    let close = SessionCapsule::Close(bye()).encode();
    for len in 1..close.len() {
        let mut session = plain();
        session.on_content(NOW, close.slice(..len));
        session.on_content_end(NOW);
        assert_eq!(violation(&mut session), Some(Code::MESSAGE_ERROR), "{len}");
    }
}

/// draft-ietf-webtrans-http3-16 §6; WT-h3-108.
#[test]
fn close_that_arrived_before_the_end_of_the_connection_is_told() {
    let mut session = plain();
    receive(&mut session, &SessionCapsule::Close(bye()));
    session.on_connection_lost(NOW);
    let closed = SessionEvent::Closed(Closed::Peer(bye()));
    assert_eq!(events(&mut session), [closed]);
    assert_eq!(outputs(&mut session), []);
    assert!(session.is_over());
    let mut session = plain();
    session.on_connection_lost(NOW);
    assert_eq!(session.closed(), Some(&Closed::ConnectionLost));
}

/// draft-ietf-webtrans-http3-16 §6; WT-h3-024, WT-h3-103, A253.
#[test]
fn close_waits_three_probe_timeouts_for_the_peer() {
    for (probe_timeout, wait) in [(0, 100), (33, 100), (50, 150), (1000, 3000), (10_000, 5000)] {
        // The peer grants no credit, so that the capsule cannot leave.
        let mut sender = plain();
        sender.set_probe_timeout(Duration::from_millis(probe_timeout));
        sender.close(NOW, bye());
        // The peer has sent its capsule, and never ends its half.
        let mut receiver = plain();
        receiver.set_probe_timeout(Duration::from_millis(probe_timeout));
        receive(&mut receiver, &SessionCapsule::Close(bye()));
        assert_eq!(outputs(&mut receiver), [Output::Finish]);
        for session in [&mut sender, &mut receiver] {
            assert_eq!(session.next_timeout(), Some(after(wait)));
            session.on_timeout(after(wait - 1));
            assert!(!matches!(session.send, SendHalf::Resetting(_)));
            session.on_timeout(after(wait));
            assert_eq!(outputs(session), [Output::Reset(code::SESSION_GONE)]);
            assert!(session.is_over());
            assert_eq!(session.next_timeout(), None);
        }
    }
}

/// draft-ietf-webtrans-http3-16 §4.7; WT-h3-074, MT-011.
#[test]
fn drain_is_sent_once_and_told_once_and_ends_nothing() {
    let mut session = plain();
    session.drain();
    session.drain();
    let drain = Output::Content(SessionCapsule::Drain.encode());
    assert_eq!(outputs(&mut session), [drain]);
    session.drain();
    assert_eq!(outputs(&mut session), []);
    receive(&mut session, &SessionCapsule::Drain);
    receive(&mut session, &SessionCapsule::Drain);
    session.on_goaway();
    assert_eq!(events(&mut session), [SessionEvent::Draining]);
    session.on_goaway();
    assert_eq!(events(&mut session), []);
    assert_eq!(
        (session.open_stream(BIDI), session.closed()),
        (Ok(()), None)
    );
}

/// draft-ietf-webtrans-http3-16 §4.7; WT-h3-075.
#[test]
fn drain_with_content_ends_the_session() {
    let mut session = plain();
    session.on_content(NOW, raw(0x78ae, b"x"));
    assert_eq!(violation(&mut session), Some(Code::MESSAGE_ERROR));
}

/// draft-ietf-webtrans-http3-16 §6; WT-h3-021, A254.
#[test]
fn endless_and_invalid_messages_end_the_session_at_once() {
    // 2^62 - 1 bytes are announced.
    let endless = [&b"\x68\x43"[..], &[0xff; 8]].concat();
    for content in [
        endless.into(),
        raw(0x2843, &[0; 4 + 1025]),
        raw(0x2843, b"\0\0\0\x01\xff"),
        raw(0x2843, b"\0\0\0\x01\xe2\x82"),
        raw(0x2843, b"\0\0\0"),
    ] {
        let mut session = plain();
        session.on_content(NOW, content);
        assert_eq!(violation(&mut session), Some(Code::MESSAGE_ERROR));
    }
}

/// A255.
#[test]
fn unknown_capsules_are_skipped_up_to_a_number_of_bytes() {
    // One capsule of 2^62 - 1 bytes, in pieces.
    let mut session = plain();
    session.on_content(NOW, [&[0x21][..], &[0xff; 8]].concat().into());
    let piece = Bytes::from_static(&[0; 1024]);
    for _ in 0..1023 {
        session.on_content(NOW, piece.clone());
    }
    assert_eq!(session.closed(), None);
    session.on_content(NOW, piece.clone());
    session.on_content(NOW, piece.clone());
    assert_eq!(violation(&mut session), Some(Code::EXCESSIVE_LOAD));
    // Byte by byte, and with capsules that change nothing.
    let mut session = plain();
    for _ in 0..1024 * 1024 {
        session.on_content(NOW, Bytes::from_static(&[0]));
    }
    assert_eq!(session.closed(), None);
    receive(&mut session, &SessionCapsule::DataBlocked(0));
    assert_eq!(violation(&mut session), Some(Code::EXCESSIVE_LOAD));
    // Some of it in a second is allowed.
    let mut session = plain();
    for second in 0..600 {
        let now = after(1000 * second);
        (0..15).for_each(|_| session.on_content(now, raw(0x21, &[0; 1024])));
    }
    assert_eq!(session.closed(), None);
}

/// draft-ietf-webtrans-http3-16 §4.5.
#[test]
fn datagrams_in_capsules_are_skipped() {
    let mut session = plain();
    session.on_content(NOW, raw(Capsule::DATAGRAM, b"payload"));
    receive(&mut session, &SessionCapsule::Drain);
    assert_eq!(events(&mut session), [SessionEvent::Draining]);
}

#[test]
fn ends_have_their_reasons_in_words() {
    let error = malformed("x");
    for (closed, text, is_by_peer) in [
        (
            Closed::Peer(bye()),
            "the peer has closed the session with code 7: bye",
            true,
        ),
        (
            Closed::Local(CloseReason::new(0, "")),
            "this end has closed the session with code 0",
            false,
        ),
        (
            Closed::Reset(code::ALPN_ERROR),
            "the peer has reset the session with WT_ALPN_ERROR",
            true,
        ),
        (
            Closed::Reset(Code::from_value(9)),
            "the peer has reset the session with 0x9",
            true,
        ),
        (
            Closed::Violation(error),
            "the peer has violated the protocol: x",
            false,
        ),
        (Closed::ConnectionLost, "the connection has ended", false),
    ] {
        assert_eq!(
            (closed.to_string().as_str(), closed.is_by_peer()),
            (text, is_by_peer)
        );
    }
}

/// draft-ietf-webtrans-http3-16 §3.3; WT-h3-008, WT-h3-043.
#[test]
fn session_without_its_protocol_is_reset() {
    let mut session = plain();
    session.reset(NOW, code::ALPN_ERROR);
    assert_eq!(outputs(&mut session), [Output::Reset(code::ALPN_ERROR)]);
    assert!(session.is_over());
}
