//! Sinks that record the limits and close causes of connections for the admin endpoints.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::time::Instant;

use courser::telemetry::{
    ConnectionClosed, Detail, PathState, Record, SendLimit, Sink, SinkFactory,
};
use courser::{ConnectionId, Side};
use courser_base::{Mutex, Time};
use courser_units::to_f64;

use super::closes::{Close, Closes};

/// Observes the QUIC connections of a server for [`Admin`](super::Admin): which limits hold their senders back,
/// and why they close.
///
/// Its sinks receive no packet records. Durations are added up only while requests to the admin endpoints read
/// them; otherwise a sink stores one number each time another limit comes into force.
///
/// Clones observe the same connections.
#[derive(Clone, Debug, Default)]
pub struct Observer(Arc<Observed>);

#[derive(Debug, Default)]
struct Observed {
    /// Keyed by the original destination ID, as in the server's handle. If a client reuses an ID, its later
    /// connection replaces the earlier one.
    connections: Mutex<HashMap<ConnectionId, Arc<Limits>>>,
    closes: Mutex<Closes>,
    /// Number of readers of the durations. They are added up while it is above zero.
    readers: AtomicUsize,
}

/// The limits that held a connection back, written by its sink and read by the admin endpoints.
#[derive(Debug)]
pub(super) struct Limits {
    began: Instant,
    /// The limit in force, as an index into [`LIMITS`] or [`NONE_YET`], in the lowest [`INDEX_BITS`]. The bits
    /// above hold the time at which it came into force, in nanoseconds since `began`, enough for 73 years.
    current_since: AtomicU64,
    /// Total nanoseconds of earlier limits, added up while there were readers.
    nanos: [AtomicU64; LIMITS.len()],
}

/// The durations for which each limit held a connection back, at the time of a reading.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LimitTimes {
    current: usize,
    /// Total nanoseconds of each limit, including the one in force.
    nanos: [u64; LIMITS.len()],
}

/// Keeps the durations being added up until it is dropped.
#[derive(Debug)]
pub(super) struct ReaderGuard(Arc<Observed>);

impl Observer {
    /// Creates an observer without connections.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a sink factory for the transport configuration of the server. Combine it with others in a
    /// [`Tee`](courser::telemetry::Tee).
    pub fn sinks(&self) -> Arc<dyn SinkFactory> {
        Arc::new(Sinks(self.0.clone()))
    }

    /// Adds up durations until the result is dropped.
    pub(super) fn add_reader(&self) -> ReaderGuard {
        self.0.readers.fetch_add(1, Release);
        ReaderGuard(self.0.clone())
    }

    /// Returns the durations of the connection with this original destination ID, or `None` until a limit was in
    /// force.
    pub(super) fn limits_of(&self, id: &ConnectionId) -> Option<LimitTimes> {
        let limits = self.0.connections.lock().get(id).cloned();
        limits.and_then(|limits| limits.read_now())
    }

    /// Returns a copy of the close statistics, so that sinks do not wait for the caller.
    pub(super) fn closes(&self) -> Closes {
        self.0.closes.lock().clone()
    }
}

impl Drop for ReaderGuard {
    fn drop(&mut self) {
        self.0.readers.fetch_sub(1, Release);
    }
}

impl Limits {
    fn new() -> Self {
        Self {
            began: Instant::now(),
            current_since: AtomicU64::new(NONE_YET),
            nanos: Default::default(),
        }
    }

    /// Records that another limit comes into force at `since`.
    fn replace(&self, since: u64, limit: usize) {
        let index = u64::try_from(limit).map_or(NONE_YET, |index| index.min(NONE_YET));
        self.current_since
            .store((since << INDEX_BITS) | index, Relaxed);
    }

    /// Returns the durations `now` nanoseconds after the start, or `None` until a limit was in force.
    ///
    /// The sink may add the duration of a limit just before it stores the next one. A reading in between counts
    /// that duration twice, so the shares of that second are wrong. Later readings are correct again.
    fn read(&self, now: u64) -> Option<LimitTimes> {
        let current_since = self.current_since.load(Relaxed);
        let since = current_since >> INDEX_BITS;
        let current = usize::try_from(current_since & NONE_YET).ok()?;
        let mut nanos = self.nanos.each_ref().map(|it| it.load(Relaxed));
        *nanos.get_mut(current)? += now.saturating_sub(since);
        Some(LimitTimes { current, nanos })
    }

    fn read_now(&self) -> Option<LimitTimes> {
        let now = self.began.elapsed().as_nanos();
        self.read(u64::try_from(now).unwrap_or(u64::MAX))
    }
}

impl LimitTimes {
    /// Returns the fraction of the time since an earlier reading for which each limit was in force, or `None` if
    /// no time has passed.
    pub(super) fn shares_since(&self, earlier: &Self) -> Option<[f64; LIMITS.len()]> {
        let mut shares = [0.0; LIMITS.len()];
        for (index, share) in shares.iter_mut().enumerate() {
            *share = to_f64(self.nanos[index].saturating_sub(earlier.nanos[index]));
        }
        let all = shares.iter().sum::<f64>();
        (all > 0.0).then(|| shares.map(|it| it / all))
    }

    /// Returns the name of the limit in force.
    pub(super) fn current(&self) -> &'static str {
        LIMITS[self.current]
    }
}

/// Returns the limit with the largest share, and its share.
pub(super) fn largest(shares: &[f64; LIMITS.len()]) -> (&'static str, f64) {
    let pairs = LIMITS.into_iter().zip(*shares);
    let most = pairs.max_by(|(_, one), (_, other)| one.total_cmp(other));
    most.unwrap_or((LIMITS[0], 0.0))
}

#[derive(Debug)]
struct Sinks(Arc<Observed>);

impl SinkFactory for Sinks {
    fn sink(&self, original_destination: &ConnectionId, side: Side) -> Option<Box<dyn Sink>> {
        if side == Side::Client {
            return None;
        }
        let limits = Arc::new(Limits::new());
        let mut connections = self.0.connections.lock();
        connections.insert(*original_destination, limits.clone());
        drop(connections);
        Some(Box::new(LimitSink {
            shared: self.0.clone(),
            id: *original_destination,
            limits,
            limited: None,
            started: Time::ZERO,
            client: None,
            is_http3: false,
        }))
    }
}

/// The sink of one connection.
#[derive(Debug)]
struct LimitSink {
    shared: Arc<Observed>,
    id: ConnectionId,
    limits: Arc<Limits>,
    /// The limit in force, and the time since the start at which it came into force in nanoseconds.
    limited: Option<(u64, usize)>,
    started: Time,
    client: Option<SocketAddr>,
    is_http3: bool,
}

impl LimitSink {
    fn limit(&mut self, now: Time, by: usize) {
        // Usually the same limit stops the sender again.
        if self.limited.is_some_and(|(_, before)| before == by) {
            return;
        }
        let now = now.as_nanos().saturating_sub(self.started.as_nanos());
        if let Some((since, before)) = self.limited
            && self.shared.readers.load(Acquire) > 0
        {
            self.limits.nanos[before].fetch_add(now.saturating_sub(since), Relaxed);
        }
        self.limits.replace(now, by);
        self.limited = Some((now, by));
    }

    fn close(&self, closed: &ConnectionClosed) {
        let close = Close::new(
            closed,
            self.is_http3,
            self.client,
            self.limits.began.elapsed(),
        );
        self.shared.closes.lock().add(close);
    }
}

impl Sink for LimitSink {
    fn record(&mut self, now: Time, record: &Record) {
        match record {
            Record::SendLimited(limited) => self.limit(now, index(limited.by)),
            Record::ConnectionStarted(record) => {
                self.started = now;
                self.client = Some(record.path.peer);
            }
            Record::PathUpdated(update) if update.state == PathState::MigrationComplete => {
                self.client = Some(update.path.peer);
            }
            Record::ProtocolChosen(chosen) => self.is_http3 = chosen.protocol == b"h3",
            Record::ConnectionClosed(closed) => self.close(closed),
            _ => {}
        }
    }

    fn detail(&self) -> Detail {
        Detail::Events
    }
}

impl Drop for LimitSink {
    fn drop(&mut self) {
        let mut connections = self.shared.connections.lock();
        let is_own = |limits: &Arc<Limits>| Arc::ptr_eq(limits, &self.limits);
        if connections.get(&self.id).is_some_and(is_own) {
            connections.remove(&self.id);
        }
    }
}

const fn index(limit: SendLimit) -> usize {
    match limit {
        SendLimit::Application => 0,
        SendLimit::FlowControl => 1,
        SendLimit::StreamFlowControl => 2,
        SendLimit::CongestionWindow => 3,
        SendLimit::Pacer => 4,
        SendLimit::Amplification => 5,
    }
}

/// Names of the limits that can hold a sender back, as in the metrics.
pub(super) const LIMITS: [&str; 6] = [
    "application",
    "flow_control",
    "stream_flow_control",
    "congestion_window",
    "pacing",
    "amplification",
];

const INDEX_BITS: u32 = 3;
/// The index that stands for no limit.
const NONE_YET: u64 = (1 << INDEX_BITS) - 1;

#[cfg(test)]
mod tests;
