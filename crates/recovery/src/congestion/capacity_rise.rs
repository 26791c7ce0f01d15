//! Detects that the capacity of the path has risen since the last congestion event.

use std::time::Duration;

use courser_base::{Rate, Time};

use super::sample::AckSample;

/// Compares the delivery rate with the rate at which the path delivered when there last was a
/// queue.
///
/// Deviates: RFC 9438 and RFC 9002 §7 have no such mechanism. There, a window that was reduced at a
/// narrow link grows along its curve, or by a datagram per round trip, even if the capacity of the
/// link has risen by much more. But a queue reveals the rate of the bottleneck. If a whole later
/// round is delivered clearly faster, with the window in full use and without a queue, then that
/// bottleneck is gone. The window of the last congestion event is meaningless then, and the
/// controller searches for a larger one (`CapacitySearch`).
///
/// The following rules avoid false detections:
/// - Loss: without a queue there is no rate to compare with, regardless of losses.
/// - Jitter: only the smallest round-trip time of a round counts, and a queue must last for several
///   rounds in a row, for more of them if nothing was lost.
/// - Variable delay: the rate to compare with is the highest since the window was reduced.
/// - Aggregated acknowledgements: rates are those of whole rounds without gaps between them.
/// - Other flows: if one ends, its share of the same link becomes free. While there is a queue, a
///   flow that gets a larger share does not count. Without one, the highest rate that the path has
///   ever delivered with a queue shows what the link carries: a window that carries as much needs no
///   search, and a smaller one is searched for up to that size only.
/// - After a rise there must be a queue again before the next one. If the search finds nothing, the
///   next one begins after four times as many fast rounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct CapacityRise {
    is_enabled: bool,
    /// The rate of the bottleneck: the highest one up to the last round with a queue.
    reference: Option<Rate>,
    /// The highest `reference` of the path so far.
    capacity: Rate,
    /// The highest rate of a round since the window was reduced.
    peak: Rate,
    /// Rounds in a row with a queue.
    queue_rounds: u8,
    /// Rounds in a row that were faster than `reference` and without a queue.
    fast_rounds: u8,
    /// Fast rounds in a row that show a rise.
    needed: u8,
    /// True if there was a congestion event in this round.
    is_congested: bool,
    round: Round,
}

/// A rise in the capacity of the path since the last congestion event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rise {
    /// The window up to which to search, which the path has delivered before. `None` if its rate
    /// has never been as high.
    pub(super) bound: Option<u64>,
}

/// One round trip, counted by packet numbers.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// The first packet number sent in the round, whose acknowledgement ends it.
    end: u64,
    began: Time,
    /// Bytes delivered on the path at the start of the round.
    delivered: u64,
    min_rtt: Duration,
    samples: u16,
    is_app_limited: bool,
}

/// The queue of a round, derived from its round-trip times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Queue {
    /// All packets of the round were delayed.
    Standing,
    /// At least one packet was not delayed.
    Empty,
    /// The round-trip times are inconclusive.
    Unclear,
}

impl CapacityRise {
    pub(super) fn new() -> Self {
        Self {
            is_enabled: true,
            reference: None,
            capacity: Rate::default(),
            peak: Rate::default(),
            queue_rounds: 0,
            fast_rounds: 0,
            needed: FAST_ROUNDS,
            is_congested: false,
            // The time before the first packet is not a round.
            round: Round {
                is_app_limited: true,
                ..Round::new(0, Time::ZERO, 0)
            },
        }
    }

    pub(super) fn disable(&mut self) {
        self.is_enabled = false;
    }

    /// Returns true if the detection is disabled.
    pub(super) fn is_disabled(&self) -> bool {
        !self.is_enabled
    }

    /// Records that the window is reduced.
    pub(super) fn on_congestion(&mut self) {
        self.is_congested = true;
        self.record_queue();
        self.peak = Rate::default();
        self.fast_rounds = 0;
        self.needed = FAST_ROUNDS;
    }

    /// Records that a search has found no larger window. The next one begins later.
    pub(super) fn on_failed_search(&mut self) {
        self.needed = self.needed.saturating_mul(BACK_OFF);
        self.fast_rounds = 0;
    }

    /// Records that a search has found a larger window. The next one needs another queue.
    pub(super) fn on_successful_search(&mut self) {
        self.reference = None;
        self.needed = FAST_ROUNDS;
        self.fast_rounds = 0;
    }

    /// Returns the rise if the path can deliver more than `window`, so that the controller should
    /// search for a larger one. `last_sent` is the largest packet number sent.
    pub(super) fn on_ack(
        &mut self,
        sample: &AckSample<'_>,
        mtu: u16,
        window: u64,
        last_sent: u64,
    ) -> Option<Rise> {
        let round = &mut self.round;
        round.is_app_limited |= sample.app_limited;
        if let Some(rtt) = sample.rtt_sample {
            round.min_rtt = round.min_rtt.min(rtt);
            round.samples = round.samples.saturating_add(1);
        }
        if sample.largest_acked < round.end {
            return None;
        }
        let finished = *round;
        *round = Round::new(last_sent.saturating_add(1), sample.now, sample.delivered);
        let rate = self.evaluate(&finished, sample, mtu)?;
        if !self.is_enabled || self.fast_rounds < self.needed {
            return None;
        }
        if is_faster(rate, self.capacity) {
            return Some(Rise { bound: None });
        }
        let carried = self.capacity.bytes_in(sample.rtt.min());
        (window < carried).then_some(Rise {
            bound: Some(carried),
        })
    }

    /// Returns the rate of the round, if the window was in full use.
    fn evaluate(&mut self, round: &Round, sample: &AckSample<'_>, mtu: u16) -> Option<Rate> {
        let bytes = sample.delivered.saturating_sub(round.delivered);
        let time = sample.now - round.began;
        if round.is_app_limited || time.is_zero() {
            self.is_congested = false;
            self.queue_rounds = 0;
            self.fast_rounds = 0;
            return None;
        }
        let rate = Rate::from_bytes_in(bytes, time);
        let queue = round.queue(sample.rtt.min(), bytes, mtu);
        self.peak = self.peak.max(rate);
        self.queue_rounds = match queue {
            Queue::Standing => self.queue_rounds.saturating_add(1),
            Queue::Empty | Queue::Unclear => 0,
        };
        // In slow start a queue may be so recent that the round of the first loss is only its
        // second.
        self.record_queue();
        self.is_congested = false;
        let is_rise = |reference| is_faster(rate, reference);
        let is_fast = queue == Queue::Empty && self.reference.is_some_and(is_rise);
        self.fast_rounds = if is_fast {
            self.fast_rounds.saturating_add(1)
        } else {
            0
        };
        Some(rate)
    }

    /// Records the rate as that of the bottleneck if there has been a queue for enough rounds.
    fn record_queue(&mut self) {
        let needed = if self.is_congested {
            CONGESTED_ROUNDS
        } else {
            LOSSLESS_ROUNDS
        };
        if self.queue_rounds >= needed && self.peak > Rate::default() {
            self.reference = Some(self.peak);
            self.capacity = self.capacity.max(self.peak);
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
        let threshold = shortest_queue(path_min);
        // A few packets may all have been delayed by something other than our queue.
        let is_conclusive = self.samples >= MIN_SAMPLES && bytes >= MIN_DATAGRAMS * u64::from(mtu);
        if wait < longest_wait_without_queue(path_min) {
            Queue::Empty
        } else if wait >= threshold && is_conclusive {
            Queue::Standing
        } else {
            Queue::Unclear
        }
    }
}

/// Returns true if a rate exceeds another by more than measurement errors.
fn is_faster(rate: Rate, reference: Rate) -> bool {
    let (numerator, denominator) = FASTER;
    rate > reference.scaled(numerator, denominator)
}

/// Returns the shortest delay that counts as a queue on a path with this round-trip time.
fn shortest_queue(path_min: Duration) -> Duration {
    (path_min / QUEUE_DIVISOR).max(MIN_QUEUE_DELAY)
}

/// Returns the delay below which a packet has met no queue on a path with this round-trip time.
pub(super) fn longest_wait_without_queue(path_min: Duration) -> Duration {
    shortest_queue(path_min) / 2
}

/// The factor by which a delivery rate must exceed the earlier one. A window that leaves the queue
/// empty is delivered no faster than one that overflows it. The factor exceeds measurement errors.
const FASTER: (u32, u32) = (5, 4);
/// Fast rounds in a row that show a rise. One is enough, because the search begins with a small step
/// that is verified.
const FAST_ROUNDS: u8 = 1;
/// The factor by which a failed search raises the number of fast rounds that the next one needs.
const BACK_OFF: u8 = 4;
/// Rounds in a row with a queue that suffice if one of them lost packets.
const CONGESTED_ROUNDS: u8 = 2;
/// Rounds in a row with a queue that suffice if none lost packets.
const LOSSLESS_ROUNDS: u8 = 4;
/// There is a queue if the fastest packet of a round is delayed by this fraction of the path's
/// round-trip time, and none if it is delayed by less than half of that.
const QUEUE_DIVISOR: u32 = 4;
/// Minimum delay that counts as a queue. Shorter delays are noise of the hosts on short paths (RFC
/// 9406 §4.3).
const MIN_QUEUE_DELAY: Duration = Duration::from_millis(4);
/// Minimum number of samples in a round that can show a queue, as in slow start.
const MIN_SAMPLES: u16 = 3;
/// Minimum number of datagrams in a round that can show a queue, as in slow start.
const MIN_DATAGRAMS: u64 = 8;

#[cfg(test)]
mod tests;
