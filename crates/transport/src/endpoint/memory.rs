//! A budget for all memory that peers can make an endpoint hold (limit K81).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counts the memory that the connections of an endpoint hold against one budget.
///
/// Everything that a peer can cause counts: bytes that wait for an acknowledgement, received but
/// unread bytes, datagrams, packet records, handshakes. The measures under pressure, in order:
///
/// 1. A connection accepts at most a quarter of the memory left from its application.
/// 2. Receive windows do not grow ([`TIGHT`]).
/// 3. New clients are refused ([`SHORT`]).
/// 4. The connection that holds most for the least progress is closed.
#[derive(Debug)]
pub(super) struct Memory {
    budget: u64,
    used: u64,
    /// Bytes that the application holds for its peers.
    outside: Arc<AtomicU64>,
}

/// The memory that one connection holds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Held {
    bytes: u64,
    /// Bytes that it had transferred when a connection was last closed.
    moved: u64,
}

impl Memory {
    pub(super) fn new(budget: u64) -> Self {
        Self {
            budget,
            used: 0,
            outside: Arc::default(),
        }
    }

    /// Sets the counter of bytes that the application holds for its peers.
    pub(super) fn share(&mut self, outside: Arc<AtomicU64>) {
        self.outside = outside;
    }

    /// Returns the bytes that connections and the application hold.
    #[inline]
    fn total(&self) -> u64 {
        self.used.saturating_add(self.outside.load(Relaxed))
    }

    /// Sets the bytes that a connection holds.
    #[inline]
    pub(super) fn set(&mut self, held: &mut Held, bytes: u64) {
        self.used = self.used - held.bytes + bytes;
        held.bytes = bytes;
    }

    /// Returns the bytes that all connections hold.
    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// Returns the bytes that may be held.
    pub(super) fn budget(&self) -> u64 {
        self.budget
    }

    /// Returns the free bytes.
    #[inline]
    pub(super) fn left(&self) -> u64 {
        self.budget.saturating_sub(self.total())
    }

    /// Returns true if no window should grow.
    #[inline]
    pub(super) fn is_tight(&self) -> bool {
        self.total() > percent(self.budget, TIGHT)
    }

    /// Returns true if a client that adds `more` bytes should not be accepted.
    pub(super) fn is_short(&self, more: u64) -> bool {
        self.total().saturating_add(more) > percent(self.budget, SHORT)
    }

    /// Returns true if a connection must be closed.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.total() > self.budget
    }
}

impl Held {
    /// Returns the bytes held, reduced by the bytes transferred since the last
    /// [`look`](Self::look): a connection that transfers as much as it holds counts half. `moved`
    /// is the total transferred.
    pub(super) fn burden(&self, moved: u64) -> u64 {
        let moved = moved.saturating_sub(self.moved);
        let bytes = u128::from(self.bytes);
        let burden = bytes * bytes / (bytes + u128::from(moved)).max(1);
        u64::try_from(burden).unwrap_or(self.bytes)
    }

    /// Starts counting transferred bytes anew.
    pub(super) fn look(&mut self, moved: u64) {
        self.moved = moved;
    }
}

const fn percent(budget: u64, part: u64) -> u64 {
    budget / 100 * part
}

/// Use of the budget from which on no receive window grows, in per cent.
const TIGHT: u64 = 75;

/// Use of the budget from which on new clients are refused, in per cent.
const SHORT: u64 = 90;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_counted_once() {
        let mut memory = Memory::new(1000);
        let (mut one, mut other) = (Held::default(), Held::default());
        memory.set(&mut one, 500);
        memory.set(&mut other, 200);
        memory.set(&mut one, 300);
        assert_eq!((memory.used(), memory.left()), (500, 500));
        memory.set(&mut one, 0);
        memory.set(&mut other, 0);
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn pressure_rises_in_steps() {
        let mut memory = Memory::new(1000);
        let mut held = Held::default();
        let mut at = |bytes| {
            memory.set(&mut held, bytes);
            (memory.is_tight(), memory.is_short(0), memory.is_over())
        };
        assert_eq!(at(750), (false, false, false));
        assert_eq!(at(751), (true, false, false));
        assert_eq!(at(901), (true, true, false));
        assert_eq!(at(1001), (true, true, true));
    }

    #[test]
    fn what_the_application_holds_counts() {
        let mut memory = Memory::new(1000);
        let outside = Arc::new(AtomicU64::new(0));
        memory.share(outside.clone());
        memory.set(&mut Held::default(), 500);
        let at = |bytes| {
            outside.store(bytes, Relaxed);
            (memory.is_tight(), memory.is_short(0), memory.is_over())
        };
        assert_eq!(at(250), (false, false, false));
        assert_eq!(at(251), (true, false, false));
        assert_eq!(at(401), (true, true, false));
        assert_eq!(at(501), (true, true, true));
        assert_eq!((memory.used(), memory.left()), (500, 0));
    }

    #[test]
    fn who_moves_what_it_holds_is_a_smaller_burden() {
        let mut memory = Memory::new(1000);
        let (mut idle, mut busy) = (Held::default(), Held::default());
        memory.set(&mut idle, 300);
        memory.set(&mut busy, 500);
        busy.look(1000);
        assert_eq!(idle.burden(0), 300);
        assert_eq!(busy.burden(1000), 500);
        assert_eq!(busy.burden(1500), 250);
    }
}
