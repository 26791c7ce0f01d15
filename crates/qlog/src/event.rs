//! Events of all drafts in one shape.

mod fields;

use std::ops::RangeInclusive;

use serde_json::Value;

/// Something that happened, and when.
#[derive(Clone, PartialEq, Debug)]
pub struct Event {
    /// Seconds since the first event of the trace.
    pub time: f64,
    /// What happened.
    pub kind: EventKind,
}

/// What happened. Numbers are in base units: seconds, bytes, bits per second.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum EventKind {
    /// `packet_sent`.
    PacketSent(Packet),
    /// `packet_received`.
    PacketReceived(Packet),
    /// `packet_dropped`, and why.
    PacketDropped {
        /// In the words of the trace.
        trigger: Option<String>,
    },
    /// `packet_lost`.
    PacketLost(Lost),
    /// `spurious_loss`: a packet that counted as lost has arrived.
    SpuriousLoss,
    /// `recovery_metrics_updated`, before quic-events-08 `metrics_updated`.
    Metrics(Metrics),
    /// `congestion_state_updated`.
    CongestionState {
        /// In the words of the trace.
        new: String,
    },
    /// `connection_state_updated`.
    ConnectionState {
        /// In the words of the drafts, where the trace uses them.
        new: String,
    },
    /// `connection_closed`.
    Closed(Closed),
    /// `connection_data_blocked_updated`: what keeps from sending; `None` when nothing does.
    Limited {
        /// In the words of the trace.
        reason: Option<String>,
    },
    /// `timer_updated` or `loss_timer_updated`: a probe timeout has expired.
    ProbeTimeout,
    /// `mtu_updated`.
    Mtu {
        /// UDP payload in bytes.
        new: u64,
    },
    /// `records_dropped`: a gap in the trace, whose writer was too slow.
    RecordsDropped {
        /// Records that are missing.
        records: u64,
    },
    /// Any other event.
    Other {
        /// Its name without category.
        name: String,
    },
}

/// In which packet number space a number counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Space {
    /// Initial packets.
    Initial,
    /// Handshake packets.
    Handshake,
    /// 0-RTT and 1-RTT packets.
    Application,
}

/// A packet that was sent or received.
#[derive(Clone, PartialEq, Debug)]
pub struct Packet {
    /// As in the trace: `initial`, `handshake`, `0RTT`, `1RTT`, `retry`...
    pub packet_type: String,
    /// Its number; Retry and Version Negotiation have none.
    pub number: Option<u64>,
    /// Bytes on the wire; 0 when the trace does not tell.
    pub len: u64,
    /// Spans of streams in it.
    pub streams: Vec<Span>,
    /// Packet numbers that its ACK frames acknowledge.
    pub acked: Vec<RangeInclusive<u64>>,
    /// It holds more than ACK, PADDING and CONNECTION_CLOSE, so it must be acknowledged.
    pub ack_eliciting: bool,
}

impl Packet {
    /// Which numbers its own is one of.
    pub fn space(&self) -> Space {
        space_of(&self.packet_type)
    }
}

fn space_of(packet_type: &str) -> Space {
    match packet_type {
        "initial" => Space::Initial,
        "handshake" => Space::Handshake,
        _ => Space::Application,
    }
}

/// A span of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Which stream.
    pub stream: u64,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
}

/// A packet that counts as lost.
#[derive(Clone, PartialEq, Debug)]
pub struct Lost {
    /// Which numbers its own is one of.
    pub space: Space,
    /// Its number.
    pub number: Option<u64>,
    /// Bytes, when the trace tells.
    pub len: Option<u64>,
    /// `reordering_threshold`, `time_threshold`, `pto_expired`.
    pub trigger: Option<String>,
}

/// Metrics, those that the event names.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Metrics {
    /// Lowest round-trip time in seconds.
    pub min_rtt: Option<f64>,
    /// Smoothed round-trip time in seconds.
    pub smoothed_rtt: Option<f64>,
    /// Latest sample in seconds.
    pub latest_rtt: Option<f64>,
    /// Congestion window in bytes.
    pub congestion_window: Option<u64>,
    /// Bytes in flight.
    pub bytes_in_flight: Option<u64>,
    /// Slow-start threshold in bytes; infinite ones are left out.
    pub ssthresh: Option<u64>,
    /// Pacing rate in bits per second.
    pub pacing_rate: Option<u64>,
    /// Probe timeouts in a row.
    pub pto_count: Option<u64>,
    /// Packets lost since the connection began, where the trace counts them here (quiche) and
    /// has no event for each.
    pub lost_packets: Option<u64>,
}

/// How a connection ended.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Closed {
    /// `local` or `remote`.
    pub initiator: Option<String>,
    /// The error, by name or code.
    pub error: Option<String>,
    /// For humans.
    pub reason: Option<String>,
    /// `idle_timeout`, `application`, `error`...
    pub trigger: Option<String>,
}

/// Turns the times of a trace into seconds since its first event.
#[derive(Debug)]
pub(crate) struct Clock {
    units_per_second: f64,
    is_delta: bool,
    now: f64,
    first: Option<f64>,
}

impl Clock {
    pub(crate) fn new(trace: Option<&Value>) -> Self {
        let of = |group: &str, key: &str| {
            let value = trace.and_then(|trace| trace.get(group)?.get(key));
            value.and_then(Value::as_str)
        };
        let format = of("common_fields", "time_format");
        // Up to main-schema-02 a configuration could ask for microseconds.
        let is_micros = of("configuration", "time_units") == Some("us");
        Self {
            units_per_second: if is_micros { 1e6 } else { 1e3 },
            is_delta: format.is_some_and(is_delta),
            now: 0.0,
            first: None,
        }
    }

    fn read(&mut self, event: &Value) -> Result<f64, String> {
        let time = event.get("time").or_else(|| event.get("relative_time"));
        let time = match time {
            Some(Value::Number(number)) => number.as_f64(),
            // Some writers put times into strings, which loses no digits.
            Some(Value::String(text)) => text.parse().ok(),
            _ => return Err("an event without a time".to_owned()),
        };
        let Some(time) = time.filter(|time| time.is_finite()) else {
            return Err("the time is not a number".to_owned());
        };
        let own = event.get("time_format").and_then(Value::as_str);
        if own.map_or(self.is_delta, is_delta) {
            self.now += time;
        } else {
            self.now = time;
        }
        let first = *self.first.get_or_insert(self.now);
        Ok((self.now - first).max(0.0) / self.units_per_second)
    }
}

/// Its name was `delta` up to main-schema-08.
fn is_delta(format: &str) -> bool {
    matches!(format, "relative_to_previous_event" | "delta")
}

impl Event {
    /// Reads one event; the error says what it lacks.
    pub(crate) fn from_json(event: &Value, clock: &mut Clock) -> Result<Self, String> {
        if !event.is_object() {
            return Err("not an event: an object was expected".to_owned());
        }
        let name = event.get("name").and_then(Value::as_str);
        let time = clock.read(event)?;
        let Some(name) = name else {
            return Err("an event without a name".to_owned());
        };
        let data = event.get("data").unwrap_or(&Value::Null);
        let kind = fields::kind(name, data);
        Ok(Self { time, kind })
    }
}

#[cfg(test)]
mod tests;
