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
        };
        // The first round has no start.
        rounds.round(40, 100_000);
        rounds
    }

    /// Delivers `bytes` in ten parts during a round trip. Returns true if that is a rise.
    fn round(&mut self, rtt: u64, bytes: u64) -> bool {
        let first = self.next_pn;
        self.next_pn += 10;
        let sent = self.now;
        let mut is_wider = false;
        for ack in 0..10 {
            self.now = sent + ms(rtt) * (ack + 1) / 10;
            self.delivered += bytes / 10;
            is_wider |= self.ack(first + u64::from(ack), sent, ms(rtt));
        }
        is_wider
    }

    fn ack(&mut self, largest: u64, sent: Time, rtt: Duration) -> bool {
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
        self.capacity.on_ack(&sample, MTU, self.next_pn - 1)
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
fn two_faster_rounds_without_a_queue_are_a_rise() {
    // 200 000 bytes in 80 ms are 100 000 in 40 ms. The round of the change is a mixture.
    assert_eq!(Rounds::overflow().rise(150_000), Some(3));
    assert_eq!(Rounds::overflow().rise(130_000), Some(3));
    assert_eq!(Rounds::overflow().rise(120_000), None);
}

#[test]
fn one_faster_round_at_a_time_is_no_rise() {
    let mut rounds = Rounds::overflow();
    for _ in 0..10 {
        assert!(!rounds.round(40, 200_000));
        assert!(!rounds.round(40, 90_000));
    }
}

#[test]
fn a_queue_means_that_the_link_is_full_already() {
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
    for (rounds_with_queue, rise) in [(4, None), (5, Some(3))] {
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
fn a_rise_is_reported_once_for_each_queue() {
    let mut rounds = Rounds::overflow();
    assert_eq!(rounds.rise(150_000), Some(3));
    assert_eq!(rounds.rise(500_000), None);
    for _ in 0..4 {
        rounds.round(80, 1_000_000);
    }
    rounds.capacity.on_congestion();
    assert_eq!(rounds.rise(500_000), None, "that is what the link carried");
    assert!(rounds.rise(1_000_000).is_some());
}

#[test]
fn no_rise_is_reported_when_switched_off() {
    let mut rounds = Rounds::overflow();
    rounds.capacity.switch_off();
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
fn a_wider_link_is_full_soon() {
    for (algorithm, most, least) in [(Algorithm::Cubic, 10, 40), (Algorithm::NewReno, 40, 200)] {
        let (with, without) = (
            rounds_to_wider_link(algorithm, false),
            rounds_to_wider_link(algorithm, true),
        );
        assert!(with <= most, "{algorithm}: {with} round trips");
        assert!(without > least, "{algorithm}: {without} round trips");
    }
}

/// Without a rise in capacity nothing is detected, regardless of random loss, jitter,
/// acknowledgements in clumps, and short or long queues.
#[test]
fn a_path_that_stays_the_same_is_left_alone() {
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
