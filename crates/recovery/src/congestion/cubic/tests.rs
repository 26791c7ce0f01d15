use super::super::controller::Controller;
use super::super::tests::{Flow, MTU, ms};
use super::*;

const MSS: f64 = MTU as f64;

/// Returns a flow whose window of `packets` datagrams was just reduced.
fn reduced(packets: u64) -> Flow<Cubic> {
    let mut cubic = Cubic::new(MTU);
    cubic.law.window = from_bytes(packets * u64::from(MTU));
    let mut flow = Flow::new(cubic);
    flow.lose();
    flow
}

fn packets(flow: &Flow<Cubic>) -> f64 {
    flow.controller.law.window / MSS
}

/// Acknowledges a window per round trip, in 50 parts evenly spread over it.
fn spread_round(flow: &mut Flow<Cubic>, rtt: Duration) {
    for _ in 0..50 {
        flow.now += rtt / 50;
        let bytes = flow.controller.window() / 50;
        flow.next_pn += 1;
        flow.controller
            .on_sent(flow.now, bytes, flow.next_pn, u64::MAX);
        flow.ack(flow.now.saturating_sub(rtt), flow.next_pn, bytes);
    }
}

/// Waits until everything sent before the reduction is acknowledged.
fn pass_recovery(flow: &mut Flow<Cubic>, rtt: Duration) {
    flow.now += rtt + ms(1);
}

/// RFC 9438 §4.6.
#[test]
fn congestion_leaves_seven_tenths() {
    let flow = reduced(1000);
    assert!((packets(&flow) - 700.0).abs() < 1e-9);
    assert_eq!(flow.controller.ssthresh(), Some(700 * u64::from(MTU)));
}

/// RFC 9438 §4.7.
#[test]
fn fast_convergence_lowers_w_max_further() {
    let mut flow = reduced(1000);
    assert!((flow.controller.law.w_max / MSS - 1000.0).abs() < 1e-9);
    flow.lose();
    assert!((flow.controller.law.w_max / MSS - 700.0 * 0.85).abs() < 1e-9);
    assert!((packets(&flow) - 490.0).abs() < 1e-9);
}

/// RFC 9438 §4.2 figure 2.
#[test]
fn k_is_the_time_back_to_w_max() {
    let mut flow = reduced(1000);
    pass_recovery(&mut flow, ms(100));
    spread_round(&mut flow, ms(100));
    let k = flow.controller.law.stage.unwrap().k;
    assert!((k - (300.0f64 / 0.4).cbrt()).abs() < 1e-9, "{k}");
}

/// RFC 9438 §4.2 figure 1: W_cubic(t) = C * (t - K)^3 + W_max.
#[test]
fn window_follows_the_cubic_curve() {
    let rtt = ms(100);
    let mut flow = reduced(2000);
    pass_recovery(&mut flow, rtt);
    let k = (600.0f64 / 0.4).cbrt();
    for round in 1..=250 {
        spread_round(&mut flow, rtt);
        let t = flow.controller.law.stage.unwrap().elapsed.as_secs_f64();
        assert!(
            (t - (f64::from(round) * 0.1 - 0.002)).abs() < 1e-6,
            "the clock at {round}: {t}"
        );
        let expected = 0.4 * (t - k).powi(3) + 2000.0;
        let error = (packets(&flow) - expected).abs() / expected;
        assert!(
            error < 0.02,
            "round {round}: {} instead of {expected}",
            packets(&flow)
        );
    }
    assert!(packets(&flow) > 2500.0, "well into the convex region");
}

/// RFC 9438 §4.4: one step against the formula.
#[test]
fn a_step_is_target_minus_window_for_a_whole_window() {
    let rtt = ms(100);
    let mut flow = reduced(2000);
    pass_recovery(&mut flow, rtt);
    flow.ack(flow.now.saturating_sub(rtt), 1, 0);
    flow.now += ms(500);
    let before = packets(&flow);
    flow.ack(
        flow.now.saturating_sub(rtt),
        2,
        flow.controller.window() / 4,
    );
    let k = (600.0f64 / 0.4).cbrt();
    let target = 0.4 * (0.5 + flow.rtt.smoothed().as_secs_f64() - k).powi(3) + 2000.0;
    let expected = before + (target.min(1.5 * before) - before) / 4.0;
    assert!(
        (packets(&flow) - expected).abs() < 1e-6,
        "{} {expected}",
        packets(&flow)
    );
}

/// RFC 9438 §4.2.
#[test]
fn window_grows_by_no_more_than_half_per_round_trip() {
    let rtt = ms(100);
    let mut flow = reduced(10);
    pass_recovery(&mut flow, rtt);
    flow.ack(flow.now.saturating_sub(rtt), 1, 0);
    for round in 0..10 {
        flow.now += ms(1_000_000);
        let before = flow.controller.window();
        for _ in 0..10 {
            flow.ack(flow.now.saturating_sub(rtt), 2, before / 10);
        }
        assert!(
            flow.controller.window() <= before + before / 2,
            "round {round}"
        );
        assert!(
            flow.controller.window() >= before + before / 2 - 10,
            "round {round}"
        );
    }
}

/// RFC 9438 §4.3: 3 * (1 - 0.7) / (1 + 0.7) of a datagram per round trip, then a whole one.
#[test]
fn short_paths_grow_like_reno() {
    let rtt = ms(10);
    let mut flow = reduced(40);
    pass_recovery(&mut flow, rtt);
    spread_round(&mut flow, rtt);
    let mut slopes = Vec::new();
    while packets(&flow) < 44.0 {
        let before = packets(&flow);
        spread_round(&mut flow, rtt);
        if packets(&flow) < 39.0 || before > 40.0 {
            slopes.push((before, packets(&flow) - before));
        }
    }
    for (before, slope) in slopes {
        let expected = if before < 40.0 { 9.0 / 17.0 } else { 1.0 };
        assert!((slope - expected).abs() < 0.02, "{slope} at {before}");
    }
}

#[test]
fn growth_hardly_depends_on_the_number_of_acknowledgements() {
    let grown = |acks| {
        let mut flow = reduced(500);
        pass_recovery(&mut flow, ms(50));
        flow.rounds(100, ms(50), acks);
        packets(&flow)
    };
    let (one, many) = (grown(1), grown(60));
    assert!((one / many - 1.0).abs() < 0.05, "{one} {many}");
}

/// RFC 9438 §4.10.
#[test]
fn leaving_slow_start_without_loss_begins_at_the_flat_point() {
    let mut flow = Flow::new(Cubic::new(MTU));
    flow.rounds(5, ms(50), 10);
    flow.rounds(8, ms(90), 10);
    assert!(!flow.controller.in_slow_start(), "the delay has grown");
    let window = from_bytes(flow.controller.ssthresh().unwrap());
    flow.controller.law.stage = None;
    flow.controller.law.window = window;
    flow.ack(flow.now, flow.next_pn, 1);
    let stage = flow.controller.law.stage.unwrap();
    assert_eq!((stage.k, flow.controller.law.w_max), (0.0, window));
    assert_eq!(flow.controller.law.cwnd_prior, window);
}

/// RFC 9438 §4.8.
#[test]
fn after_persistent_congestion_the_curve_begins_at_the_flat_point() {
    let mut flow = reduced(1000);
    flow.now += ms(1);
    flow.lose_sent_at(flow.now, true);
    assert_eq!(flow.controller.ssthresh(), Some(490 * u64::from(MTU)));
    flow.now += ms(1);
    while flow.controller.in_slow_start() {
        flow.round(ms(50), 4);
    }
    flow.round(ms(50), 4);
    let stage = flow.controller.law.stage.unwrap();
    assert_eq!(stage.k, 0.0);
    assert!((flow.controller.law.w_max / MSS - 490.0).abs() < 2.0);
}

/// RFC 9438 §4.2, §5.8.
#[test]
fn application_limited_time_does_not_advance_the_curve() {
    let rtt = ms(100);
    let growth = |pause: Duration| {
        let mut flow = reduced(2000);
        pass_recovery(&mut flow, rtt);
        (0..20).for_each(|_| spread_round(&mut flow, rtt));
        flow.app_limited = true;
        for _ in 0..100 {
            flow.now += pause / 100;
            flow.ack(flow.now.saturating_sub(rtt), flow.next_pn, 1200);
        }
        flow.app_limited = false;
        (0..20).for_each(|_| spread_round(&mut flow, rtt));
        packets(&flow)
    };
    assert!((growth(ms(60_000)) - growth(Duration::ZERO)).abs() < 1e-6);
}

/// RFC 9438 §5.8.
#[test]
fn idle_time_does_not_advance_the_curve() {
    let rtt = ms(100);
    let mut flow = reduced(2000);
    pass_recovery(&mut flow, rtt);
    (0..20).for_each(|_| spread_round(&mut flow, rtt));
    let before = flow.controller.law.stage.unwrap().elapsed;
    flow.now += ms(60_000);
    let (sent, bytes) = (flow.now, flow.controller.window());
    flow.controller.on_sent(sent, bytes, 100_000, bytes);
    flow.now += rtt;
    flow.ack(sent, 100_000, bytes);
    assert_eq!(flow.controller.law.stage.unwrap().elapsed, before + rtt);
}

#[test]
fn window_never_falls_below_two_datagrams() {
    let mut flow = reduced(10);
    for _ in 0..20 {
        flow.lose();
    }
    assert_eq!(flow.controller.window(), 2400);
}

#[test]
fn a_clock_that_runs_back_leaves_the_elapsed_time() {
    let mut flow = reduced(100);
    pass_recovery(&mut flow, ms(100));
    spread_round(&mut flow, ms(100));
    let elapsed = flow.controller.law.stage.unwrap().elapsed;
    let sent = flow.now;
    flow.now = flow.now.saturating_sub(ms(50));
    flow.ack(sent, flow.next_pn, 1200);
    assert_eq!(flow.controller.law.stage.unwrap().elapsed, elapsed);
}
