//! Formats the results of a comparison.

use std::fmt;

use courser_measure::Estimate;
use courser_units::three_digits;

use super::PairsReport;

impl PairsReport {
    /// Returns the line about the last pair.
    pub fn last_pair(&self) -> String {
        let Some(pair) = self.pairs.last() else {
            return String::new();
        };
        let (a, b) = (pair.a.figure, pair.b.figure);
        format!(
            "pair {:>3}: a {:>10}, b {:>10}, ratio {:.3}",
            self.pairs.len(),
            self.number(a),
            self.number(b),
            b / a
        )
    }

    /// Formats a value of the figure, with the unit that its name implies.
    fn number(&self, value: f64) -> String {
        if self.figure.ends_with("bits_per_second") {
            return courser_units::bits(value);
        }
        if self.figure == "seconds" {
            return courser_units::seconds(value);
        }
        three_digits(value)
    }

    fn of(&self, estimate: &Estimate) -> String {
        format!(
            "{} [{}, {}]",
            self.number(estimate.median),
            self.number(estimate.low),
            self.number(estimate.high)
        )
    }

    /// Returns the sentence that names the better command, or states that the pairs show no difference.
    fn verdict(&self) -> String {
        if self.pairs.len() < ENOUGH {
            return format!("too few pairs for a verdict: at least {ENOUGH} are needed");
        }
        if !self.ratio.excludes(1.0) {
            return "no difference is shown: the interval contains 1".to_owned();
        }
        let is_b = (self.ratio.median > 1.0) != self.less_is_better;
        let better = if is_b { "b" } else { "a" };
        let percent = (self.ratio.median - 1.0).abs() * 100.0;
        let direction = if self.ratio.median > 1.0 {
            "above"
        } else {
            "below"
        };
        format!("{better} is better: the figure of b is {percent:.1} % {direction} that of a")
    }
}

/// With fewer pairs, all of them have the same sign by chance in more than 5 % of comparisons.
const ENOUGH: usize = 6;

impl fmt::Display for PairsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.less_is_better { "less" } else { "more" };
        writeln!(f, "figure: {} ({kind} is better)", self.figure)?;
        writeln!(f, "a: {}   {}", self.of(&self.figure_a), self.a)?;
        writeln!(f, "b: {}   {}", self.of(&self.figure_b), self.b)?;
        let ratio = |it: &Estimate| format!("{:.3} [{:.3}, {:.3}]", it.median, it.low, it.high);
        write!(f, "b / a: {}", ratio(&self.ratio))?;
        if let Some(cpu) = &self.cpu_ratio {
            write!(f, ", CPU time {}", ratio(cpu))?;
        }
        writeln!(f, " (median of {} pairs, 95 % interval)", self.pairs.len())?;
        write!(f, "{}", self.verdict())
    }
}
