//! Series of values over time, read from a trace for charts.

use std::collections::BTreeMap;
use std::io::BufRead;

use super::event::{Event, EventKind, Metrics, Packet, Space};
use super::rate::RateMeter;
use super::reader::Reader;
use super::samples::Samples;
use super::summary::{Summarizer, Summary};

/// A point of a series: `(seconds since the first event, value)`.
pub type Point = (f64, f64);

/// The series of a trace. Times are seconds, sizes bytes, rates bits per second.
///
/// Each series has at most [`MAX_SAMPLES`](super::MAX_SAMPLES) points. Longer ones are thinned
/// evenly.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Series {
    /// Bytes sent up to and including each packet of the application space, when it was sent.
    pub sent: Samples<Point>,
    /// The same byte count for each packet, when it was acknowledged.
    pub acked: Samples<Point>,
    /// The same byte count for each packet, when it was declared lost.
    pub lost: Samples<Point>,
    /// Bytes received up to and including each packet, when it arrived.
    pub received: Samples<Point>,
    /// The congestion window in bytes, when it changed.
    pub congestion_window: Samples<Point>,
    /// Bytes in flight, when they changed.
    pub bytes_in_flight: Samples<Point>,
    /// The slow-start threshold in bytes; without points while it is infinite.
    pub ssthresh: Samples<Point>,
    /// Samples of the round-trip time in seconds.
    pub latest_rtt: Samples<Point>,
    /// The smoothed round-trip time in seconds (RFC 9002 §5.3).
    pub smoothed_rtt: Samples<Point>,
    /// The shortest round-trip time in seconds, as the sender estimates it.
    pub min_rtt: Samples<Point>,
    /// The rate of sent packets in bits per second, at the end of each interval.
    pub send_rate: Samples<Point>,
    /// The rate of received packets in bits per second, at the end of each interval.
    pub receive_rate: Samples<Point>,
    /// The pacing rate in bits per second, if the trace records it.
    pub pacing_rate: Samples<Point>,
    /// Times at which packets of any space were declared lost.
    pub losses: Samples<f64>,
    /// Times at which probe timeouts expired.
    pub probe_timeouts: Samples<f64>,
}

impl Series {
    /// Reads a trace to its end. Each rate is averaged over `rate_width` seconds.
    ///
    /// # Panics
    /// Panics if `rate_width` is not above zero.
    pub fn of<R: BufRead>(reader: &mut Reader<R>, rate_width: f64) -> (Self, Summary) {
        assert!(rate_width > 0.0, "the width of a rate is above zero");
        let mut collector = Collector::new(rate_width);
        let mut summarizer = Summarizer::default();
        for line in reader.by_ref() {
            if let Ok(event) = &line {
                collector.on_event(event);
            }
            summarizer.on_line(line.as_ref());
        }
        (collector.finish(), summarizer.finish(reader.about()))
    }
}

/// Collects the series event by event.
struct Collector {
    series: Series,
    /// Bytes sent up to and including each packet that is not yet acknowledged.
    unacked: BTreeMap<u64, f64>,
    bytes_sent: u64,
    bytes_received: u64,
    /// Packets lost, as the metrics count them.
    counted_lost: u64,
    send_meter: RateMeter,
    receive_meter: RateMeter,
}

impl Collector {
    fn new(rate_width: f64) -> Self {
        Self {
            series: Series::default(),
            unacked: BTreeMap::new(),
            bytes_sent: 0,
            bytes_received: 0,
            counted_lost: 0,
            send_meter: RateMeter::new(rate_width),
            receive_meter: RateMeter::new(rate_width),
        }
    }

    fn on_event(&mut self, event: &Event) {
        let time = event.time;
        match &event.kind {
            EventKind::PacketSent(packet) => self.on_sent(time, packet),
            EventKind::PacketReceived(packet) => self.on_received(time, packet),
            EventKind::PacketLost(lost) => {
                self.series.losses.push(time);
                let number = lost.number.filter(|_| lost.space == Space::Application);
                // The packet may still be acknowledged, so it stays in the map.
                if let Some(&bytes) = number.and_then(|number| self.unacked.get(&number)) {
                    self.series.lost.push((time, bytes));
                }
            }
            EventKind::Metrics(metrics) => self.on_metrics(time, metrics),
            EventKind::ProbeTimeout => self.series.probe_timeouts.push(time),
            _ => {}
        }
    }

    fn on_sent(&mut self, time: f64, packet: &Packet) {
        self.bytes_sent = self.bytes_sent.saturating_add(packet.len);
        for interval in self.send_meter.push(time, packet.len).into_iter().flatten() {
            self.series.send_rate.push((interval.end, interval.rate));
        }
        if packet.space() != Space::Application || !packet.ack_eliciting {
            return;
        }
        let bytes = self.bytes_sent as f64;
        self.series.sent.push((time, bytes));
        if let Some(number) = packet.number {
            if self.unacked.len() >= MAX_UNACKED {
                self.unacked.pop_first();
            }
            self.unacked.insert(number, bytes);
        }
    }

    fn on_received(&mut self, time: f64, packet: &Packet) {
        self.bytes_received = self.bytes_received.saturating_add(packet.len);
        self.series
            .received
            .push((time, self.bytes_received as f64));
        for interval in self
            .receive_meter
            .push(time, packet.len)
            .into_iter()
            .flatten()
        {
            self.series.receive_rate.push((interval.end, interval.rate));
        }
        if packet.space() != Space::Application {
            return;
        }
        for range in &packet.acked {
            let acked: Vec<_> = self
                .unacked
                .range(range.clone())
                .map(|(&number, &bytes)| (number, bytes))
                .collect();
            for (number, bytes) in acked {
                self.unacked.remove(&number);
                self.series.acked.push((time, bytes));
            }
        }
    }

    fn on_metrics(&mut self, time: f64, metrics: &Metrics) {
        let series = &mut self.series;
        if let Some(lost) = metrics.lost_packets {
            if lost > self.counted_lost {
                series.losses.push(time);
            }
            self.counted_lost = lost;
        }
        let sizes = [
            (metrics.congestion_window, &mut series.congestion_window),
            (metrics.bytes_in_flight, &mut series.bytes_in_flight),
            (metrics.ssthresh, &mut series.ssthresh),
            (metrics.pacing_rate, &mut series.pacing_rate),
        ];
        for (value, samples) in sizes {
            if let Some(value) = value {
                samples.push((time, value as f64));
            }
        }
        let times = [
            (metrics.latest_rtt, &mut series.latest_rtt),
            (metrics.smoothed_rtt, &mut series.smoothed_rtt),
            (metrics.min_rtt, &mut series.min_rtt),
        ];
        for (value, samples) in times {
            // Zero means "no sample yet".
            if let Some(value) = value.filter(|&value| value > 0.0) {
                samples.push((time, value));
            }
        }
    }

    fn finish(mut self) -> Series {
        if let Some(interval) = self.send_meter.finish() {
            self.series.send_rate.push((interval.end, interval.rate));
        }
        if let Some(interval) = self.receive_meter.finish() {
            self.series.receive_rate.push((interval.end, interval.rate));
        }
        self.series
    }
}

/// The largest number of unacknowledged packets that are remembered: more than any window holds.
const MAX_UNACKED: usize = 1 << 20;

#[cfg(test)]
mod tests;
