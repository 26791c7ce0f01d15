//! Noticing that the path carries more than it did when congestion was last met.

use std::time::Duration;

use courser_base::{Rate, Time};

use super::AckSample;

/// Compares what the path delivers with what it delivered when its queue was last seen to
/// overflow.
///
/// Deviates: RFC 9438 and RFC 9002 §7 know no such thing; there a window that was cut at a narrow
/// link goes on from there by its curve, or by a datagram per round trip, however wide the link has
/// become. But a congestion event with a queue tells how fast the bottleneck is. If all of a later
/// round is delivered clearly faster, by a window that is in full use and without a queue, then that
/// bottleneck is gone, the window of the last event means nothing, and the path is as unknown as a
/// new one: slow start.
///
/// What keeps it from taking something else for that:
/// - Loss without a queue sets no rate to compare with.
/// - Jitter: rounds are judged by the smallest of their round-trip times.
/// - Acknowledgements that come together: rates are those of whole rounds, one after the other
///   without a gap, and [`ROUNDS`] in a row must be fast.
/// - Other flows: they leave room when they go, which is a rise as good as any. While there is a
///   queue, a flow that gets a larger share of the same link is none.
/// - It happens at most once between two congestion events with a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct CapacityRise {
    is_on: bool,
    /// The rate of the last round before a congestion event that met a queue.
    reference: Option<Rate>,
    /// The last whole round, unless the application was the limit.
    last: Option<Finished>,
    /// Rounds in a row that were faster than `reference` and without a queue.
    fast_rounds: u32,
    round: Round,
    last_sent: u64,
}

/// One round trip, counted by packet numbers.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// The round is over when this number, the first one sent in it, is acknowledged.
    end: u64,
    began: Time,
    /// Bytes delivered on the path when it began.
    delivered: u64,
    min_rtt: Option<Duration>,
    samples: u32,
    is_app_limited: bool,
}

#[derive(Clone, Copy, Debug)]
struct Finished {
    rate: Rate,
    delay: Delay,
}

/// What the round-trip times of a round say about the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Delay {
    /// All packets of the round waited.
    Queue,
    /// Some packet did not wait.
    None,
    /// Neither can be said.
    Unclear,
}

impl CapacityRise {
    pub(super) fn new() -> Self {
        Self {
            is_on: true,
            reference: None,
            last: None,
            fast_rounds: 0,
            round: Round::default(),
            last_sent: 0,
        }
    }

    /// Never says that there was a rise.
    pub(super) fn switch_off(&mut self) {
        self.is_on = false;
    }

    pub(super) fn on_sent(&mut self, last_pn: u64) {
        self.last_sent = last_pn;
    }

    /// The window was cut.
    pub(super) fn on_congestion(&mut self) {
        self.fast_rounds = 0;
        if let Some(last) = self.last
            && last.delay == Delay::Queue
        {
            self.reference = Some(last.rate);
        }
    }

    /// True when the path has become wider and the window should look for its end again.
    pub(super) fn on_ack(&mut self, sample: &AckSample<'_>, mtu: u16) -> bool {
        self.round.is_app_limited |= sample.app_limited;
        if let Some(rtt) = sample.rtt_sample {
            self.round.min_rtt = Some(self.round.min_rtt.map_or(rtt, |min| min.min(rtt)));
            self.round.samples = self.round.samples.saturating_add(1);
        }
        if sample.largest_acked < self.round.end {
            return false;
        }
        self.last = self.finish(sample, mtu);
        self.round = Round {
            end: self.last_sent.saturating_add(1),
            began: sample.now,
            delivered: sample.delivered,
            ..Round::default()
        };
        let is_fast = self
            .last
            .zip(self.reference)
            .is_some_and(|(last, reference)| last.is_beyond(reference));
        self.fast_rounds = if is_fast { self.fast_rounds + 1 } else { 0 };
        if !self.is_on || self.fast_rounds < ROUNDS {
            return false;
        }
        self.fast_rounds = 0;
        self.reference = None;
        true
    }

    fn finish(&self, sample: &AckSample<'_>, mtu: u16) -> Option<Finished> {
        let round = &self.round;
        let bytes = sample.delivered.saturating_sub(round.delivered);
        let time = sample.now - round.began;
        if round.is_app_limited || round.end == 0 || time.is_zero() {
            return None;
        }
        // Few packets may all have been held up by something else than a queue of ours.
        let is_telling =
            round.samples >= LEAST_SAMPLES && bytes >= LEAST_DATAGRAMS * u64::from(mtu);
        Some(Finished {
            rate: Rate::from_bytes_in(bytes, time),
            delay: match round.min_rtt {
                Some(min) => Delay::of(min, sample.rtt.min(), is_telling),
                None => Delay::Unclear,
            },
        })
    }
}

impl Finished {
    fn is_beyond(&self, reference: Rate) -> bool {
        let (numerator, denominator) = FASTER;
        self.delay == Delay::None && self.rate > reference.scaled(numerator, denominator)
    }
}

impl Delay {
    fn of(min: Duration, path_min: Duration, is_telling: bool) -> Self {
        let wait = min.saturating_sub(path_min);
        let threshold = (path_min / QUEUE_DIVISOR).max(LEAST_QUEUE);
        if wait < threshold / 2 {
            Self::None
        } else if wait >= threshold && is_telling {
            Self::Queue
        } else {
            Self::Unclear
        }
    }
}

/// What a delivery rate has to be of the earlier one. Between a window that overflows a queue and
/// one that leaves it empty nothing gets faster: this is more than what measuring adds.
const FASTER: (u32, u32) = (5, 4);
/// So many rounds in a row have to be as fast.
const ROUNDS: u32 = 2;
/// A queue is what makes the fastest packet of a round wait for an eighth of the path's round-trip
/// time, and this at least: the thresholds of RFC 9406 §4.3. Half of it is none.
const QUEUE_DIVISOR: u32 = 8;
const LEAST_QUEUE: Duration = Duration::from_millis(4);
/// What a round has to have to show a queue, as in slow start.
const LEAST_SAMPLES: u32 = 3;
const LEAST_DATAGRAMS: u64 = 8;

#[cfg(test)]
mod tests;
