//! ProbeRTT, draft-ietf-ccwg-bbr §5.3.4: gives the queue a chance to empty.

use std::time::Duration;

use courser_base::Time;

use super::probe_bw::AckPhase;
use super::{Bbr, Sample, State};

impl Bbr {
    /// `UpdateMinRTT()`.
    ///
    /// Deviates: on long paths a round without a queue puts off ProbeRTT, and so does one packet
    /// that met none. The draft means it to cost 2 %, which holds for round-trip times up to
    /// 100 ms: on one of 600 ms each ProbeRTT costs a whole round trip, 11 % at one in five
    /// seconds, and 88 % of the path was measured in place of 95. There a round is also long:
    /// Drain had emptied the queue of Startup, and before a whole round had shown it, ProbeRTT
    /// came to do so again. Up to 100 ms nothing changes, so that flows find each other as
    /// intended.
    pub(super) fn update_min_rtt(&mut self, rs: &Sample) {
        let has_met_none = rs.rtt.is_some_and(|rtt| self.min_rtt.is_met_by(rtt));
        if has_met_none || self.rounds.is_start && self.was_queue_empty() {
            self.min_rtt.on_empty_queue(rs.now);
        }
        self.min_rtt.on_ack(rs.now, rs.rtt);
        if let Some(min_rtt) = self.min_rtt.get() {
            self.ambient.on_min_rtt(min_rtt);
        }
    }

    /// `CheckProbeRTT()`.
    pub(super) fn check_probe_rtt(&mut self, rs: &Sample) {
        let is_probing = matches!(self.state, State::ProbeRtt { .. });
        if !is_probing && self.min_rtt.is_expired && !self.pause.is_restart {
            self.enter_probe_rtt();
        }
        if let State::ProbeRtt {
            done,
            is_round_done,
        } = self.state
        {
            self.handle_probe_rtt(rs.now, done, is_round_done);
        }
        if rs.delivered > 0 {
            self.pause.is_restart = false;
        }
    }

    fn enter_probe_rtt(&mut self) {
        self.save_cwnd();
        self.state = State::ProbeRtt {
            done: None,
            is_round_done: false,
        };
        self.cycle.ack_phase = AckPhase::ProbeStopping;
        self.rounds.start(self.delivered);
    }

    /// `HandleProbeRTT()`.
    fn handle_probe_rtt(&mut self, now: Time, done: Option<Time>, is_round_done: bool) {
        // Samples are low because we send little.
        self.mark_app_limited();
        if done.is_none() {
            if self.inflight <= self.probe_rtt_cwnd() {
                self.state = State::ProbeRtt {
                    done: Some(now + PROBE_RTT_DURATION),
                    is_round_done: false,
                };
                self.rounds.start(self.delivered);
            }
            return;
        }
        let is_round_done = is_round_done || self.rounds.is_start;
        self.state = State::ProbeRtt {
            done,
            is_round_done,
        };
        if is_round_done {
            self.check_probe_rtt_done(now);
        }
    }

    /// `CheckProbeRTTDone()`.
    pub(super) fn check_probe_rtt_done(&mut self, now: Time) {
        let State::ProbeRtt {
            done: Some(done), ..
        } = self.state
        else {
            return;
        };
        if now > done {
            self.min_rtt.on_probed(now);
            self.restore_cwnd();
            self.exit_probe_rtt(now);
        }
    }

    /// `ExitProbeRTT()`.
    fn exit_probe_rtt(&mut self, now: Time) {
        self.short_term = None;
        if self.full_pipe.is_reached {
            // Probing would cause loss if others have taken the room; there is no queue to drain.
            self.start_probe_bw_down(now);
            self.start_probe_bw_cruise();
        } else {
            self.enter_startup();
        }
    }

    /// `ProbeRTTCwnd()`.
    pub(super) fn probe_rtt_cwnd(&self) -> u64 {
        self.bdp_multiple(self.bw, PROBE_RTT_CWND_GAIN)
            .max(self.min_pipe_cwnd())
    }
}

/// `BBR.ProbeRTTDuration`: long enough for flows of unlike round-trip times to meet.
const PROBE_RTT_DURATION: Duration = Duration::from_millis(200);

/// `BBR.ProbeRTTCwndGain` in percent.
const PROBE_RTT_CWND_GAIN: u32 = 50;

#[cfg(test)]
mod tests;
