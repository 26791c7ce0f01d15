use super::*;

fn at(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

/// Five packets that were sent at `sent`.
fn loss(sent: Time, others: Option<Time>) -> FeatureLoss {
    FeatureLoss {
        count: FAILURE_LOSSES,
        sent,
        others,
    }
}

/// Returns the state of a path on which the feature works.
fn confirmed() -> PathSupport {
    let mut support = PathSupport::new();
    support.on_sent();
    assert!(support.on_acked(at(1)));
    support
}

/// Returns the state after two rounds in which only packets with the feature were lost.
fn failed() -> PathSupport {
    let mut support = confirmed();
    assert!(support.on_lost(at(20), &loss(at(10), None)));
    assert!(support.on_lost(at(40), &loss(at(30), None)));
    support
}

#[test]
fn one_trial_is_in_flight_at_a_time() {
    let mut support = PathSupport::new();
    assert!(support.allows_trial(at(0)));
    support.on_sent();
    assert!(!support.allows_trial(at(0)), "the first one is in flight");
    assert!(support.on_acked(at(0)));
    assert_eq!(support.state(), Support::Confirmed);
    assert!(!support.on_acked(at(5)), "the feature is already confirmed");
}

#[test]
fn two_rounds_of_losses_without_an_acknowledgement_fail() {
    let mut support = confirmed();
    assert!(support.on_lost(at(20), &loss(at(10), None)));
    assert_eq!(support.state(), Support::Doubtful);
    assert!(!support.is_ruled_out(), "it has worked on this path");
    assert!(support.on_lost(at(40), &loss(at(30), None)));
    assert_eq!(support.state(), Support::Failed);
    assert!(support.is_ruled_out());
}

#[test]
fn losses_of_one_round_trip_count_once() {
    let mut support = confirmed();
    assert!(support.on_lost(at(20), &loss(at(10), None)));
    for sent in 10..20 {
        assert!(
            !support.on_lost(at(21), &loss(at(sent), None)),
            "sent at {sent}"
        );
    }
    assert_eq!(support.state(), Support::Doubtful);
}

#[test]
fn loss_before_an_acknowledged_packet_with_the_feature_does_not_count() {
    let mut support = confirmed();
    support.on_acked(at(30));
    assert!(
        !support.on_lost(at(50), &loss(at(30), None)),
        "another packet of that batch has arrived"
    );
    assert!(!support.on_lost(at(50), &loss(at(20), None)));
    assert_eq!(support.state(), Support::Confirmed);
}

#[test]
fn loss_of_later_packets_without_the_feature_does_not_count() {
    let mut support = confirmed();
    assert!(!support.on_lost(at(20), &loss(at(10), Some(at(11)))));
    assert_eq!(support.state(), Support::Confirmed);
    assert!(
        support.on_lost(at(40), &loss(at(30), Some(at(30)))),
        "the first packet of the batch has no feature"
    );
    assert!(!support.on_lost(at(60), &loss(at(50), Some(at(55)))));
    assert_eq!(support.state(), Support::Doubtful);
    assert!(support.allows_trial(at(60)));
}

#[test]
fn few_lost_packets_do_not_fail_the_feature() {
    let mut support = confirmed();
    for round in 1..u64::from(FAILURE_LOSSES) {
        let now = at(round * 100);
        let few = FeatureLoss {
            count: 1,
            ..loss(now, None)
        };
        support.on_lost(now, &few);
        assert_eq!(support.state(), Support::Doubtful, "round {round}");
        assert!(support.allows_trial(now));
    }
    let last = at(1000);
    assert!(support.on_lost(
        last,
        &FeatureLoss {
            count: 1,
            ..loss(last, None)
        }
    ));
    assert_eq!(support.state(), Support::Failed);
}

#[test]
fn arrival_between_two_rounds_ends_the_doubt() {
    let mut support = confirmed();
    for round in 1..100 {
        let now = round * 100;
        assert!(support.on_lost(at(now + 20), &loss(at(now), None)));
        assert!(support.on_acked(at(now + 30)));
    }
    assert_eq!(support.state(), Support::Confirmed);
}

#[test]
fn packets_sent_before_the_loss_do_not_confirm_the_feature() {
    let mut support = confirmed();
    assert!(support.on_lost(at(20), &loss(at(10), None)));
    assert!(!support.on_acked(at(5)));
    assert_eq!(support.state(), Support::Doubtful);
}

#[test]
fn feature_that_never_worked_is_ruled_out_at_the_first_loss() {
    let mut support = PathSupport::new();
    assert!(support.on_lost(at(20), &loss(at(0), None)));
    assert!(support.is_ruled_out());
    assert!(support.allows_trial(at(20)));
}

#[test]
fn unproven_feature_is_withheld_until_a_trial_is_acknowledged() {
    let mut support = PathSupport::unproven();
    assert!(support.is_withheld() && !support.is_ruled_out());
    assert!(support.allows_trial(at(0)));
    support.on_sent();
    assert!(support.on_acked(at(1)));
    assert!(!support.is_withheld());
    let mut lost = PathSupport::unproven();
    assert!(lost.on_lost(at(20), &loss(at(10), None)));
    assert!(lost.is_ruled_out());
}

#[test]
fn failed_feature_is_tried_again_after_times_that_double() {
    let mut support = failed();
    let mut now = at(40);
    for wait in [60, 120, 240, 480, 960, 960] {
        let due = now + Duration::from_secs(wait);
        let just_before = Time::from_nanos(due.as_nanos() - 1);
        assert!(!support.allows_trial(just_before));
        assert!(support.allows_trial(due), "after {wait} s");
        support.on_sent();
        assert!(!support.allows_trial(due));
        now = due + Duration::from_millis(50);
        assert!(support.on_lost(now, &loss(due, None)));
        assert_eq!(support.state(), Support::Failed);
    }
    let due = now + Duration::from_secs(960);
    support.on_sent();
    assert!(support.on_acked(due));
    assert_eq!(support.state(), Support::Confirmed);
}

#[test]
fn spurious_loss_confirms_and_discarded_packets_allow_a_trial() {
    let mut support = failed();
    support.on_spurious_loss();
    assert_eq!(support.state(), Support::Confirmed);
    let mut support = PathSupport::new();
    support.on_sent();
    support.on_packets_discarded();
    assert!(support.allows_trial(at(0)));
}
