use super::super::tests::{Flow, MTU, ms};
use super::super::{Controller, NewReno, SpuriousLoss};
use super::*;

fn flow() -> Flow<NewReno> {
    Flow::new(NewReno::new(MTU))
}

/// Runs rounds that double the window, and then rounds with a higher delay.
fn risen(by: Duration) -> Flow<NewReno> {
    let mut flow = flow();
    flow.rounds(3, ms(40), 10);
    flow.round(ms(40) + by, 10);
    flow
}

/// RFC 9406 §4.2: the window doubles each round while the delay is constant.
#[test]
fn steady_delay_never_ends_slow_start() {
    let mut flow = flow();
    flow.rounds(10, ms(40), 10);
    assert_eq!(flow.controller.window(), 12_000 << 10);
    assert!(flow.controller.in_slow_start());
}

/// RFC 9406 §4.2: an eighth of the last round's minimum is the threshold, 5 ms here.
#[test]
fn a_risen_delay_slows_growth_to_a_quarter() {
    for (rise, factor) in [(4, 2.0), (5, 1.25)] {
        let mut flow = risen(ms(rise));
        let before = flow.controller.window();
        flow.round(ms(40 + rise), 10);
        let growth = flow.controller.window() as f64 / before as f64;
        assert!((growth - factor).abs() < 0.01, "{rise} ms: {growth}");
    }
}

/// RFC 9406 §4.2: five rounds, the one in which it began included.
#[test]
fn five_slow_rounds_end_slow_start() {
    let mut flow = risen(ms(10));
    for round in 2..=5 {
        flow.round(ms(50), 10);
        assert!(flow.controller.in_slow_start(), "round {round}");
    }
    let window = flow.controller.window();
    flow.ack(flow.now.saturating_sub(ms(50)), flow.next_pn, 4000);
    assert!(!flow.controller.in_slow_start());
    assert_eq!(flow.controller.ssthresh(), Some(window + 1000));
    assert_eq!(flow.controller.window(), window + 1000);
}

#[test]
fn a_standing_queue_ends_slow_start_after_two_slow_rounds() {
    for (rise, rounds) in [(39, 5), (40, 2)] {
        let mut flow = risen(ms(rise));
        for round in 2..=rounds {
            flow.round(ms(40 + rise), 10);
            assert!(flow.controller.in_slow_start(), "{rise} ms, round {round}");
        }
        flow.ack(flow.now.saturating_sub(ms(40 + rise)), flow.next_pn, 4000);
        assert!(!flow.controller.in_slow_start(), "{rise} ms");
    }
}

/// RFC 9406 §4.2.
#[test]
fn slow_start_continues_when_the_delay_falls_back() {
    let mut flow = risen(ms(10));
    flow.round(ms(50), 10);
    flow.round(ms(40), 10);
    let before = flow.controller.window();
    flow.round(ms(40), 10);
    assert_eq!(flow.controller.window(), before * 2);
}

/// RFC 9406 §4.2: N_RTT_SAMPLE.
#[test]
fn a_round_with_two_samples_is_not_evaluated() {
    let mut flow = flow();
    flow.rounds(3, ms(40), 2);
    flow.rounds(6, ms(100), 2);
    assert_eq!(flow.controller.window(), 12_000 << 9);
}

#[test]
fn a_round_of_few_acknowledgements_is_evaluated_at_its_end() {
    for acks in 3..8 {
        let mut flow = flow();
        flow.rounds(3, ms(40), acks);
        flow.round(ms(60), acks);
        assert_eq!(
            flow.controller.window(),
            12_000 << 4,
            "{acks}: evaluated early"
        );
        flow.round(ms(60), acks);
        // The acknowledgement that ended the round still counts in full.
        let expected = (12_000 << 4) * (5 * acks + 3) / (4 * acks);
        assert!(
            flow.controller.window().abs_diff(expected) < 10,
            "{acks}: growth has slowed down to {}",
            flow.controller.window()
        );
    }
}

/// Each sample includes the wait behind its own batch, so 16 ms are not conclusive on a long path.
#[test]
fn few_acknowledgements_need_a_rise_by_an_eighth() {
    for (rise, slows) in [(74, false), (75, true)] {
        let mut flow = flow();
        flow.rounds(3, ms(600), 4);
        flow.rounds(2, ms(600 + rise), 4);
        assert_eq!(flow.controller.window() < 12_000 << 5, slows, "{rise} ms");
    }
}

/// RFC 9406 §4.3: MIN_RTT_THRESH. Loopback has 50 to 100 us and noise of the same size.
#[test]
fn noise_of_microseconds_never_ends_slow_start() {
    let mut flow = flow();
    for round in 0..18u64 {
        flow.round(Duration::from_micros(50 + round * round % 7 * 500), 20);
        assert!(flow.controller.in_slow_start(), "round {round}");
    }
    assert_eq!(flow.controller.window(), 12_000 << 18);
}

/// RFC 9406 §4.3: MAX_RTT_THRESH.
#[test]
fn on_long_paths_16_ms_are_enough() {
    let mut flow = flow();
    flow.rounds(3, ms(600), 10);
    flow.round(ms(616), 10);
    let before = flow.controller.window();
    flow.round(ms(616), 10);
    assert_eq!(flow.controller.window(), before + before / 4);
}

/// RFC 9406 §4.3: only the first slow start is monitored.
#[test]
fn later_slow_starts_are_not_monitored() {
    let mut flow = flow();
    flow.rounds(8, ms(40), 10);
    flow.lose_sent_at(flow.now, true);
    flow.now += ms(1);
    flow.rounds(3, ms(40), 10);
    let before = flow.controller.window();
    flow.rounds(3, ms(400), 10);
    assert_eq!(flow.controller.window(), before << 3);
}

/// RFC 9438 §4.9.2: reordering ends slow start twice in each round trip, and each time the event is
/// undone seven acknowledgements later. A delay that rises still ends slow start for good.
#[test]
fn undone_reductions_do_not_hide_a_delay() {
    let mut flow = flow();
    flow.rounds(3, ms(40), 10);
    let before = flow.controller.window();
    let ended = (1..=30).find(|_| {
        disturbed_round(&mut flow, ms(60));
        !flow.controller.in_slow_start()
    });
    // The round in which the delay rises, and five slow ones.
    assert_eq!(ended, Some(6));
    let window = flow.controller.window();
    assert!(window < before * 3 / 2, "{before} to {window}");
}

/// Reordering without a higher delay leaves slow start as it is.
#[test]
fn undone_reductions_without_a_delay_do_not_end_slow_start() {
    let mut flow = flow();
    flow.rounds(3, ms(40), 10);
    let before = flow.controller.window();
    for _ in 0..30 {
        disturbed_round(&mut flow, ms(40));
        assert!(flow.controller.in_slow_start());
    }
    assert!(flow.controller.window() > before * 16);
}

/// Sends a window that is acknowledged in 16 parts. Before the first and the ninth one a packet is
/// declared lost, which arrives seven acknowledgements later.
fn disturbed_round(flow: &mut Flow<NewReno>, rtt: Duration) {
    let (window, first_pn, sent) = (flow.controller.window(), flow.next_pn, flow.now);
    flow.next_pn += 16;
    let last = flow.next_pn - 1;
    flow.controller.on_sent(sent, window, last, window);
    flow.now += rtt;
    let mut lost_at = flow.now;
    for part in 0..16 {
        if part % 8 == 0 {
            lost_at = flow.now;
            flow.lose();
        }
        if part % 8 == 7 {
            flow.controller.on_spurious_loss(&SpuriousLoss {
                now: flow.now,
                bytes: u64::from(MTU),
                sent,
                lost_at,
            });
        }
        flow.ack(sent, first_pn + part, window / 16);
        flow.now += Duration::from_micros(10);
    }
}

#[test]
fn delay_of_app_limited_packets_is_not_evaluated() {
    let mut flow = flow();
    flow.rounds(3, ms(40), 10);
    flow.app_limited = true;
    flow.rounds(10, ms(100), 10);
    assert!(flow.controller.in_slow_start());
    flow.app_limited = false;
    let before = flow.controller.window();
    flow.round(ms(100), 10);
    assert_eq!(flow.controller.window(), before * 2);
}

/// Runs rounds whose windows are sent and acknowledged within half a round trip, and then `rounds`
/// whose windows are acknowledged more slowly.
fn spread_out(rounds: usize) -> Flow<NewReno> {
    let mut flow = flow();
    for _ in 0..4 {
        flow.paced_round(ms(80), ms(40), 32);
    }
    for _ in 0..rounds {
        flow.paced_round(ms(80), ms(120), 32);
    }
    flow
}

#[test]
fn windows_double_when_they_arrive_as_fast_as_they_were_sent() {
    assert_eq!(spread_out(0).controller.window(), 12_000 << 4);
}

/// No round was delayed from its first packet on.
#[test]
fn growth_slows_down_when_a_window_arrives_more_slowly_than_it_was_sent() {
    let flow = spread_out(1);
    let window = flow.controller.window();
    // The window is above seven fifths of what the previous round delivered, and grows by eighths.
    assert!((192_000 * 7 / 5..310_000).contains(&window), "{window}");
    assert!(flow.controller.in_slow_start());
}

/// The round of the detection, one for packets sent before, and two for confirmation.
#[test]
fn a_queue_in_all_of_a_later_round_ends_slow_start() {
    let mut flow = spread_out(1);
    let detected = flow.controller.window();
    for _ in 0..3 {
        assert!(flow.controller.in_slow_start());
        let before = flow.controller.window();
        flow.paced_round(ms(90), ms(120), 32);
        let grown = flow.controller.window() - before;
        assert!(grown.abs_diff(before / 8) < 32, "{before} by {grown}");
    }
    let before = flow.controller.window();
    flow.paced_round(ms(90), ms(120), 32);
    assert!(!flow.controller.in_slow_start());
    let window = flow.controller.window();
    assert!(window < before + 2400, "{detected}, {before}, {window}");
}

#[test]
fn without_a_queue_slow_start_continues_and_the_rate_is_ignored() {
    let mut flow = spread_out(2);
    for round in 0..4 {
        let before = flow.controller.window();
        flow.paced_round(ms(80), ms(120), 32);
        assert_eq!(flow.controller.window(), before * 2, "round {round}");
    }
}

/// A pause empties queues: later packets neither confirm nor disprove a queue, and the rate counts
/// again.
#[test]
fn a_pause_returns_to_slow_start() {
    let mut flow = spread_out(1);
    flow.app_limited = true;
    flow.paced_round(ms(90), ms(120), 32);
    flow.app_limited = false;
    let before = flow.controller.window();
    flow.paced_round(ms(80), ms(40), 32);
    assert_eq!(flow.controller.window(), before * 2);
    flow.paced_round(ms(80), ms(40), 32);
    flow.paced_round(ms(80), ms(120), 32);
    assert!(flow.controller.window() < before * 7, "detected again");
}

/// Two acknowledgements in a round do not confirm a queue.
#[test]
fn few_samples_do_not_confirm_a_queue() {
    let mut flow = spread_out(1);
    for _ in 0..10 {
        flow.paced_round(ms(90), ms(120), 2);
        assert!(flow.controller.in_slow_start());
    }
    for _ in 0..3 {
        assert!(flow.controller.in_slow_start());
        flow.paced_round(ms(90), ms(120), 3);
    }
    assert!(!flow.controller.in_slow_start());
}
