//! Sinks that count the events of connections.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use courser_base::{FourTuple, Side, Time};
use courser_telemetry::{Detail, PathState, Record, SendLimit, Sink, SinkFactory};
use courser_wire::ConnectionId;

use super::counts::Counts;
use super::path::IpFamily;

/// Creates the sinks of [`Metrics`](super::Metrics).
#[derive(Debug)]
pub struct MetricsSinks(Arc<Counts>);

impl MetricsSinks {
    pub(super) const fn new(counts: Arc<Counts>) -> Self {
        Self(counts)
    }
}

impl SinkFactory for MetricsSinks {
    fn sink(&self, _original_destination: &ConnectionId, side: Side) -> Option<Box<dyn Sink>> {
        let of = self.0.of(side);
        of.started.fetch_add(1, Relaxed);
        of.active.fetch_add(1, Relaxed);
        Some(Box::new(Counter {
            counts: Arc::clone(&self.0),
            side,
            family: IpFamily::default(),
            started_at: None,
            limited: None,
            initial_rtt: Duration::ZERO,
            smoothed_rtt: None,
            datagram_size: 0,
            protocol: Vec::new(),
        }))
    }
}

/// The sink of one connection.
#[derive(Debug)]
struct Counter {
    counts: Arc<Counts>,
    side: Side,
    /// The address family of the active path, known from the first record on.
    family: IpFamily,
    started_at: Option<Time>,
    /// The limit that holds the sender back, with its start.
    limited: Option<(Time, SendLimit)>,
    initial_rtt: Duration,
    /// The latest value, if there was a sample.
    smoothed_rtt: Option<Duration>,
    datagram_size: u16,
    /// The application protocol, which determines the meaning of error codes.
    protocol: Vec<u8>,
}

impl Counter {
    fn limit(&mut self, now: Time, by: Option<SendLimit>) {
        if let Some((since, by)) = self.limited {
            let time = now.saturating_since(since);
            self.counts.of_paths.on_limited(self.family, by, time);
        }
        self.limited = by.map(|by| (now, by));
    }

    /// Switches to another path: later losses and limits count for its address family.
    fn enter(&mut self, now: Time, path: FourTuple) {
        self.limit(now, self.limited.map(|(_, by)| by));
        self.family = IpFamily::of(path);
    }

    fn on_complete(&self, now: Time) {
        let of = self.counts.of(self.side);
        of.established.fetch_add(1, Relaxed);
        if let Some(started_at) = self.started_at {
            let took = now.saturating_since(started_at);
            of.handshakes.observe(took.as_secs_f64());
        }
    }
}

impl Sink for Counter {
    fn record(&mut self, now: Time, record: &Record) {
        let counts = &self.counts;
        match record {
            // Before the first sample, the value is an assumption.
            Record::MetricsUpdated(metrics) if metrics.latest_rtt != self.initial_rtt => {
                self.smoothed_rtt = Some(metrics.smoothed_rtt);
                // The time of a limit is also counted while it stays in force.
                self.limit(now, self.limited.map(|(_, by)| by));
            }
            Record::SendLimited(limited) => self.limit(now, Some(limited.by)),
            Record::PacketLost(lost) if !lost.is_mtu_probe => {
                counts.of_paths.on_lost(self.family, lost.trigger);
            }
            Record::SpuriousLoss(_) => counts.on_spurious_loss(),
            Record::PacketDropped(dropped) => counts.on_dropped(dropped.reason),
            Record::TimerExpired(expired) => counts.on_timer(expired.timer),
            Record::PathUpdated(update) => {
                counts.on_path(update.state);
                if let PathState::MigrationStarted | PathState::MigrationAbandoned = update.state {
                    self.enter(now, update.path);
                }
            }
            Record::PathSilenceUpdated(update) => counts.on_silence(update.is_silent),
            Record::EcnStateUpdated(update) => counts.on_ecn(update.new),
            Record::CongestionStateUpdated(update) => counts.on_congestion_state(update.new),
            Record::RecoveryParametersSet(set) => {
                self.datagram_size = set.max_datagram_size;
                self.initial_rtt = set.initial_rtt;
            }
            Record::MtuUpdated(update) => self.datagram_size = update.new,
            Record::ProtocolChosen(chosen) => self.protocol.clone_from(&chosen.protocol),
            Record::ConnectionStarted(started) => {
                self.started_at = Some(now);
                self.family = IpFamily::of(started.path);
            }
            Record::StateChanged(change) if change.state == "complete" => self.on_complete(now),
            Record::ConnectionClosed(closed) => {
                self.limit(now, None);
                self.counts.on_closed(self.side, closed, &self.protocol);
            }
            _ => {}
        }
    }

    fn detail(&self) -> Detail {
        Detail::Metrics
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        self.counts.of(self.side).active.fetch_sub(1, Relaxed);
        self.counts.on_end(self.datagram_size);
        if let Some(rtt) = self.smoothed_rtt {
            self.counts.of_paths.on_rtt(self.family, rtt);
        }
    }
}

#[cfg(test)]
mod tests {
    use courser_telemetry::{ConnectionStarted, LossTrigger, PacketLost, PathUpdated, SendLimited};
    use courser_wire::packet::PacketKind;

    use super::super::family::{Family, Series, Value};
    use super::*;

    const IPV4: &str = "192.0.2.1:443";
    const IPV6: &str = "[2001:db8::1]:443";

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    fn path(peer: &str) -> FourTuple {
        FourTuple::to(peer.parse().expect("an address"))
    }

    fn moved(state: PathState, peer: &str) -> Record {
        let path = path(peer);
        Record::PathUpdated(PathUpdated { state, path })
    }

    fn lost() -> Record {
        Record::PacketLost(PacketLost {
            kind: PacketKind::OneRtt,
            packet_number: 1,
            len: 1200,
            trigger: Some(LossTrigger::TimeThreshold),
            is_mtu_probe: false,
        })
    }

    /// Returns the losses and the paced milliseconds, over IPv4 and over IPv6.
    fn loss_and_pacing(counts: &Counts) -> [(u64, u128); 2] {
        let [lost, limited, _] = counts.of_paths.families();
        let of = |all: &Family, label: &str, family: &str| {
            let has = |it: &Series, of: &str| it.labels.iter().any(|(_, label)| label == of);
            let mut found = all.series.iter();
            let found = found.find(|it| has(it, label) && has(it, family));
            found.expect("a series").value.clone()
        };
        ["ipv4", "ipv6"].map(|family| {
            let values = (
                of(&lost, "time_threshold", family),
                of(&limited, "pacing", family),
            );
            match values {
                (Value::Counter(lost), Value::Seconds(time)) => {
                    (lost, Duration::from_secs_f64(time).as_millis())
                }
                other => unreachable!("{other:?}"),
            }
        })
    }

    #[test]
    fn losses_and_limits_belong_to_the_family_of_the_path_in_use() {
        let counts = Arc::new(Counts::default());
        let sinks = MetricsSinks::new(Arc::clone(&counts));
        let sink = sinks.sink(&ConnectionId::EMPTY, Side::Server);
        let mut sink = sink.expect("each connection has one");
        let started = ConnectionStarted {
            path: path(IPV6),
            local_id: ConnectionId::EMPTY,
            peer_id: ConnectionId::EMPTY,
        };
        let by = SendLimit::Pacer;
        sink.record(at(0), &Record::ConnectionStarted(started));
        sink.record(at(10), &Record::SendLimited(SendLimited { by }));
        sink.record(at(20), &lost());
        // A path that is only probed is not active.
        sink.record(at(30), &moved(PathState::ProbingStarted, IPV4));
        sink.record(at(40), &lost());
        sink.record(at(50), &moved(PathState::MigrationStarted, IPV4));
        assert_eq!(loss_and_pacing(&counts), [(0, 0), (2, 40)]);
        sink.record(at(60), &lost());
        // The address belonged to another host, so the connection returns to the previous path, which the record
        // names.
        sink.record(at(80), &moved(PathState::MigrationAbandoned, IPV6));
        sink.record(at(90), &lost());
        assert_eq!(loss_and_pacing(&counts), [(1, 30), (3, 40)]);
    }
}
