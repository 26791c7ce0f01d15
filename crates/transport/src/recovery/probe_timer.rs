//! Probe timeouts in a row. RFC 9002 §6.2.

use courser_base::Time;
use courser_recovery::Pto;

use crate::config::SILENT_AFTER;

/// The probe timer of a connection: its backoff, and the timeouts without a response.
#[derive(Debug)]
pub(super) struct ProbeTimer {
    backoff: Pto,
    /// Probe timeouts in a row after the end of the handshake, since a packet was acknowledged.
    unanswered: u32,
    /// The start of a client's anti-deadlock timer while nothing is in flight.
    last_activity: Time,
}

impl ProbeTimer {
    /// Creates the timer of a connection that has sent nothing.
    pub(super) fn new(now: Time) -> Self {
        Self {
            backoff: Pto::new(),
            unanswered: 0,
            last_activity: now,
        }
    }

    /// Returns the number of timeouts in a row.
    #[inline]
    pub(super) fn count(&self) -> u32 {
        self.backoff.count()
    }

    /// Returns the backoff, by which timeouts become longer.
    pub(super) fn backoff(&self) -> &Pto {
        &self.backoff
    }

    /// Returns the start of a client's anti-deadlock timer while nothing is in flight (RFC 9002 §6.2.2.1).
    pub(super) fn last_activity(&self) -> Time {
        self.last_activity
    }

    /// Starts the anti-deadlock timer again.
    pub(super) fn on_activity(&mut self, now: Time) {
        self.last_activity = now;
    }

    /// Ends the backoff.
    pub(super) fn end_backoff(&mut self) {
        self.backoff.reset();
    }

    /// Processes the acknowledgement of a packet. `ends_backoff` is false on a client that does not know whether
    /// the server has validated its address (RFC 9002 §6.2.1).
    #[inline]
    pub(super) fn on_acked(&mut self, now: Time, ends_backoff: bool) {
        self.last_activity = now;
        self.unanswered = 0;
        if ends_backoff {
            self.backoff.reset();
        }
    }

    /// Counts a timeout.
    pub(super) fn on_timeout(&mut self, now: Time) {
        self.backoff.on_timeout();
        self.last_activity = now;
    }

    /// Records `count` timeouts in a row without an acknowledgement.
    pub(super) fn on_unanswered(&mut self, count: u32) {
        self.unanswered = self.unanswered.max(count);
    }

    /// Returns the number of timeouts in a row without an acknowledgement.
    #[inline]
    pub(super) fn unanswered(&self) -> u32 {
        self.unanswered
    }

    /// Returns true if the path is silent: there were [`SILENT_AFTER`] of these timeouts.
    #[inline]
    pub(super) fn is_silent(&self) -> bool {
        self.unanswered >= SILENT_AFTER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgement_ends_silence_and_sometimes_backoff() {
        for ends_backoff in [false, true] {
            let mut timer = ProbeTimer::new(Time::ZERO);
            for count in 1..=SILENT_AFTER {
                assert!(!timer.is_silent(), "after {count} timeouts");
                timer.on_timeout(Time::ZERO);
                timer.on_unanswered(timer.count());
            }
            assert!(timer.is_silent());
            timer.on_acked(Time::ZERO, ends_backoff);
            assert!(!timer.is_silent());
            assert_eq!(timer.count() == 0, ends_backoff);
        }
    }
}
