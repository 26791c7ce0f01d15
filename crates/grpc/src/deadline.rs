//! Deadlines of calls, and the field `grpc-timeout` that carries them (PROTOCOL-HTTP2, Requests).

use std::time::{Duration, Instant};

use courser_quic::runtime;
#[cfg(any(feature = "client", feature = "server"))]
use http::HeaderMap;
use http::HeaderName;
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

const NAME: HeaderName = HeaderName::from_static("grpc-timeout");
const MAX_DIGITS: usize = 8;

#[cfg(all(test, any(feature = "client", feature = "server")))]
mod tests;
