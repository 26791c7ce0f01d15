//! The timers of connections.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use courser_base::Time;

use super::entries::Entry;
use crate::endpoint::handle::ConnectionHandle;
use crate::endpoint::shrink::shrink_heap;

/// The time at which a timer of a connection expires.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Deadline {
    pub at: Time,
    pub handle: ConnectionHandle,
}

/// The deadlines of connections, the earliest first. A connection may have several, of which only the one
/// in its record counts and the others are obsolete.
#[derive(Debug, Default)]
pub struct Timers(BinaryHeap<Reverse<Deadline>>);

impl Timers {
    /// Adds a deadline, which does not remove earlier ones of the connection.
    pub fn add(&mut self, at: Time, handle: ConnectionHandle) {
        self.0.push(Reverse(Deadline { at, handle }));
    }

    /// Returns the time of the earliest deadline.
    pub fn next(&self) -> Option<Time> {
        self.0.peek().map(|Reverse(deadline)| deadline.at)
    }

    /// Removes and returns the earliest deadline if it is due.
    pub fn next_due(&mut self, now: Time) -> Option<Deadline> {
        if self.next()? > now {
            return None;
        }
        let Reverse(deadline) = self.0.pop()?;
        shrink_heap(&mut self.0);
        Some(deadline)
    }

    /// Removes obsolete deadlines if they are in the majority, so that the cost is constant for each added
    /// deadline. The others are removed when they expire.
    pub fn remove_obsolete(&mut self, entries: &[Entry]) {
        if self.0.len() <= 2 * entries.len() + SPARE_DEADLINES {
            return;
        }
        self.0.retain(|Reverse(Deadline { at, handle })| {
            entries.get(handle.index()).is_some_and(|entry| {
                entry.generation == handle.generation && entry.scheduled == Some(*at)
            })
        });
        shrink_heap(&mut self.0);
    }

    /// Returns the number of deadlines.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// Number of obsolete deadlines below which they are not removed.
const SPARE_DEADLINES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn handle(index: u32) -> ConnectionHandle {
        ConnectionHandle {
            index,
            generation: 0,
        }
    }

    fn at(seconds: u64) -> Time {
        Time::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn deadlines_are_due_in_order_and_not_early() {
        let mut timers = Timers::default();
        for seconds in [3, 1, 2] {
            timers.add(at(seconds), handle(0));
        }
        assert_eq!(timers.next(), Some(at(1)));
        assert_eq!(timers.next_due(at(0)), None);
        let due: Vec<_> = std::iter::from_fn(|| timers.next_due(at(2))).collect();
        assert_eq!(
            due.iter().map(|it| it.at).collect::<Vec<_>>(),
            [at(1), at(2)]
        );
        assert_eq!(timers.len(), 1);
    }

    #[test]
    fn obsolete_deadlines_are_removed_when_they_are_the_majority() {
        let mut timers = Timers::default();
        let mut entries = vec![Entry::default()];
        for seconds in (1..=100).rev() {
            entries[0].scheduled = Some(at(seconds));
            timers.add(at(seconds), handle(0));
            timers.remove_obsolete(&entries);
        }
        assert!(timers.len() <= 2 + SPARE_DEADLINES, "{}", timers.len());
        assert_eq!(timers.next(), Some(at(1)));
    }
}
