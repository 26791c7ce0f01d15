//! Formats numbers with units and prefixes.

/// The unit of an axis. Values are always in the base unit. Drawing chooses the prefix.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Unit {
    /// Numbers without a unit, such as packet counts.
    #[default]
    Plain,
    /// Seconds: s, ms, µs, ns.
    Seconds,
    /// Bytes, in powers of 1000: B, kB, MB, GB, TB.
    Bytes,
    /// Bits per second, in powers of 1000: bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s.
    BitsPerSecond,
    /// A share from 0 to 1, written in percent.
    Share,
}

/// The prefix of the numbers of one axis: they are divided by `factor` and have the unit `symbol`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Prefix {
    pub(crate) factor: f64,
    pub(crate) symbol: &'static str,
}

impl Unit {
    /// Returns the largest prefix that is not above a value of this size.
    pub(crate) fn prefix(self, size: f64) -> Prefix {
        let size = size.abs();
        let table = self.prefixes();
        let fits = |prefix: &&Prefix| size >= prefix.factor * (1.0 - 1e-9);
        let zero = || table.iter().find(|prefix| prefix.factor >= 1.0);
        let found = match size > 0.0 {
            true => table.iter().rev().find(fits).or(table.first()),
            false => zero().or(table.first()),
        };
        found.copied().unwrap_or(Prefix {
            factor: 1.0,
            symbol: "",
        })
    }

    /// Formats a value with three significant digits and its unit: `12.5 ms`, `1.46 MB`, `97.2 %`.
    pub fn format(self, value: f64) -> String {
        if !value.is_finite() {
            return "–".to_owned();
        }
        let prefix = self.prefix(value);
        let number = significant(value / prefix.factor);
        match prefix.symbol {
            "" => number,
            symbol => format!("{number} {symbol}"),
        }
    }

    /// Returns the symbol of the base unit for the header of a CSV column; empty for plain numbers.
    pub(crate) fn base_symbol(self) -> &'static str {
        match self {
            Unit::Plain | Unit::Share => "",
            Unit::Seconds => "s",
            Unit::Bytes => "B",
            Unit::BitsPerSecond => "bit/s",
        }
    }

    fn prefixes(self) -> &'static [Prefix] {
        match self {
            Unit::Plain => PLAIN,
            Unit::Seconds => SECONDS,
            Unit::Bytes => BYTES,
            Unit::BitsPerSecond => BITS_PER_SECOND,
            Unit::Share => SHARE,
        }
    }
}

/// Formats a number with three significant digits, but keeps all digits of whole numbers.
fn significant(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        _ if size >= 100.0 || size == 0.0 => 0,
        _ if size >= 10.0 => 1,
        _ if size >= 1.0 => 2,
        _ if size >= 0.1 => 3,
        _ if size >= 0.01 => 4,
        _ if size >= 0.001 => 5,
        _ => return format!("{value:.1e}"),
    };
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

const fn prefix(factor: f64, symbol: &'static str) -> Prefix {
    Prefix { factor, symbol }
}

const PLAIN: &[Prefix] = &[
    prefix(1.0, ""),
    prefix(1e6, "million"),
    prefix(1e9, "billion"),
];
const SECONDS: &[Prefix] = &[
    prefix(1e-9, "ns"),
    prefix(1e-6, "µs"),
    prefix(1e-3, "ms"),
    prefix(1.0, "s"),
];
const BYTES: &[Prefix] = &[
    prefix(1.0, "B"),
    prefix(1e3, "kB"),
    prefix(1e6, "MB"),
    prefix(1e9, "GB"),
    prefix(1e12, "TB"),
];
const BITS_PER_SECOND: &[Prefix] = &[
    prefix(1.0, "bit/s"),
    prefix(1e3, "kbit/s"),
    prefix(1e6, "Mbit/s"),
    prefix(1e9, "Gbit/s"),
    prefix(1e12, "Tbit/s"),
];
const SHARE: &[Prefix] = &[prefix(0.01, "%")];

#[cfg(test)]
mod tests;
