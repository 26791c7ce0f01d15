use proptest::prelude::*;

use super::*;

fn counts(ect0: u64, ce: u64) -> Option<EcnCounts> {
    Some(EcnCounts { ect0, ect1: 0, ce })
}

/// Returns a validation after this many marked packets were sent.
fn sent(marked: u64) -> EcnValidation {
    let mut ecn = EcnValidation::new();
    (0..marked).for_each(|_| ecn.on_sent(Ecn::Ect0));
    ecn
}

/// RFC 9000 appendix A.4.
#[test]
fn ten_packets_are_marked_before_the_first_report() {
    let mut ecn = sent(9);
    assert_eq!(
        (ecn.state(), ecn.mark(Ecn::Ect0)),
        (EcnState::Testing, Ecn::Ect0)
    );
    ecn.on_sent(Ecn::Ect0);
    assert_eq!(
        (ecn.state(), ecn.mark(Ecn::Ect0)),
        (EcnState::Unknown, Ecn::NotEct)
    );
    assert_eq!(ecn.on_ack(1, counts(1, 0), true).ce_increase, 0);
    assert_eq!(
        (ecn.state(), ecn.mark(Ecn::Ect0)),
        (EcnState::Capable, Ecn::Ect0)
    );
}

/// The local system did not set the marks: reports without them do not count, and another path is
/// tested again.
#[test]
fn refused_marks_end_the_marking_of_this_path() {
    let mut ecn = sent(3);
    ecn.on_marks_refused();
    assert_eq!(ecn.mark(Ecn::Ect0), Ecn::NotEct);
    assert_eq!(ecn.on_ack(3, counts(0, 0), true), EcnOutcome::default());
    assert_eq!(ecn.state(), EcnState::Failed);
    ecn.restart();
    assert_eq!(ecn.mark(Ecn::Ect0), Ecn::Ect0);
}

#[test]
fn a_report_without_an_acknowledged_marked_packet_does_not_count() {
    let mut ecn = sent(3);
    ecn.on_ack(0, counts(0, 0), true);
    assert_eq!(ecn.state(), EcnState::Testing);
}

/// RFC 9000 §13.4.2.1, RFC 9002 §7.1.
#[test]
fn ce_increase_is_reported_once() {
    let mut ecn = sent(10);
    assert_eq!(ecn.on_ack(4, counts(3, 1), true).ce_increase, 1);
    assert_eq!(ecn.on_ack(4, counts(5, 3), true).ce_increase, 2);
    assert_eq!(ecn.on_ack(0, counts(5, 3), true).ce_increase, 0);
    assert_eq!(ecn.state(), EcnState::Capable);
}

/// RFC 9000 §13.4.2.1.
#[test]
fn missing_counts_fail() {
    let mut ecn = sent(10);
    ecn.on_ack(1, None, true);
    assert_eq!(
        (ecn.state(), ecn.mark(Ecn::Ect0)),
        (EcnState::Failed, Ecn::NotEct)
    );
}

#[test]
fn missing_counts_are_accepted_without_acknowledged_marked_packets() {
    let mut ecn = sent(10);
    ecn.on_ack(0, None, true);
    assert_eq!(ecn.state(), EcnState::Unknown);
}

/// RFC 9000 §13.4.2.1.
#[test]
fn counts_that_grow_by_less_than_was_acked_fail() {
    let mut ecn = sent(10);
    ecn.on_ack(3, counts(1, 1), true);
    assert_eq!(ecn.state(), EcnState::Failed);
}

/// RFC 9000 §13.4.2.1.
#[test]
fn an_ack_that_does_not_raise_the_largest_neither_fails_nor_signals() {
    let mut ecn = sent(10);
    ecn.on_ack(5, counts(5, 0), true);
    assert_eq!(ecn.on_ack(1, None, false), EcnOutcome::default());
    assert_eq!(ecn.on_ack(1, counts(1, 3), false), EcnOutcome::default());
    assert_eq!(ecn.state(), EcnState::Capable);
    ecn.on_ack(1, counts(8, 0), true);
    assert_eq!(
        ecn.state(),
        EcnState::Capable,
        "increases are relative to the newest report"
    );
}

#[test]
fn counts_that_shrink_fail() {
    for (ect0, ce) in [(4, 2), (6, 0)] {
        let mut ecn = sent(20);
        ecn.on_ack(6, counts(5, 1), true);
        ecn.on_ack(0, counts(ect0, ce), true);
        assert_eq!(ecn.state(), EcnState::Failed, "{ect0} {ce}");
    }
}

/// RFC 9000 §13.4.2.1.
#[test]
fn marks_that_were_never_sent_fail() {
    let mut ecn = sent(10);
    ecn.on_ack(
        1,
        Some(EcnCounts {
            ect0: 1,
            ect1: 1,
            ce: 0,
        }),
        true,
    );
    assert_eq!(ecn.state(), EcnState::Failed);
}

/// RFC 9002 §8.1.
#[test]
fn more_marks_than_sent_fail() {
    for (ect0, ce) in [(11, 0), (0, 11), (6, 5), (u64::MAX, u64::MAX)] {
        let mut ecn = sent(10);
        let outcome = ecn.on_ack(1, counts(ect0, ce), true);
        assert_eq!(ecn.state(), EcnState::Failed, "{ect0} {ce}");
        assert_eq!(outcome.ce_increase, 0, "{ect0} {ce}");
    }
}

/// RFC 9000 §13.4.2.2.
#[test]
fn failure_is_final_and_possible_at_any_time() {
    let mut ecn = sent(10);
    ecn.on_ack(5, counts(5, 0), true);
    assert_eq!(ecn.state(), EcnState::Capable);
    (0..100).for_each(|_| ecn.on_sent(Ecn::Ect0));
    ecn.on_ack(50, counts(5, 0), true);
    assert_eq!(
        (ecn.state(), ecn.mark(Ecn::Ect0)),
        (EcnState::Failed, Ecn::NotEct)
    );
    assert_eq!(ecn.on_ack(1, counts(60, 9), true), EcnOutcome::default());
    ecn.on_sent(Ecn::NotEct);
    ecn.on_pto();
    ecn.on_lost(1);
    assert_eq!(
        (ecn.state(), ecn.mark(Ecn::Ect0)),
        (EcnState::Failed, Ecn::NotEct)
    );
}

/// RFC 9000 §13.4.2.
#[test]
fn a_test_that_is_lost_as_a_whole_fails() {
    let mut ecn = sent(10);
    ecn.on_lost(9);
    assert_eq!(ecn.state(), EcnState::Unknown);
    ecn.on_lost(1);
    assert_eq!(ecn.state(), EcnState::Failed);
}

#[test]
fn losses_in_the_middle_of_the_test_do_not_fail() {
    let mut ecn = sent(2);
    ecn.on_lost(2);
    assert_eq!(ecn.state(), EcnState::Testing);
}

/// RFC 9000 §13.4.2.
#[test]
fn a_path_that_marks_everything_fails() {
    let mut ecn = sent(10);
    assert_eq!(ecn.on_ack(9, counts(0, 9), true).ce_increase, 9);
    ecn.on_ack(1, counts(0, 10), true);
    assert_eq!(ecn.state(), EcnState::Failed);
}

/// RFC 9000 appendix A.4.
#[test]
fn two_timeouts_end_the_test() {
    let mut ecn = sent(2);
    ecn.on_pto();
    assert_eq!(ecn.mark(Ecn::Ect0), Ecn::Ect0);
    ecn.on_pto();
    assert_eq!(
        (ecn.state(), ecn.mark(Ecn::Ect0)),
        (EcnState::Unknown, Ecn::NotEct)
    );
    ecn.on_ack(2, counts(2, 0), true);
    assert_eq!(ecn.state(), EcnState::Capable, "the packets were only late");
}

#[test]
fn a_new_path_is_tested_with_the_counts_of_the_old_one() {
    let mut ecn = sent(10);
    ecn.on_ack(10, counts(8, 2), true);
    ecn.restart();
    assert_eq!(ecn.state(), EcnState::Testing);
    (0..10).for_each(|_| ecn.on_sent(Ecn::Ect0));
    assert_eq!(ecn.on_ack(5, counts(13, 2), true).ce_increase, 0);
    assert_eq!(ecn.state(), EcnState::Capable);
}

#[test]
fn a_disabled_validation_never_marks_packets() {
    let mut ecn = EcnValidation::disabled();
    ecn.on_ack(0, counts(0, 0), true);
    assert_eq!(ecn.mark(Ecn::Ect0), Ecn::NotEct);
}

fn sent_l4s(marked: u64) -> EcnValidation {
    let mut ecn = EcnValidation::new();
    (0..marked).for_each(|_| ecn.on_sent(Ecn::Ect1));
    ecn
}

fn l4s_counts(ect1: u64, ce: u64) -> Option<EcnCounts> {
    Some(EcnCounts { ect0: 0, ect1, ce })
}

/// RFC 9331 §4.1.
#[test]
fn the_controller_chooses_the_codepoint() {
    let mut ecn = sent_l4s(9);
    assert_eq!(ecn.mark(Ecn::Ect1), Ecn::Ect1);
    ecn.on_sent(Ecn::Ect1);
    assert_eq!(ecn.mark(Ecn::Ect1), Ecn::NotEct);
    assert_eq!(ecn.on_ack(4, l4s_counts(3, 1), true).ce_increase, 1);
    assert_eq!(ecn.mark(Ecn::Ect1), Ecn::Ect1);
    assert_eq!(ecn.mark(Ecn::NotEct), Ecn::NotEct);
}

/// RFC 9000 §13.4.2.1.
#[test]
fn ect1_that_was_remarked_or_bleached_fails() {
    for counts in [counts(4, 0), l4s_counts(3, 0), l4s_counts(11, 0), None] {
        let mut ecn = sent_l4s(10);
        ecn.on_ack(4, counts, true);
        assert_eq!(ecn.state(), EcnState::Failed, "{counts:?}");
    }
}

#[test]
fn after_a_change_of_controller_both_codepoints_count() {
    let mut ecn = sent(10);
    ecn.on_ack(6, counts(6, 0), true);
    ecn.on_sent(Ecn::Ect1);
    ecn.on_sent(Ecn::Ect1);
    let both = |ect0, ect1, ce| Some(EcnCounts { ect0, ect1, ce });
    assert_eq!(ecn.on_ack(3, both(7, 1, 1), true).ce_increase, 1);
    assert_eq!(ecn.state(), EcnState::Capable);
    ecn.on_ack(1, both(7, 3, 1), true);
    assert_eq!(
        ecn.state(),
        EcnState::Failed,
        "only two packets were sent with ECT(1)"
    );
}

/// RFC 9332: an L4S queue may mark all of the first packets; a broken router marks all packets.
#[test]
fn an_l4s_path_that_marks_everything_fails_later() {
    let mut ecn = sent_l4s(10);
    ecn.on_ack(10, l4s_counts(0, 10), true);
    assert_eq!(ecn.state(), EcnState::Capable);
    (0..90).for_each(|_| ecn.on_sent(Ecn::Ect1));
    ecn.on_ack(89, l4s_counts(0, 99), true);
    assert_eq!(ecn.state(), EcnState::Capable);
    assert_eq!(ecn.on_ack(1, l4s_counts(0, 100), true).ce_increase, 0);
    assert_eq!(ecn.state(), EcnState::Failed);
}

proptest! {
    /// A peer can never report more CE marks than packets that were marked as ECN-capable.
    #[test]
    fn ce_never_exceeds_the_marked_packets(
        steps in prop::collection::vec(
            ((0u64..20, any::<bool>()), any::<u64>(), (0u64..40, 0u64..40, 0u64..40), any::<bool>()),
            0..50,
        )
    ) {
        let mut ecn = EcnValidation::new();
        let (mut marked, mut ce) = (0, 0);
        for ((count, is_l4s), newly, (ect0, ect1, seen_ce), increased) in steps {
            let codepoint = if is_l4s { Ecn::Ect1 } else { Ecn::Ect0 };
            for _ in 0..count {
                let mark = ecn.mark(codepoint);
                marked += u64::from(mark == codepoint);
                ecn.on_sent(mark);
            }
            let counts = EcnCounts { ect0, ect1, ce: seen_ce };
            ce += ecn.on_ack(newly % 8, Some(counts), increased).ce_increase;
            ecn.on_lost(newly);
            prop_assert!(ce <= marked);
        }
    }

    #[test]
    fn extreme_counts_do_not_overflow(ect0 in any::<u64>(), ect1 in any::<u64>(), ce in any::<u64>()) {
        let mut ecn = sent_l4s(10);
        ecn.on_sent(Ecn::Ect0);
        let counts = EcnCounts { ect0, ect1, ce };
        prop_assert!(ecn.on_ack(u64::MAX, Some(counts), true).ce_increase <= 11);
    }
}
