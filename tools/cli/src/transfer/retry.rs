//! Decides whether and when a transfer is repeated.

use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};

/// Returns true for statuses after which a later attempt may succeed, the same as in curl.
pub(crate) fn is_transient(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 429 | 500 | 502 | 503 | 504)
}

/// Returns the time in a Retry-After field in seconds. Fields with a date are ignored.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?;
    Some(Duration::from_secs(value.trim().parse().ok()?))
}

/// The delays between attempts.
///
/// They begin with one second and double up to ten minutes, as in curl.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    fixed: Option<Duration>,
    next: Duration,
}

impl Backoff {
    /// Returns the delays of a transfer; with `fixed`, all are the same.
    pub(crate) const fn new(fixed: Option<Duration>) -> Self {
        Self {
            fixed,
            next: FIRST_DELAY,
        }
    }

    /// Returns the delay before the next attempt: `retry_after` of the server's response if it has one, at most
    /// ten minutes.
    pub(crate) fn next(&mut self, retry_after: Option<Duration>) -> Duration {
        let delay = retry_after.unwrap_or(self.next).min(MAX_DELAY);
        self.next = (self.next * 2).min(MAX_DELAY);
        self.fixed.unwrap_or(delay)
    }
}

const FIRST_DELAY: Duration = Duration::from_secs(1);
const MAX_DELAY: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_unless_they_are_given() {
        let seconds = Duration::from_secs;
        let mut backoff = Backoff::new(None);
        assert_eq!(backoff.next(None), seconds(1));
        assert_eq!(backoff.next(Some(seconds(7))), seconds(7));
        assert_eq!(backoff.next(None), seconds(4));
        assert_eq!(backoff.next(Some(seconds(10_000))), seconds(600));
        let mut fixed = Backoff::new(Some(seconds(2)));
        assert_eq!(
            [fixed.next(None), fixed.next(Some(seconds(9)))],
            [seconds(2); 2]
        );
    }
}
