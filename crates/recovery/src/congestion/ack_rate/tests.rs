use super::super::tests::{MTU, blank_ack, ms};
use super::*;
use crate::RttEstimator;

/// A path of 80 ms: intervals take 10 ms and have at least eight datagrams.
struct Bench {
    ack_rate: AckRate,
    now: Time,
    delivered: u64,
    rtt: RttEstimator,
    is_app_limited: bool,
    /// The time to send the packets, as a part of the time of their acknowledgements.
    sending: f64,
    sent: Time,
}

impl Bench {
    fn new(path: Duration) -> Self {
        let mut rtt = RttEstimator::default();
        rtt.on_sample(Time::ZERO, path, Duration::ZERO, None);
        Self {
            ack_rate: AckRate::default(),
            now: Time::ZERO,
            delivered: 0,
            rtt,
            is_app_limited: false,
            sending: 0.5,
            sent: Time::ZERO,
        }
    }

    /// Acknowledges datagrams after `wait`. Returns the rate in datagrams per second.
    fn ack(&mut self, wait: Duration, datagrams: u64) -> Option<u64> {
        let bytes = datagrams * u64::from(MTU);
        self.now += wait;
        self.sent += wait.mul_f64(self.sending);
        self.delivered += bytes;
        let sample = AckSample {
            now: self.now,
            acked_bytes: bytes,
            largest_acked_sent: self.sent,
            app_limited: self.is_app_limited,
            delivered: self.delivered,
            ..blank_ack(&self.rtt)
        };
        let rate = self.ack_rate.on_ack(&sample, MTU)?;
        Some(rate.as_bytes_per_second() / u64::from(MTU))
    }
}

#[test]
fn two_intervals_suffice_and_the_faster_one_counts() {
    let mut bench = Bench::new(ms(80));
    assert_eq!(bench.ack(ms(0), 50), None, "no interval has begun");
    assert_eq!(bench.ack(ms(10), 20), None, "one interval is not enough");
    assert_eq!(bench.ack(ms(10), 10), Some(2000));
    assert_eq!(bench.ack(ms(10), 30), Some(3000));
    assert_eq!(bench.ack(ms(10), 8), Some(3000));
}

#[test]
fn an_interval_takes_an_eighth_of_the_path_and_eight_datagrams() {
    let mut bench = Bench::new(ms(80));
    bench.ack(ms(0), 1);
    bench.ack(ms(10), 8);
    assert_eq!(bench.ack(ms(9), 100), None, "9 ms");
    assert_eq!(bench.ack(ms(1), 0), Some(10_000), "10 ms");
    assert_eq!(bench.ack(ms(20), 7), None, "seven datagrams");
    assert_eq!(bench.ack(ms(0), 1), Some(10_000), "eight");
}

/// The path does not limit a sender that is slow itself or clocked by acknowledgements.
#[test]
fn packets_that_arrive_as_fast_as_they_were_sent_give_no_rate() {
    for (sending, expected) in [(0.79, Some(2000)), (0.81, None), (1.0, None)] {
        let mut bench = Bench::new(ms(80));
        bench.sending = sending;
        bench.ack(ms(0), 1);
        bench.ack(ms(10), 20);
        assert_eq!(bench.ack(ms(10), 20), expected, "{sending}");
    }
}

#[test]
fn aggregated_acknowledgements_give_the_rate_of_their_packets() {
    let mut bench = Bench::new(ms(80));
    bench.ack(ms(0), 40);
    bench.ack(ms(25), 50);
    assert_eq!(bench.ack(ms(25), 50), Some(2000));
}

#[test]
fn the_previous_round_counts_and_older_rounds_do_not() {
    let mut bench = Bench::new(ms(80));
    for datagrams in [1, 30, 10] {
        bench.ack(ms(10), datagrams);
    }
    for (round, expected) in [(2, 3000), (3, 1000)] {
        bench.ack_rate.end_round();
        bench.ack(ms(10), 10);
        assert_eq!(bench.ack(ms(10), 10), None, "round {round}: one interval");
        assert_eq!(bench.ack(ms(10), 10), Some(expected), "round {round}");
    }
}

#[test]
fn app_limited_samples_end_an_interval() {
    let mut bench = Bench::new(ms(80));
    bench.ack(ms(0), 1);
    bench.ack(ms(10), 20);
    bench.is_app_limited = true;
    assert_eq!(bench.ack(ms(10), 20), None);
    bench.is_app_limited = false;
    assert_eq!(bench.ack(ms(10), 20), None, "a new interval begins");
    assert_eq!(bench.ack(ms(10), 20), Some(2000));
}

#[test]
fn short_paths_are_not_measured() {
    for (path, expected) in [(7, None), (8, Some(20_000))] {
        let mut bench = Bench::new(ms(path));
        bench.ack(ms(0), 1);
        bench.ack(ms(1), 20);
        assert_eq!(bench.ack(ms(1), 20), expected, "{path} ms");
    }
}
