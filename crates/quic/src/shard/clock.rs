//! The time of a shard.

use std::time::{Duration, Instant};

use courser_base::Time;

use crate::runtime::Current;

/// Translates between the runtime's clock and the transport's time, which begins with the shard.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    runtime: Current,
    epoch: Instant,
}

impl Clock {
    /// Starts the time of a shard.
    pub(crate) fn new(runtime: &Current) -> Self {
        Self {
            epoch: runtime.now(),
            runtime: runtime.clone(),
        }
    }

    pub(crate) fn now(&self) -> Time {
        let since = self.runtime.now().saturating_duration_since(self.epoch);
        let nanos = since.as_nanos();
        Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Converts a time to an instant of the runtime, at most a day ahead.
    pub(crate) fn instant_of(&self, time: Time, now: Time) -> Instant {
        let ahead = (time - now).min(Duration::from_secs(24 * 3600));
        self.epoch + Duration::from_nanos(now.as_nanos()) + ahead
    }
}
