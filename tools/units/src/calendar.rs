//! Formats points in time in UTC.

use std::time::{SystemTime, UNIX_EPOCH};

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// A point in time as date and time of day.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Moment {
    year: u64,
    /// Month, counted from 1. The day also counts from 1.
    month: usize,
    day: u64,
    hour: u64,
    minute: u64,
    second: u64,
}

impl Moment {
    /// Converts a time; times before 1970 become 1970.
    fn of(time: SystemTime) -> Self {
        let seconds = time
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs();
        let (mut year, mut days) = (1970, seconds / 86_400);
        while days >= days_of(year) {
            days -= days_of(year);
            year += 1;
        }
        let mut month = 1;
        while days >= days_of_month(year, month) {
            days -= days_of_month(year, month);
            month += 1;
        }
        Self {
            year,
            month,
            day: days + 1,
            hour: seconds / 3600 % 24,
            minute: seconds / 60 % 60,
            second: seconds % 60,
        }
    }
}

const fn is_leap(year: u64) -> bool {
    (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400)
}

const fn days_of(year: u64) -> u64 {
    if is_leap(year) { 366 } else { 365 }
}

const fn days_of_month(year: u64, month: usize) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Formats the date: `2026-11-21`.
pub fn date(time: SystemTime) -> String {
    let it = Moment::of(time);
    format!("{:04}-{:02}-{:02}", it.year, it.month, it.day)
}

/// Formats a time according to RFC 3339: `2026-11-21T23:05:18Z`.
pub fn rfc3339(time: SystemTime) -> String {
    let it = Moment::of(time);
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
        it.year, it.month, it.day, it.hour, it.minute, it.second
    )
}

/// Formats a time according to RFC 3339 with milliseconds: `2026-11-21T23:05:18.042Z`.
pub fn rfc3339_millis(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = rfc3339(time);
    let millis = since.subsec_millis();
    format!("{}.{millis:03}Z", seconds.trim_end_matches('Z'))
}

/// Formats a time as in access logs: `21/Nov/2026:23:05:18 +0000`.
pub fn common_log(time: SystemTime) -> String {
    let it = Moment::of(time);
    format!(
        "{:02}/{}/{:04}:{:02}:{:02}:{:02} +0000",
        it.day,
        MONTHS[it.month - 1],
        it.year,
        it.hour,
        it.minute,
        it.second
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_are_formatted_as_utc_dates() {
        let at = |seconds| rfc3339(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(951_868_800), "2000-03-01T00:00:00Z");
        assert_eq!(at(1_798_761_599), "2026-12-31T23:59:59Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00Z");
        assert_eq!(at(253_402_300_799), "9999-12-31T23:59:59Z");
        let moment = UNIX_EPOCH + Duration::from_secs(1_798_761_599);
        assert_eq!(common_log(moment), "31/Dec/2026:23:59:59 +0000");
        assert_eq!(date(moment), "2026-12-31");
        let moment = moment + Duration::from_millis(42);
        assert_eq!(rfc3339_millis(moment), "2026-12-31T23:59:59.042Z");
        let before = UNIX_EPOCH - Duration::from_secs(1);
        assert_eq!(rfc3339_millis(before), "1970-01-01T00:00:00.000Z");
    }
}
