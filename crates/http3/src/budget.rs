//! Budgets for actions that are allowed but useless in large numbers, RFC 9114 §10.5.

use std::time::Duration;

use courser_base::Time;

use crate::error::{Code, Error};

/// A token bucket for events that cost us work and bring an honest peer nothing: empty frames,
/// skipped frames, changed priorities, cancelled requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// The tokens left, as the time that it takes to earn them.
    earned: Duration,
    refilled: Time,
}

impl Budget {
    pub(crate) fn new(now: Time) -> Self {
        Self {
            earned: COST * BURST,
            refilled: now,
        }
    }

    /// Takes one token. Fails if there is none.
    pub(crate) fn spend(&mut self, now: Time) -> Result<(), Error> {
        let passed = now.saturating_since(self.refilled);
        self.refilled = self.refilled.max(now);
        self.earned = (self.earned.saturating_add(passed)).min(COST * BURST);
        match self.earned.checked_sub(COST) {
            Some(left) => {
                self.earned = left;
                Ok(())
            }
            None => Err(Error::connection(
                Code::EXCESSIVE_LOAD,
                "too many frames and cancellations that lead to nothing",
            )),
        }
    }
}

/// Limits instructions on the QPACK streams in proportion to header sections (limit K84, attack A77).
///
/// An encoder inserts fields for sections that refer to them, and a decoder cancels sections that
/// were sent to it. So each section, in either direction, pays for some instructions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InstructionBudget {
    inserts: u64,
    cancellations: u64,
}

impl InstructionBudget {
    pub(crate) const fn new() -> Self {
        Self {
            inserts: INSTRUCTION_BURST,
            cancellations: INSTRUCTION_BURST,
        }
    }

    /// Takes note of a header section that was sent or received.
    pub(crate) fn on_section(&mut self) {
        self.inserts = (self.inserts + INSERTS_PER_SECTION).min(INSTRUCTION_BURST);
        self.cancellations = (self.cancellations + 1).min(INSTRUCTION_BURST);
    }

    /// Counts instructions of the encoder stream: inserts, duplicates and capacities.
    pub(crate) fn spend_inserts(&mut self, count: u64) -> Result<(), Error> {
        spend(&mut self.inserts, count)
    }

    /// Counts cancellations of the decoder stream. Its other instructions are errors when there is
    /// nothing to acknowledge.
    pub(crate) fn spend_cancellations(&mut self, count: u64) -> Result<(), Error> {
        spend(&mut self.cancellations, count)
    }
}

fn spend(left: &mut u64, count: u64) -> Result<(), Error> {
    *left = left.checked_sub(count).ok_or(Error::connection(
        Code::EXCESSIVE_LOAD,
        "too many QPACK instructions for so few header sections",
    ))?;
    Ok(())
}

/// The instructions that need no section: many times the entries of a dynamic table, for sections
/// that are still in flight.
const INSTRUCTION_BURST: u64 = 8192;
/// The inserts that one section pays for: as many as it may have field lines.
const INSERTS_PER_SECTION: u64 = 128;

/// The time that earns one token: 25 in a second.
const COST: Duration = Duration::from_millis(40);
const BURST: u32 = 500;

#[cfg(test)]
mod tests {
    use super::*;

    /// K17.
    #[test]
    fn allows_a_burst_and_a_rate() {
        let mut now = Time::from_nanos(1);
        let mut budget = Budget::new(now);
        for _ in 0..500 {
            assert_eq!(budget.spend(now), Ok(()));
        }
        let error = budget.spend(now).expect_err("used up");
        assert_eq!(error.code, Code::EXCESSIVE_LOAD);
        now += Duration::from_secs(1);
        for _ in 0..25 {
            assert_eq!(budget.spend(now), Ok(()));
        }
        assert!(budget.spend(now).is_err());
        now += Duration::from_secs(1000);
        for _ in 0..500 {
            assert_eq!(budget.spend(now), Ok(()));
        }
        assert!(budget.spend(now).is_err());
    }
}
