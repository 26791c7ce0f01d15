//! Counts events, packets, frames, sizes, ECN marks, losses and round-trip times of a trace.

use std::collections::BTreeMap;
use std::io::BufRead;

use courser_units::{seconds, size};
use serde::Serialize;

use crate::qlog::{Event, EventKind, Frame, Packet, Reader, Samples};

/// The counts of a trace. Times are in seconds, sizes in bytes.
#[derive(Serialize, Clone, PartialEq, Debug, Default)]
pub struct Stats {
    /// Number of events, by the name with its category.
    pub events: BTreeMap<String, u64>,
    /// Packets that this end sent.
    pub sent: DirectionStats,
    /// Packets that this end received and processed.
    pub received: DirectionStats,
    /// Frames of HTTP/3 sent, by type.
    pub http3_sent: BTreeMap<String, u64>,
    /// Frames of HTTP/3 received, by type.
    pub http3_received: BTreeMap<String, u64>,
    /// Streams that were blocked on the dynamic table of QPACK.
    pub qpack_blocked: u64,
    /// Packets declared lost, by trigger.
    pub lost: BTreeMap<String, u64>,
    /// Packets that were received and dropped, by trigger.
    pub dropped: BTreeMap<String, u64>,
    /// Packets marked ECT(0), ECT(1) and CE, as the peer counts them.
    pub ecn_of_sent: [u64; 3],
    /// Packets marked ECT(0), ECT(1) and CE, as this end counts them.
    pub ecn_of_received: [u64; 3],
    /// Distribution of the samples of the round-trip time.
    pub rtt: Option<Distribution>,
    /// Distribution of the delays of acknowledgements that the peer reports.
    pub ack_delay: Option<Distribution>,
    /// Number of lines that could not be read.
    pub unreadable_lines: u64,
}

/// The packets of one direction.
#[derive(Serialize, Clone, PartialEq, Debug, Default)]
pub struct DirectionStats {
    /// Packets by type: their number and their bytes.
    pub packets: BTreeMap<String, (u64, u64)>,
    /// Number of frames in these packets, by type.
    pub frames: BTreeMap<String, u64>,
    /// Distribution of the sizes of 1-RTT packets.
    pub sizes: Option<Distribution>,
    /// Packets that contain only ACK frames and padding.
    pub ack_only: u64,
}

/// A distribution of values.
#[derive(Serialize, Clone, Copy, PartialEq, Debug)]
pub struct Distribution {
    /// The smallest value, in the unit of the field: seconds or bytes.
    pub min: f64,
    /// The 50th percentile of the samples that were kept.
    pub p50: f64,
    /// The 90th percentile of the samples that were kept.
    pub p90: f64,
    /// The 99th percentile of the samples that were kept.
    pub p99: f64,
    /// The largest value, including those that were not kept.
    pub max: f64,
    /// The number of values, including those that were not kept.
    pub count: u64,
}

/// Collects values in bounded memory and returns their distribution.
#[derive(Debug, Default)]
struct Values {
    samples: Samples<f64>,
    range: Option<(f64, f64)>,
    count: u64,
}

impl Values {
    fn add(&mut self, value: f64) {
        self.samples.push(value);
        let (min, max) = self.range.unwrap_or((value, value));
        self.range = Some((min.min(value), max.max(value)));
        self.count += 1;
    }

    fn distribution(&self) -> Option<Distribution> {
        let (min, max) = self.range?;
        let mut sorted = self.samples.as_slice().to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |percent: usize| {
            let index = (sorted.len() * percent).div_ceil(100).max(1) - 1;
            sorted.get(index).copied().unwrap_or(max)
        };
        Some(Distribution {
            min,
            p50: at(50),
            p90: at(90),
            p99: at(99),
            max,
            count: self.count,
        })
    }
}

/// Builds [`Stats`] event by event.
#[derive(Debug, Default)]
struct Counter {
    stats: Stats,
    sizes: [Values; 2],
    rtt: Values,
    ack_delay: Values,
}

impl Stats {
    /// Reads a trace to its end. Unreadable lines are counted and skipped.
    pub fn of<R: BufRead>(reader: &mut Reader<R>) -> Self {
        let mut counter = Counter::default();
        while let Some(line) = reader.next_raw() {
            match line {
                Ok(raw) => {
                    let event = Event::from(&raw);
                    count(&mut counter.stats.events, raw.name);
                    counter.on_event(&event);
                }
                Err(_) => counter.stats.unreadable_lines += 1,
            }
        }
        let mut stats = counter.stats;
        stats.sent.sizes = counter.sizes[0].distribution();
        stats.received.sizes = counter.sizes[1].distribution();
        stats.rtt = counter.rtt.distribution();
        stats.ack_delay = counter.ack_delay.distribution();
        stats
    }

    /// Returns the rows of the output as names and values. Values that the trace lacks are left out.
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        let mut rows = vec![("events", list(&self.events))];
        for (names, direction) in [(SENT, &self.sent), (RECEIVED, &self.received)] {
            let packets = direction.packets.iter().map(|(name, (packets, bytes))| {
                let name = crate::text::clean(name);
                format!("{name} {packets} ({})", size(*bytes))
            });
            rows.push((names[0], packets.collect::<Vec<_>>().join(", ")));
            rows.push((names[1], list(&direction.frames)));
            if let Some(sizes) = direction.sizes {
                rows.push((names[2], of_sizes(&sizes)));
            }
            if direction.ack_only > 0 {
                rows.push((names[3], direction.ack_only.to_string()));
            }
        }
        if self.qpack_blocked > 0 {
            rows.push(("blocked by QPACK", self.qpack_blocked.to_string()));
        }
        for (name, counts) in [
            ("HTTP/3 sent", &self.http3_sent),
            ("HTTP/3 received", &self.http3_received),
            ("lost", &self.lost),
            ("dropped", &self.dropped),
        ] {
            if !counts.is_empty() {
                rows.push((name, list(counts)));
            }
        }
        let marks = [
            ("ECN of sent", self.ecn_of_sent),
            ("ECN of received", self.ecn_of_received),
        ];
        for (name, [ect0, ect1, ce]) in marks {
            if ect0.max(ect1).max(ce) > 0 {
                rows.push((name, format!("ECT(0) {ect0}, ECT(1) {ect1}, CE {ce}")));
            }
        }
        for (name, times) in [("rtt", self.rtt), ("ack delay", self.ack_delay)] {
            if let Some(times) = times {
                rows.push((name, of_times(&times)));
            }
        }
        rows.retain(|(_, value)| !value.is_empty());
        rows
    }
}

impl Counter {
    fn on_event(&mut self, event: &Event) {
        match &event.kind {
            EventKind::PacketSent(packet) => self.on_packet(packet, false),
            EventKind::PacketReceived(packet) => self.on_packet(packet, true),
            EventKind::PacketLost(lost) => {
                let trigger = lost.trigger.clone();
                let trigger = trigger.unwrap_or_else(|| "unknown".to_owned());
                count(&mut self.stats.lost, trigger);
            }
            EventKind::PacketDropped { trigger, .. } => {
                let trigger = trigger.clone();
                let trigger = trigger.unwrap_or_else(|| "unknown".to_owned());
                count(&mut self.stats.dropped, trigger);
            }
            EventKind::Http3Frame {
                is_received,
                frame_type,
            } => {
                let counts = match is_received {
                    true => &mut self.stats.http3_received,
                    false => &mut self.stats.http3_sent,
                };
                count(counts, frame_type.clone());
            }
            EventKind::QpackStream {
                is_blocked: true, ..
            } => self.stats.qpack_blocked += 1,
            EventKind::Metrics(metrics) => {
                // Before the first packet of the peer there is an assumption, but no sample.
                let is_sample = !self.stats.received.packets.is_empty();
                if let Some(rtt) = metrics.latest_rtt.filter(|&rtt| rtt > 0.0 && is_sample) {
                    self.rtt.add(rtt);
                }
            }
            _ => {}
        }
    }

    fn on_packet(&mut self, packet: &Packet, is_received: bool) {
        let is_application = packet.packet_type == "1RTT";
        if is_application {
            self.sizes[usize::from(is_received)].add(packet.len as f64);
        }
        let direction = match is_received {
            true => &mut self.stats.received,
            false => &mut self.stats.sent,
        };
        if direction.packets.len() < MAX_NAMES
            || direction.packets.contains_key(&packet.packet_type)
        {
            let (packets, bytes) = direction
                .packets
                .entry(packet.packet_type.clone())
                .or_default();
            *packets += 1;
            *bytes = bytes.saturating_add(packet.len);
        }
        for frame in &packet.frames {
            count(&mut direction.frames, frame.name().to_owned());
            let Frame::Ack { delay, ecn } = frame else {
                continue;
            };
            if is_received && is_application {
                delay.iter().for_each(|&delay| self.ack_delay.add(delay));
            }
            // The counts of an ACK frame are cumulative (RFC 9000 §19.3.2).
            let marks = match is_received {
                true => &mut self.stats.ecn_of_sent,
                false => &mut self.stats.ecn_of_received,
            };
            if let Some(ecn) = ecn.filter(|_| is_application) {
                *marks = std::array::from_fn(|index| marks[index].max(ecn[index]));
            }
        }
        if !packet.ack_eliciting && !packet.frames.is_empty() {
            direction.ack_only += 1;
        }
    }
}

fn count(counts: &mut BTreeMap<String, u64>, name: String) {
    if counts.len() < MAX_NAMES || counts.contains_key(&name) {
        *counts.entry(name).or_default() += 1;
    }
}

/// Returns counts as text, the largest first.
fn list(counts: &BTreeMap<String, u64>) -> String {
    let mut sorted: Vec<_> = counts.iter().collect();
    sorted.sort_by(|left, right| right.1.cmp(left.1));
    let shown = sorted
        .into_iter()
        .map(|(name, count)| format!("{} {count}", crate::text::clean(name)));
    shown.collect::<Vec<_>>().join(", ")
}

fn of_times(values: &Distribution) -> String {
    let Distribution {
        min,
        p50,
        p90,
        p99,
        max,
        count,
    } = *values;
    let [min, p50, p90, p99, max] = [min, p50, p90, p99, max].map(seconds);
    format!("min {min}, p50 {p50}, p90 {p90}, p99 {p99}, max {max} ({count} samples)")
}

fn of_sizes(values: &Distribution) -> String {
    let Distribution {
        min, p50, p90, max, ..
    } = values;
    format!("min {min}, p50 {p50}, p90 {p90}, max {max} bytes")
}

/// The largest number of different names in a list. The drafts define some sixty events. K208.
const MAX_NAMES: usize = 128;
/// The names of rows.
const SENT: [&str; 4] = ["sent", "frames sent", "sizes sent", "only ACK sent"];
const RECEIVED: [&str; 4] = [
    "received",
    "frames received",
    "sizes received",
    "only ACK received",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_counted_up_to_a_limit() {
        let mut counts = BTreeMap::new();
        for index in 0..1000 {
            count(&mut counts, format!("name {index}"));
        }
        count(&mut counts, "name 0".to_owned());
        assert_eq!((counts.len(), counts["name 0"]), (MAX_NAMES, 2));
    }

    #[test]
    fn frames_of_http3_are_counted_in_the_spellings_of_all_drafts() {
        let trace = concat!(
            "\u{1e}{\"trace\":{}}\n",
            "\u{1e}{\"time\":0,\"name\":\"http3:frame_created\",\"data\":{\"frame\":{\"frame_type\":\"headers\"}}}\n",
            "\u{1e}{\"time\":0,\"name\":\"h3:frame_parsed\",\"data\":{\"frame\":{\"frame_type\":\"data\"}}}\n",
            "\u{1e}{\"time\":0,\"name\":\"http:frame_parsed\",\"data\":{\"frame\":{\"frame_type\":\"data\"}}}\n",
            "\u{1e}{\"time\":0,\"name\":\"qpack:stream_state_updated\",\"data\":{\"stream_id\":\"4\",\"state\":\"blocked\"}}\n",
            "\u{1e}{\"time\":0,\"name\":\"qpack:stream_state_updated\",\"data\":{\"stream_id\":4,\"state\":\"unblocked\"}}\n",
        );
        let stats = Stats::of(&mut Reader::new(trace.as_bytes()).expect("a trace"));
        assert_eq!(stats.http3_sent["headers"], 1);
        assert_eq!(stats.http3_received["data"], 2);
        assert_eq!((stats.qpack_blocked, stats.unreadable_lines), (1, 0));
        assert_eq!(stats.events["http3:frame_created"], 1);
    }

    #[test]
    fn packets_frames_and_marks_are_counted_by_direction() {
        let trace = concat!(
            "\u{1e}{\"trace\":{}}\n",
            "\u{1e}{\"time\":0,\"name\":\"quic:packet_sent\",\"data\":{\"header\":{\"packet_type\":\"1RTT\"},\
             \"raw\":{\"length\":1200},\"frames\":[{\"frame_type\":\"stream\",\"stream_id\":0},{\"frame_type\":\"ping\"}]}}\n",
            "\u{1e}{\"time\":1,\"name\":\"quic:packet_received\",\"data\":{\"header\":{\"packet_type\":\"1RTT\"},\
             \"raw\":{\"length\":40},\"frames\":[{\"frame_type\":\"ack\",\"ack_delay\":2,\"ect0\":3,\"ect1\":0,\"ce\":1}]}}\n",
            "\u{1e}{\"time\":1,\"name\":\"quic:recovery_metrics_updated\",\"data\":{\"latest_rtt\":30}}\n",
            "\u{1e}{\"time\":1,\"name\":\"quic:packet_lost\",\"data\":{\"trigger\":\"time_threshold\"}}\n",
        );
        let stats = Stats::of(&mut Reader::new(trace.as_bytes()).expect("a trace"));
        assert_eq!(stats.sent.packets["1RTT"], (1, 1200));
        assert_eq!(stats.sent.frames["ping"], 1);
        assert_eq!(stats.received.ack_only, 1);
        assert_eq!(
            (stats.ecn_of_sent, stats.ecn_of_received),
            ([3, 0, 1], [0; 3])
        );
        assert_eq!(stats.lost["time_threshold"], 1);
        assert_eq!(stats.ack_delay.map(|it| it.p50), Some(0.002));
        assert_eq!(stats.rtt.map(|it| (it.min, it.count)), Some((0.03, 1)));
        let rows = stats.rows();
        let row = |name| rows.iter().find(|row| row.0 == name).map(|row| &*row.1);
        assert_eq!(row("sent"), Some("1RTT 1 (1.20 kB)"));
        assert_eq!(row("ECN of sent"), Some("ECT(0) 3, ECT(1) 0, CE 1"));
    }
}
