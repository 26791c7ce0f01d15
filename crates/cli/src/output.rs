//! Words and numbers for humans, and progress on a terminal.

use std::io::Write;

use indicatif::{ProgressBar, ProgressStyle};

/// Writes a line to standard output. Who closes the pipe does not want to know.
pub(crate) fn line(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stdout(), "{}", text.as_ref());
}

/// Writes a remark to standard error.
pub(crate) fn note(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stderr(), "courser: {}", text.as_ref());
}

/// `9.87 Gbit/s`.
pub(crate) fn rate(bytes: u64, seconds: f64) -> String {
    bits(bits_per_second(bytes, seconds))
}

/// `9.87 Gbit/s`, from bits per second.
pub(crate) fn bits(rate: f64) -> String {
    scaled(rate, &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"])
}

pub(crate) fn bits_per_second(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 {
        to_f64(bytes) * 8.0 / seconds
    } else {
        0.0
    }
}

/// `1.00 GB`, in powers of 1000.
pub(crate) fn size(bytes: u64) -> String {
    scaled(to_f64(bytes), &["B", "kB", "MB", "GB", "TB"])
}

/// `4.0 MiB`, in powers of 1024, for what is configured that way.
pub(crate) fn binary_size(bytes: u64) -> String {
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

/// `245 k/s`.
pub(crate) fn per_second(value: f64) -> String {
    format!("{}/s", scaled(value, &["", "k", "M", "G"]).trim_end())
}

/// `412 us`, `1.23 ms`, `2.10 s`. May come from a peer: any number will do.
pub(crate) fn seconds(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s >= 1.0 => (s, "s"),
        s if s >= 1e-3 => (s * 1e3, "ms"),
        s => (s * 1e6, "us"),
    };
    format!("{} {unit}", three_digits(value))
}

/// CPU seconds for each 10^9 bytes.
pub(crate) fn per_gigabyte(cpu_seconds: f64, bytes: u64) -> Option<f64> {
    (bytes > 0).then(|| cpu_seconds * 1e9 / to_f64(bytes))
}

/// `part` of `whole`, if there is a whole.
pub(crate) fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| to_f64(part) / to_f64(whole))
}

/// Three digits that mean something: `1.23`, `12.3`, `123`.
pub(crate) fn three_digits(value: f64) -> String {
    let places = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.places$}")
}

#[expect(
    clippy::cast_precision_loss,
    reason = "fifteen digits are plenty for humans and rates"
)]
pub(crate) fn to_f64(value: u64) -> f64 {
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

/// What is under way, drawn on a terminal; nothing anywhere else.
#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Draws on standard error if that is a terminal.
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::new(SCALE);
        // The template is a constant; with a broken one the default look would do.
        if let Ok(style) = ProgressStyle::with_template("{msg:28} {bar:40} {percent:>3}%") {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// Something else is under way.
    pub(crate) fn begin(&self, what: &str) {
        self.0.set_position(0);
        self.0.set_message(what.to_owned());
    }

    /// How much of it is done, from 0 to 1.
    pub(crate) fn at(&self, share: f64) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "clamped to 0..=1 first"
        )]
        let position = (share.clamp(0.0, 1.0) * to_f64(SCALE)) as u64;
        self.0.set_position(position);
    }

    /// Writes a line to standard output, above what is drawn.
    pub(crate) fn line(&self, text: impl AsRef<str>) {
        self.0.suspend(|| line(text));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

const SCALE: u64 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_three_digits_and_a_unit_that_fits() {
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
