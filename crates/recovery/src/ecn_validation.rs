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
/// Peers count marks per packet number space, so spaces do not share one of these. The controller
/// chooses between ECT(0) and ECT(1) ([`Controller::ecn_codepoint`](crate::Controller)); both are
/// held against what was sent with them. Which of the two an acknowledged packet had is not
/// remembered: only when a controller was exchanged for another are both in flight, and then the
/// sum of the two increases has to make up for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EcnValidation {
    state: EcnState,
    /// Packets sent with either codepoint in this space, on whatever path.
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

/// The fate of packets marked since the path is in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Test {
    sent: u64,
    acked: u64,
    lost: u64,
    timeouts: u32,
    /// `reported` without CE when the test began.
    unmarked_before: u64,
    /// The newest codepoint sent.
    is_l4s: bool,
}

impl EcnValidation {
    /// Begins to test.
    pub fn new() -> Self {
        Self {
            state: EcnState::Testing,
            sent: Sent::default(),
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

    /// The codepoint to send packets with, `codepoint` being what the controller would like.
    #[inline]
    pub fn mark(&self, codepoint: Ecn) -> Ecn {
        match (self.state, codepoint) {
            (EcnState::Unknown | EcnState::Failed, _) => Ecn::NotEct,
            // CE is for routers to set.
            (_, Ecn::Ce) => Ecn::Ect0,
            (EcnState::Testing | EcnState::Capable, codepoint) => codepoint,
        }
    }

    /// A packet was sent with this codepoint.
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
            unmarked_before: unmarked(self.reported),
            ..Test::default()
        };
    }

    /// The increase in CE, or `None` when the counts cannot be right. RFC 9000 §13.4.2.1.
    fn validate(&self, newly_acked_marked: u64, counts: EcnCounts) -> Option<u64> {
        // More than was sent with it: always so for a codepoint that was never sent.
        if counts.ect0 > self.sent.ect0 || counts.ect1 > self.sent.ect1 {
            return None;
        }
        let ect0_increase = counts.ect0.checked_sub(self.reported.ect0)?;
        let ect1_increase = counts.ect1.checked_sub(self.reported.ect1)?;
        let ce_increase = counts.ce.checked_sub(self.reported.ce)?;
        // Marks were removed on the way, or not counted. The sums stay below what was sent.
        let increase = (ect0_increase.saturating_add(ect1_increase)).saturating_add(ce_increase);
        if increase < newly_acked_marked {
            return None;
        }
        // More marks than we have sent.
        let sent = self.sent.ect0.saturating_add(self.sent.ect1);
        if unmarked(counts).saturating_add(counts.ce) > sent {
            return None;
        }
        // Congestion does not mark every single packet of a test; a broken router does. An L4S
        // queue that is full when we come does so for a while.
        let patience = if self.test.is_l4s {
            L4S_PATIENCE
        } else {
            TEST_PACKETS
        };
        let all_ce = self.test.acked >= patience && unmarked(counts) == self.test.unmarked_before;
        (!all_ce).then_some(ce_increase)
    }
}

/// Packets that arrived as they left.
fn unmarked(counts: EcnCounts) -> u64 {
    counts.ect0.saturating_add(counts.ect1)
}

impl Default for EcnValidation {
    fn default() -> Self {
        Self::new()
    }
}

/// Packets that are marked before anything is known. RFC 9000 appendix A.4 suggests ten.
const TEST_PACKETS: u64 = 10;

/// Packets of ECT(1) that may all come back as CE before it is the router that is broken: some
/// round trips of a small window. RFC 9332 lets an L4S queue mark up to every packet.
const L4S_PATIENCE: u64 = 100;

/// Expiries that make up three probe timeout periods, as the second waits twice as long.
/// RFC 9000 appendix A.4.
const TEST_TIMEOUTS: u32 = 2;

#[cfg(test)]
mod tests;
