//! Compares two traces: figures side by side, causes, and the first point of divergence.

use std::collections::BTreeMap;
use std::io::BufRead;

use courser_units::{bits, seconds, size};
use serde::Serialize;

use crate::explain::{Cause, Direction, Explainer, Explanation};
use crate::qlog::{Event, EventKind, Reader, Samples, Summarizer, Summary};

/// The values of one trace that a comparison uses.
#[derive(Clone, Debug)]
pub struct ComparedTrace {
    /// The numbers that [`Comparison::figures`] shows side by side.
    pub summary: Summary,
    /// The explanation of what limited it.
    pub explanation: Explanation,
    /// Application bytes sent and received so far, as pairs of seconds since the first packet and bytes.
    progress: [Samples<(f64, u64)>; 2],
}

impl ComparedTrace {
    /// Reads a trace to its end.
    pub fn of<R: BufRead>(reader: &mut Reader<R>) -> Self {
        let mut summarizer = Summarizer::default();
        let mut explainer = Explainer::new(reader.about());
        let mut collector = Collector::default();
        for line in reader.by_ref() {
            summarizer.on_line(line.as_ref());
            explainer.on_line(line.as_ref());
            if let Ok(event) = &line {
                collector.on_event(event);
            }
        }
        Self {
            summary: summarizer.finish(reader.about()),
            explanation: explainer.finish(reader.about()),
            progress: collector.progress,
        }
    }

    fn progress(&self) -> &[(f64, u64)] {
        match self.explanation.direction {
            Direction::Sent => self.progress[0].as_slice(),
            Direction::Received => self.progress[1].as_slice(),
        }
    }

    /// Returns the bytes transferred by `time`, in seconds since the first packet.
    fn at(&self, time: f64) -> u64 {
        let progress = self.progress();
        let index = progress.partition_point(|point| point.0 <= time);
        index.checked_sub(1).map_or(0, |index| progress[index].1)
    }
}

/// Collects [`ComparedTrace::progress`] event by event.
#[derive(Debug, Default)]
struct Collector {
    first: Option<f64>,
    bytes: [u64; 2],
    ends: [BTreeMap<u64, u64>; 2],
    progress: [Samples<(f64, u64)>; 2],
}

impl Collector {
    fn on_event(&mut self, event: &Event) {
        let (packet, direction) = match &event.kind {
            EventKind::PacketSent(packet) => (packet, 0),
            EventKind::PacketReceived(packet) => (packet, 1),
            _ => return,
        };
        let first = *self.first.get_or_insert(event.time);
        let before = self.bytes[direction];
        for span in &packet.streams {
            let ends = &mut self.ends[direction];
            if ends.len() >= MAX_STREAMS && !ends.contains_key(&span.stream) {
                ends.pop_first();
            }
            let end = ends.entry(span.stream).or_default();
            let new = span.offset.saturating_add(span.len);
            self.bytes[direction] = self.bytes[direction].saturating_add(new.saturating_sub(*end));
            *end = new.max(*end);
        }
        if self.bytes[direction] > before {
            self.progress[direction].push((event.time - first, self.bytes[direction]));
        }
    }
}

/// A comparison of two traces.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct Comparison {
    /// The figures in the order of output, from `duration` to `datagram size`.
    pub figures: Vec<Figure>,
    /// Causes, each with the seconds for which it limited the first and the second transfer.
    pub causes: Vec<(Cause, f64, f64)>,
    /// The first point of divergence.
    pub divergence: Option<Divergence>,
}

/// One figure, with its values in both traces.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct Figure {
    /// The name as output shows it, such as `rtt min`.
    pub name: &'static str,
    /// The values of both traces: times in seconds, sizes in bytes, rates in bits per second, shares from 0 to 1.
    pub values: [Option<f64>; 2],
    /// The values as text.
    pub texts: [String; 2],
}

/// The moment from which one transfer falls behind the other.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct Divergence {
    /// Seconds since the first packet.
    pub time: f64,
    /// The bytes that each transfer had completed at that time.
    pub bytes: [u64; 2],
    /// True if the second trace falls behind.
    pub second_is_behind: bool,
    /// The cause that limits the trace that falls behind at that time, if one is known.
    pub cause: Option<Cause>,
}

impl Comparison {
    /// Compares two traces that were read with [`ComparedTrace::of`].
    pub fn of(first: &ComparedTrace, second: &ComparedTrace) -> Self {
        Self {
            figures: figures(first, second),
            causes: causes(first, second),
            divergence: divergence(first, second),
        }
    }

    /// Returns the comparison as lines of text.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("{:<20} {:>14} {:>14}", "", "A", "B")];
        for figure in &self.figures {
            let [first, second] = &figure.texts;
            let change = match figure.values {
                [Some(first), Some(second)] if first > 0.0 && first != second => {
                    format!("  {:+.0} %", (second / first - 1.0) * 100.0)
                }
                _ => String::new(),
            };
            lines.push(format!(
                "{:<20} {first:>14} {second:>14}{change}",
                figure.name
            ));
        }
        lines.push(String::new());
        lines.push(format!("{:<20} {:>14} {:>14}", "limited by", "A", "B"));
        for (cause, first, second) in &self.causes {
            let [first, second] = [*first, *second].map(|time| match time {
                0.0 => "-".to_owned(),
                time => seconds(time),
            });
            lines.push(format!("{:<20} {first:>14} {second:>14}", cause.name()));
        }
        lines.push(String::new());
        lines.push(self.divergence.as_ref().map_or_else(
            || "both transfers progress at the same rate".to_owned(),
            |it| {
                let (slower, cause) = (if it.second_is_behind { "B" } else { "A" }, it.cause);
                let cause = cause.map(|cause| format!(", limited by: {}", cause.name()));
                format!(
                    "from {} on {slower} falls behind: A has transferred {} then, and B {}{}",
                    seconds(it.time),
                    size(it.bytes[0]),
                    size(it.bytes[1]),
                    cause.unwrap_or_default()
                )
            },
        ));
        lines
    }
}

fn figures(first: &ComparedTrace, second: &ComparedTrace) -> Vec<Figure> {
    let sides = [first, second];
    let figure =
        |name, value: &dyn Fn(&ComparedTrace) -> Option<f64>, text: &dyn Fn(f64) -> String| {
            let values = sides.map(value);
            let texts = values.map(|value| value.map_or_else(|| "-".to_owned(), text));
            Figure {
                name,
                values,
                texts,
            }
        };
    let bytes = |value: f64| size(value as u64);
    let whole = |value: f64| format!("{value:.0}");
    let share = |value: f64| crate::text::percent(value);
    let data = |side: &ComparedTrace| match side.explanation.direction {
        Direction::Sent => side.explanation.bytes_sent,
        Direction::Received => side.explanation.bytes_received,
    };
    let uint = |value: Option<u64>| value.map(|value| value as f64);
    vec![
        figure("duration", &|it| Some(it.explanation.duration), &seconds),
        figure("active", &|it| Some(it.explanation.active), &seconds),
        figure("handshake", &|it| it.summary.handshake, &seconds),
        figure("data", &|it| Some(data(it) as f64), &bytes),
        figure("rate", &|it| Some(it.explanation.rate), &bits),
        figure("rtt min", &|it| it.summary.rtt.map(|rtt| rtt.min), &seconds),
        figure(
            "rtt median",
            &|it| it.summary.rtt.map(|rtt| rtt.median),
            &seconds,
        ),
        figure("rtt p95", &|it| it.summary.rtt.map(|rtt| rtt.p95), &seconds),
        figure(
            "packets sent",
            &|it| Some(it.summary.sent.packets as f64),
            &whole,
        ),
        figure(
            "packets received",
            &|it| Some(it.summary.received.packets as f64),
            &whole,
        ),
        figure(
            "packets lost",
            &|it| Some(it.summary.lost.packets as f64),
            &whole,
        ),
        figure("loss", &|it| it.summary.loss_share(), &share),
        figure(
            "spurious losses",
            &|it| Some(it.summary.lost.spurious as f64),
            &whole,
        ),
        figure(
            "probe timeouts",
            &|it| Some(it.summary.probe_timeouts as f64),
            &whole,
        ),
        figure(
            "window max",
            &|it| uint(it.summary.congestion_window_max),
            &bytes,
        ),
        figure(
            "in flight max",
            &|it| uint(it.summary.bytes_in_flight_max),
            &bytes,
        ),
        figure("datagram size", &|it| uint(it.summary.mtu), &bytes),
    ]
}

fn causes(first: &ComparedTrace, second: &ComparedTrace) -> Vec<(Cause, f64, f64)> {
    let time = |side: &ComparedTrace, cause| {
        let mut findings = side.explanation.findings.iter();
        findings
            .find(|it| it.cause == cause)
            .map_or(0.0, |it| it.seconds)
    };
    let mut causes: Vec<_> = Cause::ALL
        .into_iter()
        .map(|cause| (cause, time(first, cause), time(second, cause)))
        .filter(|(_, first, second)| first + second > 0.0)
        .collect();
    causes.sort_by(|left, right| (right.1 + right.2).total_cmp(&(left.1 + left.2)));
    causes
}

/// Finds the last time at which both transfers had about as many bytes, before they differ until one ends.
fn divergence(first: &ComparedTrace, second: &ComparedTrace) -> Option<Divergence> {
    let end = |side: &ComparedTrace| side.progress().last().map_or(0.0, |point| point.0);
    let until = end(first).min(end(second));
    let step = until / POINTS as f64;
    let differs = |time: f64| {
        let (one, other) = (first.at(time), second.at(time));
        let gap = one.abs_diff(other);
        gap > MIN_GAP && gap as f64 > one.max(other) as f64 * GAP
    };
    let mut found = None;
    for index in (1..=POINTS).rev() {
        let time = step * index as f64;
        if !differs(time) {
            break;
        }
        found = Some(time);
    }
    let time = found?;
    let bytes = [first.at(time), second.at(time)];
    let second_is_behind = bytes[1] < bytes[0];
    let slower = if second_is_behind { second } else { first };
    let mut findings = slower.explanation.findings.iter();
    let start = findings
        .clone()
        .flat_map(|it| &it.evidence)
        .map(|it| it.from.time);
    let start = start.reduce(f64::min).unwrap_or(0.0);
    let cause = findings.find(|finding| {
        let mut evidence = finding.evidence.iter();
        evidence.any(|it| it.from.time - start <= time + step && it.to.time - start >= time - step)
    });
    Some(Divergence {
        time,
        bytes,
        second_is_behind,
        cause: cause.map(|finding| finding.cause),
    })
}

/// The number of times at which the progress of transfers is compared.
const POINTS: usize = 1000;
/// Transfers differ if one is behind by at least this share of bytes and by at least `MIN_GAP` bytes.
const GAP: f64 = 0.1;
const MIN_GAP: u64 = 20_000;
/// The largest number of streams whose ends are remembered. K209.
const MAX_STREAMS: usize = 1 << 16;
