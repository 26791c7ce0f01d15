//! Decides whether and when a transfer is repeated.

use std::time::{Duration, SystemTime};

use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};

/// Returns true for statuses after which a later attempt may succeed, the same as in curl.
pub(crate) fn is_transient(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 429 | 500 | 502 | 503 | 504)
}

/// Returns the time until that in a Retry-After field, which has seconds or a date (RFC 9110 §10.2.3).
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
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
    fn retry_after_has_seconds_or_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        for (value, seconds) in [
            ("120", Some(120)),
            ("Sun, 06 Nov 1994 08:50:07 GMT", Some(30)),
            ("Sunday, 06-Nov-94 08:50:07 GMT", Some(30)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("soon", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, value.parse().expect("a value"));
            let time = retry_after(&headers, now);
            assert_eq!(time, seconds.map(Duration::from_secs), "{value}");
        }
    }

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
