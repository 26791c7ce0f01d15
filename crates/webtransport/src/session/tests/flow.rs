//! Flow control as a session applies it.

use super::*;

const SMALL: Limits = Limits {
    max_data: 1000,
    max_streams_bidi: 4,
    max_streams_uni: 2,
};

const RTT: Duration = Duration::from_millis(10);

fn small() -> Session {
    Session::new(session(0), &agreement(SMALL))
}

/// draft-ietf-webtrans-http3-16 §5.1; WT-h3-015, WT-v-014, A256.
#[test]
fn without_flow_control_its_capsules_have_no_effect() {
    let mut session = plain();
    for capsule in [
        SessionCapsule::MaxData(0),
        SessionCapsule::MaxStreams(BIDI, 0),
        SessionCapsule::MaxStreams(UNI, 0),
        SessionCapsule::DataBlocked(0),
        SessionCapsule::StreamsBlocked(UNI, 0),
    ] {
        receive(&mut session, &capsule);
        receive(&mut session, &capsule);
    }
    session.on_content(NOW, raw(0x190b_4d3d, b"malformed"));
    assert_eq!(events(&mut session), []);
    assert_eq!(session.closed(), None);
    assert!(!session.has_flow_control());
    for _ in 0..10_000 {
        assert_eq!(session.open_stream(BIDI), Ok(()));
        assert_eq!(session.on_stream(NOW, UNI), Ok(()));
        assert_eq!(session.on_data(NOW, 1 << 40), Ok(()));
        assert_eq!(session.reserve_data(1 << 40), 1 << 40);
    }
    assert_eq!(outputs(&mut session), []);
}

/// draft-ietf-webtrans-http3-16 §5.3, §5.4; WT-h3-016, WT-h3-017, A257.
#[test]
fn streams_and_data_beyond_the_limits_end_the_session() {
    let mut session = small();
    assert_eq!(
        [0; 3].map(|_: i32| session.on_stream(NOW, UNI)),
        [Ok(()), Ok(()), Err(code::SESSION_GONE)]
    );
    assert_eq!(violation(&mut session), Some(code::FLOW_CONTROL_ERROR));
    let mut session = small();
    assert_eq!(session.on_data(NOW, 1000), Ok(()));
    assert_eq!(session.on_data(NOW, 1), Err(code::SESSION_GONE));
    assert_eq!(violation(&mut session), Some(code::FLOW_CONTROL_ERROR));
}

/// draft-ietf-webtrans-http3-16 §5.4, §5.6; WT-h3-018, WT-h3-019, WT-h3-020, WT-h3-092, WT-h2-003, A256.
#[test]
fn invalid_limits_end_the_session() {
    for (content, code) in [
        (
            SessionCapsule::MaxData(1000).encode(),
            code::FLOW_CONTROL_ERROR,
        ),
        (
            SessionCapsule::MaxData(999).encode(),
            code::FLOW_CONTROL_ERROR,
        ),
        (
            SessionCapsule::MaxStreams(UNI, 2).encode(),
            code::FLOW_CONTROL_ERROR,
        ),
        (
            SessionCapsule::MaxStreams(BIDI, (1 << 60) + 1).encode(),
            code::FLOW_CONTROL_ERROR,
        ),
        (
            SessionCapsule::StreamsBlocked(BIDI, (1 << 60) + 1).encode(),
            code::FLOW_CONTROL_ERROR,
        ),
        (raw(0x190b_4d3e, &[0, 1]), code::FLOW_CONTROL_ERROR),
        (raw(0x190b_4d42, &[0, 1]), code::FLOW_CONTROL_ERROR),
        (raw(0x190b_4d3d, &[]), Code::MESSAGE_ERROR),
        (raw(0x190b_4d3d, &[1, 2]), Code::MESSAGE_ERROR),
        (raw(0x190b_4d3f, &[0; 9]), Code::MESSAGE_ERROR),
    ] {
        let mut session = small();
        session.on_content(NOW, content.clone());
        assert_eq!(violation(&mut session), Some(code), "{content:x?}");
    }
}

/// draft-ietf-webtrans-http3-16 §5.3, §5.6; WT-h3-084, WT-h3-091.
#[test]
fn higher_limits_wake_the_application() {
    let mut session = small();
    session.open_stream(UNI).expect("the first");
    session.open_stream(UNI).expect("the second");
    assert_eq!(
        session.open_stream(UNI),
        Err(OpenError::Blocked { limit: 2 })
    );
    assert_eq!(session.reserve_data(2000), 1000);
    let blocked = [
        SessionCapsule::DataBlocked(1000),
        SessionCapsule::StreamsBlocked(UNI, 2),
    ];
    let blocked = blocked.map(|capsule| Output::Content(capsule.encode()));
    assert_eq!(outputs(&mut session), blocked);
    for limit in [3, 4, 5] {
        receive(&mut session, &SessionCapsule::MaxStreams(UNI, limit));
    }
    receive(&mut session, &SessionCapsule::MaxStreams(BIDI, 5));
    receive(&mut session, &SessionCapsule::MaxData(1001));
    let expected = [
        SessionEvent::StreamsAllowed(BIDI),
        SessionEvent::StreamsAllowed(UNI),
        SessionEvent::DataAllowed,
    ];
    assert_eq!(events(&mut session), expected);
    assert_eq!(
        (session.open_stream(UNI), session.reserve_data(2000)),
        (Ok(()), 1)
    );
    session.give_back_data(1);
    assert_eq!(events(&mut session), [SessionEvent::DataAllowed]);
}

/// draft-ietf-webtrans-http3-16 §5.4; WT-h3-086, WT-h3-087, WT-h3-088, WT-h3-089, A257.
#[test]
fn reset_streams_count_with_their_final_size_less_the_header() {
    let reset = |final_size, counted, consumed| StreamReset {
        final_size,
        header: 3,
        counted,
        consumed,
    };
    // 500 bytes, of which 100 were counted and read.
    let mut session = small();
    assert_eq!(session.on_stream(NOW, UNI), Ok(()));
    assert_eq!(session.on_data(NOW, 100), Ok(()));
    session.on_consumed(NOW, RTT, 100);
    assert_eq!(session.on_stream_reset(NOW, reset(503, 100, 100)), Ok(()));
    // All of them are consumed, so a new limit is due.
    let limit = Output::Content(SessionCapsule::MaxData(1500).encode());
    assert_eq!(outputs(&mut session), [limit]);
    assert_eq!(session.on_data(NOW, 1000), Ok(()));
    // A final size below the length of the header counts as zero.
    assert_eq!(session.on_stream_reset(NOW, reset(2, 0, 0)), Ok(()));
    assert_eq!(session.on_stream_reset(NOW, reset(0, 0, 0)), Ok(()));
    assert_eq!(
        session.on_stream_reset(NOW, reset(4, 0, 0)),
        Err(code::SESSION_GONE)
    );
    assert_eq!(violation(&mut session), Some(code::FLOW_CONTROL_ERROR));
    // Streams that were reset count as streams.
    let mut session = small();
    for expected in [Ok(()), Ok(()), Err(code::SESSION_GONE)] {
        assert_eq!(session.on_stream(NOW, UNI), expected);
        let _ = session.on_stream_reset(NOW, reset(3, 0, 0));
    }
}

/// Limit K301, A97: a peer that never reads.
#[test]
fn limits_that_wait_for_credit_are_replaced_by_newer_ones() {
    let mut session = small();
    session.drain();
    for round in 0..10_000 {
        let now = after(round);
        // Nothing is sent, so only the first of the limits can be used up.
        if round == 0 {
            assert_eq!(session.on_data(now, 1000), Ok(()));
        }
        session.on_consumed(now, RTT, 1000);
        session.on_stream_ended(BIDI);
        session.on_stream_ended(UNI);
        session.reserve_data(2000);
        let _ = session.open_stream(BIDI);
        let _ = session.open_stream(UNI);
        receive(&mut session, &SessionCapsule::DataBlocked(round));
    }
    let waiting = outputs(&mut session);
    assert!(waiting.len() <= 8, "{waiting:?}");
    assert!(std::mem::size_of::<Session>() <= 1024);
}

/// A fast peer with a small window uses up each limit and reports that, thousands of times in a second. K308.
#[test]
fn one_report_of_each_limit_is_no_noise() {
    let mut agreement = agreement(SMALL);
    agreement.max_window = 1000;
    let mut session = Session::new(session(0), &agreement);
    for limit in (1000..200_000_000).step_by(1000) {
        assert_eq!(session.on_data(NOW, 1000), Ok(()));
        receive(&mut session, &SessionCapsule::DataBlocked(limit));
        session.on_consumed(NOW, RTT, 1000);
        let raised = SessionCapsule::MaxData(limit + 1000);
        assert_eq!(session.poll_capsule(), Some(raised));
    }
    assert_eq!(session.closed(), None);
    // Reports of the same limit are.
    for _ in 0..200_000 {
        receive(&mut session, &SessionCapsule::DataBlocked(200_000_000));
    }
    assert_eq!(violation(&mut session), Some(Code::EXCESSIVE_LOAD));
}

/// draft-ietf-webtrans-http3-16 §5.3; WT-h3-094.
#[test]
fn million_short_streams_need_no_memory() {
    let mut session = new();
    let mut limit = 1024;
    for number in 1..=1_000_000_u64 {
        assert!(number <= limit);
        assert_eq!(session.on_stream(NOW, BIDI), Ok(()));
        assert_eq!(session.on_data(NOW, 1), Ok(()));
        session.on_consumed(NOW, RTT, 1);
        session.on_stream_ended(BIDI);
        while let Some(capsule) = session.poll_capsule() {
            if let SessionCapsule::MaxStreams(BIDI, raised) = capsule {
                limit = raised;
            }
        }
    }
    assert!(limit > 1_000_000);
}

/// The task of the CONNECT stream sleeps while streams are read and written within their limits.
#[test]
fn only_due_capsules_and_the_end_are_outputs() {
    let mut session = small();
    assert!(!session.has_output());
    assert_eq!(session.reserve_data(10), 10);
    assert_eq!(session.open_stream(BIDI), Ok(()));
    for _ in 0..49 {
        assert_eq!(session.on_data(NOW, 10), Ok(()));
        session.on_consumed(NOW, RTT, 10);
        assert!(!session.has_output());
    }
    assert_eq!(session.on_data(NOW, 10), Ok(()));
    session.on_consumed(NOW, RTT, 10);
    assert!(session.has_output(), "half of the window is used");
    assert_eq!(outputs(&mut session).len(), 1);
    assert!(!session.has_output());
    assert_eq!(session.on_stream(NOW, UNI), Ok(()));
    assert!(!session.has_output());
    session.on_stream_ended(UNI);
    assert!(session.has_output(), "a quarter of two streams is one");
    assert_eq!(outputs(&mut session).len(), 1);
    assert_eq!(session.reserve_data(10_000), 990);
    assert!(session.has_output(), "the peer is told that it holds back");
    assert_eq!(outputs(&mut session).len(), 1);
    session.drain();
    assert!(session.has_output());
    assert_eq!(outputs(&mut session).len(), 1);
    session.close(NOW, bye());
    assert!(session.has_output());
    assert_eq!(outputs(&mut session).len(), 2);
    assert!(!session.has_output());
}

/// A reset overtakes what the CONNECT stream has not accepted.
#[test]
fn reset_for_a_violation_waits_for_nothing() {
    let mut session = small();
    session.drain();
    assert_eq!(session.poll_reset(), None);
    assert_eq!(session.on_data(NOW, 1001), Err(code::SESSION_GONE));
    assert_eq!(session.poll_reset(), Some(code::FLOW_CONTROL_ERROR));
    assert_eq!(session.poll_reset(), None);
    assert!(session.is_over());
    // The end of this end waits for its capsule, until its time has passed.
    let mut session = small();
    session.close(NOW, bye());
    assert_eq!(session.poll_reset(), None);
    session.on_timeout(after(5_000));
    assert_eq!(session.poll_reset(), Some(code::SESSION_GONE));
}
