//! The result of an explanation.

use serde::Serialize;

use super::cause::Cause;
use super::delivery::{Streams, Unknown};
use super::direction::Direction;
use super::ending::Ending;
use super::facts::Counts;
use super::finding::Finding;

/// An explanation of what limited a transfer. Times are seconds, sizes bytes, rates bits per second.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct Explanation {
    /// The vantage point: `client` or `server`.
    pub vantage_point: Option<String>,
    /// The end of the connection. `None` if the trace has no close.
    pub close: Option<Ending>,
    /// True if each stream was transferred completely in both directions. `None` if there were no streams,
    /// or if that is unknown.
    pub is_complete: Option<bool>,
    /// The reason why `is_complete` is unknown. `None` if it is known, or if there were no streams.
    pub unknown: Option<Unknown>,
    /// Streams that this end has sent on. If there are bidirectional ones, only those.
    pub streams_sent: Option<Streams>,
    /// Streams that this end has received on. If there are bidirectional ones, only those.
    pub streams_received: Option<Streams>,
    /// The direction in which more data was transferred.
    #[serde(rename = "way")]
    pub direction: Direction,
    /// Application data sent by this end, each byte counted once.
    pub bytes_sent: u64,
    /// Application data received by this end, each byte counted once.
    pub bytes_received: u64,
    /// The time from the first packet to the close of the connection, or to the end of the trace.
    pub duration: f64,
    /// The duration without idle time.
    pub active: f64,
    /// The mean rate of the larger direction over the active time.
    pub rate: f64,
    /// The shortest round-trip time.
    pub min_rtt: Option<f64>,
    /// Counters of the trace.
    pub counts: Counts,
    /// The causes that limited the transfer, the longest time first.
    pub findings: Vec<Finding>,
    /// Observations without a time of their own.
    pub notes: Vec<Finding>,
    /// Number of lines that could not be read.
    pub unreadable_lines: u64,
    /// The first of their errors.
    pub unreadable: Option<String>,
}

impl Explanation {
    /// Returns the cause that limited the transfer for the longest time.
    pub fn first_cause(&self) -> Option<Cause> {
        self.findings.first().map(|finding| finding.cause)
    }
}
