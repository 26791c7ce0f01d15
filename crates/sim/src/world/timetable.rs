//! The schedule of calls of machines and links.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use courser_base::Time;

/// Calls in the order of their times, and in the order of scheduling for equal times.
///
/// Each caller has one entry, its earliest time. A later time has no effect until the earlier call:
/// the caller then schedules its next one.
#[derive(Debug)]
pub(super) struct Timetable<K> {
    heap: BinaryHeap<Reverse<(Time, u64, K)>>,
    scheduled: BTreeMap<K, (Time, u64)>,
    sequence: u64,
}

impl<K: Ord + Copy> Timetable<K> {
    /// Schedules a call at `at`, or keeps an earlier time.
    pub(super) fn put(&mut self, at: Time, caller: K) {
        if self
            .scheduled
            .get(&caller)
            .is_some_and(|(earlier, _)| *earlier <= at)
        {
            return;
        }
        self.sequence += 1;
        self.scheduled.insert(caller, (at, self.sequence));
        self.heap.push(Reverse((at, self.sequence, caller)));
    }

    /// Returns the time of the next call.
    pub(super) fn next_time(&mut self) -> Option<Time> {
        while let Some(Reverse((at, sequence, caller))) = self.heap.peek() {
            if self.scheduled.get(caller) == Some(&(*at, *sequence)) {
                return Some(*at);
            }
            self.heap.pop();
        }
        None
    }

    /// Removes and returns the next call that is due.
    pub(super) fn take(&mut self, now: Time) -> Option<K> {
        if self.next_time()? > now {
            return None;
        }
        let Reverse((_, _, caller)) = self.heap.pop()?;
        self.scheduled.remove(&caller);
        Some(caller)
    }
}

impl<K: Ord> Default for Timetable<K> {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
            scheduled: BTreeMap::new(),
            sequence: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    #[test]
    fn calls_at_the_same_time_keep_their_order() {
        let mut table = Timetable::default();
        table.put(at(5), 'b');
        table.put(at(5), 'a');
        table.put(at(4), 'c');
        let order: String = std::iter::from_fn(|| table.take(at(5))).collect();
        assert_eq!(order, "cba");
    }

    #[test]
    fn earlier_call_replaces_a_later_one() {
        let mut table = Timetable::default();
        table.put(at(9), 'a');
        table.put(at(3), 'a');
        table.put(at(6), 'a');
        assert_eq!(table.next_time(), Some(at(3)));
        assert_eq!(table.take(at(3)), Some('a'));
        assert_eq!(table.take(at(9)), None);
    }
}
