//! What stands along a side of a chart.

use crate::Unit;

/// One axis: its words, unit and range. Without a range it spans the data.
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
    /// An axis with a label such as `queue` and the unit of its values.
    pub fn new(label: impl Into<String>, unit: Unit) -> Self {
        Self {
            label: label.into(),
            unit,
            ..Self::default()
        }
    }

    /// The usual horizontal axis: `time` in seconds.
    pub fn time() -> Self {
        Self::new("time", Unit::Seconds)
    }

    /// Makes equal distances equal ratios. Values that are not above zero are left out.
    #[must_use]
    pub fn logarithmic(mut self) -> Self {
        self.is_logarithmic = true;
        self
    }

    /// Lets a vertical axis begin at the smallest value instead of zero.
    #[must_use]
    pub fn tight(mut self) -> Self {
        self.is_tight = true;
        self
    }

    /// Lets the axis begin here, in the base unit; a value that is not finite changes nothing.
    #[must_use]
    pub fn from(mut self, low: f64) -> Self {
        self.low = Some(low).filter(|low| low.is_finite()).or(self.low);
        self
    }

    /// Lets the axis end here, in the base unit; a value that is not finite changes nothing.
    #[must_use]
    pub fn to(mut self, high: f64) -> Self {
        self.high = Some(high).filter(|high| high.is_finite()).or(self.high);
        self
    }

    /// The label with the symbol of the unit, as it stands in a CSV head: `time [s]`.
    pub(crate) fn heading(&self, symbol: &str) -> String {
        match (self.label.is_empty(), symbol.is_empty()) {
            (_, true) => self.label.clone(),
            (true, false) => symbol.to_owned(),
            (false, false) => format!("{} [{symbol}]", self.label),
        }
    }
}
