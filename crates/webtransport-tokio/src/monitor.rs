//! The sessions of all connections of a server or client, for operators.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use courser_base::Mutex;
use courser_quic::runtime;
use courser_webtransport::{ApplicationCode, CloseReason, Dialect, Refusal};
use http::StatusCode;

use crate::stats::SessionStats;

/// Counts the sessions of all connections that share a configuration, and lists those that are open.
///
/// [`enable`](crate::enable) returns it. Clones are handles to the same counts.
///
/// ```
/// use courser_base::Side;
/// use courser_http3_tokio as h3;
/// # mod courser { pub use courser_webtransport_tokio as webtransport; }
/// use courser::webtransport::{self, Config};
///
/// let mut settings = h3::Config::new(Side::Server);
/// let monitor = webtransport::enable(&mut settings, Side::Server, Config::new())?;
/// assert_eq!((monitor.stats().open, monitor.stats().limit), (0, 65_536));
/// # Ok::<(), h3::ClaimError>(())
/// ```
#[derive(Clone)]
pub struct Monitor(Arc<Inner>);

struct Inner {
    limit: u64,
    opened: [AtomicU64; Dialect::ALL.len()],
    refused: [AtomicU64; RefusalKind::ALL.len()],
    /// Counts of sessions that have ended.
    streams: AtomicU64,
    datagrams_dropped: AtomicU64,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    /// The number of places that are taken, of sessions that are requested or open.
    taken: u64,
    next: u64,
    sessions: BTreeMap<u64, Weak<dyn Listed>>,
}

/// An open session, as the monitor sees it.
pub(crate) trait Listed: Send + Sync {
    /// Returns the number of streams of both ends.
    fn streams(&self) -> u64;

    /// Returns the number of received datagrams that were dropped.
    fn datagrams_dropped(&self) -> u64;

    fn facts(&self) -> SessionFacts;

    fn close(&self, reason: CloseReason);
}

/// The counts of a [`Monitor`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct MonitorStats {
    /// Sessions that are open.
    pub open: u64,
    /// The largest number of sessions at the same time (limit K300).
    pub limit: u64,
    /// Sessions so far.
    pub opened: u64,
    /// Sessions so far by dialect; those without any are left out.
    pub opened_by_dialect: Vec<(Dialect, u64)>,
    /// Requests for sessions that were refused, by reason; those without any are left out.
    pub refused: Vec<(RefusalKind, u64)>,
    /// Streams of both ends in all sessions so far.
    pub streams: u64,
    /// Received datagrams that were dropped in all sessions so far, because too many waited for the application.
    pub datagrams_dropped: u64,
}

/// The kind of reason for which a server has refused a session.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum RefusalKind {
    /// The origin of the page is not allowed (403).
    Origin,
    /// There is no common application protocol (400).
    Protocol,
    /// The connection or the server has as many sessions as allowed, and the request was reset with
    /// H3_REQUEST_REJECTED.
    Limit,
    /// The connection has requested sessions too fast (429).
    Rate,
    /// The request has arrived as early data (425).
    EarlyData,
    /// The connection does not carry sessions, or the request is malformed for its dialect.
    Unsupported,
    /// The application has refused the session.
    Application,
}

impl RefusalKind {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::Origin,
        Self::Protocol,
        Self::Limit,
        Self::Rate,
        Self::EarlyData,
        Self::Unsupported,
        Self::Application,
    ];

    /// Returns the name for labels of metrics and logs, such as `early_data`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Origin => "origin",
            Self::Protocol => "protocol",
            Self::Limit => "limit",
            Self::Rate => "rate",
            Self::EarlyData => "early_data",
            Self::Unsupported => "unsupported",
            Self::Application => "application",
        }
    }

    fn of(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::Reset { code, .. } if *code == courser_http3_tokio::Code::REQUEST_REJECTED => {
                Self::Limit
            }
            Refusal::Reset { .. } => Self::Unsupported,
            Refusal::Status { status, .. } => match *status {
                StatusCode::FORBIDDEN => Self::Origin,
                StatusCode::BAD_REQUEST => Self::Protocol,
                StatusCode::TOO_MANY_REQUESTS => Self::Rate,
                StatusCode::TOO_EARLY => Self::EarlyData,
                _ => Self::Unsupported,
            },
        }
    }
}

/// The facts about an open session, for lists of operators.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct SessionFacts {
    /// The address of the peer.
    pub peer: SocketAddr,
    /// The URI of the request without its query, which may have credentials.
    pub uri: String,
    /// The origin of the page that has opened it, if the client has sent one.
    pub origin: Option<String>,
    /// The application protocol.
    pub protocol: Option<String>,
    /// The dialect of the connection.
    pub dialect: Dialect,
    /// The time since the session was opened.
    pub age: Duration,
    /// Its counts.
    pub stats: SessionStats,
}

impl Monitor {
    pub(crate) fn new(limit: u64) -> Self {
        Self(Arc::new(Inner {
            limit,
            opened: Default::default(),
            refused: Default::default(),
            streams: AtomicU64::new(0),
            datagrams_dropped: AtomicU64::new(0),
            open: Mutex::default(),
        }))
    }

    /// Returns the counts.
    pub fn stats(&self) -> MonitorStats {
        let inner = &*self.0;
        let live = self.live(usize::MAX);
        let streams: u64 = live.iter().map(|it| it.streams()).sum();
        let dropped: u64 = live.iter().map(|it| it.datagrams_dropped()).sum();
        let refused = RefusalKind::ALL.iter().zip(&inner.refused);
        let opened = inner.opened.iter().map(|count| count.load(Relaxed));
        let opened = Dialect::ALL.into_iter().zip(opened);
        let opened: Vec<_> = opened.filter(|(_, count)| *count > 0).collect();
        MonitorStats {
            open: live.len() as u64,
            limit: inner.limit,
            opened: opened.iter().map(|(_, count)| count).sum(),
            opened_by_dialect: opened,
            refused: refused
                .map(|(kind, count)| (*kind, count.load(Relaxed)))
                .filter(|(_, count)| *count > 0)
                .collect(),
            streams: inner.streams.load(Relaxed) + streams,
            datagrams_dropped: inner.datagrams_dropped.load(Relaxed) + dropped,
        }
    }

    /// Returns the facts about open sessions, the oldest first, at most `most`.
    pub fn sessions(&self, most: usize) -> Vec<SessionFacts> {
        let live = self.live(most);
        live.iter().map(|session| session.facts()).collect()
    }

    /// Closes all open sessions with a code and a message, like [`Session::close`](crate::Session::close).
    pub fn close_all(&self, code: u32, message: &str) {
        for session in self.live(usize::MAX) {
            session.close(CloseReason::new(ApplicationCode(code), message));
        }
    }

    fn live(&self, most: usize) -> Vec<Arc<dyn Listed>> {
        // Dropped after the lock: the last reference to a session may end here.
        let open = self.0.open.lock();
        let live = open.sessions.values().filter_map(Weak::upgrade);
        live.take(most).collect()
    }

    pub(crate) fn on_refused(&self, refusal: &Refusal) {
        self.count_refusal(RefusalKind::of(refusal));
    }

    pub(crate) fn count_refusal(&self, kind: RefusalKind) {
        self.0.refused[kind as usize].fetch_add(1, Relaxed);
    }

    /// Takes a place for a session, or returns the limit if there is none.
    pub(crate) fn take_place(&self) -> Result<Place, u64> {
        let mut open = self.0.open.lock();
        if open.taken >= self.0.limit {
            return Err(self.0.limit);
        }
        open.taken += 1;
        Ok(Place {
            monitor: self.clone(),
            number: None,
            began: runtime::now(),
        })
    }
}

impl fmt::Debug for Monitor {
    // Without counts, because configurations are compared by this text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Monitor")
    }
}

/// The place of a session among those of all connections, which is given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    monitor: Monitor,
    /// The number of a session that is open.
    number: Option<u64>,
    pub(crate) began: Instant,
}

impl Place {
    /// Lists the session, which is open from now on.
    pub(crate) fn on_opened(&mut self, session: Weak<dyn Listed>, dialect: Dialect) {
        let mut counts = Dialect::ALL.iter().zip(&self.monitor.0.opened);
        if let Some((_, count)) = counts.find(|(known, _)| **known == dialect) {
            count.fetch_add(1, Relaxed);
        }
        let mut open = self.monitor.0.open.lock();
        let number = open.next;
        open.next += 1;
        open.sessions.insert(number, session);
        self.number = Some(number);
        self.began = runtime::now();
    }

    /// Adds the counts of the session when it ends.
    pub(crate) fn on_ended(self, streams: u64, datagrams_dropped: u64) {
        let inner = &self.monitor.0;
        inner.streams.fetch_add(streams, Relaxed);
        inner
            .datagrams_dropped
            .fetch_add(datagrams_dropped, Relaxed);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.monitor.0.open.lock();
        open.taken -= 1;
        if let Some(number) = self.number {
            open.sessions.remove(&number);
        }
    }
}
