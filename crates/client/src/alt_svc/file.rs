//! The file format in which curl stores alternatives: one per line, in nine fields.
//!
//! `h2 example.org 443 h3 other.example.org 8443 "20300131 10:00:00" 0 0`: protocol, host and port of the
//! origin, protocol, host and port of the alternative, expiry (UTC), whether it persists, and an unused
//! priority.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use super::super::origin::Origin;
use super::alternative::Alternative;

/// Parses the alternatives of a file. Malformed lines are skipped, as in curl.
pub(super) fn read(text: &str) -> impl Iterator<Item = (Origin, Alternative)> {
    text.lines().filter_map(read_line)
}

/// Returns the text of a file with the unexpired alternatives, sorted by origin.
pub(super) fn write(now: SystemTime, origins: &HashMap<Origin, Vec<Alternative>>) -> String {
    let mut text = String::from(HEADER);
    let mut sorted: Vec<_> = origins.iter().collect();
    sorted.sort_by_key(|(origin, _)| *origin);
    for (origin, known) in sorted {
        for alternative in known.iter().filter(|known| known.expires > now) {
            let _ = writeln!(
                text,
                "h2 {} {} h3 {} {} \"{}\" {} 0",
                bracketed(origin.host()),
                origin.port(),
                bracketed(alternative.host(origin)),
                alternative.port,
                format_time(alternative.expires),
                u8::from(alternative.persists),
            );
        }
    }
    text
}

fn read_line(line: &str) -> Option<(Origin, Alternative)> {
    if line.trim_start().starts_with('#') {
        return None;
    }
    let (front, rest) = line.split_once('"')?;
    let (expires, back) = rest.split_once('"')?;
    let front: Vec<&str> = front.split_whitespace().collect();
    let [_, host, port, "h3", other_host, other_port] = front.as_slice() else {
        return None;
    };
    let origin = format!("https://{host}:{}", port.parse::<u16>().ok()?);
    let origin = Origin::of(&origin.parse().ok()?).ok()?;
    let other = other_host.trim_start_matches('[').trim_end_matches(']');
    let is_same = other.eq_ignore_ascii_case(origin.host());
    let alternative = Alternative {
        host: if is_same {
            "".into()
        } else {
            other.to_ascii_lowercase().into()
        },
        port: other_port.parse().ok().filter(|port| *port != 0)?,
        expires: parse_time(expires)?,
        persists: back.split_whitespace().next() == Some("1"),
    };
    Some((origin, alternative))
}

fn bracketed(host: &str) -> String {
    if host.contains(':') {
        format!("[{host}]")
    } else {
        host.to_owned()
    }
}

/// Formats a UTC time as `20300131 10:00:00`.
fn format_time(time: SystemTime) -> String {
    let since = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let seconds = since.as_secs();
    let (year, month, day) = date_of(seconds / DAY);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}{month:02}{day:02} {hour:02}:{minute:02}:{second:02}")
}

fn parse_time(text: &str) -> Option<SystemTime> {
    let (date, time) = text.split_once(' ')?;
    if date.len() != 8 || time.len() != 8 || !text.is_ascii() {
        return None;
    }
    let number = |text: &str| text.parse::<u64>().ok();
    let (year, month, day) = (
        number(&date[..4])?,
        number(&date[4..6])?,
        number(&date[6..])?,
    );
    let (hour, minute, second) = (
        number(&time[..2])?,
        number(&time[3..5])?,
        number(&time[6..])?,
    );
    let is_valid = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !is_valid {
        return None;
    }
    let seconds = days_until(year, month, day) * DAY + hour * 3600 + minute * 60 + second;
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

/// Returns the number of days from 1970-01-01 to a date. Years begin in March here, so that the leap day is the
/// last day.
const fn days_until(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let leap_days = year / 4 - year / 100 + year / 400;
    365 * year + leap_days + (153 * month + 2) / 5 + day - 1 - DAYS_TO_1970
}

/// Returns the date that is `days` days after 1970-01-01.
fn date_of(days: u64) -> (u64, u64, u64) {
    let mut year = 1970 + days / 366;
    while days_until(year + 1, 1, 1) <= days {
        year += 1;
    }
    let month = (1..=12)
        .rev()
        .find(|month| days_until(year, *month, 1) <= days)
        .unwrap_or(1);
    (year, month, days - days_until(year, month, 1) + 1)
}

const DAY: u64 = 24 * 3600;
/// Number of days from 0000-03-01 to 1970-01-01.
const DAYS_TO_1970: u64 = 719_468;

const HEADER: &str = "# Alternatives that servers announced (RFC 7838), in curl's format.\n";
