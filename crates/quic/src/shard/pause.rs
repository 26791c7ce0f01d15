//! Pauses of receiving after persistent errors.

use std::time::Duration;

use courser_base::Time;

/// Delays the next receive call when the socket returns only errors.
///
/// An error of one destination is reported once, and later calls return datagrams or nothing. If every call fails
/// for several turns, the socket or the device is broken (fault F40).
#[derive(Debug, Default)]
pub(crate) struct Pause {
    /// Consecutive turns in which all calls failed.
    failed: u32,
    until: Option<Time>,
}

/// Failed turns without a pause.
const PATIENCE: u32 = 4;
/// The first pause. Each further one is twice as long.
const FIRST: Duration = Duration::from_millis(1);
/// The longest pause (limit K31). A socket that recovers is used again within a second.
const LONGEST: Duration = Duration::from_secs(1);

impl Pause {
    /// Notes a turn in which all calls failed. Returns true if receiving pauses now.
    pub(crate) fn begin(&mut self, now: Time) -> bool {
        self.failed = self.failed.saturating_add(1);
        let Some(doublings) = self.failed.checked_sub(PATIENCE + 1) else {
            return false;
        };
        let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
        self.until = Some(now + FIRST.saturating_mul(factor).min(LONGEST));
        true
    }

    /// Ends the pause, because receiving works or there is nothing to receive.
    pub(crate) fn end(&mut self) {
        *self = Self::default();
    }

    /// Returns true while nothing should be received.
    pub(crate) fn is_on(&self, now: Time) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    /// Returns the end of the pause.
    pub(crate) fn until(&self) -> Option<Time> {
        self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_second() {
        let mut pause = Pause::default();
        let mut now = Time::ZERO;
        let mut lengths = Vec::new();
        for _ in 0..40 {
            if pause.begin(now) {
                let until = pause.until().expect("receiving pauses");
                assert!(pause.is_on(now) && !pause.is_on(until));
                lengths.push((until - now).as_millis());
                now = until;
            }
        }
        assert_eq!(lengths[..4], [1, 2, 4, 8]);
        assert_eq!(lengths[35], 1000);
        assert_eq!(lengths.len(), 36);
    }

    #[test]
    fn success_ends_the_pause_and_the_doubling() {
        let mut pause = Pause::default();
        for _ in 0..10 {
            pause.begin(Time::ZERO);
        }
        pause.end();
        assert!(!pause.is_on(Time::ZERO));
        assert!(!pause.begin(Time::ZERO));
    }
}
