//! Axes of charts.

use crate::Unit;

/// One axis of a chart: its label, unit and range. Without a range, it spans the data.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Axis {
    pub(crate) label: String,
    pub(crate) unit: Unit,
    pub(crate) is_logarithmic: bool,
    pub(crate) is_tight: bool,
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
}

impl Axis {
    /// Creates an axis with a label such as `queue` and the unit of its values.
    pub fn new(label: impl Into<String>, unit: Unit) -> Self {
        Self {
            label: label.into(),
            unit,
            ..Self::default()
        }
    }

    /// Creates the usual horizontal axis: `time` in seconds.
    pub fn time() -> Self {
        Self::new("time", Unit::Seconds)
    }

    /// Makes the axis logarithmic. Values of zero or below are left out.
    #[must_use]
    pub fn logarithmic(mut self) -> Self {
        self.is_logarithmic = true;
        self
    }

    /// Starts a vertical axis at the smallest value instead of zero.
    #[must_use]
    pub fn tight(mut self) -> Self {
        self.is_tight = true;
        self
    }

    /// Sets the start of the axis in the base unit. Ignores a value that is not finite.
    #[must_use]
    pub fn from(mut self, low: f64) -> Self {
        self.low = Some(low).filter(|low| low.is_finite()).or(self.low);
        self
    }

    /// Sets the end of the axis in the base unit. Ignores a value that is not finite.
    #[must_use]
    pub fn to(mut self, high: f64) -> Self {
        self.high = Some(high).filter(|high| high.is_finite()).or(self.high);
        self
    }

    /// Returns the label with the symbol of the unit, as in a CSV header: `time [s]`.
    pub(crate) fn heading(&self, symbol: &str) -> String {
        match (self.label.is_empty(), symbol.is_empty()) {
            (_, true) => self.label.clone(),
            (true, false) => symbol.to_owned(),
            (false, false) => format!("{} [{symbol}]", self.label),
        }
    }
}
