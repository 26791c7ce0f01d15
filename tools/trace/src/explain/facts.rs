//! Facts that a trace states, as of the last event that was read.

use serde::Serialize;

use super::blocked::Blocked;
use super::ledger::Mark;
use crate::qlog::{Closed, Event, EventKind, Frame, Metrics, Packet};

/// Counters over a whole trace.
#[derive(Serialize, Clone, Copy, PartialEq, Debug, Default)]
pub struct Counts {
    /// Packets of all packet number spaces that this end sent.
    pub packets_sent: u64,
    /// Packets of all packet number spaces that this end received and processed.
    pub packets_received: u64,
    /// Packets declared lost, without probes of the path MTU.
    pub lost: u64,
    /// Packets declared lost that arrived after all.
    pub spurious: u64,
    /// Reductions of the congestion window by at least a tenth.
    pub reductions: u64,
    /// Probe timeouts that expired (RFC 9002 §6.2).
    pub probe_timeouts: u64,
    /// Packets that arrived with a CE mark, as the peer counts them.
    pub ce_marks: u64,
    /// Retry packets received. A connection accepts one (RFC 9000 §17.2.5.2).
    pub retries: u64,
    /// Version Negotiation packets received.
    pub version_negotiations: u64,
    /// Packets that were received and dropped.
    pub dropped: u64,
    /// Packets of the peer that are missing: packet numbers that were skipped and never arrived.
    pub missing: u64,
    /// Records missing in the trace.
    pub records_dropped: u64,
    /// Migrations to another path.
    pub path_changes: u64,
}

/// Metrics and states as of the last event.
#[derive(Debug, Default)]
pub(super) struct TraceFacts {
    pub(super) counts: Counts,
    pub(super) is_server: Option<bool>,
    pub(super) first: Option<Mark>,
    pub(super) last: Mark,
    pub(super) handshake_done: Option<Mark>,
    pub(super) closed: Option<Mark>,
    pub(super) close_trigger: Option<String>,
    /// The close with the most details, and its place.
    pub(super) close: Option<(Closed, Mark)>,
    /// The first frame that closes the connection, and its place. Some stacks have no event for the close.
    pub(super) close_frame: Option<(Closed, Mark)>,
    pub(super) is_http3: bool,
    pub(super) blocked: Blocked,
    pub(super) controller: Option<String>,
    pub(super) congestion_state: Option<String>,
    pub(super) window: Option<u64>,
    pub(super) in_flight: Option<u64>,
    pub(super) pacing_rate: Option<u64>,
    pub(super) min_rtt: Option<f64>,
    pub(super) smoothed_rtt: Option<f64>,
    pub(super) latest_rtt: Option<f64>,
    /// The longest smoothed round-trip time while packets waited in a queue.
    pub(super) queued_rtt: Option<f64>,
    pto_count: u64,
    /// True if the trace records timers that expire.
    has_timers: bool,
    /// The size of full datagrams.
    pub(super) mtu: u64,
    pub(super) mtu_min: Option<u64>,
    /// Sum and number of the delays of acknowledgements that the peer reported.
    ack_delays: (f64, u64),
    pub(super) ecn_failed: Option<Mark>,
    /// Features that were given up because packets with them do not pass, and the first time of each.
    pub(super) given_up: Vec<(String, Mark)>,
    pub(super) idle_timeout: Option<f64>,
}

/// The changes that the last event made.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Changes {
    /// The congestion window before it was reduced; `None` if it was not.
    pub(super) reduced_from: Option<u64>,
    pub(super) has_ptos: bool,
    /// The datagram size before it was reduced; `None` if it was not.
    pub(super) mtu_fell_from: Option<u64>,
    pub(super) moved: bool,
    pub(super) ce_marks: u64,
    pub(super) lost: bool,
}

impl TraceFacts {
    pub(super) fn new(is_server: Option<bool>) -> Self {
        Self {
            is_server,
            ..Self::default()
        }
    }

    pub(super) fn on_event(&mut self, event: &Event) -> Changes {
        let mark = Mark {
            time: event.time,
            line: event.line,
        };
        let mut changes = Changes::default();
        let counts = &mut self.counts;
        match &event.kind {
            EventKind::PacketSent(packet) => {
                self.first.get_or_insert(mark);
                counts.packets_sent += 1;
                // Probes of the path MTU are larger, and carry no data.
                if !packet.streams.is_empty() {
                    self.mtu = self.mtu.max(packet.len.min(MAX_DATAGRAM));
                }
                self.on_one_rtt(packet, mark, true);
                self.on_close_frame(packet, mark, true);
            }
            EventKind::PacketReceived(packet) => {
                self.first.get_or_insert(mark);
                counts.packets_received += 1;
                match packet.packet_type.as_str() {
                    "retry" => counts.retries += 1,
                    "version_negotiation" => counts.version_negotiations += 1,
                    _ => {}
                }
                changes.ce_marks = self.on_acks(packet);
                self.on_one_rtt(packet, mark, false);
                self.on_close_frame(packet, mark, false);
            }
            EventKind::PacketDropped { .. } => counts.dropped += 1,
            EventKind::PacketLost(lost) if !lost.is_mtu_probe => {
                counts.lost += 1;
                changes.lost = true;
            }
            EventKind::SpuriousLoss => counts.spurious += 1,
            EventKind::Metrics(metrics) => self.on_metrics(metrics, &mut changes),
            other => self.on_state(other, mark, &mut changes),
        }
        self.blocked.on_event(event, mark);
        self.last = mark;
        changes
    }

    /// Processes an event that is not about a single packet.
    fn on_state(&mut self, kind: &EventKind, mark: Mark, changes: &mut Changes) {
        let counts = &mut self.counts;
        match kind {
            EventKind::CongestionState { new } => self.congestion_state = Some(new.clone()),
            EventKind::ConnectionState { new }
                if matches!(new.as_str(), "handshake_complete" | "handshake_confirmed") =>
            {
                self.handshake_done.get_or_insert(mark);
            }
            EventKind::Closed(closed) => {
                self.closed.get_or_insert(mark);
                if has_more_details(closed, self.close.as_ref().map(|(known, _)| known)) {
                    self.close = Some((closed.clone(), mark));
                }
                if self.close_trigger.is_none() {
                    self.close_trigger.clone_from(&closed.trigger);
                }
            }
            EventKind::ProbeTimeout => {
                counts.probe_timeouts += 1;
                changes.has_ptos = true;
                self.has_timers = true;
            }
            EventKind::Mtu { new } => {
                if *new < self.mtu {
                    changes.mtu_fell_from = Some(self.mtu);
                }
                self.mtu = *new;
                self.mtu_min = Some(self.mtu_min.map_or(*new, |min| min.min(*new)));
            }
            EventKind::RecordsDropped { records } => {
                counts.records_dropped = counts.records_dropped.saturating_add(*records);
            }
            EventKind::RecoveryParameters { controller } => {
                self.controller.clone_from(controller);
            }
            EventKind::Parameters(parameters) => {
                let idle = [self.idle_timeout, parameters.max_idle_timeout];
                let idle = idle.into_iter().flatten().filter(|&time| time > 0.0);
                self.idle_timeout = idle.reduce(f64::min);
            }
            EventKind::Protocol { name } => {
                self.is_http3 |= name == "h3" || name.starts_with("h3-")
            }
            EventKind::Http3Frame { .. } => self.is_http3 = true,
            EventKind::EcnState { new } if new == "failed" => {
                self.ecn_failed.get_or_insert(mark);
            }
            EventKind::PathFeature {
                feature,
                is_used: false,
            } => self.on_given_up(feature, mark),
            EventKind::PathState { new } if new == "migration_started" => {
                counts.path_changes += 1;
                changes.moved = true;
            }
            _ => {}
        }
    }

    fn on_given_up(&mut self, feature: &str, mark: Mark) {
        let is_new = self.given_up.iter().all(|(known, _)| known != feature);
        if is_new && self.given_up.len() < MAX_FEATURES {
            self.given_up.push((feature.to_owned(), mark));
        }
    }

    /// Without states of the connection, the first 1-RTT packet marks the end of the handshake: a
    /// client can send one only after the server's Finished, and a server can open one only after
    /// the client's.
    fn on_one_rtt(&mut self, packet: &Packet, mark: Mark, is_ours: bool) {
        let ends = self.is_server != Some(is_ours);
        if packet.packet_type == "1RTT" && ends {
            self.handshake_done.get_or_insert(mark);
        }
    }

    fn on_close_frame(&mut self, packet: &Packet, mark: Mark, is_ours: bool) {
        if self.close_frame.is_none()
            && let Some(closed) = packet.close(is_ours)
        {
            self.closed.get_or_insert(mark);
            self.close_frame = Some((closed, mark));
        }
    }

    /// Processes the ACK frames of a packet. Returns the number of new CE marks.
    fn on_acks(&mut self, packet: &Packet) -> u64 {
        let mut marks = 0;
        for frame in &packet.frames {
            let Frame::Ack { delay, ecn } = frame else {
                continue;
            };
            if let Some(delay) = delay
                && packet.packet_type == "1RTT"
            {
                self.ack_delays.0 += delay;
                self.ack_delays.1 += 1;
            }
            if let Some([_, _, ce]) = ecn
                && packet.packet_type == "1RTT"
            {
                marks = u64::saturating_add(marks, ce.saturating_sub(self.counts.ce_marks));
                self.counts.ce_marks = self.counts.ce_marks.max(*ce);
            }
        }
        marks
    }

    fn on_metrics(&mut self, metrics: &Metrics, changes: &mut Changes) {
        if let Some(new) = metrics.congestion_window {
            let old = self.window.replace(new);
            changes.reduced_from = old.filter(|&old| new as f64 <= old as f64 * REDUCED);
            self.counts.reductions += u64::from(changes.reduced_from.is_some());
        }
        self.in_flight = metrics.bytes_in_flight.or(self.in_flight);
        self.pacing_rate = metrics.pacing_rate.or(self.pacing_rate);
        let known = |new: Option<f64>, old| new.filter(|&rtt| rtt > 0.0).or(old);
        self.min_rtt = known(metrics.min_rtt, self.min_rtt);
        self.smoothed_rtt = known(metrics.smoothed_rtt, self.smoothed_rtt);
        self.latest_rtt = known(metrics.latest_rtt, self.latest_rtt);
        if self.min_rtt.is_some() && self.has_queue() {
            let smoothed = self.smoothed_rtt.unwrap_or(0.0);
            self.queued_rtt = Some(self.queued_rtt.map_or(smoothed, |max| max.max(smoothed)));
        }
        if let Some(count) = metrics.pto_count {
            // A trace that records expired timers counts them already.
            if count > self.pto_count && !self.has_timers {
                changes.has_ptos = true;
                let expired = count - self.pto_count;
                self.counts.probe_timeouts = self.counts.probe_timeouts.saturating_add(expired);
            }
            self.pto_count = count;
        }
    }

    /// Returns the round-trip time without a queue, as far as it is known.
    pub(super) fn base_rtt(&self) -> f64 {
        self.min_rtt.or(self.smoothed_rtt).unwrap_or(DEFAULT_RTT)
    }

    /// Returns true if packets wait in a queue on the path.
    pub(super) fn has_queue(&self) -> bool {
        let (Some(min), Some(latest)) = (self.min_rtt, self.latest_rtt) else {
            return false;
        };
        let smoothed = self.smoothed_rtt.unwrap_or(latest);
        latest.max(smoothed) >= min * QUEUE_FACTOR + QUEUE_TIME
    }

    /// Returns the mean delay of acknowledgements that the peer reported.
    pub(super) fn ack_delay(&self) -> f64 {
        let (sum, count) = self.ack_delays;
        if count == 0 { 0.0 } else { sum / count as f64 }
    }

    pub(super) fn is_bbr(&self) -> bool {
        let named = |name: &Option<String>, word| {
            let name = name.as_deref().unwrap_or_default().to_ascii_lowercase();
            name.contains(word)
        };
        named(&self.controller, "bbr") || named(&self.congestion_state, "probe_bw")
    }

    /// Returns the rate in bits per second that the window alone allows.
    pub(super) fn window_rate(&self) -> Option<f64> {
        let rtt = self.smoothed_rtt?;
        Some(self.window? as f64 * 8.0 / rtt)
    }
}

/// Returns true if `closed` has more details than `known`.
fn has_more_details(closed: &Closed, known: Option<&Closed>) -> bool {
    known.is_none_or(|known| known.error.is_none() && closed.error.is_some())
}

/// The largest number of features that are remembered: a trace may name any.
const MAX_FEATURES: usize = 8;

/// Larger packets are batches that a trace counts as one.
const MAX_DATAGRAM: u64 = 65_527;
/// A window that falls to this share or less was reduced; BBR and rounding cause smaller changes.
const REDUCED: f64 = 0.9;
/// Round trips that are longer by this factor and time wait in a queue.
const QUEUE_FACTOR: f64 = 1.25;
const QUEUE_TIME: f64 = 0.002;
/// The round-trip time that is assumed before the first sample, in seconds (RFC 9002 §6.2.2).
const DEFAULT_RTT: f64 = 0.333;
