//! Controlled delay (CoDel, RFC 8289): drops datagrams from a queue whose delay stays above a target, so that senders
//! slow down before it is full.

use std::time::Duration;

use courser_base::Time;

/// The drops of one queue.
///
/// ```text
///           delay >= target for an interval
/// Patient ──────────────────────────────────► Dropping: one at once, then one each interval / √count
///    ▲                                            │
///    └────────────────────────────────────────────┘ delay < target, or nothing waits behind
/// ```
#[derive(Debug)]
pub(super) struct Codel {
    target: Duration,
    /// The time from which a delay above the target causes drops. `None` while it is below.
    persistent_at: Option<Time>,
    /// The time of the next drop. `None` unless some are due.
    next_drop: Option<Time>,
    /// Drops since the delay exceeded the target, which set their pace.
    count: u32,
    /// The time of the next drop and the count when dropping ended last.
    last: Option<(Time, u32)>,
    /// The count with which dropping began last.
    began_with: u32,
}

impl Codel {
    pub(super) fn new(target: Duration) -> Self {
        Self {
            target,
            persistent_at: None,
            next_drop: None,
            count: 0,
            last: None,
            began_with: 0,
        }
    }

    /// Decides about the datagram that leaves the queue. Returns true if it is dropped. `waited` is its delay, and
    /// `behind` counts the bytes that wait behind it.
    pub(super) fn drops(&mut self, now: Time, waited: Duration, behind: usize) -> bool {
        let is_due = self.is_persistent(now, waited, behind);
        match self.next_drop {
            Some(next) if !is_due => {
                self.last = Some((next, self.count));
                self.next_drop = None;
                false
            }
            Some(next) if now >= next => {
                self.count = self.count.saturating_add(1);
                self.next_drop = Some(next + pause(self.count));
                true
            }
            Some(_) => false,
            None if is_due => {
                self.begin(now);
                true
            }
            None => false,
        }
    }

    /// Returns true if the delay has been above the target for an interval.
    fn is_persistent(&mut self, now: Time, waited: Duration, behind: usize) -> bool {
        // RFC 8289 §4.2: a queue of less than one full datagram is as short as it can be.
        if waited < self.target || behind < FULL_DATAGRAM {
            self.persistent_at = None;
            return false;
        }
        let from = *self.persistent_at.get_or_insert(now + INTERVAL);
        now >= from
    }

    /// Starts to drop: at the pace that was right a while ago, or slowly.
    fn begin(&mut self, now: Time) {
        let recent = self
            .last
            .filter(|(next, _)| now < *next + RECENT * INTERVAL)
            .map_or(0, |(_, count)| count.saturating_sub(self.began_with));
        self.count = recent.max(1);
        self.began_with = self.count;
        self.next_drop = Some(now + pause(self.count));
    }
}

/// Returns the time between drops, RFC 8289 §5.3.
fn pause(count: u32) -> Duration {
    INTERVAL.div_f64(f64::from(count.max(1)).sqrt())
}

/// RFC 8289 §4.3: a round trip of most paths.
const INTERVAL: Duration = Duration::from_millis(100);

/// Intervals for which the pace of drops is remembered.
const RECENT: u32 = 16;

/// Bytes of a datagram that fills a packet of the smallest size.
const FULL_DATAGRAM: usize = 1200;

#[cfg(test)]
mod tests;
