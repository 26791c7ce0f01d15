//! Counts bytes and requests, and observes the counts during a measurement.

use std::fmt;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use courser_base::Mutex;
use courser_measure::{ConnectionCounters, Direction, Failure, Latency, Moves, MovesReport, Times};
use courser_units::{bits_per_second, ratio};
use serde::Serialize;

/// Counters that all tasks of a measurement share.
#[derive(Debug)]
pub(crate) struct Meter {
    sent: AtomicU64,
    received: AtomicU64,
    count: AtomicU64,
    resumed: AtomicU64,
    early_accepted: AtomicU64,
    latency: Mutex<Times>,
    /// The start and the amount of the load, if the measurement has idle time before and after it.
    load: Mutex<Option<(Instant, Amount)>>,
    /// Moves of the connections, if [`Remote::rebind_every`](crate::Remote::rebind_every) is set.
    moves: Option<Arc<Moves>>,
}

impl Meter {
    pub(crate) fn new() -> Arc<Self> {
        Self::with_moves(None)
    }

    /// Creates a meter that also reports bytes to `moves`, if the connections move.
    pub(crate) fn with_moves(moves: Option<Arc<Moves>>) -> Arc<Self> {
        if let Some(moves) = &moves {
            moves.begin(Instant::now());
        }
        Arc::new(Self {
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            count: AtomicU64::new(0),
            resumed: AtomicU64::new(0),
            early_accepted: AtomicU64::new(0),
            latency: Mutex::new(Times::new()),
            load: Mutex::new(None),
            moves,
        })
    }

    pub(crate) fn on_sent(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Relaxed);
        self.note(Direction::Sent);
    }

    pub(crate) fn on_received(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Relaxed);
        self.note(Direction::Received);
    }

    fn note(&self, direction: Direction) {
        if let Some(moves) = &self.moves {
            moves.on_bytes(direction, Instant::now());
        }
    }

    /// Returns the moves of the connections, if they are moved.
    fn moves(&self) -> Option<MovesReport> {
        Some(self.moves.as_ref()?.report(Instant::now()))
    }

    /// Resets all counters at the end of the warm-up.
    pub(crate) fn restart(&self) {
        let of_handshakes = [&self.resumed, &self.early_accepted];
        let all = [&self.sent, &self.received, &self.count].into_iter();
        for counter in all.chain(of_handshakes) {
            counter.store(0, Relaxed);
        }
        self.latency.lock().clear();
        if let Some(moves) = &self.moves {
            moves.begin(Instant::now());
        }
    }

    /// Counts a request, handshake or close and its duration.
    pub(crate) fn on_done(&self, took: Duration) {
        self.count.fetch_add(1, Relaxed);
        self.latency.lock().record(took);
    }

    /// Counts a handshake if it resumed a session.
    pub(crate) fn on_resumed(&self, is_resumed: bool) {
        self.resumed.fetch_add(u64::from(is_resumed), Relaxed);
    }

    /// Counts a request if the server accepted its early data.
    pub(crate) fn on_early_data(&self, is_accepted: bool) {
        self.early_accepted
            .fetch_add(u64::from(is_accepted), Relaxed);
    }

    /// Marks the start of the load. It ends after `amount`, while the measurement continues.
    pub(crate) fn on_load(&self, amount: Amount) {
        *self.load.lock() = Some((Instant::now(), amount));
    }

    /// Returns the period of load in seconds since `began`; `intervals` are those of the measurement.
    fn load(&self, began: Instant, intervals: &[Interval]) -> Load {
        let Some((start, amount)) = *self.load.lock() else {
            return Load::ALWAYS;
        };
        let start = start.saturating_duration_since(began);
        let end = match amount {
            Amount::Time(time) => (start + time).as_secs_f64(),
            Amount::Number(_) => {
                let last = intervals.iter().rfind(|interval| interval.count > 0);
                last.map_or(0.0, |interval| interval.end)
            }
        };
        let start = start.as_secs_f64();
        Load { start, end }
    }

    /// Counts a datagram that was sent.
    pub(crate) fn on_datagram_sent(&self, bytes: usize) {
        self.on_sent(bytes);
        self.count.fetch_add(1, Relaxed);
    }

    /// Counts a datagram that was received.
    pub(crate) fn on_datagram_received(&self, bytes: usize) {
        self.on_received(bytes);
        self.count.fetch_add(1, Relaxed);
    }

    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Relaxed)
    }

    pub(crate) fn received(&self) -> u64 {
        self.received.load(Relaxed)
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    pub(crate) fn resumed(&self) -> u64 {
        self.resumed.load(Relaxed)
    }

    pub(crate) fn early_accepted(&self) -> u64 {
        self.early_accepted.load(Relaxed)
    }

    /// Returns the distribution of times; `None` when nothing was timed.
    pub(crate) fn latency(&self) -> Option<Latency> {
        self.latency.lock().latency()
    }
}

/// The limit of a measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Amount {
    /// The measurement takes this long.
    Time(Duration),
    /// The measurement ends after this many bytes, requests, handshakes, datagrams of a direction or closes.
    Number(u64),
}

/// One interval of a measurement.
#[derive(Serialize, Clone, Copy, PartialEq, Debug)]
pub struct Interval {
    /// The beginning, in seconds since the measurement began.
    pub start: f64,
    /// The end, in seconds since the measurement began.
    pub end: f64,
    /// Bytes sent by the client.
    pub sent_bytes: u64,
    /// Bytes received by the client.
    pub received_bytes: u64,
    /// Bits per second, both directions together.
    pub bits_per_second: f64,
    /// Requests, handshakes, datagrams or closes.
    pub count: u64,
    /// Packets that the client declared lost; `None` over TCP.
    pub packets_lost: Option<u64>,
    /// Smoothed round-trip time at the end in microseconds; `None` over TCP.
    pub rtt_us: Option<f64>,
    /// Congestion window at the end in bytes; `None` over TCP.
    pub congestion_window: Option<u64>,
}

/// The period in which a measurement sends, in seconds since its beginning.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Load {
    pub(crate) start: f64,
    pub(crate) end: f64,
}

impl Load {
    /// The load of a measurement that always sends.
    pub(crate) const ALWAYS: Self = Self {
        start: 0.0,
        end: f64::INFINITY,
    };

    /// Returns the part of an interval that is under load, in seconds; 0 or less if none is.
    pub(crate) fn within(&self, interval: &Interval) -> f64 {
        interval.end.min(self.end) - interval.start.max(self.start)
    }
}

/// Reports the progress of a measurement, and may stop it.
#[derive(Clone, Copy)]
pub struct Watch<'a> {
    /// Called ten times per second with the completed share, from 0 to 1 or more.
    pub progress: &'a dyn Fn(f64),
    /// The length of an interval, if intervals are reported. Otherwise throughput is sampled every 100 ms.
    pub interval: Option<Duration>,
    /// Called at the end of each interval.
    pub on_interval: &'a dyn Fn(&Interval),
    /// Called ten times per second. When it returns true, the measurement ends early, and its figures
    /// cover the time until then.
    pub is_stopped: &'a dyn Fn() -> bool,
}

impl fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("interval", &self.interval)
            .finish_non_exhaustive()
    }
}

/// The result of a watched measurement.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Watched<T> {
    pub(crate) result: T,
    /// True if the measurement ended early.
    pub(crate) interrupted: bool,
    pub(crate) seconds: f64,
    /// The intervals, or samples if [`Watch::interval`] is not set.
    pub(crate) intervals: Vec<Interval>,
    /// The length of an interval or sample.
    pub(crate) every: Duration,
    /// The period of load.
    pub(crate) load: Load,
    /// Moves of the connections, if they move.
    pub(crate) moves: Option<MovesReport>,
}

impl Watched<Result<(), Failure>> {
    /// Turns a failed result into an error.
    pub(crate) fn transpose(self) -> Result<Watched<()>, Failure> {
        self.result?;
        Ok(Watched {
            result: (),
            interrupted: self.interrupted,
            seconds: self.seconds,
            intervals: self.intervals,
            every: self.every,
            load: self.load,
            moves: self.moves,
        })
    }
}

impl Watch<'_> {
    /// Runs `work` until it ends or is stopped. `paths` returns the counters of the connections.
    pub(crate) async fn run(
        &self,
        work: impl Future<Output = Result<(), Failure>>,
        meter: &Meter,
        amount: Amount,
        paths: impl Fn() -> Option<ConnectionCounters>,
    ) -> Watched<Result<(), Failure>> {
        let every = self.interval.unwrap_or_else(|| sample_length(amount));
        let mut series = Series::new(meter, paths());
        let mut work = pin!(work);
        let mut tick = tokio::time::interval(divide(every));
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        let (result, interrupted) = loop {
            tokio::select! {
                biased;
                result = &mut work => break (result, false),
                _ = tick.tick() => {
                    if (self.is_stopped)() {
                        break (Ok(()), true);
                    }
                    (self.progress)(share_done(meter, amount, series.began.elapsed()));
                    if series.is_due(every) {
                        self.take(&mut series, meter, &paths);
                    }
                }
            }
        };
        let seconds = series.began.elapsed().as_secs_f64();
        // Later moves, while the server's counters are requested without bytes, do not count.
        let moves = meter.moves();
        if series.has_new_counts(meter) {
            self.take(&mut series, meter, &paths);
        }
        Watched {
            result,
            interrupted,
            seconds,
            load: meter.load(series.began, &series.intervals),
            intervals: series.intervals,
            every,
            moves,
        }
    }

    /// Runs `work` for the warm-up.
    pub(crate) async fn warm_up(
        &self,
        mut work: Pin<&mut impl Future<Output = Result<(), Failure>>>,
        time: Duration,
    ) -> Result<(), Failure> {
        let mut end = pin!(tokio::time::sleep(time));
        let mut tick = tokio::time::interval(TICK);
        loop {
            tokio::select! {
                biased;
                result = &mut work => {
                    result?;
                    return Err(Failure::new("the measurement ended during its warm-up"));
                }
                () = &mut end => return Ok(()),
                _ = tick.tick() => {
                    if (self.is_stopped)() {
                        let text = "interrupted during the warm-up, before the measurement began";
                        return Err(Failure::new(text));
                    }
                    (self.progress)(0.0);
                }
            }
        }
    }

    /// Ends an interval, and reports it if [`Watch::interval`] is set.
    fn take(
        &self,
        series: &mut Series,
        meter: &Meter,
        paths: impl Fn() -> Option<ConnectionCounters>,
    ) {
        if self.interval.is_some() {
            (self.on_interval)(&series.next(meter, paths()));
        } else {
            series.next(meter, None);
        }
    }
}

/// The intervals so far, and the counters at the beginning of the current one.
#[derive(Debug)]
struct Series {
    began: Instant,
    last: f64,
    sent: u64,
    received: u64,
    count: u64,
    lost: u64,
    intervals: Vec<Interval>,
}

impl Series {
    fn new(meter: &Meter, paths: Option<ConnectionCounters>) -> Self {
        Self {
            began: Instant::now(),
            last: 0.0,
            sent: meter.sent(),
            received: meter.received(),
            count: meter.count(),
            lost: paths.map_or(0, |paths| paths.packets_lost),
            intervals: Vec::new(),
        }
    }

    fn is_due(&self, every: Duration) -> bool {
        let taken = u32::try_from(self.intervals.len()).unwrap_or(u32::MAX);
        self.began.elapsed() >= every.saturating_mul(taken.saturating_add(1))
    }

    fn has_new_counts(&self, meter: &Meter) -> bool {
        (self.sent, self.received, self.count) != (meter.sent(), meter.received(), meter.count())
    }

    fn next(&mut self, meter: &Meter, paths: Option<ConnectionCounters>) -> Interval {
        let end = self.began.elapsed().as_secs_f64();
        let (sent, received, count) = (meter.sent(), meter.received(), meter.count());
        let lost = paths.map_or(self.lost, |paths| paths.packets_lost);
        let bytes = sent - self.sent + received - self.received;
        let interval = Interval {
            start: self.last,
            end,
            sent_bytes: sent - self.sent,
            received_bytes: received - self.received,
            bits_per_second: bits_per_second(bytes, end - self.last),
            count: count - self.count,
            packets_lost: paths.map(|_| lost.saturating_sub(self.lost)),
            rtt_us: paths.map(|paths| paths.rtt_us),
            congestion_window: paths.map(|paths| paths.congestion_window),
        };
        (self.last, self.sent, self.received) = (end, sent, received);
        (self.count, self.lost) = (count, lost);
        self.intervals.push(interval);
        interval
    }
}

/// Returns the length of samples of throughput.
fn sample_length(amount: Amount) -> Duration {
    match amount {
        Amount::Time(time) => TICK.max(time / MAX_SAMPLES),
        Amount::Number(_) => TICK,
    }
}

/// Returns a period near [`TICK`] that divides `interval` evenly.
fn divide(interval: Duration) -> Duration {
    let ticks = interval.as_nanos().div_ceil(TICK.as_nanos());
    interval / u32::try_from(ticks).unwrap_or(u32::MAX).max(1)
}

fn share_done(meter: &Meter, amount: Amount, elapsed: Duration) -> f64 {
    match amount {
        Amount::Time(time) => elapsed.as_secs_f64() / time.as_secs_f64(),
        Amount::Number(number) => {
            let bytes = meter.sent().max(meter.received());
            let done = if meter.count() > 0 {
                meter.count()
            } else {
                bytes
            };
            ratio(done, number).unwrap_or(1.0)
        }
    }
}

/// The time between two reports of progress, and the length of samples.
const TICK: Duration = Duration::from_millis(100);

/// The largest number of samples, which bounds memory in long measurements.
const MAX_SAMPLES: u32 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_in_microseconds() {
        let meter = Meter::new();
        for micros in 1..=100 {
            meter.on_done(Duration::from_micros(micros));
        }
        let latency = meter.latency().expect("a hundred samples");
        assert!((latency.p50_us - 50.0).abs() < 0.2, "{latency:?}");
        assert!((latency.max_us - 100.0).abs() < 0.2, "{latency:?}");
        assert_eq!(meter.count(), 100);
    }

    #[test]
    fn meter_without_times_has_no_latency() {
        assert_eq!(Meter::new().latency(), None);
    }

    #[test]
    fn ticks_fall_on_the_ends_of_intervals() {
        assert_eq!(
            divide(Duration::from_millis(250)),
            Duration::from_nanos(83_333_333)
        );
        assert_eq!(
            divide(Duration::from_millis(100)),
            Duration::from_millis(100)
        );
        assert_eq!(divide(Duration::from_millis(30)), Duration::from_millis(30));
    }

    #[test]
    fn intervals_count_only_new_values() {
        let meter = Meter::new();
        let mut series = Series::new(&meter, None);
        meter.on_sent(10);
        assert_eq!(series.next(&meter, None).sent_bytes, 10);
        meter.on_received(7);
        let second = series.next(&meter, None);
        assert_eq!((second.sent_bytes, second.received_bytes), (0, 7));
    }

    #[test]
    fn meter_restarts_after_the_warm_up() {
        let meter = Meter::new();
        meter.on_sent(10);
        meter.on_received(20);
        meter.on_done(Duration::from_secs(1));
        meter.on_resumed(true);
        meter.on_early_data(true);
        meter.restart();
        assert_eq!((meter.resumed(), meter.early_accepted()), (0, 0));
        assert_eq!((meter.sent(), meter.received(), meter.count()), (0, 0, 0));
        assert_eq!(meter.latency(), None);
        meter.on_done(Duration::from_micros(1));
        assert!(meter.latency().is_some_and(|latency| latency.max_us < 2.0));
    }

    #[test]
    fn load_ends_after_its_time_or_with_its_last_datagram() {
        let (meter, began) = (Meter::new(), Instant::now());
        let mut series = Series::new(&meter, None);
        assert_eq!(meter.load(began, &[]), Load::ALWAYS);
        meter.on_load(Amount::Time(Duration::from_secs(3)));
        let load = meter.load(began, &[]);
        assert!((load.end - load.start - 3.0).abs() < 1e-6, "{load:?}");
        meter.on_load(Amount::Number(1));
        meter.on_datagram_sent(10);
        let last = series.next(&meter, None);
        series.next(&meter, None);
        assert_eq!(meter.load(began, &series.intervals).end, last.end);
    }

    #[test]
    fn long_measurements_have_longer_samples() {
        let minutes = |count| Amount::Time(Duration::from_mins(count));
        assert_eq!(sample_length(Amount::Number(5)), TICK);
        assert_eq!(sample_length(minutes(10)), TICK);
        assert_eq!(sample_length(minutes(1000)), Duration::from_secs(6));
    }
}
