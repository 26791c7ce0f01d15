//! Numbers with units in specifications, parsed and formatted without rounding.

use std::time::Duration;

use courser_base::Rate;

use crate::probability::Probability;

/// Parses a duration such as `40ms`, `250us`, `1.5s`, `2min`. The unit is mandatory except for
/// zero.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let (number, unit) = split(text);
    let nanos = match unit {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        // Zero is the same in every unit.
        "" if number == "0" => 1,
        _ => return None,
    };
    decimal(number, nanos)
        .map(Duration::from_nanos)
        .filter(|duration| *duration <= MAX_DURATION)
}

/// Parses a rate such as `20mbit`, `1.5gbit`, `64kbit/s`, in whole bytes per second above zero.
pub fn parse_rate(text: &str) -> Option<Rate> {
    let (number, unit) = split(text);
    let unit = unit.to_ascii_lowercase();
    let bits = match unit.strip_suffix("/s").unwrap_or(&unit) {
        "bit" => 1,
        "kbit" => 1_000,
        "mbit" => 1_000_000,
        "gbit" => 1_000_000_000,
        "tbit" => 1_000_000_000_000,
        _ => return None,
    };
    let bits = decimal(number, bits)?;
    let is_allowed = bits > 0 && bits.is_multiple_of(8) && bits <= MAX_BITS_PER_SECOND;
    is_allowed.then(|| Rate::from_bytes_per_second(bits / 8))
}

/// Parses a probability such as `1%`, `0.01%`, or a share such as `0.5`.
pub(crate) fn parse_probability(text: &str) -> Option<Probability> {
    let parts = match text.strip_suffix('%') {
        Some(percent) => decimal(percent.trim(), PARTS_PER_PERCENT)?,
        None => decimal(text, PARTS)?,
    };
    let parts = u32::try_from(parts).ok()?;
    (u64::from(parts) <= PARTS).then(|| Probability::from_parts_per_billion(parts))
}

/// Parses a size such as `64k` (powers of 1000) or `64KiB` (powers of 1024), with or without `B`.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let (number, unit) = split(text);
    let unit = match unit.to_ascii_lowercase().trim_end_matches('b') {
        "" => 1,
        "k" => 1_000,
        "m" => 1_000_000,
        "g" => 1_000_000_000,
        "ki" => 1 << 10,
        "mi" => 1 << 20,
        "gi" => 1 << 30,
        _ => return None,
    };
    decimal(number, unit).filter(|bytes| *bytes <= MAX_BYTES)
}

/// Parses a decimal count without a unit.
pub(crate) fn parse_count(text: &str) -> Option<u64> {
    is_number(text).then(|| text.parse().ok()).flatten()
}

/// Parses a count in binary (`0b101`), hexadecimal (`0x5`) or decimal.
pub(crate) fn parse_mask(text: &str) -> Option<u64> {
    if let Some(digits) = text.strip_prefix("0b") {
        return u64::from_str_radix(digits, 2).ok();
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok();
    }
    parse_count(text)
}

/// Parses a multiple such as `1.5`, in thousandths.
pub(crate) fn parse_thousandths(text: &str) -> Option<u32> {
    let parts = u32::try_from(decimal(text, 1000)?).ok()?;
    (1..=MAX_BDP_THOUSANDTHS).contains(&parts).then_some(parts)
}

pub(crate) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the shortest text of a duration.
pub(crate) fn duration(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    for (unit, name) in [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")] {
        if nanos.is_multiple_of(unit) {
            return format!("{}{name}", nanos / unit);
        }
    }
    format!("{nanos}ns")
}

/// Returns the shortest text of a rate.
pub fn rate(rate: Rate) -> String {
    let bits = u128::from(rate.as_bytes_per_second()) * 8;
    let units = [
        (1_000_000_000_000, "tbit"),
        (1_000_000_000, "gbit"),
        (1_000_000, "mbit"),
        (1_000, "kbit"),
    ];
    for (unit, name) in units {
        if bits.is_multiple_of(unit) {
            return format!("{}{name}", bits / unit);
        }
    }
    format!("{bits}bit")
}

/// Formats a probability in percent.
pub(crate) fn probability(probability: Probability) -> String {
    let parts = u64::from(probability.as_parts_per_billion());
    format!("{}%", fixed(parts, PARTS_PER_PERCENT, 7))
}

/// Formats a size in bytes, kilobytes or megabytes.
pub(crate) fn bytes(bytes: u64) -> String {
    for (unit, name) in [(1_000_000, "M"), (1_000, "k")] {
        if bytes > 0 && bytes.is_multiple_of(unit) {
            return format!("{}{name}", bytes / unit);
        }
    }
    bytes.to_string()
}

/// Formats thousandths as a multiple.
pub(crate) fn thousandths(parts: u32) -> String {
    fixed(u64::from(parts), 1000, 3)
}

/// Formats `parts / unit` with at most `places` decimals, where `unit` is 10^`places`.
fn fixed(parts: u64, unit: u64, places: usize) -> String {
    let text = format!("{}.{:0places$}", parts / unit, parts % unit);
    let text = text.trim_end_matches('0');
    text.trim_end_matches('.').to_owned()
}

/// Splits `12.5ms` into number and unit.
fn split(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (number, unit.trim())
}

/// Returns `number` times `unit` if the product is whole and fits.
fn decimal(number: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let has_fraction = number.contains('.');
    if !is_number(whole) || (has_fraction && !is_number(fraction)) || fraction.len() > 15 {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let places = u32::try_from(fraction.len()).ok()?;
    let divisor = 10_u128.pow(places);
    let part: u128 = if has_fraction {
        fraction.parse().ok()?
    } else {
        0
    };
    let part = part * u128::from(unit);
    if !part.is_multiple_of(divisor) {
        return None;
    }
    let part = u64::try_from(part / divisor).ok()?;
    whole.checked_mul(unit)?.checked_add(part)
}

const PARTS: u64 = 1_000_000_000;
const PARTS_PER_PERCENT: u64 = PARTS / 100;

/// The longest duration, some 115 days. It exceeds all round trips of the tests (14 weeks), and
/// sums of many are far below the largest `Time`.
pub(crate) const MAX_DURATION: Duration = Duration::from_secs(10_000_000);

/// The largest rate. The largest packet still takes more than a nanosecond.
const MAX_BITS_PER_SECOND: u64 = 10_000_000_000_000;

/// The largest size, above that of any queue. A token bucket counts in bytes times 10^9, which must
/// fit 64 bits.
const MAX_BYTES: u64 = 10_000_000_000;

const MAX_BDP_THOUSANDTHS: u32 = 1_000_000;
