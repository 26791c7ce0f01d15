//! Is it safe to use ECN on this path? RFC 9000 §13.4.2 and appendix A.4.

use courser_base::{Ecn, EcnCounts};

/// Where the validation stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EcnState {
    /// The first packets are marked, to see what becomes of them.
    Testing,
    /// Enough were sent; nothing is marked until the peer has reported on them.
    Unknown,
    /// Marks arrive and are reported.
    Capable,
    /// Marks are removed, changed or not reported: none are sent any more.
    Failed,
}

/// What an acknowledgement says about congestion.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EcnOutcome {
    /// CE marks reported for the first time. Above zero it is a congestion signal.
    pub ce_increase: u64,
}

/// ECN validation of one path, for the counts of one packet number space.
///
/// Peers count marks per packet number space, so spaces do not share one of these.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EcnValidation {
    state: EcnState,
    /// Packets sent with ECT(0) in this space, on whatever path.
    sent: u64,
    /// The counts of the newest valid report.
    reported: EcnCounts,
    test: Test,
}

/// The fate of packets marked since the path is in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Test {
    sent: u64,
    acked: u64,
    lost: u64,
    timeouts: u32,
    /// `reported.ect0` when the test began.
    ect0_before: u64,
}

impl EcnValidation {
    /// Begins to test.
    pub fn new() -> Self {
        Self {
            state: EcnState::Testing,
            sent: 0,
            reported: EcnCounts::default(),
            test: Test::default(),
        }
    }

    /// A validation that never marks, for sockets that cannot.
    pub fn disabled() -> Self {
        Self {
            state: EcnState::Failed,
            ..Self::new()
        }
    }

    /// Where it stands.
    pub fn state(&self) -> EcnState {
        self.state
    }

    /// The codepoint to send packets with.
    #[inline]
    pub fn mark(&self) -> Ecn {
        match self.state {
            EcnState::Testing | EcnState::Capable => Ecn::Ect0,
            EcnState::Unknown | EcnState::Failed => Ecn::NotEct,
        }
    }

    /// A packet was sent, with ECT(0) when `marked`.
    #[inline]
    pub fn on_sent(&mut self, marked: bool) {
        if !marked {
            return;
        }
        self.sent = self.sent.saturating_add(1);
        self.test.sent = self.test.sent.saturating_add(1);
        if self.state == EcnState::Testing && self.test.sent >= TEST_PACKETS {
            self.state = EcnState::Unknown;
        }
    }

    /// An ACK has arrived that newly acknowledges this many marked packets.
    ///
    /// `counts` are those of the frame. An ACK that does not raise the largest acknowledged
    /// number may have been overtaken, so its counts prove nothing (RFC 9000 §13.4.2.1).
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

    /// This many marked packets were declared lost. When that was all of the test, the path
    /// drops marked packets.
    pub fn on_lost(&mut self, marked: u64) {
        self.test.lost = self.test.lost.saturating_add(marked);
        let all_lost = self.test.acked == 0 && self.test.lost >= self.test.sent;
        if self.state == EcnState::Unknown && all_lost {
            self.state = EcnState::Failed;
        }
    }

    /// A probe timeout has expired. The second one without any marked packet acknowledged
    /// ends the marking, because the path may be dropping what is marked.
    pub fn on_pto(&mut self) {
        self.test.timeouts = self.test.timeouts.saturating_add(1);
        let is_silent = self.test.acked == 0 && self.test.timeouts >= TEST_TIMEOUTS;
        if self.state == EcnState::Testing && is_silent {
            self.state = EcnState::Unknown;
        }
    }

    /// Begins a new test, on a new path. The counts of the packet number space go on.
    pub fn restart(&mut self) {
        self.state = EcnState::Testing;
        self.test = Test {
            ect0_before: self.reported.ect0,
            ..Test::default()
        };
    }

    /// The increase in CE, or `None` when the counts cannot be right.
    fn validate(&self, newly_acked_marked: u64, counts: EcnCounts) -> Option<u64> {
        // We never send ECT(1).
        if counts.ect1 > 0 {
            return None;
        }
        let ect0_increase = counts.ect0.checked_sub(self.reported.ect0)?;
        let ce_increase = counts.ce.checked_sub(self.reported.ce)?;
        // Marks were removed on the way, or not counted.
        if ect0_increase.saturating_add(ce_increase) < newly_acked_marked {
            return None;
        }
        // More marks than we have sent.
        if counts.ect0.saturating_add(counts.ce) > self.sent {
            return None;
        }
        // Congestion does not mark every single packet of a test; a broken router does.
        let all_ce = self.test.acked >= TEST_PACKETS && counts.ect0 == self.test.ect0_before;
        (!all_ce).then_some(ce_increase)
    }
}

impl Default for EcnValidation {
    fn default() -> Self {
        Self::new()
    }
}

/// Packets that are marked before anything is known. RFC 9000 appendix A.4 suggests ten.
const TEST_PACKETS: u64 = 10;

/// Expiries that make up three probe timeout periods, as the second waits twice as long.
/// RFC 9000 appendix A.4.
const TEST_TIMEOUTS: u32 = 2;

#[cfg(test)]
mod tests;
