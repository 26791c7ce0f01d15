//! The results of probes for bandwidth, draft-ietf-ccwg-bbr §5.3.3.

use courser_base::Time;

/// The result of the last probe for bandwidth.
///
/// It outlives the phases of ProbeBW, because acknowledgements cover packets sent a round trip ago,
/// and ProbeRTT may come in between.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Feedback {
    ack_phase: AckPhase,
    /// `BBR.is_bw_probe_sample`: acknowledgements may cover packets of the probe.
    pub(super) is_probe_sample: bool,
    /// `BBR.prev_probe_too_high`: the last probe ended because too much was lost or marked.
    pub(super) was_too_high: bool,
    /// `BBR.prev_probe_precautionary`: the last probe ended at the long-term bound.
    pub(super) was_precautionary: bool,
    /// The time at which a probe last began or was found to be too high.
    pub(super) last_probe: Time,
}

/// `BBR.ack_phase`: the phase in which acknowledged packets were sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum AckPhase {
    #[default]
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

impl Feedback {
    /// Records the start of ProbeBW_DOWN or ProbeRTT.
    pub(super) fn on_stop(&mut self) {
        self.ack_phase = AckPhase::ProbeStopping;
    }

    /// Records the start of ProbeBW_REFILL.
    pub(super) fn on_refill(&mut self) {
        self.was_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
    }

    /// Records the start of ProbeBW_UP.
    pub(super) fn on_probe(&mut self, now: Time) {
        self.is_probe_sample = true;
        self.last_probe = now;
        self.ack_phase = AckPhase::ProbeStarting;
    }

    /// Records the end of ProbeBW_UP for reasons other than too much in flight.
    pub(super) fn on_probed(&mut self, is_precautionary: bool) {
        self.was_precautionary |= is_precautionary;
        self.was_too_high = false;
    }

    /// Records that too much was in flight, see `HandleInflightTooHigh()`.
    pub(super) fn on_too_high(&mut self, now: Time) {
        self.was_too_high = true;
        self.last_probe = now;
        self.is_probe_sample = false;
    }

    /// Records the start of a round. Returns true once all packets sent while probing are
    /// acknowledged.
    pub(super) fn on_round_start(&mut self) -> bool {
        match self.ack_phase {
            AckPhase::ProbeStarting => {
                self.ack_phase = AckPhase::ProbeFeedback;
                false
            }
            AckPhase::ProbeStopping => {
                self.is_probe_sample = false;
                self.ack_phase = AckPhase::Init;
                true
            }
            AckPhase::Init | AckPhase::Refilling | AckPhase::ProbeFeedback => false,
        }
    }

    /// Returns true if acknowledgements no longer cover packets of a probe.
    pub(super) fn is_over(&self) -> bool {
        self.ack_phase == AckPhase::Init
    }

    /// Returns true if the last probe only reached the bound, and not too much was lost.
    pub(super) fn may_probe_again(&self) -> bool {
        self.was_precautionary && !self.was_too_high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feedback_of_a_probe_ends_a_round_after_it() {
        let mut feedback = Feedback::default();
        feedback.on_refill();
        feedback.on_probe(Time::ZERO);
        assert!(feedback.is_probe_sample);
        assert!(!feedback.on_round_start() && !feedback.on_round_start());
        feedback.on_stop();
        assert!(!feedback.is_over() && feedback.is_probe_sample);
        assert!(feedback.on_round_start());
        assert!(feedback.is_over() && !feedback.is_probe_sample);
        assert!(!feedback.on_round_start(), "the feedback ends once");
    }

    #[test]
    fn a_precautionary_probe_is_repeated_unless_packets_were_lost() {
        let mut feedback = Feedback::default();
        feedback.on_too_high(Time::ZERO);
        feedback.on_probed(true);
        assert!(feedback.may_probe_again());
        feedback.on_too_high(Time::ZERO);
        assert!(!feedback.may_probe_again());
        feedback.on_probed(false);
        feedback.on_refill();
        assert!(!feedback.may_probe_again());
    }
}
