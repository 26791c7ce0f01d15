//! The requests of a client that were of use, and those that were not.

use courser_base::Time;
use courser_wire::StreamId;

use crate::budget::CancellationBudget;
use crate::error::Error;

/// Counts requests that are cancelled before their response begins (limit K270).
///
/// Both halves of a stream may report that its request was cancelled, at any distance, so that the
/// requests that were counted are remembered. Memory is fixed: only the last [`REMEMBERED`] streams are
/// remembered. An older one counts once more at worst.
#[derive(Debug)]
pub(super) struct Outcomes {
    budget: CancellationBudget,
    /// The number of streams that were opened.
    opened: u64,
    /// A bit for each of the last streams whose response has begun, or that has been counted.
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

    /// Returns the cancelled requests that were used of what comes first.
    #[cfg(test)]
    pub(super) fn used(&self) -> u64 {
        self.budget.used()
    }

    /// Registers a request that was opened.
    #[inline]
    pub(super) const fn on_opened(&mut self, stream: u64) {
        let index = StreamId::from_value(stream).index();
        if index >= self.opened {
            self.opened = index + 1;
        }
        let (word, bit) = place(index);
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
    /// Returns an error of the connection if too many requests were rejected.
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

    /// Counts a request that was cancelled, unless its response has begun or it was counted before.
    ///
    /// # Errors
    ///
    /// Returns an error of the connection if there are too many.
    pub(super) fn on_cancelled(&mut self, now: Time, stream: u64) -> Result<(), Error> {
        match self.settle(stream) {
            true => self.budget.spend(now),
            false => Ok(()),
        }
    }

    /// Returns true the first time. Always true for streams that are not remembered.
    const fn settle(&mut self, stream: u64) -> bool {
        let index = StreamId::from_value(stream).index();
        if index >= self.opened || self.opened - index > REMEMBERED {
            return true;
        }
        let (word, bit) = place(index);
        let is_first = self.settled[word] & bit == 0;
        self.settled[word] |= bit;
        is_first
    }
}

/// Returns the word and the bit of the stream with this index.
const fn place(index: u64) -> (usize, u64) {
    let place = index % REMEMBERED;
    ((place / 64) as usize, 1 << (place % 64))
}

/// Streams whose outcome is remembered: several times as many as may be open by default.
const REMEMBERED: u64 = 1024;
const WORDS: usize = (REMEMBERED / 64) as usize;
