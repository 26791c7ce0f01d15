//! The rate of acknowledgements within a round trip, which reveals a bottleneck.

use std::time::Duration;

use courser_base::{Rate, Time};

use super::sample::AckSample;

/// Measures the fastest stretch of acknowledgements in this round and in the previous one.
///
/// A delivery-rate sample covers a round trip. In slow start the window is twice what it indicates,
/// whether the path is full or not. Stretches of an eighth of a round trip distinguish the two
/// cases: on an idle path, packets are acknowledged as fast as they were sent. If they are not, and
/// even the fastest stretch is slow, a bottleneck spreads them out.
///
/// Acknowledgements in clumps and delayed packets make some stretches slower and others faster.
/// Only the fastest counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckRate {
    stretch: Option<Stretch>,
    /// The fastest stretch of this round.
    best: Rate,
    /// The fastest stretch of the previous round.
    last_best: Rate,
    /// Stretches completed in this round.
    stretches: u32,
}

/// The start of a stretch.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    now: Time,
    /// The time at which the newest packet acknowledged by then was sent.
    sent: Time,
    /// Bytes delivered on the path by then.
    delivered: u64,
}

impl AckRate {
    /// Ends a round.
    pub(super) fn end_round(&mut self) {
        *self = Self {
            last_best: self.best,
            ..Self::default()
        };
    }

    /// Returns the fastest rate so far at the end of each stretch that took longer than sending its
    /// packets, once the round has enough stretches.
    pub(super) fn on_ack(&mut self, sample: &AckSample<'_>, mtu: u16) -> Option<Rate> {
        if sample.app_limited || sample.rate.is_some_and(|rate| rate.is_app_limited) {
            self.stretch = None;
            return None;
        }
        let here = Stretch {
            now: sample.now,
            sent: sample.largest_acked_sent,
            delivered: sample.delivered,
        };
        let began = *self.stretch.get_or_insert(here);
        let path_min = sample.rtt.min();
        let time = here.now - began.now;
        let bytes = here.delivered.saturating_sub(began.delivered);
        if path_min < SHORTEST_PATH
            || time < path_min / STRETCH_DIVISOR
            || bytes < LEAST_DATAGRAMS * u64::from(mtu)
        {
            return None;
        }
        self.stretch = Some(here);
        self.stretches = self.stretches.saturating_add(1);
        self.best = self.best.max(Rate::from_bytes_in(bytes, time));
        let is_spread_out = time > (here.sent - began.sent).mul_f64(SPREAD_OUT);
        let is_conclusive = is_spread_out && self.stretches >= LEAST_STRETCHES;
        is_conclusive.then(|| self.best.max(self.last_best))
    }
}

/// The shortest path measured. On shorter ones, hosts delay packets by as much as a stretch.
const SHORTEST_PATH: Duration = Duration::from_millis(8);
/// The length of a stretch as a fraction of the round-trip time.
const STRETCH_DIVISOR: u32 = 8;
/// The fewest datagrams in a stretch, as many as a round needs (RFC 9406 §4.3).
const LEAST_DATAGRAMS: u64 = 8;
/// The factor by which a stretch must take longer than sending it. Pacing in quanta and counting in
/// acknowledgements may add up to that much.
const SPREAD_OUT: f64 = 1.25;
/// The fewest stretches in a round. The first one may include the pause before its first packet.
const LEAST_STRETCHES: u32 = 2;

#[cfg(test)]
mod tests;
