//! ProbeRTT, draft-ietf-ccwg-bbr §5.3.4: lets the queue drain.

use std::time::Duration;

use courser_base::Time;

use super::model::Model;

/// The ProbeRTT phase, which lasts for 200 ms and a round with a small flight.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeRtt {
    /// The time at which the flight has been small for long enough; known once it is small.
    done: Option<Time>,
    is_round_done: bool,
}

impl ProbeRtt {
    pub(super) const PACING_GAIN: u32 = 100;

    /// `BBR.ProbeRTTCwndGain` in percent: half of what the path holds.
    pub(super) const CWND_GAIN: u32 = 50;

    /// `HandleProbeRTT()`. Returns true at the end of the phase.
    pub(super) fn on_ack(&mut self, now: Time, model: &mut Model) -> bool {
        // Samples are low because little is sent.
        model.mark_app_limited();
        if self.done.is_none() {
            if model.inflight <= probe_rtt_cwnd(model) {
                self.done = Some(now + PROBE_RTT_DURATION);
                model.start_round();
            }
            return false;
        }
        self.is_round_done |= model.rounds.is_start;
        self.is_round_done && self.is_over(now)
    }

    /// Returns true if the flight has been small for long enough, see `CheckProbeRTTDone()`.
    pub(super) fn is_over(&self, now: Time) -> bool {
        self.done.is_some_and(|done| now > done)
    }
}

/// Returns `ProbeRTTCwnd()`, the window in this phase.
pub(super) fn probe_rtt_cwnd(model: &Model) -> u64 {
    model
        .bdp_multiple(model.bw, ProbeRtt::CWND_GAIN)
        .max(model.min_pipe_cwnd())
}

/// `BBR.ProbeRTTDuration`: long enough for flows with different round-trip times to overlap.
const PROBE_RTT_DURATION: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests;
