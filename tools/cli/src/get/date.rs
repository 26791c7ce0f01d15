//! Dates in cookies and on the command line.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(super) use courser::client::cookie_parts::of_cookie;
use courser::client::cookie_parts::{MONTHS, days_since_1970};

/// Parses a date on the command line: that of a cookie, `2024-05-01`, `20240501`, or one with `12:34:56` or
/// `12:34` after it. All times are in UTC.
pub(super) fn of_user(text: &str) -> Option<i64> {
    of_cookie(text.as_bytes()).or_else(|| {
        let (date, time) = match text.find(['T', ' ']) {
            Some(at) => (&text[..at], text[at + 1..].trim_end_matches('Z')),
            None => (text, ""),
        };
        let digits: String = date.chars().filter(|letter| *letter != '-').collect();
        let is_date = digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_digit());
        if !is_date {
            // A date in words without a time.
            return of_cookie(format!("{text} 00:00:00").as_bytes());
        }
        let (year, month, day) = (&digits[..4], &digits[4..6], &digits[6..]);
        let month: usize = month.parse().ok()?;
        let month = MONTHS.get(month.checked_sub(1)?)?;
        let time = match time.split(':').count() {
            3 => time.to_owned(),
            2 => format!("{time}:00"),
            _ if time.is_empty() => "00:00:00".to_owned(),
            _ => return None,
        };
        of_cookie(format!("{day} {month} {year} {time}").as_bytes())
    })
}

/// Returns the time of a number of seconds since 1970.
pub(super) fn system_time(seconds: i64) -> SystemTime {
    let distance = Duration::from_secs(seconds.unsigned_abs());
    let time = match seconds < 0 {
        true => UNIX_EPOCH.checked_sub(distance),
        false => UNIX_EPOCH.checked_add(distance),
    };
    time.unwrap_or(UNIX_EPOCH)
}

/// Returns the seconds since 1970 of a time.
pub(super) fn seconds(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_secs()).map_or(i64::MIN, |it| -it),
    }
}

/// Returns a UTC time as `20300131 10:00:00`.
pub(super) fn compact(seconds: i64) -> String {
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let mut year = 1970 + days / 366;
    while days_since_1970(year + 1, 1, 1) <= days {
        year += 1;
    }
    let mut month = 12;
    while days_since_1970(year, month, 1) > days {
        month -= 1;
    }
    let day = days - days_since_1970(year, month, 1) + 1;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}{month:02}{day:02} {hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const AUTUMN: i64 = 784_111_777;

    #[test]
    fn dates_of_users_may_be_short() {
        for text in [
            "1994-11-06 08:49:37",
            "1994-11-06T08:49:37Z",
            "19941106 08:49:37",
        ] {
            assert_eq!(of_user(text), Some(AUTUMN), "{text}");
        }
        assert_eq!(of_user("1994-11-06"), Some(AUTUMN - 31_777));
        assert_eq!(of_user("6 Nov 1994"), Some(AUTUMN - 31_777));
        assert_eq!(of_user("1994-11-06 08:49"), Some(AUTUMN - 37));
        for wrong in ["", "yesterday", "1994-13-01", "1994-11-06 8"] {
            assert_eq!(of_user(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn times_are_converted_both_ways() {
        for time in [0, -1, AUTUMN] {
            assert_eq!(seconds(system_time(time)), time);
        }
        assert_eq!(compact(AUTUMN), "19941106 08:49:37");
        assert_eq!(compact(951_782_400), "20000229 00:00:00");
        assert_eq!(compact(0), "19700101 00:00:00");
    }
}
