//! The measures of a run that bounds apply to.

use serde::Serialize;

/// The measures of a run that bounds apply to, over the measured time. A measure that a run does
/// not have (no link with a rate, no exchange) is absent.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Measures {
    /// The payload of all flows in bits per second.
    pub goodput: Option<f64>,
    /// The payload of all flows as a share of the payload that full datagrams could carry over the
    /// first link with a rate. 1 is all of it.
    pub goodput_share: Option<f64>,
    /// The bytes that left the first link with a rate as a share of its capacity, from 0 to 1.
    pub utilization: Option<f64>,
    /// The same share from the end of an ideal slow start on, if that is after the start of the
    /// measured time: the pipe cannot be full before.
    pub steady_utilization: Option<f64>,
    /// The time average of the first flow's congestion window as a share of the window that RFC
    /// 9438 §5 expects of CUBIC on a path that loses a share of all packets. Absent if the link has
    /// no such loss, or is full before the window reaches that size.
    pub window_ratio: Option<f64>,
    /// The difference of that share from one, above or below.
    pub window_error: Option<f64>,
    /// The same average as a share of the window that RFC 9438 §5 expects for the observed
    /// frequency of reductions instead of that of losses. Losses within one round trip are one
    /// congestion event. Reductions that were undone do not count.
    pub event_window_ratio: Option<f64>,
    /// The difference of that share from one, above or below.
    pub event_window_error: Option<f64>,
    /// Packets dropped by a full queue until the end of the first flow's slow start.
    pub start_drops: Option<f64>,
    /// Jain's index of the flows' goodput: 1 if all are equal.
    pub jain: Option<f64>,
    /// The smallest share of one flow in the goodput of all.
    pub least_share: Option<f64>,
    /// The median of the delay in the first queue, in seconds.
    pub queue_delay_median: Option<f64>,
    /// The 95th percentile of that delay, in seconds.
    pub queue_delay_p95: Option<f64>,
    /// Packets declared lost as a share of packets sent.
    pub loss_rate: Option<f64>,
    /// Retransmitted stream bytes as a share of those sent first.
    pub retransmitted_share: Option<f64>,
    /// Packets wrongly declared lost as a share of packets sent.
    pub spurious_share: Option<f64>,
    /// The longest time of a flow from its start to its last byte, in seconds. Absent unless all
    /// ended.
    pub completion_time: Option<f64>,
    /// The longest additional time of a flow compared with slow start alone, in seconds. Absent
    /// unless all ended.
    pub completion_excess: Option<f64>,
    /// The longest handshake, in seconds.
    pub handshake_time: Option<f64>,
    /// The median duration of requests or pings, in seconds.
    pub exchange_median: Option<f64>,
    /// The 99th percentile of those durations, in seconds.
    pub exchange_p99: Option<f64>,
    /// The longest time from a change of the link's rate, the end of a blackhole or a rebinding of
    /// a NAT until the flow reaches 90 % of the capacity from then on, in seconds. Absent if it
    /// never does.
    pub recovery_time: Option<f64>,
    /// Connections that ended otherwise than by their own close.
    pub failures: Option<f64>,
    /// Flows with an end that they did not reach.
    pub unfinished: Option<f64>,
}

/// Returns Jain's index of fairness: the square of the sum over `n` times the sum of squares.
/// Returns `None` without values or if all are zero.
pub fn jain(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|value| value * value).sum();
    #[expect(
        clippy::cast_precision_loss,
        reason = "a scenario has at most 1000 flows"
    )]
    let count = values.len() as f64;
    (squares > 0.0).then(|| sum * sum / (count * squares))
}

/// The unit of a measure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// A share from 0 to 1.
    Share,
    /// A time in seconds.
    Seconds,
    /// A rate in bits per second.
    BitsPerSecond,
    /// A count of events or connections.
    Count,
    /// A ratio that may exceed one.
    Ratio,
}

/// A field of [`Measures`] by name.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// The name of the field.
    pub name: &'static str,
    /// The unit of the value and of bounds for it.
    pub unit: Unit,
    /// Returns the value in a run.
    pub of: fn(&Measures) -> Option<f64>,
}

macro_rules! measures {
    ($($name:ident: $unit:ident),* $(,)?) => {
        /// All measures, in the order of tables.
        pub const MEASURES: &[Measure] = &[$(Measure {
            name: stringify!($name),
            unit: Unit::$unit,
            of: |measures| measures.$name,
        }),*];
    };
}

measures! {
    goodput: BitsPerSecond,
    goodput_share: Share,
    utilization: Share,
    steady_utilization: Share,
    window_ratio: Ratio,
    window_error: Share,
    event_window_ratio: Ratio,
    event_window_error: Share,
    start_drops: Count,
    jain: Share,
    least_share: Share,
    queue_delay_median: Seconds,
    queue_delay_p95: Seconds,
    loss_rate: Share,
    retransmitted_share: Share,
    spurious_share: Share,
    completion_time: Seconds,
    completion_excess: Seconds,
    handshake_time: Seconds,
    exchange_median: Seconds,
    exchange_p99: Seconds,
    recovery_time: Seconds,
    failures: Count,
    unfinished: Count,
}

impl Measure {
    /// Returns the measure with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        MEASURES.iter().find(|measure| measure.name == name)
    }
}

/// Returns the value below which `share` of the values lie, by the nearest rank. The values may
/// have any order. Returns `None` without values.
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an index into the values of some runs"
    )]
    let rank = ((sorted.len().checked_sub(1)? as f64) * share.clamp(0.0, 1.0)).round() as usize;
    sorted.get(rank).copied()
}
