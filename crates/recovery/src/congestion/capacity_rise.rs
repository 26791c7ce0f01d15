//! Noticing that the path carries more than it did when congestion was last met.

use std::time::Duration;

use courser_base::{Rate, Time};

use super::sample::AckSample;

/// Compares what the path delivers with what it delivered when there last was a queue.
///
/// Deviates: RFC 9438 and RFC 9002 §7 know no such thing; there a window that was cut at a narrow
/// link goes on from there by its curve, or by a datagram per round trip, however wide the link has
/// become. But a queue tells how fast the bottleneck is. If all of a later round is delivered clearly
/// faster, by a window that is in full use and without a queue, then that bottleneck is gone, the
/// window of the last congestion means nothing, and the path is as unknown as a new one: slow start.
///
/// What keeps it from taking something else for that:
/// - Without a queue there is no rate to compare with, whatever gets lost.
/// - Jitter: rounds are judged by the smallest of their round-trip times, and a queue is one that
///   several rounds in a row have met, the more if nothing was lost.
/// - Delay that comes and goes: the rate to compare with is the highest since the window was cut.
/// - Acknowledgements that come together: rates are those of whole rounds, one after the other
///   without a gap, and two in a row must be fast.
/// - Other flows: they leave room when they go, which is a rise as good as any. While there is a
///   queue, a flow that gets a larger share of the same link is none.
/// - After a rise there has to be a queue again before the next one.
#[derive(Clone, Copy, Debug)]
pub(super) struct CapacityRise {
    is_on: bool,
    /// The highest rate up to the last round with a queue.
    reference: Option<Rate>,
    /// The highest rate of a round since the window was cut.
    peak: Rate,
    /// Rounds in a row that met a queue.
    queue_rounds: u8,
    /// Rounds in a row that were faster than `reference` and without a queue.
    fast_rounds: u8,
    /// There was a congestion event in this round.
    is_congested: bool,
    round: Round,
}

/// One round trip, counted by packet numbers.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// The round is over when this number, the first one sent in it, is acknowledged.
    end: u64,
    began: Time,
    /// Bytes delivered on the path when it began.
    delivered: u64,
    min_rtt: Duration,
    samples: u16,
    is_app_limited: bool,
}

/// What the round-trip times of a round say about the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Queue {
    /// All packets of the round waited.
    Standing,
    /// Some packet did not wait.
    Empty,
    /// Neither can be said.
    Unclear,
}

impl CapacityRise {
    pub(super) fn new() -> Self {
        Self {
            is_on: true,
            reference: None,
            peak: Rate::default(),
            queue_rounds: 0,
            fast_rounds: 0,
            is_congested: false,
            // What comes before the first packet of a round is no round.
            round: Round {
                is_app_limited: true,
                ..Round::new(0, Time::ZERO, 0)
            },
        }
    }

    /// Never says that there was a rise.
    pub(super) fn switch_off(&mut self) {
        self.is_on = false;
    }

    /// The window is cut.
    pub(super) fn on_congestion(&mut self) {
        self.is_congested = true;
        self.note_queue();
        self.peak = Rate::default();
        self.fast_rounds = 0;
    }

    /// True when the path has become wider and the window should look for its end again.
    /// `last_sent` is the largest packet number that has been sent.
    pub(super) fn on_ack(&mut self, sample: &AckSample<'_>, mtu: u16, last_sent: u64) -> bool {
        let round = &mut self.round;
        round.is_app_limited |= sample.app_limited;
        if let Some(rtt) = sample.rtt_sample {
            round.min_rtt = round.min_rtt.min(rtt);
            round.samples = round.samples.saturating_add(1);
        }
        if sample.largest_acked < round.end {
            return false;
        }
        let finished = *round;
        *round = Round::new(last_sent.saturating_add(1), sample.now, sample.delivered);
        self.judge(&finished, sample, mtu);
        if !self.is_on || self.fast_rounds < FAST_ROUNDS {
            return false;
        }
        self.fast_rounds = 0;
        self.reference = None;
        true
    }

    fn judge(&mut self, round: &Round, sample: &AckSample<'_>, mtu: u16) {
        let bytes = sample.delivered.saturating_sub(round.delivered);
        let time = sample.now - round.began;
        if round.is_app_limited || time.is_zero() {
            self.is_congested = false;
            self.queue_rounds = 0;
            self.fast_rounds = 0;
            return;
        }
        let rate = Rate::from_bytes_in(bytes, time);
        let queue = round.queue(sample.rtt.min(), bytes, mtu);
        self.peak = self.peak.max(rate);
        self.queue_rounds = match queue {
            Queue::Standing => self.queue_rounds.saturating_add(1),
            Queue::Empty | Queue::Unclear => 0,
        };
        // In slow start a queue may be so new that the round of the first loss is the second one.
        self.note_queue();
        self.is_congested = false;
        let (numerator, denominator) = FASTER;
        let is_faster = |reference: Rate| rate > reference.scaled(numerator, denominator);
        let is_fast = queue == Queue::Empty && self.reference.is_some_and(is_faster);
        self.fast_rounds = if is_fast { self.fast_rounds + 1 } else { 0 };
    }

    /// Takes the rate as that of the bottleneck if there certainly is a queue.
    fn note_queue(&mut self) {
        let needed = if self.is_congested {
            CONGESTED_ROUNDS
        } else {
            QUIET_ROUNDS
        };
        if self.queue_rounds >= needed && self.peak > Rate::default() {
            self.reference = Some(self.peak);
        }
    }
}

impl Round {
    fn new(end: u64, began: Time, delivered: u64) -> Self {
        Self {
            end,
            began,
            delivered,
            min_rtt: Duration::MAX,
            samples: 0,
            is_app_limited: false,
        }
    }

    fn queue(&self, path_min: Duration, bytes: u64, mtu: u16) -> Queue {
        let wait = self.min_rtt.saturating_sub(path_min);
        let threshold = (path_min / QUEUE_DIVISOR).max(LEAST_QUEUE);
        // Few packets may all have been held up by something else than a queue of ours.
        let is_telling = self.samples >= LEAST_SAMPLES && bytes >= LEAST_DATAGRAMS * u64::from(mtu);
        if wait < threshold / 2 {
            Queue::Empty
        } else if wait >= threshold && is_telling {
            Queue::Standing
        } else {
            Queue::Unclear
        }
    }
}

/// What a delivery rate has to be of the earlier one. Between a window that overflows a queue and
/// one that leaves it empty nothing gets faster: this is more than what measuring adds.
const FASTER: (u32, u32) = (5, 4);
/// So many rounds in a row have to be as fast.
const FAST_ROUNDS: u8 = 2;
/// Rounds in a row with a queue when one of them lost packets ...
const CONGESTED_ROUNDS: u8 = 2;
/// ... and when none did.
const QUIET_ROUNDS: u8 = 4;
/// A queue is what makes the fastest packet of a round wait for a quarter of the path's round-trip
/// time, and this at least, which is noise of the hosts on short paths (RFC 9406 §4.3). Half of it
/// is none.
const QUEUE_DIVISOR: u32 = 4;
const LEAST_QUEUE: Duration = Duration::from_millis(4);
/// What a round has to have to show a queue, as in slow start.
const LEAST_SAMPLES: u16 = 3;
const LEAST_DATAGRAMS: u64 = 8;

#[cfg(test)]
mod tests;
