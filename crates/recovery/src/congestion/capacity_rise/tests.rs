use super::super::tests::model::{Loss, Model, Path};
use super::super::tests::{MTU, blank_ack, ms};
use super::super::{Algorithm, Controller};
use super::*;
use crate::RttEstimator;

/// Feeds acknowledgements of a path of 40 ms to the detector alone.
struct Rounds {
    capacity: CapacityRise,
    rtt: RttEstimator,
    now: Time,
    next_pn: u64,
    delivered: u64,
    app_limited: bool,
    /// The window of the controller.
    window: u64,
}

impl Rounds {
    fn new() -> Self {
        let mut rtt = RttEstimator::default();
        rtt.on_sample(Time::ZERO, ms(40), Duration::ZERO, None);
        let mut rounds = Self {
            capacity: CapacityRise::new(),
            rtt,
            now: Time::ZERO + ms(1),
            next_pn: 0,
            delivered: 0,
            app_limited: false,
            window: 100_000,
        };
        // The first round has no start.
        rounds.round(40, 100_000);
        rounds
    }

    /// Delivers `bytes` in ten parts during a round trip. Returns true if that is a rise.
    fn round(&mut self, rtt: u64, bytes: u64) -> bool {
        self.rise_in_round(rtt, bytes).is_some()
    }

    /// Delivers `bytes` in ten parts during a round trip. Returns the rise that this shows.
    fn rise_in_round(&mut self, rtt: u64, bytes: u64) -> Option<Rise> {
        let first = self.next_pn;
        self.next_pn += 10;
        let sent = self.now;
        let mut rise = None;
        for ack in 0..10 {
            self.now = sent + ms(rtt) * (ack + 1) / 10;
            self.delivered += bytes / 10;
            rise = rise.or(self.ack(first + u64::from(ack), sent, ms(rtt)));
        }
        rise
    }

    fn ack(&mut self, largest: u64, sent: Time, rtt: Duration) -> Option<Rise> {
        let sample = AckSample {
            now: self.now,
            largest_acked: largest,
            largest_acked_sent: sent,
            earliest_acked_sent: sent,
            rtt_sample: Some(rtt),
            app_limited: self.app_limited,
            delivered: self.delivered,
            ..blank_ack(&self.rtt)
        };
        let last_sent = self.next_pn - 1;
        self.capacity.on_ack(&sample, MTU, self.window, last_sent)
    }

    /// Runs rounds with a queue as long as the path, and then a loss.
    fn overflow() -> Self {
        let mut rounds = Self::new();
        for _ in 0..4 {
            assert!(!rounds.round(80, 200_000));
        }
        rounds.capacity.on_congestion();
        rounds
    }

    /// Returns the number of rounds, each of 40 ms with `bytes`, until the rise is detected.
    fn rise(&mut self, bytes: u64) -> Option<u32> {
        (1..=20).find(|_| self.round(40, bytes))
    }
}

#[test]
fn a_faster_round_without_a_queue_is_a_rise() {
    // 200 000 bytes in 80 ms are 100 000 in 40 ms. The round of the change is a mixture.
    assert_eq!(Rounds::overflow().rise(150_000), Some(2));
    assert_eq!(Rounds::overflow().rise(130_000), Some(2));
    assert_eq!(Rounds::overflow().rise(120_000), None);
}

/// Delivers faster than with the last queue, in rounds without one. Before that queue, the path has
/// delivered `before` bytes in a round trip, and now it delivers `now`.
fn rise_after_sharing(before: u64, window: u64, now: u64) -> Option<Option<u64>> {
    let mut rounds = Rounds::new();
    for _ in 0..4 {
        rounds.round(80, 2 * before);
    }
    rounds.capacity.on_congestion();
    // The round of a reduction still has the earlier rate.
    for _ in 0..2 {
        for _ in 0..4 {
            rounds.round(80, 100_000);
        }
        rounds.capacity.on_congestion();
    }
    rounds.window = window;
    (1..=20).find_map(|_| rounds.rise_in_round(40, now).map(|rise| rise.bound))
}

/// A flow has the path to itself, then half of it or less, and then all of it again.
#[test]
fn a_window_that_carries_the_known_capacity_needs_no_search() {
    for (before, window, now, expected) in [
        // The window carries as much as ever before.
        (100_000, 100_000, 100_000, None),
        (100_000, 110_000, 110_000, None),
        // A smaller window is raised up to that.
        (100_000, 70_000, 70_000, Some(Some(100_000))),
        (200_000, 70_000, 70_000, Some(Some(200_000))),
        // The link is faster than ever before.
        (100_000, 130_000, 130_000, Some(None)),
        (100_000, 50_000, 130_000, Some(None)),
        // The last queue had a rate of 50 000 bytes in 40 ms.
        (100_000, 50_000, 60_000, None),
    ] {
        let rise = rise_after_sharing(before, window, now);
        assert_eq!(rise, expected, "{before}, {window}, {now}");
    }
}

#[test]
fn a_failed_search_is_repeated_after_four_times_as_many_rounds() {
    let mut rounds = Rounds::overflow();
    assert_eq!(rounds.rise(150_000), Some(2));
    for needed in [4, 16, 20] {
        rounds.capacity.on_failed_search();
        let rise = rounds.rise(150_000);
        assert_eq!(rise, (needed < 20).then_some(needed));
    }
    // The next reduction resets the count.
    rounds.round(80, 200_000);
    rounds.round(80, 200_000);
    rounds.round(80, 200_000);
    rounds.capacity.on_congestion();
    assert_eq!(rounds.rise(250_000), Some(2));
}

#[test]
fn faster_rounds_with_a_queue_are_no_rise() {
    let mut rounds = Rounds::overflow();
    assert!((0..10).all(|_| !rounds.round(80, 500_000)));
}

#[test]
fn loss_without_a_queue_is_no_rise() {
    let mut rounds = Rounds::new();
    for _ in 0..4 {
        rounds.round(41, 100_000);
    }
    rounds.capacity.on_congestion();
    assert_eq!(rounds.rise(500_000), None);
}

#[test]
fn a_sender_without_data_is_no_rise() {
    let mut rounds = Rounds::overflow();
    rounds.app_limited = true;
    assert_eq!(rounds.rise(500_000), None);
}

#[test]
fn a_queue_without_loss_counts_after_four_whole_rounds() {
    for (rounds_with_queue, rise) in [(4, None), (5, Some(2))] {
        let mut rounds = Rounds::new();
        for _ in 0..rounds_with_queue {
            rounds.round(80, 200_000);
        }
        assert_eq!(rounds.rise(150_000), rise, "{rounds_with_queue}");
    }
}

#[test]
fn variable_delay_is_no_rise() {
    let mut rounds = Rounds::new();
    for _ in 0..10 {
        assert_eq!(rounds.rise(100_000), None);
        for _ in 0..6 {
            assert!(!rounds.round(80, 100_000));
        }
    }
}

#[test]
fn after_a_successful_search_the_next_rise_needs_a_queue() {
    let mut rounds = Rounds::overflow();
    assert_eq!(rounds.rise(150_000), Some(2));
    rounds.capacity.on_successful_search();
    assert_eq!(rounds.rise(500_000), None);
    for _ in 0..4 {
        rounds.round(80, 1_000_000);
    }
    rounds.capacity.on_congestion();
    assert_eq!(
        rounds.rise(500_000),
        None,
        "the window already has the rate of the last queue"
    );
    assert!(rounds.rise(1_000_000).is_some());
}

#[test]
fn no_rise_is_reported_when_disabled() {
    let mut rounds = Rounds::overflow();
    rounds.capacity.disable();
    assert_eq!(rounds.rise(500_000), None);
}

/// Fills a link until after some losses, then raises its rate fourfold. Returns the round trips
/// until one delivers nine tenths of that.
fn rounds_to_wider_link(algorithm: Algorithm, ignored: bool) -> u32 {
    let rtt = ms(50);
    let mut model = Model::new(Path::link(20, rtt, 1.0), algorithm);
    if ignored {
        model.controller.ignore_capacity_rise();
    }
    model.run(ms(20_000));
    assert!(model.totals.lost > 0);
    model.set_megabits(80);
    let full = 80 * 125 * 50 * 9 / 10;
    let mut before = model.totals.delivered;
    let is_full = |_: &u32| {
        model.run(rtt);
        let delivered = model.totals.delivered - before;
        before = model.totals.delivered;
        delivered >= full
    };
    (1..=1000).find(is_full).unwrap_or(1000)
}

/// NewReno's window may have been reduced to what the narrow link holds. It must grow by a quarter
/// before the rate rises.
#[test]
fn a_wider_link_is_full_after_few_round_trips() {
    for (algorithm, most, least) in [(Algorithm::Cubic, 10, 40), (Algorithm::NewReno, 40, 200)] {
        let (with, without) = (
            rounds_to_wider_link(algorithm, false),
            rounds_to_wider_link(algorithm, true),
        );
        assert!(with <= most, "{algorithm}: {with} round trips");
        assert!(without > least, "{algorithm}: {without} round trips");
    }
}

/// Without a rise in capacity nothing is detected, regardless of random loss, jitter, aggregated
/// acknowledgements, and short or long queues.
#[test]
fn no_rise_is_detected_on_a_constant_path() {
    let jittery = |path: Path| Path {
        jitter: ms(20),
        ..path
    };
    let thinned = |path: Path| Path {
        ack_every: 40,
        ..path
    };
    let lossy = |path: Path| Path {
        loss: Loss::Random(0.002),
        ..path
    };
    let paths = [
        ("loss", Path::lossy(ms(50), Loss::Random(0.002))),
        ("lossy link", lossy(Path::link(20, ms(50), 1.0))),
        ("jitter", jittery(Path::link(20, ms(50), 1.0))),
        ("lossy jitter", jittery(lossy(Path::link(20, ms(50), 1.0)))),
        ("few acknowledgements", thinned(Path::link(20, ms(50), 1.0))),
        (
            "few and jitter",
            jittery(thinned(Path::link(20, ms(50), 1.0))),
        ),
        ("short queue", Path::link(20, ms(50), 0.2)),
        ("short queue, jitter", jittery(Path::link(20, ms(50), 0.3))),
        ("long queue", Path::link(20, ms(20), 4.0)),
    ];
    for (name, path) in paths {
        for algorithm in [Algorithm::Cubic, Algorithm::NewReno] {
            for seed in 1..=5 {
                let sent = |ignored: bool| {
                    let mut model = Model::new(Path { seed, ..path }, algorithm);
                    if ignored {
                        model.controller.ignore_capacity_rise();
                    }
                    model.run(ms(30_000));
                    (model.totals.sent, model.controller.window())
                };
                assert_eq!(sent(false), sent(true), "{name}, {algorithm}, seed {seed}");
            }
        }
    }
}

/// A link of 10 Mbit/s becomes one of 80 with a queue of 0.4 BDP. Returns the megabits a second in the
/// first half second, those of the next three seconds, and the packets lost in that time.
fn step_to_80_megabits(start: Duration, ignored: bool) -> (u64, u64, u64) {
    let path = Path {
        ack_every: 12,
        queue: 150_000,
        ..Path::link(10, ms(40), 1.0)
    };
    let mut model = Model::new(path, Algorithm::Cubic);
    if ignored {
        model.controller.ignore_capacity_rise();
    }
    model.run(start);
    model.set_megabits(80);
    let before = model.totals;
    // A round trip passes until packets that leave the link faster are acknowledged.
    model.run(ms(540));
    let soon = model.totals.delivered - before.delivered;
    model.run(ms(3000));
    let later = model.totals.delivered - before.delivered - soon;
    let lost = model.totals.lost - before.lost;
    (soon * 8 / 500_000, later * 8 / 3_000_000, lost)
}

#[test]
fn a_link_that_is_eight_times_as_fast_is_full_within_half_a_second() {
    for start in (10_000..15_000).step_by(500) {
        let (soon, later, lost) = step_to_80_megabits(ms(start), false);
        let (soon_without, later_without, _) = step_to_80_megabits(ms(start), true);
        let text =
            format!("{start} ms: {soon} ({soon_without}), {later} ({later_without}), {lost}");
        println!("{text}");
        assert!(soon >= soon_without * 4 / 3, "{text}");
        assert!(later >= 76 && later_without < 60, "{text}");
        // The link carries 333 packets in a round trip.
        assert!(lost < 60, "{text}");
    }
}
