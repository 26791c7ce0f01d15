use super::*;

const MTU: u16 = 1200;
const SMSS: u64 = MTU as u64;
const QUANTUM: u64 = 2 * SMSS;
const RTT: Duration = Duration::from_millis(50);

fn rate(megabits: u64) -> Rate {
    Rate::from_bytes_per_second(megabits * 125_000)
}

/// Returns the model of a path of `megabits` per second.
fn model(megabits: u64) -> Model {
    let mut model = Model::new(MTU);
    model.seed(Time::ZERO, rate(megabits), RTT);
    model
}

/// A sample without content. Tests set the fields that they need.
fn sample() -> Sample {
    Sample {
        now: Time::ZERO + RTT,
        newly_acked: SMSS,
        inflight_before: SMSS,
        rtt: None,
        delivery_rate: Rate::default(),
        delivered: 0,
        prior_delivered: None,
        is_app_limited: false,
        lost: 0,
        tx_in_flight: 0,
        has_ce: false,
    }
}

/// Ends a round trip with this round-trip time.
fn end_round(model: &mut Model, rtt: Duration) {
    model.rounds.on_rtt_sample(rtt);
    model.rounds.on_ack(Some(u64::MAX), 0);
}

fn circumstances() -> Circumstances {
    Circumstances {
        cwnd: 100 * SMSS,
        quantum: QUANTUM,
        has_kept_up: true,
        is_probing_bw: false,
        is_tainted: false,
        is_giving_way: false,
    }
}

#[test]
fn an_unknown_path_holds_the_initial_window() {
    let model = Model::new(MTU);
    assert_eq!(model.bdp(), 10 * SMSS);
    assert_eq!(model.bdp_multiple(rate(1000), 50), 10 * SMSS);
}

#[test]
fn a_known_path_holds_the_product_of_rate_and_round_trip_time() {
    let model = model(20);
    assert_eq!(model.bdp(), 125_000);
    assert_eq!(model.bdp_multiple(rate(20), 200), 250_000);
    assert_eq!(
        model.bdp_multiple(Rate::from_bytes_per_second(u64::MAX), 200),
        MAX_WINDOW
    );
}

#[test]
fn a_flight_is_at_least_a_quantum_and_four_datagrams() {
    let model = model(20);
    assert_eq!(model.inflight_at(rate(20), QUANTUM), 125_000);
    assert_eq!(model.inflight_at(Rate::default(), 64_000), 64_000);
    assert_eq!(model.inflight_at(Rate::default(), QUANTUM), 4 * SMSS);
}

#[test]
fn the_target_is_no_more_than_the_window() {
    assert_eq!(model(20).target_inflight(1 << 30), 125_000);
    assert_eq!(model(20).target_inflight(50_000), 50_000);
}

#[test]
fn the_short_term_bound_limits_the_rate() {
    let mut model = model(20);
    model.bounds.short_term = Some(ShortTerm {
        bw: rate(15),
        inflight: 0,
    });
    model.bound_bw();
    assert_eq!(model.bw, rate(15));
    model.bounds.short_term = None;
    model.bound_bw();
    assert_eq!(model.bw, rate(20));
}

#[test]
fn the_long_term_bound_limits_a_flow_that_fills_its_window() {
    let mut model = model(20);
    model.bounds.long_term = Some(50 * SMSS);
    assert!(!model.is_bound_by_long_term(50 * SMSS), "it was not filled");
    model.rounds.on_cwnd_limited();
    assert!(model.is_bound_by_long_term(50 * SMSS));
    assert!(!model.is_bound_by_long_term(50 * SMSS - 1));
    model.bounds.long_term = None;
    assert!(!model.is_bound_by_long_term(MAX_WINDOW));
}

/// A quantum of 125 kB takes 50 ms at 20 Mbit/s.
#[test]
fn a_queue_adds_more_than_an_eighth_and_the_delay_of_a_quantum() {
    let mut model = model(20);
    assert!(!model.was_queue_empty(QUANTUM), "nothing was sampled");
    end_round(&mut model, RTT * 5 / 4);
    assert!(!model.was_queue_empty(QUANTUM));
    assert!(model.was_queue_empty(125_000));
    end_round(&mut model, RTT * 9 / 8);
    assert!(model.was_queue_empty(QUANTUM));
}

#[test]
fn low_app_limited_samples_do_not_count() {
    let mut model = model(20);
    model.max_bw = MaxBandwidth::default();
    let mut take = |megabits, is_app_limited| {
        let rs = Sample {
            delivery_rate: rate(megabits),
            is_app_limited,
            ..sample()
        };
        model.update_congestion_signals(&rs, &circumstances());
        model.max_bw.get()
    };
    assert_eq!(take(10, false), rate(10));
    assert_eq!(take(30, true), rate(30), "faster than any other");
    assert_eq!(take(20, true), rate(30));
}

/// Returns the short-term bounds after a round with `lost` packets, which follows `uncongested_rounds`
/// quiet rounds with as many losses.
fn short_term_after(uncongested_rounds: u64, lost: u64, at: Circumstances) -> Option<ShortTerm> {
    let mut model = model(20);
    let rs = Sample {
        rtt: Some(RTT),
        newly_acked: 100 * SMSS,
        delivered: 100 * SMSS,
        delivery_rate: rate(18),
        prior_delivered: Some(u64::MAX),
        ..sample()
    };
    let packet = LostPacket {
        number: 0,
        bytes: lost * SMSS,
        sent: Time::ZERO,
        tx_in_flight: 100 * SMSS,
        lost_since_sent: lost * SMSS,
        is_app_limited: false,
    };
    for _ in 0..=uncongested_rounds {
        model.bounds.short_term = None;
        model.losses.on_congestion_signal(Time::ZERO, 0);
        model.on_lost(&packet);
        model.update_latest_delivery_signals(&rs);
        model.update_congestion_signals(&rs, &at);
        model.losses.advance(&rs);
    }
    model.bounds.short_term
}

#[test]
fn a_loss_lowers_the_short_term_bounds_unless_it_is_ambient() {
    assert!(short_term_after(0, 3, circumstances()).is_some());
    assert_eq!(short_term_after(20, 3, circumstances()), None);
}

#[test]
fn a_loss_while_probing_leaves_the_short_term_bounds() {
    let probing = Circumstances {
        is_probing_bw: true,
        ..circumstances()
    };
    assert_eq!(short_term_after(0, 3, probing), None);
}

#[test]
fn spurious_losses_restore_the_bounds() {
    let mut model = model(20);
    let before = model.bounds;
    model.bounds.limit_long_term(50 * SMSS, 0);
    model.on_spurious_losses(before);
    assert_eq!(model.bounds, before);
}

#[test]
fn a_pipe_that_overflows_is_full_and_bounded() {
    let mut model = model(20);
    model.on_overflow();
    assert!(model.full_pipe.is_reached && model.full_pipe.is_now);
    assert_eq!(model.bounds.long_term, Some(125_000));
}
