use super::*;

fn spurious(flow: &mut Flow<CongestionController>, bytes: u64, lost_at: Time) {
    flow.controller.on_spurious_loss(&SpuriousLoss {
        now: flow.now,
        bytes,
        sent: lost_at.saturating_sub(ms(50)),
        lost_at,
    });
}

fn state(controller: &CongestionController) -> (u64, Option<u64>, bool) {
    let in_slow_start = controller.in_slow_start();
    (controller.window(), controller.ssthresh(), in_slow_start)
}

/// Returns flows of all controllers with undo, in slow start and in congestion avoidance.
fn flows() -> Vec<Flow<CongestionController>> {
    let mut flows = Vec::new();
    for controller in all() {
        let mut flow = Flow::new(controller);
        flow.rounds(5, ms(50), 4);
        flows.push(flow);
    }
    for controller in all() {
        let mut flow = Flow::new(controller);
        flow.rounds(6, ms(50), 4);
        flow.lose();
        flow.now += ms(1);
        flow.rounds(7, ms(50), 4);
        flows.push(flow);
    }
    flows
}

/// RFC 9438 §4.9.2.
#[test]
fn a_spurious_loss_is_undone() {
    for mut flow in flows() {
        let before = state(&flow.controller);
        let lost_at = flow.now;
        flow.lose();
        assert!(flow.controller.window() < before.0);
        flow.now += ms(10);
        spurious(&mut flow, u64::from(MTU), lost_at);
        let name = flow.controller.name();
        assert_eq!(state(&flow.controller), before, "{name}");
        assert_ne!(flow.controller.state(), "recovery", "{name}");
    }
}

/// RFC 9438 §4.9.2: the curve continues where it was.
#[test]
fn cubic_continues_on_its_curve_after_an_undo() {
    let grown = |disturbed: bool| {
        let mut flow = Flow::new(CongestionController::new(Algorithm::Cubic, MTU, 1));
        flow.rounds(8, ms(50), 4);
        flow.lose();
        flow.now += ms(1);
        flow.rounds(20, ms(50), 4);
        if disturbed {
            let lost_at = flow.now;
            flow.lose();
            spurious(&mut flow, u64::from(MTU), lost_at);
        }
        flow.rounds(20, ms(50), 4);
        flow.controller.window()
    };
    assert!(grown(false).abs_diff(grown(true)) < 10);
}

/// RFC 9438 §4.9.1: a spurious timeout.
#[test]
fn spurious_persistent_congestion_is_undone() {
    for mut flow in flows() {
        let before = state(&flow.controller);
        let lost_at = flow.now;
        flow.lose_sent_at(flow.now, true);
        assert_eq!(flow.controller.window(), minimum_window(MTU));
        flow.now += ms(10);
        spurious(&mut flow, u64::from(MTU), lost_at);
        assert_eq!(state(&flow.controller), before);
    }
}

#[test]
fn undo_keeps_growth_since_the_reduction() {
    for mut flow in flows() {
        let before = flow.controller.window();
        let lost_at = flow.now;
        flow.lose();
        flow.now += ms(1);
        while flow.controller.window() <= before {
            flow.round(ms(50), 2);
        }
        let gained = flow.controller.window();
        spurious(&mut flow, u64::from(MTU), lost_at);
        assert_eq!(flow.controller.window(), gained);
    }
}

#[test]
fn one_genuine_loss_in_an_episode_prevents_the_undo() {
    for mut flow in flows() {
        let lost_at = flow.now;
        flow.lose_sent_at(flow.now, false);
        flow.lose_sent_at(flow.now, false);
        let reduced = state(&flow.controller);
        spurious(&mut flow, u64::from(MTU), lost_at);
        assert_eq!(state(&flow.controller), reduced);
        spurious(&mut flow, u64::from(MTU), lost_at);
        assert!(flow.controller.window() > reduced.0);
    }
}

#[test]
fn a_mark_is_never_undone() {
    for mark_first in [true, false] {
        for mut flow in flows() {
            if flow.controller.name() == "prague" {
                continue;
            }
            let lost_at = flow.now;
            let mark = LossSample {
                now: flow.now,
                lost_bytes: 0,
                largest_lost_sent: flow.now,
                persistent: false,
                is_ecn: true,
                bytes_in_flight: flow.controller.window(),
                packets: &[],
            };
            if mark_first {
                flow.controller.on_congestion(&mark);
                flow.lose_sent_at(flow.now, false);
            } else {
                flow.lose_sent_at(flow.now, false);
                flow.controller.on_congestion(&mark);
            }
            let reduced = state(&flow.controller);
            spurious(&mut flow, u64::from(MTU), lost_at);
            assert_eq!(state(&flow.controller), reduced);
        }
    }
}

#[test]
fn losses_of_an_older_episode_are_not_undone() {
    for mut flow in flows() {
        let first = flow.now;
        flow.lose();
        flow.now += ms(60);
        flow.lose();
        let reduced = state(&flow.controller);
        spurious(&mut flow, u64::from(MTU), first);
        assert_eq!(state(&flow.controller), reduced);
    }
}

proptest! {
    /// Exactly the lost bytes are acknowledged, in any parts and between any other events.
    #[test]
    fn undo_never_happens_before_the_last_packet(
        losses in prop::collection::vec(1u64..50_000, 1..20),
        kept in 0u64..2,
        gap in 0u64..40,
    ) {
        for mut flow in flows() {
            let before = state(&flow.controller);
            let sent = flow.now;
            let mut lost_at = Vec::new();
            for bytes in &losses {
                flow.controller.on_congestion(&LossSample {
                    now: flow.now,
                    lost_bytes: *bytes,
                    largest_lost_sent: sent,
                    persistent: false,
                    is_ecn: false,
                    bytes_in_flight: 100_000,
                    packets: &[],
                });
                lost_at.push((*bytes, flow.now));
                flow.now += Duration::from_millis(gap);
            }
            let reduced = state(&flow.controller);
            let (last, rest) = lost_at.split_last().expect("there is at least one loss");
            for (bytes, at) in rest {
                spurious(&mut flow, *bytes, *at);
                prop_assert_eq!(state(&flow.controller), reduced);
            }
            spurious(&mut flow, last.0 - kept, last.1);
            let expected = if kept == 0 { before } else { reduced };
            prop_assert_eq!(state(&flow.controller), expected);
        }
    }
}
