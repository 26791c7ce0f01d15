//! How fast acknowledgements come within a round trip: the bottleneck's rate, once it is one.

use std::time::Duration;

use courser_base::{Rate, Time};

use super::sample::AckSample;

/// The fastest stretch of acknowledgements of this round and of the one before.
///
/// A delivery-rate sample covers a round trip, so that in slow start the window is twice of what it
/// says, whether the path is full or not. Stretches of an eighth of a round trip tell the two apart:
/// where nothing is in the way of packets, they are acknowledged as fast as they left. If they are
/// not, and even the fastest stretch is slow, something spreads them out.
///
/// Acknowledgements that come in clumps and packets that are held up make some stretches slower and
/// others faster; only the fastest counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckRate {
    stretch: Option<Stretch>,
    /// Of this round.
    best: Rate,
    /// Of the round before.
    last_best: Rate,
    /// Stretches that this round has seen to their end.
    stretches: u32,
}

/// Where a stretch began.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    now: Time,
    /// When the newest packet left that had been acknowledged by then.
    sent: Time,
    /// Bytes delivered on the path by then.
    delivered: u64,
}

impl AckRate {
    /// A round is over.
    pub(super) fn end_round(&mut self) {
        *self = Self {
            last_best: self.best,
            ..Self::default()
        };
    }

    /// The fastest stretch so far, whenever one has ended that took longer than its packets took to
    /// leave, and the round tells enough.
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
        let is_telling = is_spread_out && self.stretches >= LEAST_STRETCHES;
        is_telling.then(|| self.best.max(self.last_best))
    }
}

/// On shorter paths a stretch is what a host may be late for other reasons.
const SHORTEST_PATH: Duration = Duration::from_millis(8);
const STRETCH_DIVISOR: u32 = 8;
/// What a stretch has to deliver, as many as a round needs (RFC 9406 §4.3).
const LEAST_DATAGRAMS: u64 = 8;
/// Less is what pacing in quanta and counting in acknowledgements may add.
const SPREAD_OUT: f64 = 1.25;
/// The first stretch of a round may hold the pause before its first packet.
const LEAST_STRETCHES: u32 = 2;

#[cfg(test)]
mod tests;
