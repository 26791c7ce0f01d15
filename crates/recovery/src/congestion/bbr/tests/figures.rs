//! Figures that BBR must reach on simple paths.

use super::harness::{MTU, SIZE, STARTUP, UP};
use super::path::*;
use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn assert_at_least(percent: u64, world: &mut World, ms: u64, what: &str) {
    let spec = world.spec;
    let utilisation = world.utilisation(ms);
    assert!(
        utilisation >= percent,
        "{what}: {utilisation} % of {spec:?}"
    );
}

#[test]
fn fills_short_and_medium_paths_after_three_seconds() {
    for megabits in [10, 100, 1000] {
        for rtt in [10, 50, 200] {
            let mut world = World::with_bbr(PathSpec::new(megabits, rtt));
            // Ten doublings and three rounds without growth take 2.6 s at 200 ms.
            world.run(if rtt == 200 { 4 * SECOND } else { 3 * SECOND });
            assert_at_least(95, &mut world, 6000, "steady");
        }
    }
}

/// Startup alone takes seven to twelve seconds there: a round trip is 0.6 s, and it needs one for
/// each doubling and three without growth.
#[test]
fn fills_satellite_paths_after_startup() {
    for megabits in [10, 100] {
        let mut world = World::with_bbr(PathSpec::new(megabits, 600));
        world.run(13 * SECOND);
        assert_at_least(95, &mut world, 15_000, "steady");
    }
}

/// Acknowledgements delayed by up to half a round trip look like those of a narrow path and like a
/// queue. ProbeBW keeps the rate that Startup has measured for seconds.
#[test]
fn jitter_does_not_end_startup_below_the_rate_of_the_path() {
    for (megabits, rtt) in [(10, 50), (100, 50), (100, 200)] {
        for part in [10, 4, 2] {
            for seed in 1..=10 {
                let mut spec = PathSpec::new(megabits, rtt);
                spec.jitter = spec.rtt / part;
                let mut world = World::seeded(spec, seed);
                world.add(Algorithm::Bbr, Duration::ZERO);
                // ProbeRTT may come in between.
                let is_reached = (0..400).any(|_| {
                    world.run(spec.rtt / 4);
                    world.flows[0].bbr().model.full_pipe.is_reached
                });
                assert!(is_reached, "{spec:?}, seed {seed}");
                let rate = world.flows[0]
                    .bbr()
                    .model
                    .max_bw
                    .get()
                    .as_bytes_per_second();
                let percent = rate * 100 / spec.rate;
                assert!(percent >= 90, "{percent} % of {spec:?}, seed {seed}");
            }
        }
    }
}

#[test]
fn holds_its_rate_through_random_loss() {
    for (per_mille, percent) in [(1, 90), (10, 85), (30, 80)] {
        for (megabits, rtt) in [(10, 50), (100, 10), (100, 50), (100, 200), (1000, 50)] {
            let mut world = World::with_bbr(PathSpec::new(megabits, rtt).loss(per_mille));
            world.run(5 * SECOND);
            let seconds = if megabits == 1000 { 3000 } else { 10_000 };
            assert_at_least(percent, &mut world, seconds, "lossy");
        }
    }
}

#[test]
fn leaves_a_bloated_buffer_nearly_empty() {
    for (megabits, rtt) in [(10, 50), (100, 50), (100, 200)] {
        let spec = PathSpec::new(megabits, rtt).queue(100);
        let mut world = World::with_bbr(spec);
        world.run(5 * SECOND);
        world.take_queue_delays();
        assert_at_least(95, &mut world, 15_000, "bloated");
        let delays = world.take_queue_delays();
        let (median, worst) = (delays.median(), delays.max());
        assert!(median < spec.rtt * 3 / 2, "{median:?} of {:?}", spec.rtt);
        assert!(worst < spec.rtt * 3 / 2, "{worst:?} at worst");
    }
}

/// The queue is a tenth of what the path holds. Loss-based controllers get a fraction of such a
/// path.
#[test]
fn works_with_a_shallow_buffer() {
    let mut world = World::with_bbr(PathSpec::new(100, 50).queue(1));
    world.run(5 * SECOND);
    let lost = world.flows[0].lost_packets;
    assert_at_least(85, &mut world, 20_000, "shallow");
    let lost = (world.flows[0].lost_packets - lost) * SIZE;
    let share = lost * 1000 / Rate::from_bytes_per_second(world.spec.rate).bytes_in(20 * SECOND);
    assert!(share < 20, "{share} per mille lost");
}

#[test]
fn two_flows_share_fairly() {
    for (megabits, rtt, gap) in [(20, 30, 0), (100, 50, 0), (100, 50, 700), (50, 100, 0)] {
        let mut world = World::new(PathSpec::new(megabits, rtt));
        world.add(Algorithm::Bbr, Duration::ZERO);
        world.add(Algorithm::Bbr, Duration::from_millis(gap));
        world.run(40 * SECOND);
        let shares = world.run(40 * SECOND);
        let index = jain(&shares);
        assert!(
            index >= 95,
            "{index} at {megabits} Mbit/s x {rtt} ms: {shares:?}"
        );
    }
}

/// Each flow joins a full queue, which it mistakes for a part of the path until the first ProbeRTT.
#[test]
fn eight_flows_share_fairly() {
    let mut world = World::new(PathSpec::new(100, 50));
    for flow in 0..8 {
        world.add(Algorithm::Bbr, flow * SECOND);
    }
    world.run(60 * SECOND);
    let shares = world.run(60 * SECOND);
    let index = jain(&shares);
    assert!(index >= 90, "{index}: {shares:?}");
}

/// In a queue of 1 BDP CUBIC needs seven seconds without loss to reach half of the rate.
#[test]
fn cubic_keeps_a_quarter_of_the_link() {
    for (megabits, rtt) in [(20, 30), (50, 20), (100, 50)] {
        let mut world = World::new(PathSpec::new(megabits, rtt));
        world.add(Algorithm::Cubic, Duration::ZERO);
        world.add(Algorithm::Bbr, SECOND);
        world.run(60 * SECOND);
        let shares = world.run(60 * SECOND);
        let least =
            shares.iter().min().expect("there are two flows") * 100 / shares.iter().sum::<u64>();
        assert!(least >= 25, "{least} % of {shares:?}");
    }
}

#[test]
fn a_late_flow_gets_its_share_of_a_deep_buffer() {
    let mut world = World::new(PathSpec::new(50, 40).queue(40));
    world.add(Algorithm::Bbr, Duration::ZERO);
    world.add(Algorithm::Bbr, 10 * SECOND);
    world.run(40 * SECOND);
    let shares = world.run(40 * SECOND);
    assert!(jain(&shares) >= 95, "{shares:?}");
}

/// The next probe comes two to three seconds or 63 round trips after the last. After that the rate
/// takes six rounds to grow fourfold.
#[test]
fn finds_four_times_the_rate_with_the_next_probe() {
    let mut world = World::with_bbr(PathSpec::new(25, 50).queue(40));
    world.run(8 * SECOND);
    let changed = world.now;
    world.set_megabits(100);
    while world.flows[0].bbr().state() != UP {
        world.run(Duration::from_millis(10));
        assert!(world.now - changed < 4 * SECOND, "no probe");
    }
    world.run(Duration::from_millis(500));
    assert_at_least(90, &mut world, 500, "ten round trips after the probe began");
}

/// The same with eight acknowledgements per round trip, and with a bound that the last loss has set
/// at the end of the old queue.
#[test]
fn finds_four_times_the_rate_in_one_probe_when_a_loss_has_set_a_bound() {
    let mut spec = PathSpec::new(25, 50);
    spec.aggregate = Some(spec.rtt / 8);
    let mut world = World::with_bbr(spec);
    world.run(8 * SECOND);
    assert!(
        world.flows[0].bbr().model.bounds.long_term.is_some(),
        "the first loss sets a bound"
    );
    world.set_megabits(100);
    while world.flows[0].bbr().state() != UP {
        world.run(Duration::from_millis(10));
    }
    let states = world.flows[0].states.len();
    world.run(12 * spec.rtt);
    assert_at_least(90, &mut world, 100, "after twelve round trips of a probe");
    let entered = &world.flows[0].states[states..];
    let probes = entered.iter().filter(|(_, state)| *state == "probe_bw_up");
    assert_eq!(probes.count(), 0, "another: {entered:?}");
}

#[test]
fn slows_down_when_the_rate_falls_to_a_fourth() {
    let mut world = World::with_bbr(PathSpec::new(100, 50));
    world.run(8 * SECOND);
    world.set_megabits(25);
    world.run(Duration::from_millis(500));
    assert_at_least(90, &mut world, 2000, "ten round trips later");
    // After two cycles the old rate has expired.
    world.run(8 * SECOND);
    let max_bw = world.flows[0]
        .bbr()
        .model
        .max_bw
        .get()
        .as_bytes_per_second();
    assert!(max_bw <= world.spec.rate * 102 / 100, "{max_bw}");
    world.take_queue_delays();
    assert_at_least(90, &mut world, 5000, "settled");
    let median = world.take_queue_delays().median();
    assert!(median < Duration::from_millis(75), "{median:?}");
}

#[test]
fn recovers_from_an_outage_of_two_seconds() {
    let mut world = World::with_bbr(PathSpec::new(50, 50));
    world.run(6 * SECOND);
    world.set_outage(true);
    world.run(2 * SECOND);
    world.set_outage(false);
    // The probe that detects the end of the outage may be delayed by backoff.
    world.run(3 * SECOND);
    assert_at_least(90, &mut world, 2000, "after the outage");
}

#[test]
fn app_limited_senders_do_not_inflate_the_model() {
    let spec = PathSpec::new(100, 50);
    let mut world = World::with_bbr(spec);
    world.flows[0].backlog = Some(0);
    // 1.2 Mbit/s in bursts of five packets.
    for _ in 0..500 {
        world.write(0, 5 * SIZE);
        world.run(Duration::from_millis(40));
    }
    let flow = &world.flows[0];
    let bbr = flow.bbr();
    assert_eq!(bbr.state(), STARTUP, "the pipe was never full");
    assert!(bbr.model.max_bw.get().as_bytes_per_second() <= spec.rate);
    assert!(
        flow.controller.window() < spec.bdp(),
        "{}",
        flow.controller.window()
    );
}

#[test]
fn a_known_rate_outlasts_an_app_limited_period() {
    let spec = PathSpec::new(50, 40);
    let mut world = World::with_bbr(spec);
    world.run(5 * SECOND);
    world.flows[0].backlog = Some(0);
    for _ in 0..400 {
        world.write(0, 4 * SIZE);
        world.run(Duration::from_millis(50));
    }
    let known = world.flows[0]
        .bbr()
        .model
        .max_bw
        .get()
        .as_bytes_per_second();
    assert!(known >= spec.rate * 9 / 10, "{known} of {}", spec.rate);
}

/// An idle period empties the queue like ProbeRTT, and the rate is kept.
#[test]
fn restarts_from_idle_at_the_old_rate() {
    let spec = PathSpec::new(50, 40);
    let mut world = World::with_bbr(spec);
    world.run(5 * SECOND);
    world.flows[0].backlog = Some(0);
    world.run(8 * SECOND);
    assert_eq!(world.flows[0].bytes_in_flight(), 0);
    let states = world.flows[0].states.len();
    world.take_queue_delays();
    world.write(0, spec.bdp() * 4);
    let delivered = world.run(Duration::from_millis(40 * 6))[0];
    assert!(
        delivered >= spec.bdp() * 35 / 10,
        "{delivered} in six round trips"
    );
    let entered = &world.flows[0].states[states..];
    assert!(
        entered.iter().all(|(_, state)| *state != "probe_rtt"),
        "{entered:?}"
    );
    let worst = world.take_queue_delays().max();
    assert!(worst < spec.rtt / 2, "paced, not in a burst: {worst:?}");
}

#[test]
fn aggregated_acknowledgements_leave_utilisation_high() {
    let mut spec = PathSpec::new(100, 20);
    spec.aggregate = Some(Duration::from_millis(15));
    let mut world = World::with_bbr(spec);
    world.run(3 * SECOND);
    assert_at_least(95, &mut world, 6000, "bunched");
    assert!(world.flows[0].bbr().model.aggregation.extra_acked() > 0);
}

#[test]
fn a_path_that_holds_less_than_a_packet_keeps_moving() {
    let mut spec = PathSpec::new(1, 4);
    spec.queue = 20 * SIZE;
    let mut world = World::with_bbr(spec);
    world.run(3 * SECOND);
    assert_at_least(95, &mut world, 6000, "tiny");
    assert!(world.flows[0].controller.window() >= 4 * SIZE);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = || {
        let mut world = World::with_bbr(PathSpec::new(20, 30).loss(5));
        world.run(5 * SECOND);
        (world.flows[0].delivered(), world.flows[0].states.clone())
    };
    assert_eq!(run(), run());
}

#[test]
fn takes_over_from_cubic_without_startup() {
    let spec = PathSpec::new(50, 40);
    let mut world = World::new(spec);
    world.add(Algorithm::Cubic, Duration::ZERO);
    world.run(5 * SECOND);
    let now = world.now;
    let flow = &mut world.flows[0];
    flow.controller
        .switch(Algorithm::Bbr, MTU, 1, &flow.rtt, now);
    assert_eq!(flow.controller.state(), "probe_bw_down");
    assert_at_least(80, &mut world, 1000, "just after");
    world.run(6 * SECOND);
    assert_at_least(95, &mut world, 5000, "later");
}
