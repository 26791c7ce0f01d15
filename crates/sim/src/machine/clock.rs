//! Virtual time under the standard library's names.
//!
//! Applications count in [`Instant`]s, of which only differences can be seen. Virtual ones are
//! counted from one anchor per process, so that those of several machines can be compared.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use courser_base::Time;

/// The standard library's name for a point in virtual time.
pub(super) fn instant_of(time: Time) -> Instant {
    anchor() + Duration::from_nanos(time.as_nanos())
}

/// The point in virtual time that an application means.
pub(super) fn time_of(instant: Instant) -> Time {
    Time::ZERO + instant.saturating_duration_since(anchor())
}

/// The time of day at `time`. Worlds begin on 1 January 2026, each of them.
pub(super) fn unix_time(time: Time) -> Duration {
    const BEGIN: Duration = Duration::from_secs(1_767_225_600);
    BEGIN + Duration::from_nanos(time.as_nanos())
}

#[expect(
    clippy::disallowed_methods,
    reason = "an `Instant` has no other constructor; only differences to this one count"
)]
fn anchor() -> Instant {
    static ANCHOR: OnceLock<Instant> = OnceLock::new();
    *ANCHOR.get_or_init(Instant::now)
}
