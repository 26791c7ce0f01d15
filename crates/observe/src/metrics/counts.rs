//! Counters of connections.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use courser_base::{Mutex, Side};
use courser_telemetry::{ConnectionClosed, EcnState, PathState, Reason, Timer};

use super::family::{Family, Value};
use super::histogram::{Histogram, SECONDS};
use super::path::PathCounts;
use super::value_counters::ValueCounters;
use crate::names;

/// The counters of all connections.
#[derive(Debug)]
pub(super) struct Counts {
    client: SideCounts,
    server: SideCounts,
    closed: Mutex<BTreeMap<Closed, u64>>,
    datagram_size: Histogram,
    /// Round-trip times, losses and limits.
    pub(super) of_paths: PathCounts,
    spuriously_lost: AtomicU64,
    dropped: ValueCounters<Reason, 5>,
    timers: ValueCounters<Timer, 2>,
    paths: ValueCounters<PathState, 6>,
    silences: ValueCounters<bool, 2>,
    ecn: ValueCounters<EcnState, 4>,
    congestion_states: Mutex<BTreeMap<&'static str, u64>>,
}

/// Counters of one end of connections.
#[derive(Debug)]
pub(super) struct SideCounts {
    pub(super) started: AtomicU64,
    pub(super) established: AtomicU64,
    pub(super) active: AtomicU64,
    pub(super) handshakes: Histogram,
}

/// The labels of a closed connection.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Closed {
    side: &'static str,
    by: &'static str,
    cause: String,
    /// True for a code without a name; peers can send any number of these.
    is_rare: bool,
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            client: SideCounts::new(),
            server: SideCounts::new(),
            closed: Mutex::default(),
            datagram_size: Histogram::new(&DATAGRAM_SIZES),
            of_paths: PathCounts::default(),
            spuriously_lost: AtomicU64::new(0),
            dropped: ValueCounters::new(&REASONS),
            timers: ValueCounters::new(&TIMERS),
            paths: ValueCounters::new(&PATHS),
            silences: ValueCounters::new(&[true, false]),
            ecn: ValueCounters::new(&ECN_STATES),
            congestion_states: Mutex::default(),
        }
    }
}

impl SideCounts {
    const fn new() -> Self {
        Self {
            started: AtomicU64::new(0),
            established: AtomicU64::new(0),
            active: AtomicU64::new(0),
            handshakes: Histogram::new(&SECONDS),
        }
    }
}

impl Counts {
    pub(super) fn of(&self, side: Side) -> &SideCounts {
        match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        }
    }

    pub(super) fn on_closed(&self, side: Side, closed: &ConnectionClosed, protocol: &[u8]) {
        let mut labels = Closed {
            side: names::side(side),
            by: if closed.by_peer { "peer" } else { "local" },
            cause: names::cause(&closed.cause, protocol),
            is_rare: false,
        };
        let mut counts = self.closed.lock();
        // Peers choose codes: a new code in each connection must neither add a series each time nor displace the
        // codes of this end.
        if !names::has_name(&closed.cause, protocol) {
            labels.is_rare = true;
            let of_end = counts.keys().filter(|it| it.is_rare && it.by == labels.by);
            if !counts.contains_key(&labels) && of_end.count() >= MAX_CAUSES {
                "other".clone_into(&mut labels.cause);
                labels.is_rare = false;
            }
        }
        *counts.entry(labels).or_default() += 1;
    }

    pub(super) fn on_end(&self, datagram_size: u16) {
        self.datagram_size.observe(f64::from(datagram_size));
    }

    pub(super) fn on_spurious_loss(&self) {
        self.spuriously_lost.fetch_add(1, Relaxed);
    }

    pub(super) fn on_dropped(&self, reason: Reason) {
        self.dropped.add(reason, 1);
    }

    pub(super) fn on_timer(&self, timer: Timer) {
        self.timers.add(timer, 1);
    }

    pub(super) fn on_path(&self, event: PathState) {
        self.paths.add(event, 1);
    }

    pub(super) fn on_silence(&self, is_silent: bool) {
        self.silences.add(is_silent, 1);
    }

    pub(super) fn on_ecn(&self, state: EcnState) {
        self.ecn.add(state, 1);
    }

    pub(super) fn on_congestion_state(&self, state: &'static str) {
        *self.congestion_states.lock().entry(state).or_default() += 1;
    }

    /// Returns all counters as families.
    pub(super) fn families(&self) -> Vec<Family> {
        let mut families = self.sides();
        families.push(self.closed());
        families.extend(self.of_paths.families());
        let help = "Packets declared lost that were acknowledged later";
        let mut late = Family::new("packets_spuriously_lost", help);
        let count = self.spuriously_lost.load(Relaxed);
        late.push(Vec::new(), Value::Counter(count));
        families.push(late);
        families.push(Family::counters(
            "packets_dropped",
            "Received packets of known connections that were dropped",
            "reason",
            self.dropped.named(names::drop_reason),
        ));
        families.push(Family::counters(
            "timers_expired",
            "Timers of loss recovery that expired",
            "timer",
            self.timers.named(names::timer),
        ));
        families.push(Family::counters(
            "paths",
            "Events of paths: validation and migration",
            "event",
            self.paths.named(names::path),
        ));
        families.push(Family::counters(
            "path_silences",
            "Paths that became silent after three consecutive probe timeouts, and that recovered",
            "event",
            self.silences.named(names::silence),
        ));
        families.push(Family::counters(
            "ecn",
            "States that ECN validation entered",
            "state",
            self.ecn.named(names::ecn),
        ));
        let states = self.congestion_states.lock().clone();
        families.push(Family::counters(
            "congestion_states",
            "States that congestion controllers entered",
            "state",
            states,
        ));
        let help = "Size of full datagrams at the end of connections";
        let mut sizes = Family::new("datagram_size_bytes", help);
        let distribution = self.datagram_size.distribution();
        sizes.push(Vec::new(), Value::Histogram(distribution));
        families.push(sizes);
        families
    }

    fn sides(&self) -> Vec<Family> {
        let sides = [Side::Client, Side::Server];
        let label = |side| vec![("side", names::side(side).to_owned())];
        let mut started = Family::new("connections_started", "Connections started or accepted");
        let mut established = Family::new("connections_established", "Handshakes completed");
        let mut active = Family::new("connections_active", "Connections that have not ended");
        let mut handshakes = Family::new(
            "handshake_duration_seconds",
            "Time from the first packet to the end of the handshake",
        );
        for side in sides {
            let of = self.of(side);
            let count = |count: &AtomicU64| Value::Counter(count.load(Relaxed));
            started.push(label(side), count(&of.started));
            established.push(label(side), count(&of.established));
            #[expect(clippy::cast_precision_loss, reason = "connections, far below 2^53")]
            let open = of.active.load(Relaxed) as f64;
            active.push(label(side), Value::Gauge(open));
            let distribution = of.handshakes.distribution();
            handshakes.push(label(side), Value::Histogram(distribution));
        }
        vec![started, established, active, handshakes]
    }

    fn closed(&self) -> Family {
        let mut family = Family::new("connections_closed", "Connections closed");
        let counts = self.closed.lock();
        for (closed, count) in &*counts {
            let labels = vec![
                ("side", closed.side.to_owned()),
                ("by", closed.by.to_owned()),
                ("cause", closed.cause.clone()),
            ];
            family.push(labels, Value::Counter(*count));
        }
        family
    }
}

/// Largest number of error codes without a name that are counted separately, for peers and for this end each.
const MAX_CAUSES: usize = 64;

const REASONS: [Reason; 5] = [
    Reason::KeysUnavailable,
    Reason::NotAuthentic,
    Reason::Duplicate,
    Reason::Header,
    Reason::UnknownPath,
];

const TIMERS: [Timer; 2] = [Timer::LossDetection, Timer::Probe];

const PATHS: [PathState; 6] = [
    PathState::ProbingStarted,
    PathState::ProbingSuccessful,
    PathState::ProbingAbandoned,
    PathState::MigrationStarted,
    PathState::MigrationComplete,
    PathState::MigrationAbandoned,
];

const ECN_STATES: [EcnState; 4] = [
    EcnState::Testing,
    EcnState::Unknown,
    EcnState::Capable,
    EcnState::Failed,
];

/// Bucket bounds of datagram sizes: the minimum of QUIC, the payloads of IPv6 and IPv4 over Ethernet, and jumbo
/// frames.
const DATAGRAM_SIZES: [f64; 6] = [1200.0, 1350.0, 1452.0, 1472.0, 8972.0, 65_527.0];

#[cfg(test)]
mod tests {
    use courser_telemetry::CloseCause;
    use courser_wire::ApplicationErrorCode;

    use super::*;

    #[test]
    fn codes_of_peers_create_a_bounded_number_of_series() {
        let counts = Counts::default();
        for code in 0..10_000 {
            let code = ApplicationErrorCode(code);
            let closed = ConnectionClosed {
                by_peer: true,
                cause: CloseCause::Application { code },
                reason: String::new(),
            };
            counts.on_closed(Side::Server, &closed, b"test");
        }
        let family = counts.closed();
        assert_eq!(family.series.len(), MAX_CAUSES + 1);
        let total: u64 = family
            .series
            .iter()
            .map(|series| match series.value {
                Value::Counter(count) => count,
                _ => unreachable!("closed connections are counters"),
            })
            .sum();
        assert_eq!(total, 10_000);
        let other = family.series.iter().any(|it| it.labels[2].1 == "other");
        assert!(other);
    }

    #[test]
    fn codes_of_peers_leave_room_for_causes_with_names() {
        let counts = Counts::default();
        let close = |by_peer, cause| ConnectionClosed {
            by_peer,
            cause,
            reason: String::new(),
        };
        for code in 0x1_0000..0x1_1000 {
            let code = ApplicationErrorCode(code);
            let closed = close(true, CloseCause::Application { code });
            counts.on_closed(Side::Server, &closed, b"h3");
        }
        let code = ApplicationErrorCode(0x100);
        let closed = close(true, CloseCause::Application { code });
        counts.on_closed(Side::Server, &closed, b"h3");
        counts.on_closed(Side::Server, &close(false, CloseCause::IdleTimeout), b"h3");
        let code = ApplicationErrorCode(7);
        let closed = close(false, CloseCause::Application { code });
        counts.on_closed(Side::Server, &closed, b"doq");
        let family = counts.closed();
        for cause in ["H3_NO_ERROR", "idle timeout", "application error 0x7"] {
            assert!(
                family.series.iter().any(|it| it.labels[2].1 == cause),
                "{cause}"
            );
        }
    }

    #[test]
    fn codes_of_http3_have_names() {
        let cause = |code| CloseCause::Application {
            code: ApplicationErrorCode(code),
        };
        assert_eq!(names::cause(&cause(0x100), b"h3"), "H3_NO_ERROR");
        assert_eq!(
            names::cause(&cause(0x202), b"h3"),
            "QPACK_DECODER_STREAM_ERROR"
        );
        assert_eq!(
            names::cause(&cause(0x100), b"doq"),
            "application error 0x100"
        );
    }

    #[test]
    fn every_value_has_a_counter() {
        let counts = Counts::default();
        for reason in REASONS {
            counts.on_dropped(reason);
        }
        let families = counts.families();
        let dropped = families.iter().find(|it| it.name == "packets_dropped");
        for series in &dropped.expect("the metric exists").series {
            assert!(matches!(series.value, Value::Counter(1)), "{series:?}");
        }
    }
}
