//! The sinks that count.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use courser_base::{Side, Time};
use courser_telemetry::{Detail, Record, SendLimit, Sink, SinkFactory};
use courser_wire::ConnectionId;

use super::counts::Counts;

/// Makes the sinks of `Metrics`.
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
    started_at: Option<Time>,
    /// The limit that holds the connection back, since when.
    limited: Option<(Time, SendLimit)>,
    initial_rtt: Duration,
    /// The last one, if the connection has a sample.
    smoothed_rtt: Option<Duration>,
    datagram_size: u16,
    /// The application protocol, which alone gives error codes a meaning.
    protocol: Vec<u8>,
}

impl Counter {
    fn limit(&mut self, now: Time, by: Option<SendLimit>) {
        if let Some((since, by)) = self.limited {
            self.counts.on_limited(by, now.saturating_since(since));
        }
        self.limited = by.map(|by| (now, by));
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
            // Until the first sample it is an assumption.
            Record::MetricsUpdated(metrics) if metrics.latest_rtt != self.initial_rtt => {
                self.smoothed_rtt = Some(metrics.smoothed_rtt);
                // A limit that stays counts while it does.
                self.limit(now, self.limited.map(|(_, by)| by));
            }
            Record::SendLimited(limited) => self.limit(now, Some(limited.by)),
            Record::PacketLost(lost) if !lost.is_mtu_probe => counts.on_lost(lost.trigger),
            Record::SpuriousLoss(_) => counts.on_spurious_loss(),
            Record::PacketDropped(dropped) => counts.on_dropped(dropped.reason),
            Record::TimerExpired(expired) => counts.on_timer(expired.timer),
            Record::PathUpdated(update) => counts.on_path(update.state),
            Record::EcnStateUpdated(update) => counts.on_ecn(update.new),
            Record::CongestionStateUpdated(update) => counts.on_congestion_state(update.new),
            Record::RecoveryParametersSet(set) => {
                self.datagram_size = set.max_datagram_size;
                self.initial_rtt = set.initial_rtt;
            }
            Record::MtuUpdated(update) => self.datagram_size = update.new,
            Record::ProtocolChosen(chosen) => self.protocol.clone_from(&chosen.protocol),
            Record::ConnectionStarted(_) => self.started_at = Some(now),
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
        self.counts.on_end(self.smoothed_rtt, self.datagram_size);
    }
}
