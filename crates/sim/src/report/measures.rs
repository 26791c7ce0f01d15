//! The few numbers of a run that bounds are written about.

use serde::Serialize;

/// The few numbers of a run that bounds are written about, all over the measured time. A number
/// that a run does not have (no link with a rate, no exchange) is absent.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Measures {
    /// Payload of all flows in bits per second.
    pub goodput: Option<f64>,
    /// Payload of all flows as a share of what full datagrams could carry over the first link
    /// with a rate: 1 is all of it.
    pub goodput_share: Option<f64>,
    /// Bytes that left the first link with a rate as a share of what it could carry; from 0 to 1.
    pub utilization: Option<f64>,
    /// The same from the end of an ideal slow start on, if that is later than the measured time
    /// begins: the pipe cannot be full before.
    pub steady_utilization: Option<f64>,
    /// Time average of the first flow's congestion window as a share of what RFC 9438 §5 expects
    /// of CUBIC on a path that loses a share of all packets. Absent where the link has no such loss,
    /// or is full before the window gets there.
    pub window_ratio: Option<f64>,
    /// How far the same is from one, above or below.
    pub window_error: Option<f64>,
    /// The same average as a share of what RFC 9438 §5 expects where not losses but cuts of the
    /// window are as frequent as they were: it counts congestion events, and losses that come
    /// within one round trip are one. Cuts that were taken back do not count.
    pub event_window_ratio: Option<f64>,
    /// How far that is from one, above or below.
    pub event_window_error: Option<f64>,
    /// Packets dropped by a full queue, up to the end of the first flow's slow start.
    pub start_drops: Option<f64>,
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
    /// How much longer a flow took than it would with slow start alone, in seconds; the longest.
    /// Absent unless all ended.
    pub completion_excess: Option<f64>,
    /// Longest handshake, in seconds.
    pub handshake_time: Option<f64>,
    /// Median of the time a request or ping took, in seconds.
    pub exchange_median: Option<f64>,
    /// 99th percentile of the same, in seconds.
    pub exchange_p99: Option<f64>,
    /// Time from a change of the link's rate, the end of a blackhole or a rebinding of a NAT to 90 % of what the link
    /// carries from then on; the longest, in seconds. Absent when that is not reached.
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

/// What a measure is counted in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// From 0 to 1.
    Share,
    /// Seconds.
    Seconds,
    /// Bits per second.
    BitsPerSecond,
    /// How many.
    Count,
    /// A part of something that may be more than all of it.
    Ratio,
}

/// A field of [`Measures`] by name.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// The field's name.
    pub name: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Its value in a run.
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
    /// The measure with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        MEASURES.iter().find(|measure| measure.name == name)
    }
}

/// The value below which `share` of the values lie, the values in any order; the nearest rank.
/// `None` without values.
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
