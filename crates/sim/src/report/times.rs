//! Times as seconds, for charts and JSON.

use std::time::Duration;

use courser_base::Time;
use serde::Serializer;

/// Returns seconds as a number, for charts and JSON.
#[expect(
    clippy::cast_precision_loss,
    reason = "fifteen digits of a second are finer than a nanosecond for eleven days"
)]
pub fn seconds(at: Time) -> f64 {
    at.as_nanos() as f64 / 1e9
}

pub(super) fn as_time<S: Serializer>(at: &Time, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(seconds(*at))
}

pub(super) fn as_seconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

#[expect(clippy::ref_option, reason = "the signature is serde's")]
pub(super) fn as_maybe_seconds<S: Serializer>(
    time: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => serializer.serialize_some(&time.as_secs_f64()),
        None => serializer.serialize_none(),
    }
}
