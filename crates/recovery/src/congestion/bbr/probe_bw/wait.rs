//! The time between probes for bandwidth, draft-ietf-ccwg-bbr §5.3.3.8.

use std::time::Duration;

use courser_base::Time;

use crate::congestion::bbr::random::Random;
use crate::congestion::bbr::view::View;

/// The time between two probes for bandwidth, which ProbeBW_DOWN and ProbeBW_CRUISE share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    /// `BBR.cycle_stamp`: the time at which the cycle began.
    stamp: Time,
    /// `BBR.bw_probe_wait`: the time from `stamp` to the next probe.
    pub(super) length: Duration,
    /// `BBR.rounds_since_probe_up`, which starts at zero or one at random.
    rounds: u64,
}

impl Wait {
    /// Picks random lengths in time and rounds, see `PickProbeWait()`.
    pub(super) fn pick(now: Time, random: &mut Random) -> Self {
        let rounds = random.below(2);
        let extra = Duration::from_nanos(random.below(MAX_RANDOM_WAIT_NANOS));
        Self {
            stamp: now,
            length: MIN_PROBE_WAIT + extra,
            rounds,
        }
    }

    /// Counts a round towards [`MAX_RENO_ROUNDS`].
    pub(super) fn on_round_start(&mut self) {
        self.rounds += 1;
    }

    /// Returns true if the next probe is due, see `IsTimeToProbeBW()`.
    ///
    /// Deviates: while the path is known to be full, a probe only takes capacity from other flows.
    /// It is due when CUBIC would have filled the path again.
    pub(super) fn is_over(&self, now: Time, view: View<'_>) -> bool {
        if is_path_full(view) {
            return self.is_cubic_coexistence_probe_time(now, view)
                || self.is_reno_coexistence_probe_time(MAX_LOSSY_ROUNDS, view);
        }
        now > self.stamp + self.length || self.is_reno_coexistence_probe_time(MAX_RENO_ROUNDS, view)
    }

    /// `IsRenoCoexistenceProbeTime()`: returns true if Reno would have lost a packet by now.
    fn is_reno_coexistence_probe_time(&self, most: u64, view: View<'_>) -> bool {
        let reno_rounds = view.target_inflight() / view.model.smss();
        self.rounds >= reno_rounds.min(most)
    }

    /// Returns true if CUBIC would have as much in flight again since the last probe that was too
    /// high. Flows with less in flight reach that point sooner, so they probe more often. A probe
    /// that ProbeRTT cut short counts as well, because its losses may be those of other flows.
    fn is_cubic_coexistence_probe_time(&self, now: Time, view: View<'_>) -> bool {
        let random = self.length.saturating_sub(MIN_PROBE_WAIT);
        let bound = view.model.bounds.long_term.unwrap_or(view.control.cwnd);
        let since = (now - view.feedback.last_probe).saturating_sub(random);
        has_cubic_returned(bound / view.model.smss(), since)
    }
}

/// Returns true if the last probe ended with a loss and there is a queue now. Without a queue there
/// may be free capacity, because the queue in which the probe had its loss is gone.
fn is_path_full(view: View<'_>) -> bool {
    view.feedback.was_too_high && !view.was_queue_empty()
}

/// Returns true if CUBIC has returned to the window of a loss, in `datagrams`, after this time. By
/// RFC 9438 §4.2 it takes `K` seconds, with `C * K^3 = (1 - beta_cubic) * W_max`, 0.4 and 0.7.
fn has_cubic_returned(datagrams: u64, since: Duration) -> bool {
    let growth = since.as_millis().saturating_pow(3).saturating_mul(4);
    growth >= u128::from(datagrams) * 3 * 1_000_000_000
}

/// The shortest `T_bbr`, which is two to three seconds, §5.3.3.8.
pub(super) const MIN_PROBE_WAIT: Duration = Duration::from_secs(2);
const MAX_RANDOM_WAIT_NANOS: u64 = 1_000_000_000;

/// `T_reno_bound`. It is 62 half of the time, because the count of rounds starts at zero or one.
const MAX_RENO_ROUNDS: u64 = 63;

/// Rounds with a loss of one packet in a hundred for which one probe can compensate, §5.3.3.8.
const MAX_LOSSY_ROUNDS: u64 = 137;
