//! Properties that hold for any events.

use proptest::prelude::*;

use super::super::phase::Phase;
use super::harness::*;
use super::*;
use crate::congestion::LostPacket;
use crate::congestion::window::{MAX_WINDOW, minimum_window};

#[derive(Clone, Copy, Debug)]
enum Step {
    Round(Round),
    Lose {
        count: u64,
        inflight: u64,
    },
    Persistent,
    Mark,
    AcknowledgeLost(u64),
    Send,
    /// Milliseconds without events.
    Wait(u64),
    Mtu(u16),
}

fn steps() -> impl Strategy<Value = Step> {
    let round = (0..10_000u64, 1..2000u64, any::<bool>(), 0..1u64 << 34).prop_map(
        |(megabits, rtt, is_app_limited, inflight)| {
            Step::Round(Round {
                rtt: Duration::from_millis(rtt),
                is_app_limited,
                inflight,
                tx_in_flight: inflight / 2,
                lost: inflight / 50,
                ..Round::at(megabits)
            })
        },
    );
    let steady = (1..100u64).prop_map(|megabits| Step::Round(Round::at(megabits)));
    prop_oneof![
        3 => round,
        6 => steady,
        2 => (1..40u64, SIZE..1u64 << 34).prop_map(|(count, inflight)| Step::Lose { count, inflight }),
        1 => Just(Step::Persistent),
        1 => Just(Step::Mark),
        1 => (1..40u64).prop_map(Step::AcknowledgeLost),
        2 => Just(Step::Send),
        2 => (0..20_000u64).prop_map(Step::Wait),
        1 => (1200..9000u16).prop_map(Step::Mtu),
    ]
}

fn take(bench: &mut Bench, step: Step) {
    match step {
        Step::Round(round) => bench.round(round),
        Step::Lose { count, inflight } => bench.lose(count, inflight),
        Step::Persistent => {
            let sent = bench.now;
            let packet = LostPacket {
                number: 1 << 40,
                bytes: SIZE,
                sent,
                tx_in_flight: SIZE,
                lost_since_sent: SIZE,
                is_app_limited: false,
            };
            bench.report_lost(&[packet], sent, true);
        }
        Step::Mark => bench.mark(),
        Step::AcknowledgeLost(count) => bench.acknowledge_lost(count),
        Step::Send => bench.bbr.on_sent(bench.now, SIZE, 1, SIZE),
        Step::Wait(ms) => bench.now += Duration::from_millis(ms),
        Step::Mtu(mtu) => bench.bbr.on_mtu_update(mtu),
    }
}

proptest! {
    #[test]
    fn bounds_hold(steps in prop::collection::vec(steps(), 1..200)) {
        let mut bench = Bench::new();
        for step in steps {
            take(&mut bench, step);
            let bbr = &bench.bbr;
            prop_assert!(bbr.window() >= minimum_window(bbr.model.mtu), "after {:?}", step);
            prop_assert!(bbr.window() <= MAX_WINDOW, "after {:?}", step);
            let quantum = bbr.send_quantum().expect("BBR always has a quantum");
            prop_assert!(quantum >= 2 * u64::from(bbr.model.mtu), "after {:?}", step);
            prop_assert!(bbr.model.bw <= bbr.model.max_bw.get(), "after {:?}", step);
            prop_assert_eq!(bbr.in_slow_start(), bbr.state() == STARTUP);
            prop_assert!(
                !matches!(bbr.phase, Phase::ProbeBw(_))
                    || bbr.model.full_pipe.is_reached
                    || bbr.undo.probing.is_none(),
                "after {:?}",
                step
            );
        }
    }

    /// After any events, a minute of steady rounds suffices for the model to match the path.
    #[test]
    fn model_matches_the_path_again_after_any_events(steps in prop::collection::vec(steps(), 1..60)) {
        let mut bench = Bench::new();
        for step in steps {
            take(&mut bench, step);
        }
        bench.bbr.on_mtu_update(MTU);
        for _ in 0..1200 {
            let inflight = match bench.bbr.state() {
                UP => 200 * SIZE,
                PROBE_RTT => 4 * SIZE,
                _ => 60 * SIZE,
            };
            bench.round(Round { inflight, tx_in_flight: inflight, ..Round::at(20) });
        }
        prop_assert_eq!(bench.bbr.model.max_bw.get(), Round::at(20).rate);
        prop_assert_eq!(bench.bbr.model.min_rtt.get(), Some(RTT));
        prop_assert!(bench.bbr.window() >= Round::at(20).inflight / 2);
    }
}
