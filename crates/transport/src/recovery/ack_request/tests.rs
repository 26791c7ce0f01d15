use super::*;
use crate::space::sent::FrameLists;

const ANNOUNCED: Duration = Duration::from_millis(25);
const LEAST: Duration = Duration::from_millis(1);
const RTT: Duration = Duration::from_millis(40);

fn request() -> AckRequest {
    let mut request = AckRequest::default();
    request.on_peer_parameters(ANNOUNCED, Some(LEAST), true);
    request
}

fn at(millis: u64) -> Situation {
    Situation {
        now: Time::ZERO + Duration::from_millis(millis),
        window: 400,
        rtt: RTT,
        in_slow_start: false,
        congestion_events: 0,
        packet_threshold: 3,
    }
}

/// Writes the frame that is due, and decodes it.
fn sent(request: &mut AckRequest) -> Option<AckFrequency> {
    let (mut room, mut lists) = ([0; 64], FrameLists::default());
    let mut packet = PacketBuilder::new(&mut room, &mut lists);
    request.write_frames(&mut packet);
    let len = packet.end();
    match courser_wire::frame::Frames::new(&room[..len]).next()? {
        Ok(courser_wire::frame::Frame::AckFrequency(frame)) => Some(frame),
        other => panic!("{other:?}"),
    }
}

#[test]
fn large_window_asks_for_eight_acks_per_round_trip() {
    let mut request = request();
    request.review(&at(1000));
    let frame = AckFrequency {
        sequence: 0,
        ack_eliciting_threshold: 50,
        requested_max_ack_delay: 10_000,
        reordering_threshold: 3,
    };
    assert_eq!(sent(&mut request), Some(frame));
    assert!(!request.has_frames_to_send());
}

#[test]
fn slow_start_and_small_windows_leave_the_default() {
    let mut request = request();
    for situation in [
        Situation {
            in_slow_start: true,
            ..at(1000)
        },
        Situation {
            window: 31,
            ..at(1000)
        },
    ] {
        request.review(&situation);
        assert!(!request.has_frames_to_send(), "{situation:?}");
    }
}

#[test]
fn no_request_without_support_or_when_disabled() {
    for (offer, is_enabled) in [(None, true), (Some(LEAST), false)] {
        let mut request = AckRequest::default();
        request.on_peer_parameters(ANNOUNCED, offer, is_enabled);
        request.review(&at(1000));
        assert!(!request.has_frames_to_send() && !request.is_offered());
        assert_eq!(request.max_ack_delay(), ANNOUNCED);
    }
}

#[test]
fn delay_stays_between_the_peers_least_and_its_own() {
    for (rtt, delay) in [(1, 1000), (8, 2000), (100, 25_000), (4000, 25_000)] {
        let mut request = request();
        let rtt = Duration::from_millis(rtt);
        request.review(&Situation { rtt, ..at(1000) });
        let frame = sent(&mut request).expect("a request");
        assert_eq!(frame.requested_max_ack_delay, delay, "{rtt:?}");
    }
}

#[test]
fn small_changes_cause_no_frame() {
    let mut request = request();
    request.review(&at(1000));
    sent(&mut request).expect("the first");
    request.on_acked(0);
    for window in [401, 500, 700, 250] {
        request.review(&Situation {
            window,
            ..at(10_000)
        });
        assert!(!request.has_frames_to_send(), "{window}");
    }
    for window in [800, 200] {
        request.review(&Situation {
            window,
            ..at(10_000)
        });
        assert!(request.has_frames_to_send(), "{window}");
    }
}

#[test]
fn requests_come_one_at_a_time_and_once_per_round_trip() {
    let mut request = request();
    request.review(&at(1000));
    sent(&mut request).expect("the first");
    let larger = |millis| Situation {
        window: 4000,
        ..at(millis)
    };
    request.review(&larger(5000));
    assert!(!request.has_frames_to_send(), "the first is in flight");
    request.on_acked(0);
    request.review(&larger(1039));
    assert!(!request.has_frames_to_send(), "too early");
    request.review(&larger(1040));
    let frame = sent(&mut request).expect("the second");
    assert_eq!((frame.sequence, frame.ack_eliciting_threshold), (1, 500));
}

#[test]
fn loss_brings_the_default_back_at_once_and_thinning_later() {
    let mut request = request();
    request.review(&at(1000));
    sent(&mut request).expect("thinned");
    let after = |millis| Situation {
        congestion_events: 1,
        ..at(millis)
    };
    request.review(&after(1001));
    let frame = sent(&mut request).expect("every second again");
    assert_eq!((frame.sequence, frame.ack_eliciting_threshold), (1, 1));
    request.on_acked(1);
    request.review(&after(1080));
    assert!(!request.has_frames_to_send());
    request.review(&after(1081));
    assert_eq!(sent(&mut request).map(|frame| frame.sequence), Some(2));
}

#[test]
fn longer_delay_counts_until_the_shorter_is_confirmed() {
    let mut request = request();
    request.review(&at(1000));
    sent(&mut request).expect("10 ms");
    assert_eq!(request.max_ack_delay(), ANNOUNCED);
    request.on_acked(0);
    assert_eq!(request.max_ack_delay(), Duration::from_millis(10));
    let longer = Situation {
        rtt: RTT * 2,
        ..at(2000)
    };
    request.review(&longer);
    sent(&mut request).expect("20 ms");
    assert_eq!(
        request.max_ack_delay(),
        Duration::from_millis(20),
        "at once"
    );
    request.on_lost(1);
    assert_eq!(request.max_ack_delay(), Duration::from_millis(20), "or not");
    request.review(&Situation {
        rtt: RTT / 2,
        ..at(3000)
    });
    sent(&mut request).expect("5 ms");
    assert_eq!(request.max_ack_delay(), Duration::from_millis(20));
    request.on_acked(2);
    assert_eq!(request.max_ack_delay(), Duration::from_millis(5));
}

#[test]
fn lost_request_is_sent_again_with_new_number() {
    let mut request = request();
    request.review(&at(1000));
    sent(&mut request).expect("the first");
    request.on_lost(0);
    request.on_lost(0);
    assert_eq!(sent(&mut request).map(|frame| frame.sequence), Some(1));
    request.on_acked(0);
    assert_eq!(request.max_ack_delay(), ANNOUNCED, "obsolete");
    request.on_lost(0);
    assert!(!request.has_frames_to_send(), "the newer one is in flight");
}

#[test]
fn raised_packet_threshold_is_sent_to_the_peer() {
    let mut request = request();
    request.review(&at(1000));
    sent(&mut request).expect("the first");
    request.on_acked(0);
    request.review(&Situation {
        packet_threshold: 9,
        ..at(2000)
    });
    let frame = sent(&mut request).expect("the second");
    assert_eq!(frame.reordering_threshold, 9);
}

#[test]
fn lost_request_survives_reviews_that_change_nothing() {
    let mut request = request();
    request.review(&at(1000));
    sent(&mut request).expect("the first");
    request.on_lost(0);
    request.review(&at(1001));
    let again = sent(&mut request).map(|frame| frame.sequence);
    assert_eq!(again, Some(1));
}

/// Returns the frame of a connection with fixed terms, in slow start.
fn fixed(terms: FixedTerms) -> Option<AckFrequency> {
    let mut request = AckRequest::new(terms);
    request.on_peer_parameters(ANNOUNCED, Some(LEAST), true);
    let start = Situation {
        in_slow_start: true,
        ..at(1000)
    };
    request.review(&start);
    let frame = sent(&mut request);
    request.on_acked(0);
    let later = Situation {
        now: start.now + RTT * 4,
        ..start
    };
    request.review(&later);
    assert!(!request.has_frames_to_send(), "it is requested once");
    frame
}

#[test]
fn fixed_terms_apply_from_the_beginning() {
    let frame = |threshold, delay, reordering| AckFrequency {
        sequence: 0,
        ack_eliciting_threshold: threshold,
        requested_max_ack_delay: delay,
        reordering_threshold: reordering,
    };
    let none = FixedTerms::default();
    assert_eq!(fixed(none), None);
    for (terms, expected) in [
        (
            FixedTerms {
                threshold: Some(9),
                ..none
            },
            frame(9, 10_000, 3),
        ),
        (
            FixedTerms {
                delay: Some(Duration::from_millis(80)),
                ..none
            },
            frame(1, 80_000, 3),
        ),
        (
            FixedTerms {
                delay: Some(Duration::ZERO),
                ..none
            },
            frame(1, 1000, 3),
        ),
        (
            FixedTerms {
                reordering: Some(0),
                ..none
            },
            frame(1, 10_000, 0),
        ),
    ] {
        assert_eq!(fixed(terms), Some(expected), "{terms:?}");
    }
}

#[test]
fn fixed_delay_leaves_the_threshold_to_the_window() {
    let mut request = AckRequest::new(FixedTerms {
        delay: Some(Duration::from_millis(80)),
        ..FixedTerms::default()
    });
    request.on_peer_parameters(ANNOUNCED, Some(LEAST), true);
    request.review(&at(1000));
    let frame = sent(&mut request).expect("a large window");
    assert_eq!(frame.ack_eliciting_threshold, 50);
    assert_eq!(frame.requested_max_ack_delay, 80_000);
    assert_eq!(request.max_ack_delay(), Duration::from_millis(80));
}
