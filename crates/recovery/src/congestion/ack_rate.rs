//! How fast acknowledgements come within a round trip: the bottleneck's rate, once it is one.

use std::time::Duration;

use courser_base::{Rate, Time};

use super::AckSample;

/// The fastest stretch of acknowledgements of this round and of the one before.
///
/// A delivery-rate sample covers a round trip, so that in slow start the window is twice of what it
/// says, whether the path is full or not. Stretches of an eighth of a round trip tell the two apart:
/// a window leaves in half a round trip or less, and where nothing is in its way, it is acknowledged
/// as fast. If even the fastest stretch is much slower, something spreads the packets out.
///
/// Acknowledgements that come in clumps and packets that are held up make some stretches slower and
/// others faster; only the fastest counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckRate {
    /// Where the stretch began: the time, and the bytes delivered on the path by then.
    stretch: Option<(Time, u64)>,
    /// Of this round.
    best: Rate,
    /// Of the round before.
    last_best: Rate,
    /// Stretches that this round has seen to their end.
    stretches: u32,
}

impl AckRate {
    /// A round is over.
    pub(super) fn end_round(&mut self) {
        *self = Self {
            last_best: self.best,
            ..Self::default()
        };
    }

    /// The fastest stretch so far, whenever one has ended of which the round tells enough.
    pub(super) fn on_ack(&mut self, sample: &AckSample<'_>, mtu: u16) -> Option<Rate> {
        if sample.app_limited {
            self.stretch = None;
            return None;
        }
        let Some((began, delivered)) = self.stretch else {
            self.stretch = Some((sample.now, sample.delivered));
            return None;
        };
        let path_min = sample.rtt.min();
        let time = sample.now - began;
        let bytes = sample.delivered.saturating_sub(delivered);
        if path_min < SHORTEST_PATH
            || time < path_min / STRETCH_DIVISOR
            || bytes < LEAST_DATAGRAMS * u64::from(mtu)
        {
            return None;
        }
        self.stretch = Some((sample.now, sample.delivered));
        self.stretches = self.stretches.saturating_add(1);
        self.best = self.best.max(Rate::from_bytes_in(bytes, time));
        (self.stretches >= LEAST_STRETCHES).then(|| self.best.max(self.last_best))
    }
}

/// On shorter paths a stretch is what a host may be late for other reasons.
const SHORTEST_PATH: Duration = Duration::from_millis(8);
const STRETCH_DIVISOR: u32 = 8;
/// What a stretch has to deliver, as many as a round needs (RFC 9406 §4.3).
const LEAST_DATAGRAMS: u64 = 8;
/// The first stretch of a round may hold the pause before its first packet.
const LEAST_STRETCHES: u32 = 2;

#[cfg(test)]
mod tests;
