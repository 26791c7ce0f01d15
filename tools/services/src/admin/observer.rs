//! The sinks of the connections that the admin endpoints report on.

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

/// Observes the QUIC connections of a server for [`Admin`](super::Admin): what holds their senders back, and why
/// they end.
///
/// Its sinks receive no record of a packet. Times of limits are added up only while requests to the admin endpoints ask
/// for them. Otherwise a sink stores a number when another limit stops its connection than before.
///
/// All clones observe the same connections.
#[derive(Clone, Debug, Default)]
pub struct Observer(Arc<Observed>);

#[derive(Debug, Default)]
struct Observed {
    /// Keyed by the ID that the server's handle uses too. A client that repeats an ID hides its own earlier connection.
    connections: Mutex<HashMap<ConnectionId, Arc<Limits>>>,
    closes: Mutex<Closes>,
    /// Readers of the times of limits.
    readers: AtomicUsize,
}

/// The limits that held a connection back, written by its sink and read for the page.
#[derive(Debug)]
pub(super) struct Limits {
    began: Instant,
    /// The limit in force, an index into [`LIMITS`] or [`NONE_YET`], in the lowest [`INDEX_BITS`]. Above it the
    /// nanoseconds from the beginning of the connection until that limit came into force: enough for 73 years.
    current_since: AtomicU64,
    /// Nanoseconds of the limits that were in force before, while there were readers.
    nanos: [AtomicU64; LIMITS.len()],
}

/// The times for which limits held a connection back, until they were read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Reading {
    current: usize,
    /// Nanoseconds of each limit, that in force included.
    nanos: [u64; LIMITS.len()],
}

/// Keeps the times of limits being added up.
#[derive(Debug)]
pub(super) struct Attention(Arc<Observed>);

impl Observer {
    /// Makes an observer without connections.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a factory of sinks for the transport configuration of the server. Combine it with others by
    /// [`Tee`](courser::telemetry::Tee).
    pub fn sinks(&self) -> Arc<dyn SinkFactory> {
        Arc::new(Sinks(self.0.clone()))
    }

    /// Has the times of limits added up until the result is dropped.
    pub(super) fn attend(&self) -> Attention {
        self.0.readers.fetch_add(1, Release);
        Attention(self.0.clone())
    }

    /// Returns what held back the connection with this original destination ID, once something has.
    pub(super) fn limits_of(&self, id: &ConnectionId) -> Option<Reading> {
        let limits = self.0.connections.lock().get(id).cloned();
        limits.and_then(|limits| limits.read_now())
    }

    /// Returns the ends of connections: a copy, because sinks wait for the lock.
    pub(super) fn closes(&self) -> Closes {
        self.0.closes.lock().clone()
    }
}

impl Drop for Attention {
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

    /// Another limit comes into force.
    fn replace(&self, since: u64, limit: usize) {
        let index = u64::try_from(limit).map_or(NONE_YET, |index| index.min(NONE_YET));
        self.current_since
            .store((since << INDEX_BITS) | index, Relaxed);
    }

    /// Reads the times, `now` nanoseconds after the beginning. `None` until there is a limit.
    ///
    /// The sink may add the time of a limit just before it stores the next one. A reading between the two has that time
    /// twice, so that the shares of one second are wrong; later ones are right again.
    fn read(&self, now: u64) -> Option<Reading> {
        let current_since = self.current_since.load(Relaxed);
        let since = current_since >> INDEX_BITS;
        let current = usize::try_from(current_since & NONE_YET).ok()?;
        let mut nanos = self.nanos.each_ref().map(|it| it.load(Relaxed));
        *nanos.get_mut(current)? += now.saturating_sub(since);
        Some(Reading { current, nanos })
    }

    fn read_now(&self) -> Option<Reading> {
        let now = self.began.elapsed().as_nanos();
        self.read(u64::try_from(now).unwrap_or(u64::MAX))
    }
}

impl Reading {
    /// Returns the part of the time since an earlier reading for which each limit was in force; `None` if no time has
    /// passed.
    pub(super) fn shares_since(&self, earlier: &Self) -> Option<[f64; LIMITS.len()]> {
        let mut shares = [0.0; LIMITS.len()];
        for (index, share) in shares.iter_mut().enumerate() {
            *share = to_f64(self.nanos[index].saturating_sub(earlier.nanos[index]));
        }
        let all = shares.iter().sum::<f64>();
        (all > 0.0).then(|| shares.map(|it| it / all))
    }

    /// Returns the limit that is in force.
    pub(super) fn current(&self) -> &'static str {
        LIMITS[self.current]
    }
}

/// Returns the limit with the largest share, and that share.
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
        Some(Box::new(Watching {
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
struct Watching {
    shared: Arc<Observed>,
    id: ConnectionId,
    limits: Arc<Limits>,
    /// The limit in force, with the nanoseconds from the beginning until then.
    limited: Option<(u64, usize)>,
    started: Time,
    client: Option<SocketAddr>,
    is_http3: bool,
}

impl Watching {
    fn limit(&mut self, now: Time, by: usize) {
        // Most stops repeat the last one.
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

impl Sink for Watching {
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

impl Drop for Watching {
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

/// The names of what can hold a sender back, those of the metrics.
pub(super) const LIMITS: [&str; 6] = [
    "application",
    "flow_control",
    "stream_flow_control",
    "congestion_window",
    "pacing",
    "amplification",
];

const INDEX_BITS: u32 = 3;
/// An index that no limit has.
const NONE_YET: u64 = (1 << INDEX_BITS) - 1;

#[cfg(test)]
mod tests;
