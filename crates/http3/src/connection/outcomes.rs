//! Whether the requests of a client received a response or were cancelled before.

use courser_base::Time;
use courser_wire::StreamId;

use crate::budget::CancellationBudget;
use crate::error::Error;

/// Counts requests that are cancelled before their response starts (limit K270).
///
/// Both directions of a stream may report that its request was cancelled, at different times, so counted
/// requests are remembered. Memory is fixed: only the last [`REMEMBERED`] streams are remembered, and an older
/// one may count twice.
#[derive(Debug)]
pub(super) struct Outcomes {
    budget: CancellationBudget,
    /// Number of streams that were opened.
    opened: u64,
    /// One bit for each of the last streams, set when its response has started or it was counted.
    settled: [u64; WORDS],
}

impl Outcomes {
    pub(super) const fn new(now: Time) -> Self {
        Self {
            budget: CancellationBudget::new(now),
            opened: 0,
            settled: [0; WORDS],
        }
    }

    /// Returns how many cancelled requests of the initial budget are used.
    #[cfg(test)]
    pub(super) fn used(&self) -> u64 {
        self.budget.used()
    }

    /// Records that a request was opened.
    #[inline]
    pub(super) const fn on_opened(&mut self, stream: u64) {
        let index = StreamId::from_value(stream).index();
        if index >= self.opened {
            self.opened = index + 1;
        }
        let (word, bit) = bit_of(index);
        self.settled[word] &= !bit;
    }

    /// Records that a response, or a part of it, is about to be sent.
    #[inline]
    pub(super) const fn on_response(&mut self, stream: u64) {
        if self.settle(stream) {
            self.budget.on_answered();
        }
    }

    /// Returns true if a new request may be processed. `now` is called only after many cancellations.
    ///
    /// # Errors
    ///
    /// Returns a connection error if too many requests were rejected.
    pub(super) fn admit(&mut self, now: impl FnOnce() -> Time) -> Result<bool, Error> {
        if self.budget.has_reserve() {
            return Ok(true);
        }
        let now = now();
        if self.budget.accepts(now) {
            return Ok(true);
        }
        self.budget.spend(now)?;
        Ok(false)
    }

    /// Counts a request that was cancelled, unless its response has started or it was counted before.
    ///
    /// # Errors
    ///
    /// Returns a connection error if there are too many.
    pub(super) fn on_cancelled(&mut self, now: Time, stream: u64) -> Result<(), Error> {
        match self.settle(stream) {
            true => self.budget.spend(now),
            false => Ok(()),
        }
    }

    /// Returns true the first time, and always for streams that are no longer remembered.
    const fn settle(&mut self, stream: u64) -> bool {
        let index = StreamId::from_value(stream).index();
        if index >= self.opened || self.opened - index > REMEMBERED {
            return true;
        }
        let (word, bit) = bit_of(index);
        let is_first = self.settled[word] & bit == 0;
        self.settled[word] |= bit;
        is_first
    }
}

/// Returns the word and the bit of the stream with this index.
const fn bit_of(index: u64) -> (usize, u64) {
    let position = index % REMEMBERED;
    ((position / 64) as usize, 1 << (position % 64))
}

/// Number of streams whose outcome is remembered: several times as many as may be open by default.
const REMEMBERED: u64 = 1024;
const WORDS: usize = (REMEMBERED / 64) as usize;
