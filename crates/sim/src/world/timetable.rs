//! Who wants to be called when.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use courser_base::Time;

/// Calls in the order of their times, and of their scheduling where times are the same.
///
/// Each caller has one appointment, its earliest. One that moves to later is noticed when the
/// earlier time comes: the caller is then asked again.
#[derive(Debug)]
pub(super) struct Timetable<K> {
    heap: BinaryHeap<Reverse<(Time, u64, K)>>,
    appointments: BTreeMap<K, (Time, u64)>,
    sequence: u64,
}

impl<K: Ord + Copy> Timetable<K> {
    /// Asks to be called at `at`, or earlier if that was asked before.
    pub(super) fn put(&mut self, at: Time, who: K) {
        if self
            .appointments
            .get(&who)
            .is_some_and(|(earlier, _)| *earlier <= at)
        {
            return;
        }
        self.sequence += 1;
        self.appointments.insert(who, (at, self.sequence));
        self.heap.push(Reverse((at, self.sequence, who)));
    }

    /// When somebody wants to be called next.
    pub(super) fn next_time(&mut self) -> Option<Time> {
        while let Some(Reverse((at, sequence, who))) = self.heap.peek() {
            if self.appointments.get(who) == Some(&(*at, *sequence)) {
                return Some(*at);
            }
            self.heap.pop();
        }
        None
    }

    /// Takes out the next appointment that is due.
    pub(super) fn take(&mut self, now: Time) -> Option<K> {
        if self.next_time()? > now {
            return None;
        }
        let Reverse((_, _, who)) = self.heap.pop()?;
        self.appointments.remove(&who);
        Some(who)
    }
}

impl<K: Ord> Default for Timetable<K> {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
            appointments: BTreeMap::new(),
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
    fn same_time_is_first_come_first_served() {
        let mut table = Timetable::default();
        table.put(at(5), 'b');
        table.put(at(5), 'a');
        table.put(at(4), 'c');
        let order: String = std::iter::from_fn(|| table.take(at(5))).collect();
        assert_eq!(order, "cba");
    }

    #[test]
    fn earlier_appointment_replaces_a_later_one() {
        let mut table = Timetable::default();
        table.put(at(9), 'a');
        table.put(at(3), 'a');
        table.put(at(6), 'a');
        assert_eq!(table.next_time(), Some(at(3)));
        assert_eq!(table.take(at(3)), Some('a'));
        assert_eq!(table.take(at(9)), None);
    }
}
