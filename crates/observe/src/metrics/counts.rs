//! Counters of connections.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use courser_base::{Mutex, Side};
use courser_telemetry::{
    ConnectionClosed, EcnState, LossTrigger, PathState, Reason, SendLimit, Timer,
};

use super::family::{Family, Value};
use super::histogram::Histogram;
use crate::names;

/// The counters of all connections.
#[derive(Debug)]
pub(super) struct Counts {
    client: SideCounts,
    server: SideCounts,
    closed: Mutex<BTreeMap<Closed, u64>>,
    smoothed_rtt: Histogram,
    datagram_size: Histogram,
    /// Nanoseconds by [`LIMITS`].
    limited: [AtomicU64; LIMITS.len()],
    lost: [AtomicU64; TRIGGERS.len()],
    spuriously_lost: AtomicU64,
    dropped: [AtomicU64; REASONS.len()],
    timers: [AtomicU64; TIMERS.len()],
    paths: [AtomicU64; PATHS.len()],
    ecn: [AtomicU64; ECN_STATES.len()],
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
    /// True for a code without a name, of which there may be any number.
    is_rare: bool,
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            client: SideCounts::new(),
            server: SideCounts::new(),
            closed: Mutex::default(),
            smoothed_rtt: Histogram::new(&SECONDS),
            datagram_size: Histogram::new(&DATAGRAM_SIZES),
            limited: Default::default(),
            lost: Default::default(),
            spuriously_lost: AtomicU64::new(0),
            dropped: Default::default(),
            timers: Default::default(),
            paths: Default::default(),
            ecn: Default::default(),
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
        // Peers choose codes: one of each connection's own must not make a series of its own, and not take the
        // room of the codes of this end.
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

    pub(super) fn on_end(&self, smoothed_rtt: Option<Duration>, datagram_size: u16) {
        if let Some(rtt) = smoothed_rtt {
            self.smoothed_rtt.observe(rtt.as_secs_f64());
        }
        self.datagram_size.observe(f64::from(datagram_size));
    }

    pub(super) fn on_limited(&self, by: SendLimit, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        add(&LIMITS, &self.limited, by, nanos);
    }

    pub(super) fn on_lost(&self, trigger: Option<LossTrigger>) {
        // All losses of packets have a trigger, see `LossRecovery`.
        if let Some(trigger) = trigger {
            add(&TRIGGERS, &self.lost, trigger, 1);
        }
    }

    pub(super) fn on_spurious_loss(&self) {
        self.spuriously_lost.fetch_add(1, Relaxed);
    }

    pub(super) fn on_dropped(&self, reason: Reason) {
        add(&REASONS, &self.dropped, reason, 1);
    }

    pub(super) fn on_timer(&self, timer: Timer) {
        add(&TIMERS, &self.timers, timer, 1);
    }

    pub(super) fn on_path(&self, event: PathState) {
        add(&PATHS, &self.paths, event, 1);
    }

    pub(super) fn on_ecn(&self, state: EcnState) {
        add(&ECN_STATES, &self.ecn, state, 1);
    }

    pub(super) fn on_congestion_state(&self, state: &'static str) {
        *self.congestion_states.lock().entry(state).or_default() += 1;
    }

    /// Returns all counters as families.
    pub(super) fn families(&self) -> Vec<Family> {
        let mut families = self.sides();
        families.push(self.closed());
        families.push(Family::counters(
            "packets_lost",
            "Packets declared lost",
            "trigger",
            named(&TRIGGERS, &self.lost, |it| names::loss_trigger(Some(it))),
        ));
        let help = "Packets declared lost that were acknowledged later";
        let mut late = Family::new("packets_spuriously_lost", help);
        let count = self.spuriously_lost.load(Relaxed);
        late.push(Vec::new(), Value::Counter(count));
        families.push(late);
        families.push(Family::counters(
            "packets_dropped",
            "Received packets of known connections that were dropped",
            "reason",
            named(&REASONS, &self.dropped, names::drop_reason),
        ));
        families.push(Family::counters(
            "timers_expired",
            "Timers of loss recovery that expired",
            "timer",
            named(&TIMERS, &self.timers, names::timer),
        ));
        families.push(Family::counters(
            "paths",
            "Events of paths: validation and migration",
            "event",
            named(&PATHS, &self.paths, names::path),
        ));
        families.push(Family::counters(
            "ecn",
            "States that ECN validation entered",
            "state",
            named(&ECN_STATES, &self.ecn, names::ecn),
        ));
        let states = self.congestion_states.lock().clone();
        families.push(Family::counters(
            "congestion_states",
            "States that congestion controllers entered",
            "state",
            states,
        ));
        families.push(self.limits());
        families.push(histogram(
            "smoothed_rtt_seconds",
            "Smoothed round-trip time at the end of connections",
            &self.smoothed_rtt,
        ));
        families.push(histogram(
            "datagram_size_bytes",
            "Size of full datagrams at the end of connections",
            &self.datagram_size,
        ));
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

    fn limits(&self) -> Family {
        let help = "Time for which a limit held a sender back, counted when the limit changes";
        let mut family = Family::new("send_limited_seconds", help);
        for (by, nanos) in named(&LIMITS, &self.limited, names::limit) {
            let time = Duration::from_nanos(nanos);
            family.push(
                vec![("by", by.to_owned())],
                Value::Seconds(time.as_secs_f64()),
            );
        }
        family
    }
}

fn histogram(name: &'static str, help: &'static str, histogram: &Histogram) -> Family {
    let mut family = Family::new(name, help);
    family.push(Vec::new(), Value::Histogram(histogram.distribution()));
    family
}

/// Adds to the counter of `of`, whose place is that in `all`.
fn add<T: PartialEq + Copy, const N: usize>(
    all: &[T; N],
    counts: &[AtomicU64; N],
    of: T,
    more: u64,
) {
    let place = all.iter().position(|it| *it == of);
    debug_assert!(place.is_some(), "a value without a counter");
    if let Some(place) = place {
        counts[place].fetch_add(more, Relaxed);
    }
}

fn named<T: Copy, const N: usize>(
    all: &[T; N],
    counts: &[AtomicU64; N],
    name: impl Fn(T) -> &'static str,
) -> Vec<(&'static str, u64)> {
    let each = all.iter().zip(counts);
    each.map(|(of, count)| (name(*of), count.load(Relaxed)))
        .collect()
}

/// Error codes without a name that are counted apart, of peers and of this end.
const MAX_CAUSES: usize = 64;

const LIMITS: [SendLimit; 6] = [
    SendLimit::Application,
    SendLimit::CongestionWindow,
    SendLimit::Pacer,
    SendLimit::FlowControl,
    SendLimit::StreamFlowControl,
    SendLimit::Amplification,
];

const TRIGGERS: [LossTrigger; 3] = [
    LossTrigger::ReorderingThreshold,
    LossTrigger::TimeThreshold,
    LossTrigger::ProbeTimeout,
];

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

/// Bounds of handshakes and round-trip times: from the same machine to satellites.
const SECONDS: [f64; 12] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0,
];

/// Bounds of datagrams: the least of QUIC, the payloads of IPv6 and IPv4 over Ethernet, and jumbo frames.
const DATAGRAM_SIZES: [f64; 6] = [1200.0, 1350.0, 1452.0, 1472.0, 8972.0, 65_527.0];

#[cfg(test)]
mod tests {
    use courser_telemetry::CloseCause;
    use courser_wire::ApplicationErrorCode;

    use super::*;

    #[test]
    fn codes_of_peers_make_a_bounded_number_of_series() {
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
        for limit in LIMITS {
            counts.on_limited(limit, Duration::from_secs(1));
        }
        for trigger in TRIGGERS {
            counts.on_lost(Some(trigger));
        }
        for reason in REASONS {
            counts.on_dropped(reason);
        }
        for family in counts.families() {
            for series in &family.series {
                match (family.name, &series.value) {
                    ("packets_lost" | "packets_dropped", Value::Counter(count)) => {
                        assert_eq!(*count, 1, "{series:?}");
                    }
                    ("send_limited_seconds", Value::Seconds(time)) => {
                        assert!((time - 1.0).abs() < 1e-9, "{series:?}");
                    }
                    _ => {}
                }
            }
        }
    }
}
