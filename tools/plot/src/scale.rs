//! Converts values to pixels.

use crate::unit::Prefix;
use crate::{Axis, Unit, ticks};

/// Maps the values of one axis to a range of pixels.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    is_logarithmic: bool,
    pub(crate) unit: Unit,
    pub(crate) prefix: Prefix,
}

/// A tick: its position in pixels and its label.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Tick {
    pub(crate) at: f64,
    pub(crate) text: String,
}

impl Scale {
    /// Fits an axis to data from `low` to `high`. With `has_zero`, a linear axis includes zero.
    pub(crate) fn new(axis: &Axis, data: Option<(f64, f64)>, has_zero: bool) -> Self {
        let (low, high) = domain(axis, data, has_zero);
        let is_plain = axis.is_logarithmic;
        Self {
            low,
            high,
            from: 0.0,
            to: 1.0,
            is_logarithmic: axis.is_logarithmic,
            unit: axis.unit,
            // Each tick of a logarithmic axis has its own prefix.
            prefix: axis.unit.prefix(if is_plain {
                0.0
            } else {
                low.abs().max(high.abs())
            }),
        }
    }

    /// Extends the axis to a round number, for about `count` ticks.
    pub(crate) fn rounded(mut self, axis: &Axis, count: usize) -> Self {
        if axis.high.is_none() && !self.is_logarithmic {
            let factor = self.prefix.factor;
            self.high = ticks::round_up(self.high / factor, self.low / factor, count) * factor;
        }
        self
    }

    /// Sets the pixels at which the axis begins and ends.
    pub(crate) fn over(mut self, from: f64, to: f64) -> Self {
        (self.from, self.to) = (from, to);
        self
    }

    /// Returns the pixel of a value, or NaN if it is not above zero on a logarithmic axis.
    pub(crate) fn pixel(&self, value: f64) -> f64 {
        let share = match self.is_logarithmic {
            true if value <= 0.0 => return f64::NAN,
            true => (value.ln() - self.low.ln()) / (self.high.ln() - self.low.ln()),
            false => (value - self.low) / (self.high - self.low),
        };
        (self.from + share * (self.to - self.from)).clamp(-MAX_PIXEL, MAX_PIXEL)
    }

    /// Returns the value at a share of the axis, from 0 to 1.
    pub(crate) fn value(&self, share: f64) -> f64 {
        match self.is_logarithmic {
            true => (self.low.ln() + share * (self.high.ln() - self.low.ln())).exp(),
            false => self.low + share * (self.high - self.low),
        }
    }

    /// Returns about `count` ticks with their labels.
    pub(crate) fn ticks(&self, count: usize) -> Vec<Tick> {
        if self.is_logarithmic {
            return ticks::logarithmic(self.low, self.high, count)
                .into_iter()
                .map(|value| Tick {
                    at: self.pixel(value),
                    text: self.unit.format(value),
                })
                .collect();
        }
        let factor = self.prefix.factor;
        let (values, decimals) = ticks::linear(self.low / factor, self.high / factor, count);
        values
            .into_iter()
            .map(|value| Tick {
                at: self.pixel(value * factor),
                text: format!("{value:.decimals$}"),
            })
            .collect()
    }

    /// Returns the symbol of the unit for the axis label; empty if the ticks contain it.
    pub(crate) fn symbol(&self) -> &'static str {
        match self.is_logarithmic {
            true => "",
            false => self.prefix.symbol,
        }
    }

    pub(crate) fn low(&self) -> f64 {
        self.low
    }

    pub(crate) fn high(&self) -> f64 {
        self.high
    }
}

/// Returns the range of an axis, which is never empty, reversed or infinite.
fn domain(axis: &Axis, data: Option<(f64, f64)>, has_zero: bool) -> (f64, f64) {
    let (mut low, mut high) = data.unwrap_or((0.0, 1.0));
    if has_zero && !axis.is_logarithmic {
        low = low.min(0.0);
        high = high.max(0.0);
    }
    low = axis.low.unwrap_or(low).clamp(-MAX_VALUE, MAX_VALUE);
    high = axis.high.unwrap_or(high).clamp(-MAX_VALUE, MAX_VALUE);
    if axis.is_logarithmic {
        high = if high > 0.0 { high } else { 1.0 };
        low = if low > 0.0 { low } else { high / 1000.0 };
        return match low < high {
            true => (low, high),
            false => (high / 2.0, high * 2.0),
        };
    }
    // Closer values cannot be distinguished after rounding.
    let min_span = low.abs().max(high.abs()) * 1e-9;
    match high - low > min_span.max(1e-15) {
        true => (low, high),
        false if low == 0.0 => (0.0, 1.0),
        false => {
            let room = low.abs() * 0.1;
            (low - room, low + room)
        }
    }
}

/// The largest value drawn. No measurement exceeds it, and sums of it stay finite.
const MAX_VALUE: f64 = 1e18;

/// The largest pixel coordinate: far outside every image, and short to write.
const MAX_PIXEL: f64 = 20_000.0;

#[cfg(test)]
mod tests;
