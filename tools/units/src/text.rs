//! Formats measured numbers as short text.

/// Formats a mean rate: `9.87 Gbit/s`.
pub fn rate(bytes: u64, seconds: f64) -> String {
    bits(bits_per_second(bytes, seconds))
}

/// Formats a rate in bits per second: `9.87 Gbit/s`.
pub fn bits(rate: f64) -> String {
    scaled(rate, &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"])
}

/// Returns the mean rate in bits per second, or 0 if `seconds` is not positive.
pub fn bits_per_second(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 {
        to_f64(bytes) * 8.0 / seconds
    } else {
        0.0
    }
}

/// Formats a number of bytes in powers of 1000: `1.00 GB`.
pub fn size(bytes: u64) -> String {
    scaled(to_f64(bytes), &["B", "kB", "MB", "GB", "TB"])
}

/// Formats a number of bytes in powers of 1024: `4.0 MiB`.
///
/// Use it for values that are configured in powers of 1024, such as socket buffers.
pub fn binary_size(bytes: u64) -> String {
    const UNITS: &[&str] = &["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = to_f64(bytes);
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let places = usize::from(unit > 0);
    format!("{value:.places$} {}", UNITS[unit])
}

/// Formats a number of events per second: `245 k/s`.
pub fn per_second(value: f64) -> String {
    format!("{}/s", scaled(value, &["", "k", "M", "G"]).trim_end())
}

/// Formats a time: `412 us`, `1.23 ms`, `2.10 s`.
///
/// Accepts any number, because it may come from a peer.
pub fn seconds(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s >= 1.0 => (s, "s"),
        s if s >= 1e-3 => (s * 1e3, "ms"),
        s => (s * 1e6, "us"),
    };
    format!("{} {unit}", three_digits(value))
}

/// Returns the CPU seconds per 10^9 bytes, or `None` without bytes.
pub fn per_gigabyte(cpu_seconds: f64, bytes: u64) -> Option<f64> {
    (bytes > 0).then(|| cpu_seconds * 1e9 / to_f64(bytes))
}

/// Returns `part` divided by `whole`, or `None` when `whole` is 0.
pub fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| to_f64(part) / to_f64(whole))
}

/// Formats a number with three significant digits: `1.23`, `12.3`, `123`.
pub fn three_digits(value: f64) -> String {
    let places = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.places$}")
}

/// Converts a count for ratios and text, exactly up to 2^53.
#[expect(
    clippy::cast_precision_loss,
    reason = "fifteen digits are plenty for humans and rates"
)]
pub fn to_f64(value: u64) -> f64 {
    value as f64
}

fn scaled(mut value: f64, units: &[&str]) -> String {
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    let number = if unit == 0 && value.fract() == 0.0 {
        format!("{value:.0}")
    } else {
        three_digits(value)
    };
    format!("{number} {}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_three_digits_and_a_suitable_unit() {
        assert_eq!(rate(1_000_000_000, 1.0), "8.00 Gbit/s");
        assert_eq!(rate(1_000_000_000, 0.5), "16.0 Gbit/s");
        assert_eq!(rate(12_500, 1.0), "100 kbit/s");
        assert_eq!(rate(0, 1.0), "0 bit/s");
        assert_eq!(rate(1, 0.0), "0 bit/s");
    }

    #[test]
    fn rounding_up_moves_to_the_next_unit() {
        assert_eq!(size(999), "999 B");
        assert_eq!(size(999_999), "1.00 MB");
        assert_eq!(per_second(999.9), "1.00 k/s");
        assert_eq!(per_second(42.0), "42/s");
    }

    #[test]
    fn times_choose_their_unit() {
        assert_eq!(seconds(412e-6), "412 us");
        assert_eq!(seconds(1.234e-3), "1.23 ms");
        assert_eq!(seconds(2.1), "2.10 s");
        assert_eq!(seconds(-1.0), "-1000000 us");
    }

    #[test]
    fn binary_sizes_count_in_1024() {
        assert_eq!(binary_size(212_992), "208.0 KiB");
        assert_eq!(binary_size(7 << 20), "7.0 MiB");
        assert_eq!(binary_size(0), "0 B");
    }
}
