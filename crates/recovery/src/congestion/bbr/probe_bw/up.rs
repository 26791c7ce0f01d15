//! ProbeBW_UP, draft-ietf-ccwg-bbr §5.3.3.4 to §5.3.3.6: asks for more.

use courser_base::Rate;

use super::next::Next;
use crate::congestion::bbr::sample::Sample;
use crate::congestion::bbr::view::View;

/// The phase, and how fast it raises the long-term bound.
#[derive(Clone, Copy, Debug)]
pub(in crate::congestion::bbr) struct Up {
    /// `BBR.bw_probe_up_acked`.
    acked: u64,
    /// `BBR.probe_up_acked_per_inc`.
    acked_per_increase: u64,
    /// `BBR.bw_probe_up_rounds`.
    rounds: u32,
    /// `BBR.max_bw` when the probe began.
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

    /// `IsTimeToGoDown()`.
    pub(super) fn next(&self, rs: &Sample, is_bound: bool, view: View<'_>) -> Next {
        if let Some(long_term) = view.model.bounds.long_term {
            // The last probe found this to be too much: it is only touched this time. What was in
            // flight before the acknowledgement counts: one that stands for a large part of the
            // window hides that it was full.
            if view.feedback.was_too_high && rs.inflight_before >= long_term {
                return Next::Down {
                    is_precautionary: true,
                };
            }
            if is_bound {
                return Next::LookAnew;
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
    /// Deviates: on a path that has grown the bound grows as the rate did until they met. The
    /// draft begins with a datagram a round there too, and takes until its steps are as large.
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

    /// This probe found a quarter more than any sample since the last but one, and no queue: the
    /// bound was found on another path than this one. What others leave comes with a queue.
    fn has_path_grown(&self, view: View<'_>) -> bool {
        view.model.max_bw.get() >= self.start_bw.scaled(5, 4) && view.was_queue_empty()
    }

    /// `ProbeInflightLongtermUpward()`. Returns the bound that takes the place of `long_term`.
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

/// A datagram for every four that arrive is a quarter in a round, as much as the pacing gain adds.
const ACKED_PER_INCREASE: u64 = 4;

/// Growth doubles each round, up to this power of two.
const MAX_ROUNDS: u32 = 30;
