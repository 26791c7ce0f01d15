//! The `date` field of responses (RFC 9110 §6.6.1).

use std::cell::Cell;
use std::time::{Duration, UNIX_EPOCH};

use courser_http3::HttpDate;
use courser_quic::runtime;

thread_local! {
    /// The second that was formatted last, and its text.
    static LAST: Cell<Option<(u64, HttpDate)>> = const { Cell::new(None) };
}

/// Returns the current time as an IMF-fixdate (RFC 9110 §5.6.7), or `None` if the clock shows a year that the
/// format does not have. Each thread formats it once a second.
pub(super) fn now() -> Option<HttpDate> {
    let now = runtime::unix_time().as_secs();
    match LAST.get() {
        Some((second, text)) if second == now => Some(text),
        _ => {
            let text = format(now)?;
            LAST.set(Some((now, text)));
            Some(text)
        }
    }
}

fn format(seconds: u64) -> Option<HttpDate> {
    if seconds >= YEAR_10_000 {
        return None;
    }
    let time = UNIX_EPOCH + Duration::from_secs(seconds);
    httpdate::fmt_http_date(time).as_bytes().try_into().ok()
}

/// The first second with a year of five digits.
const YEAR_10_000: u64 = 253_402_300_800;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_imf_fixdates() {
        for (seconds, expected) in [
            (784_111_777, Some(*b"Sun, 06 Nov 1994 08:49:37 GMT")),
            (951_782_400, Some(*b"Tue, 29 Feb 2000 00:00:00 GMT")),
            (YEAR_10_000 - 1, Some(*b"Fri, 31 Dec 9999 23:59:59 GMT")),
            (YEAR_10_000, None),
        ] {
            assert_eq!(format(seconds), expected, "{seconds}");
        }
    }

    #[test]
    fn the_current_second_is_that_of_the_runtime() {
        let seconds = || runtime::unix_time().as_secs();
        let (before, date, after) = (seconds(), now(), seconds());
        let is_now = (before..=after).any(|second| format(second) == date);
        assert!(is_now, "{date:?}");
    }
}
