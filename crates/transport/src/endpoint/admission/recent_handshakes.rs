//! A count of the handshakes that began recently.

use std::time::Duration;

use courser_base::Time;

/// Counts the handshakes that began within the last second.
///
/// All other half-open connections are older. Honest clients complete within a few round trips, so
/// many old handshakes indicate clients that never complete.
#[derive(Clone, Debug, Default)]
pub struct RecentHandshakes {
    /// A ring of counts for the last tenths of a second.
    counts: [usize; TENTHS],
    /// Number of the current tenth of a second, from [`Time::ZERO`].
    now: u64,
}

impl RecentHandshakes {
    /// Counts a new handshake.
    pub fn count(&mut self, now: Time) {
        self.advance(now);
        *self.entry(self.now) += 1;
    }

    /// Returns the number of handshakes that began within the last second.
    pub fn in_last_second(&mut self, now: Time) -> usize {
        self.advance(now);
        self.counts.iter().sum()
    }

    fn advance(&mut self, now: Time) {
        let now = u64::try_from(Duration::from_nanos(now.as_nanos()).as_millis() / TENTH_MS)
            .unwrap_or(u64::MAX);
        if now.saturating_sub(self.now) >= TENTHS as u64 {
            self.counts = [0; TENTHS];
            self.now = now;
        }
        while self.now < now {
            self.now += 1;
            *self.entry(self.now) = 0;
        }
    }

    fn entry(&mut self, tenth: u64) -> &mut usize {
        let index = usize::try_from(tenth % TENTHS as u64).expect("less than TENTHS");
        &mut self.counts[index]
    }
}

const TENTHS: usize = 10;
const TENTH_MS: u128 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn handshakes_of_the_last_second_are_counted() {
        let mut recent = RecentHandshakes::default();
        for millis in [5000, 5050, 5500, 5950] {
            recent.count(at(millis));
        }
        assert_eq!(recent.in_last_second(at(5999)), 4);
        assert_eq!(
            recent.in_last_second(at(6000)),
            2,
            "the first tenth is over"
        );
        assert_eq!(recent.in_last_second(at(6899)), 1);
        assert_eq!(recent.in_last_second(at(6900)), 0);
    }

    #[test]
    fn long_pauses_and_clocks_that_run_back_are_survived() {
        let mut recent = RecentHandshakes::default();
        recent.count(at(100));
        assert_eq!(recent.in_last_second(at(u64::from(u32::MAX))), 0);
        recent.count(at(50));
        assert_eq!(recent.in_last_second(at(50)), 1);
    }
}
