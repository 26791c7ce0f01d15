//! Middleboxes that change ECN marks.

use courser_base::{Ecn, Time};

use crate::probability::{Effect, Keyed};
use crate::spec::{Remark, RemarkTo};

/// Changes the marks of some packets.
#[derive(Clone, Debug)]
pub(super) struct Remarker {
    rule: Remark,
    numbers: Keyed,
}

impl Remarker {
    pub(super) fn new(rule: Remark, seed: u64, hop: usize) -> Self {
        Self {
            rule,
            numbers: Keyed::new(seed, hop, Effect::Remark),
        }
    }

    /// Returns the mark of packet `index` after the middlebox.
    pub(super) fn apply(&self, now: Time, index: u64, mark: Ecn) -> Ecn {
        let has_begun = u128::from(now.as_nanos()) >= self.rule.from.as_nanos();
        let is_eligible = has_begun && mark != Ecn::NotEct;
        if !is_eligible || !self.rule.probability.decides(self.numbers.first(index)) {
            return mark;
        }
        match (self.rule.to, mark) {
            (RemarkTo::NotEct, _) => Ecn::NotEct,
            (RemarkTo::Ect0, _) | (RemarkTo::Swapped, Ecn::Ect1) => Ecn::Ect0,
            (RemarkTo::Ect1, _) | (RemarkTo::Swapped, Ecn::Ect0) => Ecn::Ect1,
            (RemarkTo::Ce, _) => Ecn::Ce,
            (RemarkTo::Swapped, _) => mark,
        }
    }
}

#[cfg(test)]
mod tests;
