//! The rate of acknowledgements within a round trip, which reveals a bottleneck.

use std::time::Duration;

use courser_base::{Rate, Time};

use super::sample::AckSample;

/// Measures the rate of acknowledgements in short intervals, and keeps the highest of this round
/// and of the previous one.
///
/// A delivery-rate sample covers a round trip. In slow start the window is twice what it indicates,
/// whether the path is full or not. Intervals of an eighth of a round trip distinguish the two
/// cases: on an idle path, packets are acknowledged as fast as they were sent. If they are not, and
/// even the fastest interval is slow, a bottleneck spreads them out.
///
/// Aggregated acknowledgements and delayed packets make some intervals slower and others faster.
/// Only the fastest counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckRate {
    interval: Option<Interval>,
    /// The fastest interval of this round.
    best: Rate,
    /// The fastest interval of the previous round.
    last_best: Rate,
    /// Intervals completed in this round.
    intervals: u32,
}

/// The state at the start of an interval.
#[derive(Clone, Copy, Debug)]
struct Interval {
    now: Time,
    /// The time at which the newest packet acknowledged by then was sent.
    sent: Time,
    /// Bytes delivered on the path by then.
    delivered: u64,
}

impl AckRate {
    /// Ends a round: its highest rate becomes that of the previous round, and counting restarts.
    pub(super) fn end_round(&mut self) {
        *self = Self {
            last_best: self.best,
            ..Self::default()
        };
    }

    /// Returns the highest rate so far at the end of each interval that took longer than sending
    /// its packets, once the round has [`MIN_INTERVALS`].
    pub(super) fn on_ack(&mut self, sample: &AckSample<'_>, mtu: u16) -> Option<Rate> {
        if sample.app_limited || sample.rate.is_some_and(|rate| rate.is_app_limited) {
            self.interval = None;
            return None;
        }
        let here = Interval {
            now: sample.now,
            sent: sample.largest_acked_sent,
            delivered: sample.delivered,
        };
        let began = *self.interval.get_or_insert(here);
        let path_min = sample.rtt.min();
        let time = here.now - began.now;
        let bytes = here.delivered.saturating_sub(began.delivered);
        if path_min < MIN_PATH_RTT
            || time < path_min / INTERVAL_DIVISOR
            || bytes < MIN_DATAGRAMS * u64::from(mtu)
        {
            return None;
        }
        self.interval = Some(here);
        self.intervals = self.intervals.saturating_add(1);
        self.best = self.best.max(Rate::from_bytes_in(bytes, time));
        let is_spread_out = time > (here.sent - began.sent).mul_f64(SPREAD_FACTOR);
        let is_conclusive = is_spread_out && self.intervals >= MIN_INTERVALS;
        is_conclusive.then(|| self.best.max(self.last_best))
    }
}

/// Minimum round-trip time of a path that is measured. On shorter paths, hosts delay packets by as
/// much as an interval.
const MIN_PATH_RTT: Duration = Duration::from_millis(8);
/// The length of an interval as a fraction of the round-trip time.
const INTERVAL_DIVISOR: u32 = 8;
/// Minimum number of datagrams in an interval, as many as a round needs (RFC 9406 §4.3).
const MIN_DATAGRAMS: u64 = 8;
/// The factor by which an interval must take longer than sending it. Pacing in quanta and counting in
/// acknowledgements may add up to that much.
const SPREAD_FACTOR: f64 = 1.25;
/// Minimum number of intervals in a round. The first one may include the pause before its first
/// packet.
const MIN_INTERVALS: u32 = 2;

#[cfg(test)]
mod tests;
