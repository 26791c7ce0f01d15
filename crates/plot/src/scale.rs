//! From values to pixels.

use crate::unit::Prefix;
use crate::{Axis, Unit, ticks};

/// One axis laid over a range of pixels.
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

/// A tick: where it is, and what it says.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Tick {
    pub(crate) at: f64,
    pub(crate) text: String,
}

impl Scale {
    /// Lays an axis over data from `low` to `high`; `has_zero` makes a linear one begin at zero.
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
            // Logarithmic ticks carry their own prefix each.
            prefix: axis.unit.prefix(if is_plain {
                0.0
            } else {
                low.abs().max(high.abs())
            }),
        }
    }

    /// Lets the axis end at a round number, where about `wanted` ticks fit.
    pub(crate) fn rounded(mut self, axis: &Axis, wanted: usize) -> Self {
        if axis.high.is_none() && !self.is_logarithmic {
            let factor = self.prefix.factor;
            self.high = ticks::round_up(self.high / factor, self.low / factor, wanted) * factor;
        }
        self
    }

    /// Lays the axis from one pixel to another.
    pub(crate) fn over(mut self, from: f64, to: f64) -> Self {
        (self.from, self.to) = (from, to);
        self
    }

    /// The pixel of a value; NaN where a logarithmic axis has none.
    pub(crate) fn pixel(&self, value: f64) -> f64 {
        let share = match self.is_logarithmic {
            true if value <= 0.0 => return f64::NAN,
            true => (value.ln() - self.low.ln()) / (self.high.ln() - self.low.ln()),
            false => (value - self.low) / (self.high - self.low),
        };
        (self.from + share * (self.to - self.from)).clamp(-MAX_PIXEL, MAX_PIXEL)
    }

    /// The value at a share of the axis from 0 to 1.
    pub(crate) fn value(&self, share: f64) -> f64 {
        match self.is_logarithmic {
            true => (self.low.ln() + share * (self.high.ln() - self.low.ln())).exp(),
            false => self.low + share * (self.high - self.low),
        }
    }

    /// About `wanted` ticks with their texts.
    pub(crate) fn ticks(&self, wanted: usize) -> Vec<Tick> {
        if self.is_logarithmic {
            return ticks::logarithmic(self.low, self.high, wanted)
                .into_iter()
                .map(|value| Tick {
                    at: self.pixel(value),
                    text: self.unit.format(value),
                })
                .collect();
        }
        let factor = self.prefix.factor;
        let (values, decimals) = ticks::linear(self.low / factor, self.high / factor, wanted);
        values
            .into_iter()
            .map(|value| Tick {
                at: self.pixel(value * factor),
                text: format!("{value:.decimals$}"),
            })
            .collect()
    }

    /// The unit's symbol as it belongs behind the axis label; empty where ticks carry it.
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

/// The range of an axis: never empty, never turned round, never without end.
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
    // Values closer together than this cannot be told apart after rounding.
    let least = low.abs().max(high.abs()) * 1e-9;
    match high - low > least.max(1e-15) {
        true => (low, high),
        false if low == 0.0 => (0.0, 1.0),
        false => {
            let room = low.abs() * 0.1;
            (low - room, low + room)
        }
    }
}

/// Larger values are drawn as this: no measurement has them, and sums stay finite.
const MAX_VALUE: f64 = 1e18;

/// Far outside every image, and short to write.
const MAX_PIXEL: f64 = 20_000.0;

#[cfg(test)]
mod tests;
