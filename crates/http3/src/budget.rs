//! Things that are allowed and that nobody does often: RFC 9114 §10.5.

use std::time::Duration;

use courser_base::Time;

use crate::error::{Code, Error};

/// A bucket of tokens for events that cost us something and bring an honest peer nothing: empty
/// frames, frames that are skipped, changed priorities, requests that are cancelled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// What is left, in units of the time it takes to earn one.
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

    /// Takes one event.
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

/// Instructions on the QPACK streams, relative to header sections (limit K84, attack A77).
///
/// An encoder inserts fields because it sends sections that refer to them, and a decoder cancels
/// sections that somebody sends. So each section, in either direction, pays for instructions.
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

    /// A header section was sent or received.
    pub(crate) fn on_section(&mut self) {
        self.inserts = (self.inserts + INSERTS_PER_SECTION).min(INSTRUCTION_BURST);
        self.cancellations = (self.cancellations + 1).min(INSTRUCTION_BURST);
    }

    /// Takes instructions of the encoder stream: inserts, duplicates and capacities.
    pub(crate) fn spend_inserts(&mut self, count: u64) -> Result<(), Error> {
        spend(&mut self.inserts, count)
    }

    /// Takes cancellations of the decoder stream. Its other instructions are errors when there is
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

/// Many times the entries of a table, for sections that are still on their way.
const INSTRUCTION_BURST: u64 = 8192;
/// As many as a section may have lines.
const INSERTS_PER_SECTION: u64 = 128;

/// 25 in a second.
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
