use super::*;
use crate::limits::Limits;
use crate::testing::{NOW, after, agreement};

use Direction::{Bidirectional, Unidirectional};

const RTT: Duration = Duration::from_millis(10);

fn flow(limits: Limits) -> Flow {
    Flow::new(&agreement(limits))
}

const SMALL: Limits = Limits {
    max_data: 1000,
    max_streams_bidi: 4,
    max_streams_uni: 2,
};

fn capsules(flow: &mut Flow) -> Vec<SessionCapsule> {
    std::iter::from_fn(|| flow.poll_capsule()).collect()
}

/// draft-ietf-webtrans-http3-16 §5.3; WT-h3-084.
#[test]
fn streams_are_opened_within_the_limit_of_their_direction() {
    let mut flow = flow(SMALL);
    assert_eq!(
        [0; 3].map(|_: i32| flow.open_stream(Unidirectional)),
        [Ok(()), Ok(()), Err(2)]
    );
    assert_eq!(
        (0..9)
            .filter(|_| flow.open_stream(Bidirectional).is_ok())
            .count(),
        4
    );
    let raised = SessionCapsule::MaxStreams(Unidirectional, 3);
    assert_eq!(flow.on_limit(&raised), Ok(()));
    assert_eq!(
        [0; 2].map(|_: i32| flow.open_stream(Unidirectional)),
        [Ok(()), Err(3)]
    );
}

/// draft-ietf-webtrans-http3-16 §5.4; WT-h3-087.
#[test]
fn bytes_are_sent_within_the_limit_of_data() {
    let mut flow = flow(SMALL);
    assert_eq!(
        (flow.reserve(600), flow.reserve(600), flow.reserve(1)),
        (600, 400, 0)
    );
    flow.give_back(100);
    assert_eq!((flow.reserve(600), flow.reserve(0)), (100, 0));
    assert_eq!(flow.on_limit(&SessionCapsule::MaxData(1001)), Ok(()));
    assert_eq!(flow.reserve(600), 1);
}

/// draft-ietf-webtrans-http3-16 §5.6; WT-h3-091.
#[test]
fn limit_that_holds_a_writer_back_is_reported_once() {
    let mut flow = flow(SMALL);
    flow.reserve(1000);
    assert_eq!(capsules(&mut flow), []);
    for _ in 0..5 {
        assert_eq!(flow.reserve(1), 0);
    }
    assert_eq!(capsules(&mut flow), [SessionCapsule::DataBlocked(1000)]);
    assert_eq!(flow.reserve(1), 0);
    assert_eq!(capsules(&mut flow), []);
    assert_eq!(flow.on_limit(&SessionCapsule::MaxData(1500)), Ok(()));
    assert_eq!(flow.reserve(501), 500);
    assert_eq!(capsules(&mut flow), [SessionCapsule::DataBlocked(1500)]);
    for _ in 0..6 {
        let _ = flow.open_stream(Bidirectional);
        let _ = flow.open_stream(Unidirectional);
    }
    let blocked = [(Bidirectional, 4), (Unidirectional, 2)];
    let blocked =
        blocked.map(|(direction, limit)| SessionCapsule::StreamsBlocked(direction, limit));
    assert_eq!(capsules(&mut flow), blocked);
}

#[test]
fn report_of_a_limit_that_was_raised_meanwhile_is_not_sent() {
    let mut flow = flow(SMALL);
    flow.reserve(2000);
    assert_eq!(flow.on_limit(&SessionCapsule::MaxData(3000)), Ok(()));
    assert_eq!(capsules(&mut flow), []);
}

/// draft-ietf-webtrans-http3-16 §5.6; WT-h3-020, A256.
#[test]
fn limits_that_fall_or_repeat_are_refused() {
    for (first, limits) in [
        (
            SessionCapsule::MaxData(1001),
            [1000, 1001].map(SessionCapsule::MaxData),
        ),
        (
            SessionCapsule::MaxStreams(Bidirectional, 5),
            [4, 5].map(|limit| SessionCapsule::MaxStreams(Bidirectional, limit)),
        ),
    ] {
        for limit in limits {
            let mut flow = flow(SMALL);
            assert_eq!(flow.on_limit(&first), Ok(()));
            let error = flow.on_limit(&limit).expect_err("not above");
            assert_eq!(error.code, crate::code::FLOW_CONTROL_ERROR);
        }
        // Nor is a limit of the settings repeated.
        let mut flow = flow(SMALL);
        let repeated = SessionCapsule::MaxData(1000);
        assert!(flow.on_limit(&repeated).is_err());
    }
}

/// draft-ietf-webtrans-http3-16 §5.3; WT-h3-016, WT-h3-085, WT-h3-094, A257.
#[test]
fn streams_of_the_peer_count_over_the_life_of_the_session() {
    let mut flow = flow(SMALL);
    for _ in 0..4 {
        assert_eq!(flow.on_stream(Bidirectional), Ok(()));
    }
    // Streams that have ended count until the new limit is announced.
    flow.on_stream_ended(Bidirectional);
    let mut early = Flow::new(&agreement(SMALL));
    for _ in 0..4 {
        assert_eq!(early.on_stream(Bidirectional), Ok(()));
    }
    assert!(early.on_stream(Bidirectional).is_err());
    let raised = SessionCapsule::MaxStreams(Bidirectional, 5);
    assert_eq!(capsules(&mut flow), [raised]);
    assert_eq!(flow.on_stream(Bidirectional), Ok(()));
    let error = flow.on_stream(Bidirectional).expect_err("a sixth stream");
    assert_eq!(error.code, crate::code::FLOW_CONTROL_ERROR);
}

/// draft-ietf-webtrans-http3-16 §5.4; WT-h3-017, A257.
#[test]
fn data_beyond_the_limit_is_refused() {
    let mut flow = flow(SMALL);
    assert_eq!(flow.on_data(1000), Ok(()));
    let error = flow.on_data(1).expect_err("more than allowed");
    assert_eq!(error.code, crate::code::FLOW_CONTROL_ERROR);
    let mut flow = Flow::new(&agreement(SMALL));
    assert!(flow.on_data(u64::MAX).is_err() && flow.on_data(u64::MAX).is_err());
}

/// draft-ietf-webtrans-http3-16 §5.6; WT-h3-090.
#[test]
fn limits_follow_what_is_consumed_without_a_report() {
    let mut flow = flow(SMALL);
    assert_eq!(flow.on_data(900), Ok(()));
    flow.on_consumed(NOW, RTT, 499);
    assert_eq!(capsules(&mut flow), []);
    flow.on_consumed(NOW, RTT, 1);
    assert_eq!(capsules(&mut flow), [SessionCapsule::MaxData(1500)]);
    // A new limit replaces one that was not sent.
    assert_eq!(flow.on_data(600), Ok(()));
    flow.on_consumed(after(1000), RTT, 500);
    flow.on_consumed(after(1000), RTT, 500);
    assert_eq!(capsules(&mut flow), [SessionCapsule::MaxData(2500)]);
}

/// A347.
#[test]
fn reports_alone_lead_to_no_limit() {
    let mut flow = flow(SMALL);
    for millis in 0..10_000 {
        flow.on_blocked(after(millis), &SessionCapsule::DataBlocked(1000));
        flow.on_blocked(
            after(millis),
            &SessionCapsule::StreamsBlocked(Bidirectional, 4),
        );
        assert_eq!((flow.next_timeout(), capsules(&mut flow)), (None, vec![]));
    }
}

/// The rest of the window is occupied by streams that the application does not read. draft-ietf-webtrans-http3-16 §5.6;
/// K588.
#[test]
fn blocked_peer_gets_credit_of_less_than_half_a_window_after_a_pause() {
    let mut flow = flow(SMALL);
    assert_eq!(flow.on_data(1000), Ok(()));
    flow.on_consumed(NOW, RTT, 100);
    assert_eq!((flow.next_timeout(), capsules(&mut flow)), (None, vec![]));
    // A report of an older limit says nothing about this one.
    flow.on_blocked(NOW, &SessionCapsule::DataBlocked(999));
    assert_eq!(flow.next_timeout(), None);
    flow.on_blocked(NOW, &SessionCapsule::DataBlocked(1000));
    flow.on_consumed(after(3), RTT, 100);
    assert_eq!(flow.next_timeout(), Some(after(10)));
    flow.on_timeout(after(9));
    assert_eq!(capsules(&mut flow), []);
    flow.on_timeout(after(10));
    assert_eq!(capsules(&mut flow), [SessionCapsule::MaxData(1200)]);
    // The report has been answered.
    assert_eq!(flow.on_data(100), Ok(()));
    flow.on_consumed(after(20), RTT, 100);
    assert_eq!((flow.next_timeout(), capsules(&mut flow)), (None, vec![]));
    // What is read later is announced likewise, and half of a window at once.
    flow.on_blocked(after(30), &SessionCapsule::DataBlocked(1200));
    assert_eq!(flow.next_timeout(), Some(after(40)));
    flow.on_consumed(after(31), RTT, 400);
    assert_eq!(capsules(&mut flow), [SessionCapsule::MaxData(1700)]);
    assert_eq!(flow.next_timeout(), None);
}

/// The CONNECT stream may accept no content for long, and a timer must not expire all that time.
#[test]
fn credit_that_is_due_sets_no_timer() {
    let mut flow = flow(SMALL);
    assert_eq!(flow.on_data(1000), Ok(()));
    flow.on_consumed(NOW, RTT, 100);
    flow.on_blocked(NOW, &SessionCapsule::DataBlocked(1000));
    assert_eq!(flow.next_timeout(), Some(after(10)));
    flow.on_timeout(after(10));
    assert_eq!(flow.next_timeout(), None);
    // Neither a report nor more credit brings it back.
    flow.on_blocked(after(11), &SessionCapsule::DataBlocked(1000));
    flow.on_consumed(after(12), RTT, 100);
    assert_eq!(flow.next_timeout(), None);
    assert_eq!(capsules(&mut flow), [SessionCapsule::MaxData(1200)]);
}

/// The other streams of the window stay open. draft-ietf-webtrans-http3-16 §5.6.
#[test]
fn blocked_peer_gets_credit_for_each_stream_that_ends() {
    let mut flow = flow(Limits {
        max_streams_bidi: 40,
        ..SMALL
    });
    for _ in 0..40 {
        assert_eq!(flow.on_stream(Bidirectional), Ok(()));
    }
    flow.on_stream_ended(Bidirectional);
    flow.on_blocked(NOW, &SessionCapsule::StreamsBlocked(Bidirectional, 39));
    assert_eq!(capsules(&mut flow), []);
    flow.on_blocked(NOW, &SessionCapsule::StreamsBlocked(Bidirectional, 40));
    let raised = |limit| vec![SessionCapsule::MaxStreams(Bidirectional, limit)];
    assert_eq!(capsules(&mut flow), raised(41));
    flow.on_stream_ended(Bidirectional);
    assert_eq!(capsules(&mut flow), []);
    flow.on_blocked(NOW, &SessionCapsule::StreamsBlocked(Bidirectional, 41));
    assert_eq!(capsules(&mut flow), raised(42));
}

/// Limit K305.
#[test]
fn window_doubles_while_it_is_used_up_in_two_round_trips() {
    let mut flow = flow(Limits::default());
    let (mut sent, mut limit) = (0, 16 * 1024 * 1024);
    let mut window = 0;
    for round in 0..20 {
        assert_eq!(flow.on_data(limit - sent), Ok(()));
        flow.on_consumed(after(10 * round), RTT, limit - sent);
        sent = limit;
        let Some(SessionCapsule::MaxData(raised)) = flow.poll_capsule() else {
            panic!("no limit in round {round}");
        };
        (window, limit) = (raised - sent, raised);
    }
    assert_eq!(window, 128 * 1024 * 1024);
    let mut slow = Flow::new(&agreement(Limits::default()));
    for round in 0..5 {
        assert_eq!(slow.on_data(16 * 1024 * 1024), Ok(()));
        slow.on_consumed(after(1000 * round), RTT, 16 * 1024 * 1024);
        let raised = SessionCapsule::MaxData((round + 2) * 16 * 1024 * 1024);
        assert_eq!(capsules(&mut slow), [raised]);
    }
}

#[test]
fn without_credit_nothing_is_allowed_or_announced() {
    let mut flow = flow(Limits {
        max_data: 1,
        ..Limits::NONE
    });
    assert_eq!(flow.open_stream(Bidirectional), Err(0));
    assert!(flow.on_stream(Unidirectional).is_err());
}
