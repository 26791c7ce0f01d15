//! Pacing of PRIORITY_UPDATE frames (RFC 9218 §7).

use std::collections::BTreeMap;
use std::time::Duration;

use courser_base::{Pace, Time};
use courser_http3::Priority;

/// Number of updates that are sent as soon as they are requested, and the interval of further ones (limit K282).
/// Servers tolerate a limited number of frames without progress (limit K17).
const BURST: u32 = 250;
const INTERVAL: Duration = Duration::from_millis(50);
/// Largest number of streams whose updates wait; further ones are dropped. More streams are rarely open at once.
const MAX_WAITING: usize = 1024;

/// The priority updates that wait, the latest of each stream.
#[derive(Debug)]
pub(super) struct Updates {
    pace: Pace,
    waiting: BTreeMap<u64, Priority>,
}

impl Default for Updates {
    fn default() -> Self {
        Self {
            pace: Pace::new(BURST, INTERVAL),
            waiting: BTreeMap::new(),
        }
    }
}

impl Updates {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns true if an update may be sent now. Otherwise it is kept, and replaces an earlier one of its
    /// stream.
    pub(super) fn admit(&mut self, now: Time, stream: u64, priority: Priority) -> bool {
        if self.waiting.is_empty() && self.pace.take(now) {
            return true;
        }
        if self.waiting.len() < MAX_WAITING || self.waiting.contains_key(&stream) {
            self.waiting.insert(stream, priority);
        }
        false
    }

    /// Returns the next waiting update if it is due.
    pub(super) fn next(&mut self, now: Time) -> Option<(u64, Priority)> {
        let is_due = !self.waiting.is_empty() && self.pace.take(now);
        if is_due {
            self.waiting.pop_first()
        } else {
            None
        }
    }

    /// Returns the time until the next waiting update is due.
    pub(super) fn wait(&mut self, now: Time) -> Option<Duration> {
        let next = self.pace.next(now);
        (!self.waiting.is_empty()).then(|| next - now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn priority(urgency: u8) -> Priority {
        Priority {
            urgency,
            ..Priority::default()
        }
    }

    #[test]
    fn latest_update_of_each_stream_is_sent_when_due() {
        let (mut updates, start) = (Updates::default(), Time::ZERO);
        let at_once = (0..10_000_u64).filter(|at| updates.admit(start, at % 3, priority(1)));
        assert_eq!(at_once.count(), BURST as usize);
        for stream in 0..3 {
            assert!(!updates.admit(start, stream, priority(5)));
        }
        assert_eq!(updates.next(start), None);
        assert_eq!(updates.wait(start), Some(INTERVAL));
        for step in 1..=3_u32 {
            let sent = updates.next(start + INTERVAL * step);
            assert_eq!(sent, Some((u64::from(step) - 1, priority(5))));
        }
        assert_eq!(updates.wait(start + INTERVAL * 3), None);
    }

    #[test]
    fn waiting_updates_are_bounded() {
        let mut updates = Updates::default();
        for stream in 0..10_000 {
            updates.admit(Time::ZERO, stream, priority(1));
        }
        assert_eq!(updates.waiting.len(), MAX_WAITING);
    }
}
