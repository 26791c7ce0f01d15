//! Parses and formats sizes, counts, rates, times and dates for command lines.
//!
//! The `parse_` functions read values from a command line. They compute without rounding, and their errors
//! are messages for the user. The other functions format measured numbers with three significant digits and
//! a suitable unit.
//!
//! ```
//! use courser_units::{parse_quantity, rate, size};
//!
//! assert_eq!(parse_quantity("1.5MB"), Ok(1_500_000));
//! assert_eq!(size(1_500_000), "1.50 MB");
//! assert_eq!(rate(1_000_000_000, 1.0), "8.00 Gbit/s");
//! ```

mod calendar;
mod parse;
mod text;

pub use self::calendar::{common_log, date, rfc3339, rfc3339_millis};
pub use self::parse::{parse_duration, parse_positive, parse_quantity};
pub use self::text::{
    binary_size, bits, bits_per_second, per_gigabyte, per_second, rate, ratio, seconds, size,
    three_digits, to_f64,
};
