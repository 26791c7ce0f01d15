//! Watched connections, which are sampled ten times a second while requests read the samples.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use courser::server::ServerHandle;
use courser_base::Mutex;
use serde_json::{Value, json};

use super::observer::{Observer, ReaderGuard};
use super::rows::{QuicRow, Row, millis};

/// The watched connections of a server. A connection is watched from the first request for it until [`KEPT`]
/// after the last. Each sample costs a lock and a copy of its counters; packets cost nothing.
#[derive(Debug)]
pub(super) struct Watches {
    handle: ServerHandle,
    observer: Observer,
    state: Mutex<WatchedState>,
}

#[derive(Debug, Default)]
struct WatchedState {
    watched: HashMap<u64, Watch>,
    /// Present while at least one connection is watched and a task takes samples.
    reader: Option<ReaderGuard>,
}

/// The samples of a watched connection.
#[derive(Debug)]
struct Watch {
    began: Instant,
    /// The time of the last request for its samples.
    last_request: Instant,
    last: (Instant, Row),
    samples: VecDeque<Sample>,
    /// Total number of samples, including those no longer kept.
    count: u64,
    is_closed: bool,
}

/// The state of a connection at one time.
#[derive(Clone, Copy, Debug)]
struct Sample {
    number: u64,
    /// Time since the start of the watch.
    at: Duration,
    /// Time since the previous sample.
    passed: Duration,
    /// Bytes received and sent per second.
    rates: (f64, f64),
    limit: Option<&'static str>,
    /// Packets declared lost since the previous sample.
    lost: u64,
    quic: Option<QuicRow>,
}

/// The reason why a connection cannot be watched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WatchError {
    /// No open connection has this number.
    Unknown,
    /// The largest number of connections is already watched (limit K244).
    Full,
}

impl Watches {
    pub(super) fn new(handle: ServerHandle, observer: Observer) -> Arc<Self> {
        Arc::new(Self {
            handle,
            observer,
            state: Mutex::default(),
        })
    }

    /// Returns the number of watched connections.
    pub(super) fn count(&self) -> usize {
        self.state.lock().watched.len()
    }

    /// Returns the samples of a connection with numbers above `after`, and extends its watch.
    ///
    /// # Errors
    /// The connection is not open, or too many others are watched.
    ///
    /// # Panics
    /// Panics outside of a tokio runtime.
    pub(super) fn samples(self: &Arc<Self>, id: u64, after: u64) -> Result<Value, WatchError> {
        let mut state = self.state.lock();
        let now = Instant::now();
        if let Some(watch) = state.watched.get_mut(&id) {
            watch.last_request = now;
            return Ok(watch.json(after));
        }
        if state.watched.len() >= MAX_WATCHED {
            return Err(WatchError::Full);
        }
        let row = self.row(id).ok_or(WatchError::Unknown)?;
        if state.reader.is_none() {
            state.reader = Some(self.observer.add_reader());
            let watches = Arc::clone(self);
            tokio::spawn(async move { while watches.wait_and_sample().await {} });
        }
        let watch = Watch {
            began: now,
            last_request: now,
            last: (now, row),
            samples: VecDeque::new(),
            count: 0,
            is_closed: false,
        };
        let json = watch.json(after);
        state.watched.insert(id, watch);
        Ok(json)
    }

    /// Waits for an interval and samples each connection. Returns false if none is watched any longer.
    async fn wait_and_sample(&self) -> bool {
        tokio::time::sleep(INTERVAL).await;
        let mut state = self.state.lock();
        state
            .watched
            .retain(|_, watch| watch.last_request.elapsed() < KEPT);
        for (id, watch) in &mut state.watched {
            match self.row(*id) {
                Some(row) => watch.add(row, Instant::now()),
                None => watch.is_closed = true,
            }
        }
        if state.watched.is_empty() {
            *state = WatchedState::default();
        }
        state.reader.is_some()
    }

    /// Simulates a time without requests.
    #[cfg(test)]
    pub(super) fn expire(&self) {
        for watch in self.state.lock().watched.values_mut() {
            watch.last_request = watch
                .last_request
                .checked_sub(KEPT)
                .unwrap_or(watch.last_request);
        }
    }

    fn row(&self, id: u64) -> Option<Row> {
        let summary = self.handle.connection(id)?;
        let original = summary.peer.original_destination();
        let limit_times = original.and_then(|original| self.observer.limits_of(&original));
        Some(Row::new(&summary, limit_times))
    }
}

impl Watch {
    fn add(&mut self, mut row: Row, now: Instant) {
        let (at, last) = &self.last;
        let passed = now.saturating_duration_since(*at);
        row.measure(&last.before(), passed);
        let lost = |row: &Row| row.quic.map_or(0, |quic| quic.packets_lost);
        self.count += 1;
        let sample = Sample {
            number: self.count,
            at: now.saturating_duration_since(self.began),
            passed,
            rates: row.rates().unwrap_or_default(),
            limit: row.limit(),
            lost: lost(&row).saturating_sub(lost(last)),
            quic: row.quic,
        };
        if self.samples.len() >= MAX_SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
        self.last = (now, row);
    }

    fn json(&self, after: u64) -> Value {
        let newer = self.samples.iter().filter(|it| it.number > after);
        json!({
            "connection": self.last.1.json(),
            "closed": self.is_closed,
            "last": self.count,
            "most": MAX_SAMPLES,
            "interval_ms": millis(INTERVAL),
            "samples": newer.map(Sample::json).collect::<Vec<_>>(),
        })
    }
}

impl Sample {
    fn json(&self) -> Value {
        let (received, sent) = self.rates;
        let quic = self.quic;
        json!({
            "ms": millis(self.at).round(),
            "passed_ms": millis(self.passed).round(),
            "received_rate": received.round(),
            "sent_rate": sent.round(),
            "limit": self.limit,
            "lost": self.lost,
            "window": quic.map(|it| it.window),
            "in_flight": quic.map(|it| it.in_flight),
            "rtt_ms": quic.map(|it| millis(it.rtt)),
            "latest_rtt_ms": quic.map(|it| millis(it.latest_rtt)),
            "rtt_variance_ms": quic.map(|it| millis(it.rtt_variance)),
            "min_rtt_ms": quic.map(|it| millis(it.min_rtt)),
            "delivery_rate": quic.and_then(|it| it.delivery_rate),
            "pacing_rate": quic.and_then(|it| it.pacing_rate),
        })
    }
}

/// Largest number of connections that are watched at a time (limit K244).
pub(super) const MAX_WATCHED: usize = 16;
/// Number of samples of a connection that are kept: those of one minute (limit K245).
const MAX_SAMPLES: usize = 600;
const INTERVAL: Duration = Duration::from_millis(100);
/// Time after the last request for which a connection remains watched (limit K245).
const KEPT: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::super::rows::tests::synthetic;
    use super::*;

    #[test]
    fn samples_are_those_of_the_last_minute() {
        let began = Instant::now();
        let mut watch = Watch {
            began,
            last_request: began,
            last: (began, synthetic(1)),
            samples: VecDeque::new(),
            count: 0,
            is_closed: false,
        };
        for step in 1..=1_000_u32 {
            let mut row = synthetic(1);
            row.bytes_sent += u64::from(step) * 100;
            watch.add(row, began + INTERVAL * step);
        }
        assert_eq!(watch.samples.len(), MAX_SAMPLES);
        let json = watch.json(0);
        let samples = json["samples"].as_array().expect("a list");
        assert_eq!(samples.len(), MAX_SAMPLES);
        assert_eq!(samples[0]["ms"], 40_100.0);
        assert_eq!(samples[0]["sent_rate"], 1000.0);
        assert_eq!(json["last"], 1_000);
        assert_eq!(watch.json(998)["samples"].as_array().map(Vec::len), Some(2));
        assert_eq!(
            watch.json(2_000)["samples"].as_array().map(Vec::len),
            Some(0)
        );
    }
}
