//! Deadlines of calls, and the field `grpc-timeout` that carries them (PROTOCOL-HTTP2, Requests).

use std::time::{Duration, Instant};

use courser_quic::runtime;
#[cfg(any(feature = "client", feature = "server"))]
use http::HeaderMap;
use http::HeaderName;
#[cfg(feature = "client")]
use http::HeaderValue;
use tonic::Request;
#[cfg(any(feature = "client", feature = "server"))]
use tonic::Status;

/// The deadline of a call, in the extensions of each request that has one when it reaches a service behind
/// [`ServerLayer`](crate::ServerLayer).
///
/// A service that calls another one passes it on with [`apply_to`](Self::apply_to), so that no work continues for a
/// client that has given up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Deadline(Instant);

impl Deadline {
    /// Returns the deadline of a received request, or `None` if neither its client nor the server set one.
    pub fn of<T>(request: &Request<T>) -> Option<Self> {
        request.extensions().get().copied()
    }

    /// Returns the deadline after `timeout` from now, or `None` beyond the range of the clock.
    pub fn after(timeout: Duration) -> Option<Self> {
        runtime::now().checked_add(timeout).map(Self)
    }

    /// Returns the time on the clock of [`runtime::now`].
    pub fn instant(self) -> Instant {
        self.0
    }

    /// Returns the time that is left, zero if the deadline has passed.
    pub fn remaining(self) -> Duration {
        self.0.saturating_duration_since(runtime::now())
    }

    /// Sets the time that is left as the timeout of a request to another server. Keeps a shorter one.
    pub fn apply_to<T>(self, request: &mut Request<T>) {
        let own = request.metadata().get(NAME.as_str());
        let own = own.and_then(|value| parse(value.as_encoded_bytes()));
        let remaining = self.remaining();
        if own.is_none_or(|own| own > remaining) {
            request.set_timeout(remaining);
        }
    }

    /// Returns the status of a call that has not ended at its deadline.
    #[cfg(any(feature = "client", feature = "server"))]
    pub(crate) fn exceeded(timeout: Duration) -> Status {
        Status::deadline_exceeded(format!("the call did not end within {timeout:?}"))
    }
}

/// Returns the timeout in the fields of a request. A malformed value counts as none, as in tonic.
#[cfg(any(feature = "client", feature = "server"))]
pub(crate) fn timeout_of(headers: &HeaderMap) -> Option<Duration> {
    parse(headers.get(&NAME)?.as_bytes())
}

/// Sets the timeout in the fields of a request.
#[cfg(feature = "client")]
pub(crate) fn set_timeout(headers: &mut HeaderMap, timeout: Duration) {
    headers.insert(NAME, format(timeout));
}

/// Parses one to eight digits and a unit.
fn parse(value: &[u8]) -> Option<Duration> {
    let (unit, digits) = value.split_last()?;
    if digits.is_empty() || digits.len() > MAX_DIGITS {
        return None;
    }
    let count = digits.iter().try_fold(0_u64, |count, digit| {
        digit
            .is_ascii_digit()
            .then(|| count * 10 + u64::from(digit - b'0'))
    })?;
    Some(match unit {
        b'H' => Duration::from_secs(count * 3600),
        b'M' => Duration::from_secs(count * 60),
        b'S' => Duration::from_secs(count),
        b'm' => Duration::from_millis(count),
        b'u' => Duration::from_micros(count),
        b'n' => Duration::from_nanos(count),
        _ => return None,
    })
}

/// Returns the timeout in the finest unit in which it has at most eight digits. Rounds up, because a server must not
/// give up before its client does.
#[cfg(feature = "client")]
fn format(timeout: Duration) -> HeaderValue {
    let nanos = timeout.as_nanos();
    let fitting = UNITS.iter().find_map(|(size, unit)| {
        let count = nanos.div_ceil(*size);
        (count <= MAX_COUNT).then_some((count, *unit))
    });
    // The largest value is 11415 years.
    let (count, unit) = fitting.unwrap_or((MAX_COUNT, 'H'));
    HeaderValue::try_from(format!("{count}{unit}")).expect("digits and a letter are a valid value")
}

const NAME: HeaderName = HeaderName::from_static("grpc-timeout");
const MAX_DIGITS: usize = 8;
#[cfg(feature = "client")]
const MAX_COUNT: u128 = 99_999_999;
/// The units with their sizes in nanoseconds, finest first.
#[cfg(feature = "client")]
const UNITS: [(u128, char); 6] = [
    (1, 'n'),
    (1_000, 'u'),
    (1_000_000, 'm'),
    (1_000_000_000, 'S'),
    (60_000_000_000, 'M'),
    (3_600_000_000_000, 'H'),
];

#[cfg(all(test, feature = "client"))]
mod tests;
