//! The few numbers of a run that bounds are written about.

use serde::Serialize;

/// The few numbers of a run that bounds are written about, all over the measured time. A number
/// that a run does not have (no link with a rate, no exchange) is absent.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Measures {
    /// Payload of all flows in bits per second.
    pub goodput: Option<f64>,
    /// Payload of all flows as a share of what full datagrams could carry over the first link
    /// with a rate; from 0 to 1.
    pub goodput_share: Option<f64>,
    /// Bytes that left the first link with a rate as a share of what it could carry; from 0 to 1.
    pub utilization: Option<f64>,
    /// Jain's index of the flows' goodput: 1 when all get the same.
    pub jain: Option<f64>,
    /// Smallest share of one flow in the goodput of all.
    pub least_share: Option<f64>,
    /// Median of the waiting time in the first queue, in seconds.
    pub queue_delay_median: Option<f64>,
    /// 95th percentile of the same, in seconds.
    pub queue_delay_p95: Option<f64>,
    /// Packets taken for lost as a share of packets sent.
    pub loss_rate: Option<f64>,
    /// Stream bytes sent again as a share of those sent first.
    pub retransmitted_share: Option<f64>,
    /// Packets wrongly taken for lost as a share of packets sent.
    pub spurious_share: Option<f64>,
    /// Longest time a flow took from start to last byte, in seconds. Absent unless all ended.
    pub completion_time: Option<f64>,
    /// Longest handshake, in seconds.
    pub handshake_time: Option<f64>,
    /// Median of the time a request or ping took, in seconds.
    pub exchange_median: Option<f64>,
    /// 99th percentile of the same, in seconds.
    pub exchange_p99: Option<f64>,
    /// Time from the last mark to 90 % of the rate that the link has from then on, in seconds.
    pub recovery_time: Option<f64>,
    /// Connections that ended otherwise than by their own close.
    pub failures: Option<f64>,
    /// Flows that had an end and did not reach it.
    pub unfinished: Option<f64>,
}

/// Jain's index of fairness: the square of the sum over `n` times the sum of squares. `None`
/// without values or when all are zero.
pub fn jain(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|value| value * value).sum();
    #[expect(clippy::cast_precision_loss, reason = "a handful of flows")]
    let count = values.len() as f64;
    (squares > 0.0).then(|| sum * sum / (count * squares))
}
