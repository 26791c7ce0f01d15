//! The path as far as it is known, draft-ietf-ccwg-bbr §5.5.

use courser_base::Rate;

use super::aggregation::Acked;
use super::{Bbr, Sample, State};
use crate::congestion::window::MAX_WINDOW;

/// What the path carried after losses in the present cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ShortTerm {
    pub(super) bw: Rate,
    pub(super) inflight: u64,
}

impl ShortTerm {
    /// The higher of both, and infinite if one is.
    pub(super) fn max(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        let (one, other) = (one?, other?);
        Some(Self {
            bw: one.bw.max(other.bw),
            inflight: one.inflight.max(other.inflight),
        })
    }
}

impl Bbr {
    /// `UpdateMaxBw()`.
    pub(super) fn update_max_bw(&mut self, rs: &Sample) {
        self.rounds.on_ack(rs.prior_delivered, self.delivered);
        if self.rounds.is_start {
            self.count_round_since_probe_up();
            let min_rtt = self.min_rtt.get().unwrap_or_default();
            self.ambient
                .on_round_end(self.was_quiet(), min_rtt, self.smss());
        }
        if let Some(rtt) = rs.rtt {
            self.rounds.on_rtt_sample(rtt);
        }
        if rs.delivery_rate >= self.max_bw.get() || !rs.is_app_limited {
            self.max_bw.on_sample(rs.delivery_rate);
        }
    }

    /// `BoundBWForModel()`.
    pub(super) fn bound_bw_for_model(&mut self) {
        let max_bw = self.max_bw.get();
        self.bw = self.short_term.map_or(max_bw, |term| max_bw.min(term.bw));
    }

    /// `UpdateACKAggregation()`.
    pub(super) fn update_ack_aggregation(&mut self, rs: &Sample) {
        let rounds = if self.full_pipe.is_reached {
            EXTRA_ACKED_FILTER_LEN
        } else {
            1
        };
        let acked = Acked {
            now: rs.now,
            bytes: rs.newly_acked,
            window: self.cwnd,
        };
        self.aggregation
            .on_ack(acked, self.bw, self.rounds.count, rounds);
    }

    /// `BDPMultiple(gain)`, with the gain in percent.
    pub(super) fn bdp_multiple(&self, bw: Rate, gain: u32) -> u64 {
        match self.min_rtt.get() {
            None => self.initial_cwnd(),
            Some(rtt) => {
                let bdp = u128::from(bw.bytes_in(rtt)) * u128::from(gain) / 100;
                u64::try_from(bdp).map_or(MAX_WINDOW, |bdp| bdp.min(MAX_WINDOW))
            }
        }
    }

    /// `BBR.bdp`.
    pub(super) fn bdp(&self) -> u64 {
        self.bdp_multiple(self.bw, super::UNITY)
    }

    /// `QuantizationBudget()`.
    pub(super) fn quantization_budget(&self, inflight: u64) -> u64 {
        let inflight = inflight.max(self.quantum()).max(self.min_pipe_cwnd());
        match self.state {
            State::Up => inflight + 2 * self.smss(),
            _ => inflight,
        }
    }

    /// `Inflight(bw, gain)`.
    pub(super) fn inflight_at(&self, bw: Rate, gain: u32) -> u64 {
        self.quantization_budget(self.bdp_multiple(bw, gain))
    }

    /// `TargetInflight()`.
    pub(super) fn target_inflight(&self) -> u64 {
        self.bdp().min(self.cwnd)
    }

    /// Nothing that the last round lost can have been lost to a queue of ours: we sent no faster
    /// than the path delivers, or it kept up with us, and its round-trip times were those of an
    /// empty path.
    fn was_quiet(&self) -> bool {
        let has_kept_up = match self.state {
            State::Startup => self.full_pipe.is_growing(),
            State::Down => self.cycle.ack_phase == super::probe_bw::AckPhase::Init,
            State::Cruise => true,
            _ => false,
        };
        has_kept_up && self.was_queue_empty()
    }

    /// Round-trip times in the last round were on average no more than an eighth above the
    /// minimum, and what a quantum of ours adds to them.
    pub(super) fn was_queue_empty(&self) -> bool {
        let (Some(mean), Some(min)) = (self.rounds.mean_rtt(), self.min_rtt.get()) else {
            return false;
        };
        let own = self.bw.time_for(self.quantum());
        mean <= (min + min / 8).saturating_add(own)
    }
}

/// `BBR.ExtraAckedFilterLen`.
const EXTRA_ACKED_FILTER_LEN: u64 = 10;
