//! Validation of ECN on one path, RFC 9000 §13.4.2 and appendix A.4.

use courser_base::{Ecn, EcnCounts};

/// The state of ECN validation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EcnState {
    /// The first packets are marked as a test.
    Testing,
    /// All packets of the test were sent. No more are marked until the peer reports them.
    Unknown,
    /// Marks arrive and are reported correctly.
    Capable,
    /// Marks are removed, changed or not reported, or the local system cannot set them. No more packets are
    /// marked.
    Failed,
}

/// The congestion that an acknowledgement reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EcnOutcome {
    /// CE marks reported for the first time. Each is a congestion signal.
    pub ce_increase: u64,
}

/// ECN validation of one path, for the counts of one packet number space.
///
/// Peers count marks per packet number space, so each space needs a validation of its own. The
/// controller chooses between ECT(0) and ECT(1) ([`Controller::ecn_codepoint`](crate::Controller));
/// the counts of both are compared with the packets sent with them. The codepoint of each packet
/// is not recorded: both are in flight only after one controller has replaced another, and then the
/// sum of both increases must cover the acknowledged packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EcnValidation {
    state: EcnState,
    /// Packets sent with either codepoint in this space, on any path.
    sent: Sent,
    /// The counts of the newest valid report.
    reported: EcnCounts,
    test: Test,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Sent {
    ect0: u64,
    ect1: u64,
}

/// The fate of the packets marked since the path came into use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Test {
    sent: u64,
    acked: u64,
    lost: u64,
    timeouts: u32,
    /// The ECT counts reported when the test began.
    unmarked_before: u64,
    /// True if the last codepoint sent was ECT(1).
    is_l4s: bool,
}

impl EcnValidation {
    /// Creates a validation that starts by testing the path.
    pub fn new() -> Self {
        Self {
            state: EcnState::Testing,
            sent: Sent::default(),
            reported: EcnCounts::default(),
            test: Test::default(),
        }
    }

    /// Creates a validation that never marks packets, for sockets that cannot.
    pub fn disabled() -> Self {
        Self {
            state: EcnState::Failed,
            ..Self::new()
        }
    }

    /// Returns the state of the validation.
    pub fn state(&self) -> EcnState {
        self.state
    }

    /// Returns the codepoint for packets sent now. `codepoint` is the controller's choice.
    #[inline]
    pub fn mark(&self, codepoint: Ecn) -> Ecn {
        match (self.state, codepoint) {
            (EcnState::Unknown | EcnState::Failed, _) => Ecn::NotEct,
            // Only routers set CE.
            (_, Ecn::Ce) => Ecn::Ect0,
            (EcnState::Testing | EcnState::Capable, codepoint) => codepoint,
        }
    }

    /// Counts a packet sent with this codepoint.
    #[inline]
    pub fn on_sent(&mut self, codepoint: Ecn) {
        match codepoint {
            Ecn::Ect0 => self.sent.ect0 = self.sent.ect0.saturating_add(1),
            Ecn::Ect1 => self.sent.ect1 = self.sent.ect1.saturating_add(1),
            Ecn::NotEct | Ecn::Ce => return,
        }
        self.test.is_l4s = codepoint == Ecn::Ect1;
        self.test.sent = self.test.sent.saturating_add(1);
        if self.state == EcnState::Testing && self.test.sent >= TEST_PACKETS {
            self.state = EcnState::Unknown;
        }
    }

    /// Validates an ACK that newly acknowledges this many marked packets.
    ///
    /// `counts` are those of the frame. They are ignored if the ACK does not raise the largest
    /// acknowledged number, because a newer ACK may have overtaken it (RFC 9000 §13.4.2.1).
    pub fn on_ack(
        &mut self,
        newly_acked_marked: u64,
        counts: Option<EcnCounts>,
        largest_acked_increased: bool,
    ) -> EcnOutcome {
        self.test.acked = self.test.acked.saturating_add(newly_acked_marked);
        if self.state == EcnState::Failed || !largest_acked_increased {
            return EcnOutcome::default();
        }
        let Some(counts) = counts else {
            if newly_acked_marked > 0 {
                self.state = EcnState::Failed;
            }
            return EcnOutcome::default();
        };
        let Some(ce_increase) = self.validate(newly_acked_marked, counts) else {
            self.state = EcnState::Failed;
            return EcnOutcome::default();
        };
        self.reported = counts;
        if self.test.acked > 0 {
            self.state = EcnState::Capable;
        }
        EcnOutcome { ce_increase }
    }

    /// Counts marked packets that were declared lost. If all packets of the test were lost, the
    /// path drops marked packets.
    pub fn on_lost(&mut self, marked: u64) {
        self.test.lost = self.test.lost.saturating_add(marked);
        let all_lost = self.test.acked == 0 && self.test.lost >= self.test.sent;
        if self.state == EcnState::Unknown && all_lost {
            self.state = EcnState::Failed;
        }
    }

    /// Counts a probe timeout. The second timeout without an acknowledged marked packet stops the
    /// marking, because the path may drop marked packets.
    pub fn on_pto(&mut self) {
        self.test.timeouts = self.test.timeouts.saturating_add(1);
        let is_unanswered = self.test.acked == 0 && self.test.timeouts >= TEST_TIMEOUTS;
        if self.state == EcnState::Testing && is_unanswered {
            self.state = EcnState::Unknown;
        }
    }

    /// Records that the local system did not mark the packets that were sent. No more packets are
    /// marked, and reports of the peer are ignored.
    pub fn on_marks_refused(&mut self) {
        self.state = EcnState::Failed;
    }

    /// Starts a new test on a new path. The counts of the packet number space continue.
    pub fn restart(&mut self) {
        self.state = EcnState::Testing;
        self.test = Test {
            unmarked_before: unmarked(self.reported),
            ..Test::default()
        };
    }

    /// Returns the increase in CE, or `None` if the counts are invalid. RFC 9000 §13.4.2.1.
    fn validate(&self, newly_acked_marked: u64, counts: EcnCounts) -> Option<u64> {
        // The peer reports more packets of a codepoint than were sent with it.
        if counts.ect0 > self.sent.ect0 || counts.ect1 > self.sent.ect1 {
            return None;
        }
        let ect0_increase = counts.ect0.checked_sub(self.reported.ect0)?;
        let ect1_increase = counts.ect1.checked_sub(self.reported.ect1)?;
        let ce_increase = counts.ce.checked_sub(self.reported.ce)?;
        // The network has removed marks, or the peer has not counted them.
        let increase = (ect0_increase.saturating_add(ect1_increase)).saturating_add(ce_increase);
        if increase < newly_acked_marked {
            return None;
        }
        // The peer reports more marked packets than were sent.
        let sent = self.sent.ect0.saturating_add(self.sent.ect1);
        if unmarked(counts).saturating_add(counts.ce) > sent {
            return None;
        }
        // Congestion does not mark every packet of a test, but a broken router does. An L4S queue
        // that is already full does so for a while.
        let max_ce_packets = if self.test.is_l4s {
            MAX_L4S_CE_PACKETS
        } else {
            TEST_PACKETS
        };
        let all_ce =
            self.test.acked >= max_ce_packets && unmarked(counts) == self.test.unmarked_before;
        (!all_ce).then_some(ce_increase)
    }
}

/// Returns the packets that arrived with the codepoint of the sender.
fn unmarked(counts: EcnCounts) -> u64 {
    counts.ect0.saturating_add(counts.ect1)
}

impl Default for EcnValidation {
    fn default() -> Self {
        Self::new()
    }
}

/// Packets marked in a test. RFC 9000 appendix A.4 suggests ten.
const TEST_PACKETS: u64 = 10;

/// ECT(1) packets that may all be reported as CE before the router counts as broken: a few round
/// trips with a small window. RFC 9332 lets an L4S queue mark every packet.
const MAX_L4S_CE_PACKETS: u64 = 100;

/// Probe timeouts that end a test: two, which together last three periods. RFC 9000 appendix A.4.
const TEST_TIMEOUTS: u32 = 2;

#[cfg(test)]
mod tests;
