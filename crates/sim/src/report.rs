//! The results of a run as plain data for tables, pages and tests.
//!
//! Times count from the start of the world. A report serialises times and durations as seconds, so
//! that its JSON form needs no explanation.

mod measures;
mod series;
mod times;

use std::time::Duration;

use courser_base::Time;
use serde::Serialize;

pub use self::measures::{MEASURES, Measure, Measures, Unit, jain, quantile};
pub use self::series::{Buckets, DEFAULT_POINTS, Point, Series};
pub use self::times::seconds;
use self::times::{as_maybe_seconds, as_seconds, as_time};

/// One run of one scenario with one seed.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RunReport {
    /// The name from the scenario file.
    pub scenario: String,
    /// The seed that repeats this run.
    pub seed: u64,
    /// The duration of the run.
    #[serde(serialize_with = "as_seconds")]
    pub duration: Duration,
    /// The start of the measured time, which ends with the run. Bounds apply to it.
    #[serde(serialize_with = "as_time")]
    pub measured_from: Time,
    /// Every flow, in the order of the scenario.
    pub flows: Vec<FlowReport>,
    /// Every link and direction in the order of the scenario, forward before back.
    pub links: Vec<LinkReport>,
    /// Changes to the world during the run: rate steps, rebindings, changes of controllers.
    pub marks: Vec<Mark>,
    /// The digest of the trace: the same on every machine for the same scenario, seed and version.
    pub digest: u64,
    /// The number of virtual events of the world.
    pub steps: u64,
    /// The measures that bounds are compared with.
    pub measures: Measures,
}

/// A change to the world, to be shown in charts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Mark {
    /// The time since the start of the world.
    #[serde(serialize_with = "as_time")]
    pub at: Time,
    /// The text shown beside the change, such as `rate 5mbit`.
    pub label: String,
}

/// One flow: a connection with the transfer on it.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct FlowReport {
    /// The name, unique in the run: `bulk`, or `bulk-2` for a flow with a count.
    pub name: String,
    /// The congestion controller of the sending end at the end of the run.
    pub controller: String,
    /// The time at which the client started the connection.
    #[serde(serialize_with = "as_time")]
    pub start: Time,
    /// The time at which the last byte arrived, the connection closed or the run ended.
    #[serde(serialize_with = "as_time")]
    pub end: Time,
    /// Payload bytes that the receiving application read.
    pub bytes_delivered: u64,
    /// Payload bytes read in each interval.
    pub delivered: Buckets,
    /// Payload bits per second over the measured time of the flow, which starts at `measured_from`
    /// or its own start, whichever is later.
    pub goodput: f64,
    /// Stream bytes sent for the first time, over time.
    pub sent: Series,
    /// Stream bytes read by the receiving application, over time.
    pub received: Series,
    /// Stream bytes acknowledged without a gap before them, over time.
    pub acked: Series,
    /// The congestion window of the sender in bytes, one value per sample.
    pub congestion_window: Series,
    /// Bytes in flight at the sender (RFC 9002 §2), one value per sample.
    pub bytes_in_flight: Series,
    /// The slow-start threshold in bytes; empty while there is none.
    pub ssthresh: Series,
    /// The pacing rate in bytes per second; empty while the controller has none.
    pub pacing_rate: Series,
    /// The latest sample of the round-trip time, in nanoseconds.
    pub latest_rtt: Series,
    /// The smoothed round-trip time, in nanoseconds.
    pub smoothed_rtt: Series,
    /// The lowest round-trip time, in nanoseconds.
    pub min_rtt: Series,
    /// The times and numbers of packets that the sender declared lost. Only the first
    /// [`MAX_LOSSES`] are recorded, but `packets_lost` counts all.
    pub losses: Vec<Point>,
    /// Packets that the sending end of the flow sent, acknowledgements included.
    pub packets_sent: u64,
    /// Packets that the sender declared lost.
    pub packets_lost: u64,
    /// Lost packets that had arrived after all; none if the transport does not report them.
    pub spurious_losses: Option<u64>,
    /// Stream bytes that were retransmitted.
    pub retransmitted_bytes: u64,
    /// The number of reductions of the congestion window.
    pub congestion_events: u64,
    /// Probe timeouts of the sender (RFC 9002 §6.2).
    pub ptos: u64,
    /// The time from the client's first packet to the end of its handshake.
    #[serde(serialize_with = "as_maybe_seconds")]
    pub handshake_time: Option<Duration>,
    /// The time from the start of the connection to the last byte, for transfers with a fixed size.
    #[serde(serialize_with = "as_maybe_seconds")]
    pub completion_time: Option<Duration>,
    /// Exchanges of requests or pings: the end and the duration in nanoseconds of each.
    pub exchanges: Series,
    /// The reason why the connection closed before the end of the run, unless it was our own close.
    pub failure: Option<String>,
}

/// One direction of one link.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct LinkReport {
    /// The name: `link forward`, `access-2 back`.
    pub name: String,
    /// The capacity of the link over time, in bits per second; empty without a limit.
    pub capacity: Series,
    /// Bytes that left the link in each interval, headers of IP and UDP included.
    pub carried: Buckets,
    /// Bytes in the queue over time.
    pub queue_bytes: Series,
    /// The queueing delay over time, in nanoseconds: the time that a packet arriving then would
    /// wait.
    pub queue_delay: Series,
    /// Packets dropped so far, over time.
    pub drops: Series,
    /// Packets marked so far, over time.
    pub marks: Series,
    /// Packets that entered, including those dropped later.
    pub packets_in: u64,
    /// Packets that left at the other end.
    pub packets_out: u64,
    /// Dropped packets by reason, in the order and words of the link. Reasons without drops are
    /// left out.
    pub dropped: Vec<(String, u64)>,
    /// Packets marked with CE.
    pub marked: u64,
    /// The largest number of bytes in the queue.
    pub queue_bytes_max: u64,
}

impl RunReport {
    /// Returns the flow with this name.
    pub fn flow(&self, name: &str) -> Option<&FlowReport> {
        self.flows.iter().find(|flow| flow.name == name)
    }

    /// Returns the direction of a link with this name.
    pub fn link(&self, name: &str) -> Option<&LinkReport> {
        self.links.iter().find(|link| link.name == name)
    }
}

/// The largest number of losses that a flow records with their time and number, more than a chart
/// can show.
pub const MAX_LOSSES: usize = 20_000;

#[cfg(test)]
mod tests;
