//! The search for a larger window after the capacity of a path has risen.

use std::time::Duration;

use courser_base::Rate;

use super::capacity_rise::longest_wait_without_queue;
use super::sample::AckSample;

/// Raises the window step by step, and checks after each step whether a queue forms.
///
/// Deviates: RFC 9438 and RFC 9002 §7 have no such mechanism, and slow start doubles the window in
/// the round trip before the effect of its growth shows. That is too much for a link that may be
/// full already, because another flow has left it to us: at a window of one BDP, slow start filled
/// a queue of another BDP before the first delayed packet was acknowledged. Here, the window grows
/// to a target at the speed of slow start and stays there. The packets sent from then on meet the
/// queue of the whole step, if there is one, and the fastest of the first few decides:
/// - If it has not waited, the path carries the window, and the next step begins.
/// - If it has waited, the path is full. The window becomes about what the path delivers in a round
///   trip without a queue, but never less than before the step.
///
/// The first step is a quarter. So a search that begins on a full link by mistake adds a quarter of
/// a round trip to its queue, for less than two round trips.
#[derive(Clone, Copy, Debug)]
pub(super) struct CapacitySearch {
    /// The window that the path carries without a queue.
    proven: u64,
    /// The window of the present step.
    target: u64,
    /// The largest target, if the path has delivered that much before.
    bound: Option<u64>,
    /// True if a step has left the queue empty.
    has_proven_step: bool,
    check: Option<Check>,
}

/// The observation of the packets that were sent after the window had reached the target.
#[derive(Clone, Copy, Debug)]
struct Check {
    /// The number of the first of these packets.
    since: u64,
    fastest: Duration,
    samples: u8,
}

/// The state of the search after an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Progress {
    /// The window grows up to the target, or waits for the decision.
    Growing,
    /// The path delivers more than before the search.
    FirstStepProven,
    /// The search is over.
    Over {
        /// The window to continue with.
        window: u64,
    },
}

impl CapacitySearch {
    /// Begins a search from `window`. It ends at `bound`, if there is one.
    pub(super) fn new(window: u64, bound: Option<u64>) -> Self {
        let bound = bound.map(|bound| bound.max(window));
        Self {
            proven: window,
            target: bounded(scaled(window, FIRST_STEP), bound),
            bound,
            has_proven_step: false,
            check: None,
        }
    }

    /// Returns the size up to which the window may grow.
    pub(super) fn target(&self) -> u64 {
        self.target
    }

    /// Returns true if a step has left the queue empty.
    pub(super) fn has_proven_step(&self) -> bool {
        self.has_proven_step
    }

    /// Processes an acknowledgement. `window` is the window before it, `usable` the size up to which
    /// it may grow because it is used, and `last_sent` the largest packet number sent.
    pub(super) fn on_ack(
        &mut self,
        sample: &AckSample<'_>,
        window: u64,
        usable: u64,
        last_sent: u64,
    ) -> Progress {
        // Delays show nothing about a window that is not full of packets.
        if sample.app_limited || usable < self.target {
            return self.over(self.proven);
        }
        if window < self.target {
            return Progress::Growing;
        }
        let check = self.check.get_or_insert(Check {
            since: last_sent.saturating_add(1),
            fastest: Duration::MAX,
            samples: 0,
        });
        let counts = sample.largest_acked >= check.since;
        let Some(rtt) = sample.rtt_sample.filter(|_| counts) else {
            return Progress::Growing;
        };
        check.fastest = check.fastest.min(rtt);
        check.samples += 1;
        if check.samples < MIN_SAMPLES {
            return Progress::Growing;
        }
        let (fastest, path_min) = (check.fastest, sample.rtt.min());
        self.check = None;
        if fastest.saturating_sub(path_min) >= longest_wait_without_queue(path_min) {
            let carried = Rate::from_bytes_in(self.target, fastest).bytes_in(path_min);
            // A part of the delay is that of a packet behind its own batch. With a little more than
            // measured, the link stays full.
            let margin = if self.has_proven_step { MARGIN } else { (1, 1) };
            return self.over(scaled(carried, margin).min(self.target));
        }
        let is_first = !self.has_proven_step;
        self.has_proven_step = true;
        self.proven = self.target;
        if self.bound.is_some_and(|bound| self.proven >= bound) {
            return self.over(self.proven);
        }
        self.target = bounded(scaled(self.proven, NEXT_STEP), self.bound);
        if is_first {
            Progress::FirstStepProven
        } else {
            Progress::Growing
        }
    }

    fn over(&self, window: u64) -> Progress {
        Progress::Over {
            window: window.max(self.proven),
        }
    }
}

fn scaled(window: u64, (numerator, denominator): (u64, u64)) -> u64 {
    window.saturating_mul(numerator) / denominator
}

fn bounded(window: u64, bound: Option<u64>) -> u64 {
    bound.map_or(window, |bound| window.min(bound))
}

/// The first step: a quarter. If the link is full, the queue grows by a quarter of the path.
const FIRST_STEP: (u64, u64) = (5, 4);
/// Each later step: a half. A window that has left no visible queue is at most 9/8 BDP, so this is
/// at most 1.7 BDP. With steps of three quarters, 10 to 80 Mbit/s x 40 ms with a queue of 0.4 BDP
/// lost 100 to 270 packets; with these it loses none in most runs.
const NEXT_STEP: (u64, u64) = (3, 2);
/// The window after a successful search, as a multiple of what the path was measured to carry. It leaves
/// no visible queue.
const MARGIN: (u64, u64) = (9, 8);
/// Number of samples that decide a step. A receiver that acknowledges an eighth of the window at
/// once gives them within half a round trip.
const MIN_SAMPLES: u8 = 3;

#[cfg(test)]
mod tests;
