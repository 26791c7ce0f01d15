//! Dates in cookies.

/// Parses the date of a cookie (draft-ietf-httpbis-rfc6265bis §5.1.1): its parts in any order, with any text
/// between them. Returns seconds since 1970.
pub fn of_cookie(text: &[u8]) -> Option<i64> {
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    for token in text.split(|byte| is_delimiter(*byte)) {
        if token.is_empty() {
            continue;
        }
        if time.is_none() {
            time = time_of(token);
            if time.is_some() {
                continue;
            }
        }
        if day.is_none() {
            day = number(token, 1, 2);
            if day.is_some() {
                continue;
            }
        }
        if month.is_none() {
            month = month_of(token);
            if month.is_some() {
                continue;
            }
        }
        if year.is_none() {
            year = number(token, 2, 4);
        }
    }
    let year = match year? {
        year @ 70..=99 => year + 1900,
        year @ 0..=69 => year + 2000,
        year => year,
    };
    let ((hour, minute, second), day, month) = (time?, day?, month?);
    let is_valid = year >= 1601 && hour <= 23 && minute <= 59 && second <= 59;
    if !is_valid || day == 0 || day > days_of(month, year) {
        return None;
    }
    Some(days_since_1970(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second)
}

const fn is_delimiter(byte: u8) -> bool {
    matches!(byte, 0x09 | 0x20..=0x2f | 0x3b..=0x40 | 0x5b..=0x60 | 0x7b..=0x7e)
}

/// Parses a number of `least` to `most` digits that no further digit follows.
fn number(token: &[u8], least: usize, most: usize) -> Option<i64> {
    let digits = token.iter().take_while(|byte| byte.is_ascii_digit());
    let digits: Vec<u8> = digits.copied().collect();
    let is_number = (least..=most).contains(&digits.len());
    is_number.then(|| {
        digits
            .iter()
            .fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'))
    })
}

/// Parses `hh:mm:ss`, whose numbers have one or two digits. Other text may follow.
fn time_of(token: &[u8]) -> Option<(i64, i64, i64)> {
    let mut parts = token.splitn(3, |byte| *byte == b':');
    let mut exact = || {
        let part = parts.next()?;
        let is_number = part.iter().all(u8::is_ascii_digit);
        is_number.then(|| number(part, 1, 2)).flatten()
    };
    let (hour, minute) = (exact()?, exact()?);
    let second = number(parts.next()?, 1, 2)?;
    Some((hour, minute, second))
}

/// Returns the number of a month, from 1 on.
fn month_of(token: &[u8]) -> Option<i64> {
    let name = token.get(..3)?;
    let mut months = MONTHS.iter();
    let index = months.position(|month| month.as_bytes().eq_ignore_ascii_case(name))?;
    i64::try_from(index + 1).ok()
}

fn days_of(month: i64, year: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the days between 1970-01-01 and a date of the Gregorian calendar.
pub fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let days_before = |year: i64| year * 365 + year / 4 - year / 100 + year / 400;
    let of_months: i64 = (1..month).map(|month| days_of(month, year)).sum();
    days_before(year - 1) - days_before(1969) + of_months + day - 1
}

/// The names of the months as in dates of cookies.
pub const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];

#[cfg(test)]
mod tests {
    use super::*;

    const AUTUMN: i64 = 784_111_777;

    #[test]
    fn dates_of_cookies_are_read_leniently() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "1994 6 november 8:49:37",
            "08:49:37 6/nov/94",
            "6Nov... no: 6 Nov 1994 08:49:37",
            "Sun; 06_NOVEMBER_1994 08:49:37.123 UTC+0000",
            "06 Nov 1994 08:49:37 06 Dec 2020 00:00:00",
        ] {
            assert_eq!(of_cookie(text.as_bytes()), Some(AUTUMN), "{text}");
        }
        assert_eq!(of_cookie(b"1 Jan 70 00:00:00"), Some(0));
        assert_eq!(of_cookie(b"1 Jan 69 00:00:00"), Some(3_124_224_000));
        assert_eq!(of_cookie(b"29 Feb 2000 00:00:00"), Some(951_782_400));
    }

    #[test]
    fn incomplete_and_impossible_dates_are_refused() {
        for text in [
            "",
            "6 Nov 1994",
            "Nov 1994 08:49:37",
            "6 1994 08:49:37",
            "6 Nov 08:49:37",
            "6 Nov 1994 24:00:00",
            "6 Nov 1994 08:60:00",
            "6 Nov 1994 08:49:60",
            "0 Nov 1994 08:49:37",
            "31 Nov 1994 08:49:37",
            "29 Feb 1900 00:00:00",
            "6 Nov 1600 08:49:37",
            "6 Nov 19941 08:49:37",
            "6 Nov 1994 08:49",
            "6 Nov 1994 123:49:37",
        ] {
            assert_eq!(of_cookie(text.as_bytes()), None, "{text}");
        }
    }
}
