//! The times at which requests of an origin may move to HTTP/3.

use std::time::{Duration, Instant};

/// When the next [move](super::super::moves) of an origin may begin. At most one is in progress.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct MoveTimes {
    /// The earliest time of the next move. `None` if nothing announces HTTP/3.
    next: Option<Instant>,
    /// The end of the time that a move in progress has.
    lease: Option<Instant>,
    /// No announcement lets a move begin before this time, because one has just failed.
    not_before: Option<Instant>,
    /// True if other alternatives were announced during the move in progress.
    is_announced: bool,
}

impl MoveTimes {
    /// Returns true if a move is due, and lends it a minute to begin and end.
    pub(in super::super) fn begin_if_due(&mut self, now: Instant) -> bool {
        let is_due = self.next.is_some_and(|at| at <= now);
        if !is_due || self.lease.is_some_and(|end| end > now) {
            return false;
        }
        self.lease = Some(now + LEASE);
        self.is_announced = false;
        true
    }

    /// Lets a move begin at a time, because HTTP/3 may work then.
    pub(in super::super) fn expect(&mut self, at: Instant) {
        self.next = Some(at);
    }

    /// Returns true if the time of a move is known.
    pub(in super::super) fn is_expected(&self) -> bool {
        self.next.is_some()
    }

    /// Lets a move begin at once, or soon after one that has failed. Otherwise, a server that announces another
    /// alternative with each response would cause one after the other.
    pub(in super::super) fn on_announced(&mut self, now: Instant) {
        self.is_announced = true;
        self.next = Some(self.not_before.map_or(now, |at| at.max(now)));
    }

    /// Records the end of a move. `next` is the time of the next one.
    pub(in super::super) fn on_ended(
        &mut self,
        now: Instant,
        next: Option<Instant>,
        has_failed: bool,
    ) {
        self.lease = None;
        self.next = next;
        self.not_before = has_failed.then_some(now + PAUSE);
        if self.is_announced && has_failed {
            self.next = self.not_before;
        }
    }

    /// Lets no move begin before the next announcement.
    pub(in super::super) fn on_withdrawn(&mut self) {
        self.next = None;
        self.is_announced = false;
    }

    /// Lets a move begin at once that waits, because its failures belong to another network.
    pub(in super::super) fn on_network_changed(&mut self, now: Instant) {
        self.next = self.next.map(|at| at.min(now));
        self.not_before = None;
    }
}

/// Time for a move to begin and end, which is longer than any.
const LEASE: Duration = Duration::from_secs(60);
/// Shortest time between a move that has failed and the next one to other alternatives.
const PAUSE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn one_move_is_in_progress_at_a_time() {
        let (mut times, now) = (MoveTimes::default(), Instant::now());
        assert!(!times.begin_if_due(now), "nothing is announced");
        times.on_announced(now);
        assert!(times.begin_if_due(now));
        times.on_announced(now + SECOND);
        assert!(!times.begin_if_due(now + SECOND));
        times.on_ended(now + SECOND, Some(now + 5 * SECOND), false);
        assert!(!times.begin_if_due(now + 4 * SECOND));
        assert!(times.begin_if_due(now + 5 * SECOND));
        // Its task was lost.
        assert!(times.begin_if_due(now + 5 * SECOND + LEASE));
    }

    /// Attack A305.
    #[test]
    fn announcements_do_not_shorten_the_pause_after_a_failure() {
        let (mut times, now) = (MoveTimes::default(), Instant::now());
        times.on_announced(now);
        let mut moves = 0;
        for second in 0..100 {
            let at = now + second * SECOND;
            times.on_announced(at);
            if times.begin_if_due(at) {
                moves += 1;
                times.on_announced(at);
                times.on_ended(at, Some(at + 300 * SECOND), true);
            }
        }
        assert_eq!(moves, 10);
        times.on_network_changed(now + 100 * SECOND);
        assert!(times.begin_if_due(now + 100 * SECOND));
    }

    #[test]
    fn withdrawn_announcements_end_the_moves() {
        let (mut times, now) = (MoveTimes::default(), Instant::now());
        times.on_announced(now);
        times.on_withdrawn();
        assert!(!times.begin_if_due(now + SECOND) && !times.is_expected());
        times.on_announced(now + SECOND);
        assert!(times.begin_if_due(now + SECOND));
        times.on_withdrawn();
        times.on_ended(now + 2 * SECOND, None, false);
        assert!(!times.begin_if_due(now + 900 * SECOND));
    }
}
