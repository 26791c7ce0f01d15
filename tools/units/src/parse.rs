//! Parses sizes, counts and times from a command line.

use std::time::Duration;

/// Parses a size or count: `1500`, `64k`, `1G`, `64KiB`, `1.5MB`.
///
/// Suffixes with an `i` count in powers of 1024, those without in powers of 1000. A final `B` is
/// optional.
///
/// # Errors
/// Returns a message for the user if the text is not a whole number below 2^63.
pub fn parse_quantity(text: &str) -> Result<u64, String> {
    let trimmed = text.trim();
    let digits = trimmed
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(trimmed.len());
    let (number, suffix) = trimmed.split_at(digits);
    let unit = unit(suffix.trim()).ok_or_else(|| {
        format!("'{text}' is not a size: use a number with k, M, G, T or KiB, MiB, GiB, TiB")
    })?;
    let whole = scale(number, unit)
        .ok_or_else(|| format!("'{text}' is not a size: use a whole number of bytes below 2^63"))?;
    Ok(whole)
}

/// Parses a size or count of at least 1, written as for [`parse_quantity`].
///
/// # Errors
/// Returns a message for the user if [`parse_quantity`] does, or if the number is 0.
pub fn parse_positive(text: &str) -> Result<u64, String> {
    match parse_quantity(text)? {
        0 => Err("0 is too small: use at least 1".to_owned()),
        quantity => Ok(quantity),
    }
}

/// Parses a time: `10`, `0.5`, `250ms`, `2s`, `1m`. A number without a unit counts seconds.
///
/// # Errors
/// Returns a message for the user if the text is not a time between 1 ms and 1 day.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("'{text}' is not a time: use seconds, such as 10, 0.5 or 250ms");
    let trimmed = text.trim();
    let (number, unit) = if let Some(number) = trimmed.strip_suffix("ms") {
        (number, 1e-3)
    } else if let Some(number) = trimmed.strip_suffix('s') {
        (number, 1.0)
    } else if let Some(number) = trimmed.strip_suffix('m') {
        (number, 60.0)
    } else {
        (trimmed, 1.0)
    };
    let seconds: f64 = number.trim().parse().map_err(|_| wrong())?;
    let seconds = seconds * unit;
    if !(MIN_SECONDS..=MAX_SECONDS).contains(&seconds) {
        return Err(format!("'{text}' is not a time between 1 ms and 1 day"));
    }
    Ok(Duration::from_secs_f64(seconds))
}

fn unit(suffix: &str) -> Option<u64> {
    let suffix = suffix.strip_suffix(['B', 'b']).unwrap_or(suffix);
    let (letter, base) = match suffix.strip_suffix(['i', 'I']) {
        Some(letter) if !letter.is_empty() => (letter, 1024_u64),
        Some(_) => return None,
        None => (suffix, 1000),
    };
    let power = match letter {
        "" => 0,
        "k" | "K" => 1,
        "m" | "M" => 2,
        "g" | "G" => 3,
        "t" | "T" => 4,
        _ => return None,
    };
    base.checked_pow(power)
}

/// Returns `number` times `unit`, computed without rounding; `None` unless it is whole and below 2^63.
fn scale(number: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole: u128 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let places = u32::try_from(fraction.len())
        .ok()
        .filter(|places| *places <= 18)?;
    let part: u128 = if fraction.is_empty() {
        0
    } else {
        fraction.parse().ok()?
    };
    let unit = u128::from(unit);
    let divisor = 10_u128.pow(places);
    if !(part * unit).is_multiple_of(divisor) {
        return None;
    }
    let total = whole
        .checked_mul(unit)?
        .checked_add(part * unit / divisor)?;
    u64::try_from(total).ok().filter(|total| *total < 1 << 63)
}

const MIN_SECONDS: f64 = 1e-3;
const MAX_SECONDS: f64 = 24.0 * 3600.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_without_i_are_decimal_and_with_i_binary() {
        assert_eq!(parse_quantity("1G"), Ok(1_000_000_000));
        assert_eq!(parse_quantity("64KiB"), Ok(65_536));
        assert_eq!(parse_quantity("64k"), Ok(64_000));
        assert_eq!(parse_quantity("1.5MB"), Ok(1_500_000));
        assert_eq!(parse_quantity("2 MiB"), Ok(2_097_152));
        assert_eq!(parse_quantity("1500"), Ok(1500));
        assert_eq!(parse_quantity(".5k"), Ok(500));
    }

    #[test]
    fn malformed_size_is_refused_with_an_example() {
        for wrong in [
            "", "x", "1x", "-1", "1e9", "i", "1iB", ".", "1.2.3", "1.0001k", "1.5",
        ] {
            let error = parse_quantity(wrong).expect_err(wrong);
            assert!(error.contains("is not a size"), "{wrong}: {error}");
        }
    }

    #[test]
    fn sizes_of_2_to_the_63_and_above_are_refused() {
        assert!(parse_quantity("9223372036854775808").is_err());
        assert!(parse_quantity("99999999999T").is_err());
        assert!(parse_quantity("999999999999999999999999999999999999999999").is_err());
        assert_eq!(parse_quantity("9223372036854775807"), Ok((1 << 63) - 1));
    }

    #[test]
    fn zero_is_refused_where_a_positive_number_is_required() {
        assert!(
            parse_positive("0")
                .expect_err("zero")
                .contains("at least 1")
        );
    }

    #[test]
    fn times_without_a_unit_are_seconds() {
        assert_eq!(parse_duration("10"), Ok(Duration::from_secs(10)));
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse_duration("0.5s"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("1m"), Ok(Duration::from_secs(60)));
        for wrong in ["0", "-1", "x", "", "nan", "inf", "1e300", "1e-300", "90000"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }
}
