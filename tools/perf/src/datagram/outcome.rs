//! Results of datagrams, computed from the counts of both ends.

use courser_units::{bits_per_second, to_f64};
use serde::Serialize;

use super::message::{Counted, Ended};

/// The datagrams of a measurement, by direction.
#[derive(Serialize, Clone, Copy, PartialEq, Debug, Default)]
pub struct Datagrams {
    /// Datagrams from the client to the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upload: Option<DatagramFlow>,
    /// Datagrams from the server to the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub download: Option<DatagramFlow>,
}

/// The fate of the datagrams of one direction.
#[derive(Serialize, Clone, Copy, PartialEq, Debug)]
pub struct DatagramFlow {
    /// The time from the first to the last datagram sent.
    pub seconds: f64,
    /// Datagrams that left the sender.
    pub sent: u64,
    /// Datagrams dropped before they were sent, because the datagram size of the path decreased.
    pub unsent: u64,
    /// Datagrams that arrived, each counted once.
    pub received: u64,
    /// Datagrams that were sent and did not arrive.
    pub lost: u64,
    /// The share of `sent` that is lost, in percent.
    pub lost_percent: f64,
    /// Datagrams that arrived after one with a higher number (RFC 4737 §3).
    pub reordered: u64,
    /// Arrivals of datagrams that had arrived before.
    pub duplicated: u64,
    /// Interarrival jitter in milliseconds at the end (RFC 3550 §6.4.1), as iperf3 reports it.
    pub jitter_ms: f64,
    /// Bits of content per second that were sent.
    pub sent_bits_per_second: f64,
    /// Bits of content per second that arrived.
    pub bits_per_second: f64,
}

impl DatagramFlow {
    /// Computes the results from the counts of both ends.
    pub(super) fn new(ended: Ended, counted: Counted) -> Self {
        let seconds = ended.micros.max(1);
        let seconds = to_f64(seconds) / 1e6;
        let received_in = (to_f64(counted.micros) / 1e6).max(seconds);
        let lost = ended.sent.saturating_sub(counted.received);
        Self {
            seconds,
            sent: ended.sent,
            unsent: ended.unsent,
            received: counted.received,
            lost,
            lost_percent: to_f64(lost) * 100.0 / to_f64(ended.sent.max(1)),
            reordered: counted.reordered,
            duplicated: counted.duplicated,
            jitter_ms: to_f64(counted.jitter_ns) / 1e6,
            sent_bits_per_second: bits_per_second(ended.bytes, seconds),
            bits_per_second: bits_per_second(counted.bytes, received_in),
        }
    }
}
