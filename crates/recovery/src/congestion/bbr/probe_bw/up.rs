//! ProbeBW_UP, draft-ietf-ccwg-bbr §5.3.3.5, §5.3.3.6: probes for bandwidth.

use courser_base::Rate;

use super::next::Next;
use crate::congestion::bbr::sample::Sample;
use crate::congestion::bbr::view::View;

/// The ProbeBW_UP phase, which raises the long-term bound.
#[derive(Clone, Copy, Debug)]
pub(in crate::congestion::bbr) struct Up {
    /// `BBR.bw_probe_up_acked`: bytes acknowledged since the bound was last raised.
    acked: u64,
    /// `BBR.probe_up_acked_per_inc`: bytes to be acknowledged for each datagram added to the bound.
    acked_per_increase: u64,
    /// `BBR.bw_probe_up_rounds`: rounds of this probe, in each of which the growth doubles.
    rounds: u32,
    /// `BBR.max_bw` at the start of the probe.
    start_bw: Rate,
}

impl Up {
    pub(super) const PACING_GAIN: u32 = 125;

    pub(super) fn new(view: View<'_>) -> Self {
        let mut up = Self {
            acked: 0,
            acked_per_increase: 0,
            rounds: 0,
            start_bw: view.model.max_bw.get(),
        };
        up.raise_inflight_longterm_slope(view);
        up
    }

    /// Returns the next phase, see `IsTimeToGoDown()`.
    pub(super) fn next(&self, rs: &Sample, is_bound: bool, view: View<'_>) -> Next {
        if let Some(long_term) = view.model.bounds.long_term {
            // The last probe found this flight to be too large, so this one ends when it reaches
            // the bound. The bytes in flight before the acknowledgement count. After an
            // acknowledgement of a large part of the window, the flight would not reveal that the
            // window was full.
            if view.feedback.was_too_high && rs.inflight_before >= long_term {
                return Next::Down {
                    is_precautionary: true,
                };
            }
            if is_bound {
                return Next::ResetFullPipe;
            }
        }
        if view.model.full_pipe.is_now {
            Next::Down {
                is_precautionary: false,
            }
        } else {
            Next::Stay
        }
    }

    /// `RaiseInflightLongtermSlope()`.
    ///
    /// Deviates: on a path that has grown, the bound rises as fast as the rate did before it
    /// reached the bound. The draft starts with a datagram per round there as well, and takes many
    /// rounds until its steps are as large.
    fn raise_inflight_longterm_slope(&mut self, view: View<'_>) {
        let smss = view.model.smss();
        let growth = 1u64 << self.rounds;
        self.rounds = (self.rounds + 1).min(MAX_ROUNDS);
        let mut per_increase = view.control.cwnd / growth;
        if self.has_path_grown(view) {
            per_increase = per_increase.min(ACKED_PER_INCREASE * smss);
        }
        self.acked_per_increase = per_increase.max(smss);
    }

    /// Returns true if this probe found a quarter more than any sample since the last but one, and
    /// no queue. The bound was measured on a different path then: capacity left by other flows
    /// comes with a queue.
    fn has_path_grown(&self, view: View<'_>) -> bool {
        view.model.max_bw.get() >= self.start_bw.scaled(5, 4) && view.was_queue_empty()
    }

    /// `ProbeInflightLongtermUpward()`. Returns the bound that replaces `long_term`.
    pub(super) fn raise(&mut self, rs: &Sample, long_term: u64, view: View<'_>) -> u64 {
        let rounds = &view.model.rounds;
        if !rounds.is_cwnd_limited() || view.control.cwnd < long_term {
            return long_term;
        }
        self.acked += rs.newly_acked;
        let increases = self.acked / self.acked_per_increase;
        self.acked %= self.acked_per_increase;
        if rounds.is_start {
            self.raise_inflight_longterm_slope(view);
        }
        long_term + increases * view.model.smss()
    }
}

/// Datagrams acknowledged per increase: four, so that the bound grows by a quarter in a round, as
/// the pacing rate does.
const ACKED_PER_INCREASE: u64 = 4;

/// The largest exponent of growth, which doubles each round.
const MAX_ROUNDS: u32 = 30;
