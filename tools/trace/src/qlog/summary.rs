//! Summarizes a trace in numbers.

use std::collections::{BTreeMap, HashMap};
use std::io::BufRead;

use serde::Serialize;

use super::event::{Closed, Event, EventKind, Lost, Metrics, Packet, Space};
use super::rate::{IntervalRate, RateMeter};
use super::reader::{About, ReadError, Reader};
use super::samples::Samples;

/// The summary of a trace. Times are seconds, sizes bytes, rates bits per second.
#[derive(Serialize, Clone, PartialEq, Debug, Default)]
pub struct Summary {
    /// The version or schema that the trace declares.
    pub schema: Option<String>,
    /// The title of the trace.
    pub title: Option<String>,
    /// The vantage point: `client` or `server`.
    pub vantage_point: Option<String>,
    /// The original destination connection ID.
    pub group_id: Option<String>,
    /// Time from the first to the last event.
    pub duration: f64,
    /// Time from the first packet to the end of the handshake, if the handshake completed.
    pub handshake: Option<f64>,
    /// Packets sent by this end.
    pub sent: Traffic,
    /// Packets received by this end.
    pub received: Traffic,
    /// Number of packets dropped, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Packets declared lost, by reason.
    pub lost: Losses,
    /// Stream bytes sent, including retransmissions.
    pub stream_bytes_sent: u64,
    /// Stream bytes that had been sent before.
    pub stream_bytes_repeated: u64,
    /// Distribution of the round-trip time samples.
    pub rtt: Option<RoundTrips>,
    /// Largest congestion window in bytes.
    pub congestion_window_max: Option<u64>,
    /// Most bytes in flight.
    pub bytes_in_flight_max: Option<u64>,
    /// Number of probe timeouts.
    pub probe_timeouts: u64,
    /// UDP payload size of full datagrams at the end of the trace, if it ever changed.
    pub mtu: Option<u64>,
    /// States of the connection, each with the time it began.
    pub states: Vec<(f64, String)>,
    /// The first hundred states of congestion control, each with the time it began.
    pub congestion_states: Vec<(f64, String)>,
    /// Number of state changes of congestion control.
    pub congestion_state_changes: u64,
    /// Time during which this end could not send, by limit; empty if the trace does not record it.
    pub limited_by: BTreeMap<String, f64>,
    /// The close of the connection, if the trace records it.
    pub close: Option<Close>,
    /// Number of events read.
    pub events: u64,
    /// Number of events whose kind the summary ignores.
    pub other_events: u64,
    /// Number of records missing because the writer of the trace was too slow.
    pub records_dropped: u64,
    /// Number of lines that could not be read.
    pub unreadable_lines: u64,
    /// Errors of the first unreadable lines.
    pub unreadable: Vec<String>,
}

/// Packets of one direction.
#[derive(Serialize, Clone, Copy, PartialEq, Debug, Default)]
pub struct Traffic {
    /// Number of packets of all types.
    pub packets: u64,
    /// Size of the packets in bytes.
    pub bytes: u64,
    /// Mean rate from the first to the last packet.
    pub mean_rate: f64,
    /// Highest rate over a tenth of a second.
    pub peak_rate: f64,
}

/// Counts packets declared lost, by the reason for declaring them lost.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Losses {
    /// All packets declared lost.
    pub packets: u64,
    /// Lost because enough later packets were acknowledged.
    pub reordering_threshold: u64,
    /// Lost because a later packet was acknowledged and enough time had passed.
    pub time_threshold: u64,
    /// Lost because a probe timeout expired.
    pub pto_expired: u64,
    /// Lost for a reason that the trace does not record.
    #[serde(rename = "untold")]
    pub unrecorded: u64,
    /// Arrived after all, according to the trace or to later acknowledgements.
    pub spurious: u64,
}

/// The distribution of round-trip times, in seconds.
#[derive(Serialize, Clone, Copy, PartialEq, Debug)]
pub struct RoundTrips {
    /// The shortest sample in seconds.
    pub min: f64,
    /// The median of the samples.
    pub median: f64,
    /// The 95th percentile of the samples.
    pub p95: f64,
    /// The longest sample in seconds.
    pub max: f64,
}

/// The end of a connection.
#[derive(Serialize, Clone, PartialEq, Eq, Debug, Default)]
pub struct Close {
    /// The end that closed the connection: `local` or `remote`.
    pub initiator: Option<String>,
    /// The name or code of the error.
    pub error: Option<String>,
    /// The reason phrase; `None` if it is empty.
    pub reason: Option<String>,
    /// The cause: `idle_timeout`, `application`, `error`...
    pub trigger: Option<String>,
}

impl Summary {
    /// Reads a trace to its end. Unreadable lines are counted and skipped.
    pub fn of<R: BufRead>(reader: &mut Reader<R>) -> Self {
        let mut summarizer = Summarizer::default();
        for line in reader.by_ref() {
            summarizer.on_line(line.as_ref());
        }
        summarizer.finish(reader.about())
    }

    /// Returns the share of sent packets declared lost, 0 to 1; `None` if none were sent.
    pub fn loss_share(&self) -> Option<f64> {
        share(self.lost.packets, self.sent.packets)
    }

    /// Returns the share of stream bytes that were retransmissions, 0 to 1; `None` if none were
    /// sent.
    pub fn repeated_share(&self) -> Option<f64> {
        share(self.stream_bytes_repeated, self.stream_bytes_sent)
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Builds a summary event by event.
#[derive(Debug, Default)]
pub struct Summarizer {
    summary: Summary,
    sent: Direction,
    received: Direction,
    /// The end of the bytes sent so far, by stream.
    sent_until: HashMap<u64, u64>,
    rtt: Samples<f64>,
    rtt_range: Option<(f64, f64)>,
    pto_count: u64,
    expired_probes: u64,
    /// Numbers of packets declared lost, to detect those acknowledged later.
    lost: LostNumbers,
    reported_spurious: u64,
    /// Packets lost, as the metrics count them.
    counted_lost: u64,
    limit: Option<(f64, String)>,
    /// The first frame that closes the connection. Some stacks have no event for the close.
    close_frame: Option<Closed>,
    last: f64,
}

/// Counts the packets of one direction.
#[derive(Debug)]
struct Direction {
    traffic: Traffic,
    meter: RateMeter,
    first: Option<f64>,
    last: f64,
    /// The time of the first 1-RTT packet in this direction.
    first_application: Option<f64>,
}

impl Default for Direction {
    fn default() -> Self {
        Self {
            traffic: Traffic::default(),
            meter: RateMeter::new(PEAK_WIDTH),
            first: None,
            last: 0.0,
            first_application: None,
        }
    }
}

impl Direction {
    fn on_packet(&mut self, time: f64, packet: &Packet) {
        self.traffic.packets += 1;
        self.traffic.bytes = self.traffic.bytes.saturating_add(packet.len);
        self.first.get_or_insert(time);
        self.last = time;
        if packet.packet_type == "1RTT" {
            self.first_application.get_or_insert(time);
        }
        for interval in self.meter.push(time, packet.len).into_iter().flatten() {
            self.on_interval(interval);
        }
    }

    fn on_interval(&mut self, interval: IntervalRate) {
        self.traffic.peak_rate = self.traffic.peak_rate.max(interval.rate);
    }

    fn finish(mut self) -> Traffic {
        if let Some(interval) = self.meter.finish() {
            self.on_interval(interval);
        }
        let time = self.last - self.first.unwrap_or(0.0);
        if time > 0.0 {
            self.traffic.mean_rate = self.traffic.bytes as f64 * 8.0 / time;
        }
        self.traffic
    }
}

impl Summarizer {
    /// Adds the next line of the trace.
    pub fn on_line(&mut self, line: Result<&Event, &ReadError>) {
        match line {
            Ok(event) => self.on_event(event),
            Err(error) => {
                self.summary.unreadable_lines += 1;
                if self.summary.unreadable.len() < MAX_UNREADABLE {
                    self.summary.unreadable.push(error.to_string());
                }
            }
        }
    }

    fn on_event(&mut self, event: &Event) {
        let time = event.time;
        self.last = self.last.max(time);
        self.summary.events += 1;
        match &event.kind {
            EventKind::PacketSent(packet) => {
                self.on_close_frame(packet, true);
                self.on_sent(time, packet);
            }
            EventKind::PacketReceived(packet) => {
                self.on_close_frame(packet, false);
                self.on_received(time, packet);
            }
            EventKind::PacketDropped { trigger, .. } => {
                let reasons = &mut self.summary.dropped;
                let reason = trigger.clone().unwrap_or_else(|| "untold".to_owned());
                if reasons.len() < MAX_KINDS || reasons.contains_key(&reason) {
                    *reasons.entry(reason).or_default() += 1;
                }
            }
            EventKind::PacketLost(lost) => self.on_lost(lost),
            EventKind::SpuriousLoss => self.reported_spurious += 1,
            EventKind::Metrics(metrics) => self.on_metrics(metrics),
            EventKind::CongestionState { new } => {
                self.summary.congestion_state_changes += 1;
                push(&mut self.summary.congestion_states, time, new.clone());
            }
            EventKind::ConnectionState { new } => {
                if new == "handshake_complete" {
                    self.summary
                        .handshake
                        .get_or_insert(time - self.first_packet());
                }
                push(&mut self.summary.states, time, new.clone());
            }
            EventKind::Limited { reason } => self.on_limit(time, reason.clone()),
            EventKind::ProbeTimeout => self.expired_probes += 1,
            EventKind::Mtu { new } => self.summary.mtu = Some(*new),
            EventKind::Closed(closed) => {
                self.summary
                    .close
                    .get_or_insert_with(|| closed.clone().into());
            }
            EventKind::RecordsDropped { records } => {
                let dropped = &mut self.summary.records_dropped;
                *dropped = dropped.saturating_add(*records);
            }
            _ => self.summary.other_events += 1,
        }
    }

    fn first_packet(&self) -> f64 {
        let first = [self.sent.first, self.received.first];
        first.into_iter().flatten().reduce(f64::min).unwrap_or(0.0)
    }

    fn on_close_frame(&mut self, packet: &Packet, is_sent: bool) {
        if self.close_frame.is_none() {
            self.close_frame = packet.close(is_sent);
        }
    }

    fn on_sent(&mut self, time: f64, packet: &Packet) {
        self.sent.on_packet(time, packet);
        for span in &packet.streams {
            let sent = &mut self.summary.stream_bytes_sent;
            *sent = sent.saturating_add(span.len);
            let is_known = self.sent_until.contains_key(&span.stream);
            if !is_known && self.sent_until.len() >= MAX_STREAMS {
                continue;
            }
            let until = self.sent_until.entry(span.stream).or_default();
            let repeated = until.saturating_sub(span.offset).min(span.len);
            let total = &mut self.summary.stream_bytes_repeated;
            *total = total.saturating_add(repeated);
            *until = (*until).max(span.offset.saturating_add(span.len));
        }
    }

    fn on_received(&mut self, time: f64, packet: &Packet) {
        self.received.on_packet(time, packet);
        for range in &packet.acked {
            let late = self.lost.take(packet.space(), range.clone());
            self.summary.lost.spurious += late;
        }
    }

    fn on_lost(&mut self, lost: &Lost) {
        let losses = &mut self.summary.lost;
        losses.packets += 1;
        *match lost.trigger.as_deref() {
            Some("reordering_threshold") => &mut losses.reordering_threshold,
            Some("time_threshold") => &mut losses.time_threshold,
            Some("pto_expired") => &mut losses.pto_expired,
            _ => &mut losses.unrecorded,
        } += 1;
        if let Some(number) = lost.number {
            self.lost.insert(lost.space, number);
        }
    }

    fn on_metrics(&mut self, metrics: &Metrics) {
        // Before the first packet, writers record the initial round-trip time, which is not a sample.
        let is_sample = self.sent.first.is_some() || self.received.first.is_some();
        if let Some(rtt) = metrics.latest_rtt.filter(|&rtt| rtt > 0.0 && is_sample) {
            self.rtt.push(rtt);
            let (min, max) = self.rtt_range.unwrap_or((rtt, rtt));
            self.rtt_range = Some((min.min(rtt), max.max(rtt)));
        }
        let summary = &mut self.summary;
        summary.congestion_window_max =
            summary.congestion_window_max.max(metrics.congestion_window);
        summary.bytes_in_flight_max = summary.bytes_in_flight_max.max(metrics.bytes_in_flight);
        self.counted_lost = self.counted_lost.max(metrics.lost_packets.unwrap_or(0));
        if let Some(count) = metrics.pto_count {
            let expired = count.saturating_sub(self.pto_count);
            summary.probe_timeouts = summary.probe_timeouts.saturating_add(expired);
            self.pto_count = count;
        }
    }

    fn on_limit(&mut self, time: f64, reason: Option<String>) {
        let next = reason.map(|reason| (time, reason));
        let Some((since, reason)) = std::mem::replace(&mut self.limit, next) else {
            return;
        };
        let limits = &mut self.summary.limited_by;
        if limits.len() < MAX_KINDS || limits.contains_key(&reason) {
            *limits.entry(reason).or_default() += (time - since).max(0.0);
        }
    }

    /// Returns the summary, once all lines were added.
    pub fn finish(mut self, about: &About) -> Summary {
        self.summary.schema.clone_from(&about.schema);
        self.summary.title.clone_from(&about.title);
        self.summary.vantage_point.clone_from(&about.vantage_point);
        self.summary.group_id.clone_from(&about.group_id);
        self.on_limit(self.last, None);
        let is_server = self.summary.vantage_point.as_deref() == Some("server");
        // Without states of the connection, the first 1-RTT packet marks the end of the handshake:
        // a client can send one only after the server's Finished, and a server can open one only
        // after the client's.
        let done = if is_server {
            self.received.first_application
        } else {
            self.sent.first_application
        };
        let first = self.first_packet();
        let mut summary = self.summary;
        summary.handshake = summary.handshake.or(done.map(|done| done - first));
        summary.close = summary.close.or(self.close_frame.map(Close::from));
        summary.duration = self.last;
        // A trace that records expired timers records each of them, while the count in the metrics
        // restarts at each ACK.
        summary.probe_timeouts = summary.probe_timeouts.max(self.expired_probes);
        summary.lost.spurious = summary.lost.spurious.max(self.reported_spurious);
        let unseen = self.counted_lost.saturating_sub(summary.lost.packets);
        summary.lost.packets = summary.lost.packets.saturating_add(unseen);
        summary.lost.unrecorded = summary.lost.unrecorded.saturating_add(unseen);
        summary.rtt = self
            .rtt_range
            .map(|(min, max)| distribution(&self.rtt, min, max));
        summary.sent = self.sent.finish();
        summary.received = self.received.finish();
        summary
    }
}

fn distribution(rtt: &Samples<f64>, min: f64, max: f64) -> RoundTrips {
    let mut sorted = rtt.as_slice().to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| {
        // The index is within the list, which has at least one entry.
        let index = ((sorted.len() as f64 * share).ceil() as usize).max(1) - 1;
        sorted.get(index).copied().unwrap_or(max)
    };
    RoundTrips {
        min,
        median: at(0.5),
        p95: at(0.95),
        max,
    }
}

fn push(list: &mut Vec<(f64, String)>, time: f64, name: String) {
    if list.len() < MAX_STATES {
        list.push((time, name));
    }
}

impl From<Closed> for Close {
    fn from(closed: Closed) -> Self {
        Self {
            initiator: closed.initiator,
            error: closed.error,
            reason: closed.reason,
            trigger: closed.trigger,
        }
    }
}

/// The numbers of packets declared lost.
#[derive(Debug, Default)]
struct LostNumbers(std::collections::BTreeSet<(Space, u64)>);

impl LostNumbers {
    fn insert(&mut self, space: Space, number: u64) {
        if self.0.len() >= MAX_LOST {
            self.0.pop_first();
        }
        self.0.insert((space, number));
    }

    /// Removes the numbers of `range`, and returns how many there were.
    fn take(&mut self, space: Space, range: std::ops::RangeInclusive<u64>) -> u64 {
        let found = self
            .0
            .range((space, *range.start())..=(space, *range.end()));
        let found: Vec<_> = found.copied().collect();
        for number in &found {
            self.0.remove(number);
        }
        found.len() as u64
    }
}

/// The interval in seconds over which the peak rate is measured.
const PEAK_WIDTH: f64 = 0.1;
/// The largest number of streams whose retransmissions are counted. In a trace with more, streams are short.
const MAX_STREAMS: usize = 1 << 16;
/// The largest number of lost packets that are remembered.
const MAX_LOST: usize = 1 << 16;
/// The largest number of states that are listed.
const MAX_STATES: usize = 100;
/// The largest number of different reasons in a list. The drafts define ten.
const MAX_KINDS: usize = 32;
/// The largest number of unreadable lines whose errors are kept.
const MAX_UNREADABLE: usize = 5;

#[cfg(test)]
mod tests;
