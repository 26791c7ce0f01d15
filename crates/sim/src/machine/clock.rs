//! Virtual time as types of the standard library.
//!
//! Applications use [`Instant`]s, of which only differences are visible. Virtual ones count from
//! one anchor per process, so that those of several machines are comparable.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use courser_base::Time;

/// Returns a point in virtual time as an [`Instant`].
pub(super) fn instant_of(time: Time) -> Instant {
    anchor() + Duration::from_nanos(time.as_nanos())
}

/// Returns the virtual time of an [`Instant`].
pub(super) fn time_of(instant: Instant) -> Time {
    Time::ZERO + instant.saturating_duration_since(anchor())
}

/// Returns the calendar time at `time`. All worlds start on 1 January 2026.
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
