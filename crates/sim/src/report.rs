//! What a run leaves behind: plain data that tables, pages and tests read.
//!
//! Times count from the beginning of the world. A report serialises with times as seconds and
//! durations as seconds too, so that its JSON form needs no key to be read.

mod measures;
mod series;

use std::time::Duration;

use courser_base::Time;
use serde::{Serialize, Serializer};

pub use self::measures::{MEASURES, Measure, Measures, Unit, jain, quantile};
pub use self::series::{Buckets, Point, Series};

/// One run of one scenario with one seed.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RunReport {
    /// Name of the scenario.
    pub scenario: String,
    /// The seed that repeats this run.
    pub seed: u64,
    /// How long the world ran.
    #[serde(serialize_with = "as_seconds")]
    pub duration: Duration,
    /// What is measured and compared with bounds begins here and ends with the run.
    #[serde(serialize_with = "as_time")]
    pub measured_from: Time,
    /// Every flow, in the order of the scenario.
    pub flows: Vec<FlowReport>,
    /// Every link and direction, in the order of the scenario, forward before back.
    pub links: Vec<LinkReport>,
    /// What was done to the world on the way: rate steps, rebindings, switches of controllers.
    pub marks: Vec<Mark>,
    /// Digest of the trace: the same on every machine for the same scenario, seed and version.
    pub digest: u64,
    /// Virtual events that the world went through.
    pub steps: u64,
    /// What the scenario's bounds are compared with.
    pub measures: Measures,
}

/// Something that was done to the world at a time, for the eye of the reader of a chart.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Mark {
    /// When.
    #[serde(serialize_with = "as_time")]
    pub at: Time,
    /// What, in a few words.
    pub label: String,
}

/// One flow: a connection and the transfer on it.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct FlowReport {
    /// Its name, unique in the run: `bulk`, or `bulk-2` where a flow has a count.
    pub name: String,
    /// The congestion controller of the sending end, at the end of the run.
    pub controller: String,
    /// When the client began the connection.
    #[serde(serialize_with = "as_time")]
    pub start: Time,
    /// When the last byte arrived, the connection ended or the run did.
    #[serde(serialize_with = "as_time")]
    pub end: Time,
    /// Payload bytes that the receiving application has read.
    pub bytes_delivered: u64,
    /// Payload bytes read in each piece of time.
    pub delivered: Buckets,
    /// Payload bits per second while it was measured, from `measured_from` or its own start to
    /// its end.
    pub goodput: f64,
    /// Stream bytes sent for the first time, over time.
    pub sent: Series,
    /// Stream bytes the receiving application has read, over time.
    pub received: Series,
    /// Stream bytes acknowledged without a gap before them, over time.
    pub acked: Series,
    /// Congestion window in bytes.
    pub congestion_window: Series,
    /// Bytes in flight.
    pub bytes_in_flight: Series,
    /// Slow-start threshold in bytes; empty while there is none.
    pub ssthresh: Series,
    /// Pacing rate in bytes per second; empty while the controller gives none.
    pub pacing_rate: Series,
    /// Latest sample of the round-trip time, in nanoseconds.
    pub latest_rtt: Series,
    /// Smoothed round-trip time, in nanoseconds.
    pub smoothed_rtt: Series,
    /// Lowest round-trip time, in nanoseconds.
    pub min_rtt: Series,
    /// Packets that the sender took for lost: when, and their numbers. The first
    /// [`MAX_LOSSES`] of them; `packets_lost` counts all.
    pub losses: Vec<Point>,
    /// Packets sent by the sending end.
    pub packets_sent: u64,
    /// Packets that the sender took for lost.
    pub packets_lost: u64,
    /// Of these, packets that turned out to have arrived; none where the transport does not tell.
    pub spurious_losses: Option<u64>,
    /// Stream bytes sent again.
    pub retransmitted_bytes: u64,
    /// Times the congestion window was cut.
    pub congestion_events: u64,
    /// Probe timeouts of the sender.
    pub ptos: u64,
    /// From the client's first packet to the end of its handshake.
    #[serde(serialize_with = "as_maybe_seconds")]
    pub handshake_time: Option<Duration>,
    /// From the start of the connection to the last byte, for transfers of so many bytes.
    #[serde(serialize_with = "as_maybe_seconds")]
    pub completion_time: Option<Duration>,
    /// Round trips of requests or pings, in nanoseconds: when each ended, and how long it took.
    pub exchanges: Series,
    /// Why the connection ended before the run did, if it did otherwise than by our close.
    pub failure: Option<String>,
}

/// One direction of one link.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct LinkReport {
    /// Its name: `link forward`, `access-2 back`.
    pub name: String,
    /// What the link may carry over time, in bits per second; empty without a limit.
    pub capacity: Series,
    /// Bytes that left the link in each piece of time, headers of IP and UDP included.
    pub carried: Buckets,
    /// Bytes in the queue over time.
    pub queue_bytes: Series,
    /// Waiting time in the queue over time, in nanoseconds: what a packet that came now would
    /// wait.
    pub queue_delay: Series,
    /// Packets dropped so far, over time.
    pub drops: Series,
    /// Packets marked so far, over time.
    pub marks: Series,
    /// Packets that entered.
    pub packets_in: u64,
    /// Packets that left.
    pub packets_out: u64,
    /// Packets dropped, by reason, in the link's own order and words; reasons without any are
    /// left out.
    pub dropped: Vec<(String, u64)>,
    /// Packets marked with CE.
    pub marked: u64,
    /// Most bytes that were in the queue.
    pub queue_bytes_max: u64,
}

impl RunReport {
    /// The flow with this name.
    pub fn flow(&self, name: &str) -> Option<&FlowReport> {
        self.flows.iter().find(|flow| flow.name == name)
    }

    /// The direction of a link with this name.
    pub fn link(&self, name: &str) -> Option<&LinkReport> {
        self.links.iter().find(|link| link.name == name)
    }
}

/// Losses that a flow keeps with their time and number. More than a chart can show.
pub const MAX_LOSSES: usize = 20_000;

/// Points that a series holds unless told otherwise: as many as a wide chart has pixels.
pub const DEFAULT_POINTS: usize = 2000;

/// Seconds as a number, for charts and JSON.
#[expect(
    clippy::cast_precision_loss,
    reason = "fifteen digits of a second are finer than a nanosecond for eleven days"
)]
pub fn seconds(at: Time) -> f64 {
    at.as_nanos() as f64 / 1e9
}

fn as_time<S: Serializer>(at: &Time, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(seconds(*at))
}

fn as_seconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

#[expect(clippy::ref_option, reason = "the signature is serde's")]
fn as_maybe_seconds<S: Serializer>(
    time: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => serializer.serialize_some(&time.as_secs_f64()),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
mod tests;
