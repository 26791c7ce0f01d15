//! Timers in virtual time: a table ordered by deadline.

use std::collections::BTreeMap;
use std::task::Waker;

use courser_base::Time;

/// All timers of a machine that are set.
#[derive(Debug, Default)]
pub(super) struct Timers {
    waiting: BTreeMap<Key, Waker>,
    set_so_far: u64,
}

/// The key of a timer. Of equal deadlines, the one set first fires first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Key {
    deadline: Time,
    number: u64,
}

impl Timers {
    /// Sets a timer that fires at `deadline`.
    pub(super) fn set(&mut self, deadline: Time, waker: Waker) -> Key {
        self.set_so_far += 1;
        let key = Key {
            deadline,
            number: self.set_so_far,
        };
        self.waiting.insert(key, waker);
        key
    }

    /// Cancels a timer. The caller must drop the waker after releasing the lock.
    #[must_use]
    pub(super) fn cancel(&mut self, key: Key) -> Option<Waker> {
        self.waiting.remove(&key)
    }

    /// Returns true while the timer has not fired.
    pub(super) fn is_waiting(&self, key: Key) -> bool {
        self.waiting.contains_key(&key)
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.waiting.keys().next().map(|key| key.deadline)
    }

    /// Removes and returns the wakers of the timers that fire by `now`, in order.
    pub(super) fn take_due(&mut self, now: Time) -> Vec<Waker> {
        let later = self.waiting.split_off(&Key {
            deadline: Time::from_nanos(now.as_nanos().saturating_add(1)),
            number: 0,
        });
        let due = std::mem::replace(&mut self.waiting, later);
        due.into_values().collect()
    }

    /// Cancels all timers and returns their wakers.
    pub(super) fn take_all(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.waiting).into_values().collect()
    }
}
