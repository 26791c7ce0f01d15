//! Measured values in a file of tab-separated values, so that rows can be measured one by one.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use crate::error::Failure;
use crate::sim::file::cannot_read;

/// The numbers of one scenario by measure.
pub(crate) type Numbers = BTreeMap<String, Number>;

/// The numbers of scenarios by their name.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Data(pub(super) BTreeMap<String, Numbers>);

/// One measure of one scenario over its runs.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Number {
    /// The number of runs of the scenario.
    pub(crate) runs: u64,
    /// The number of runs that have a value, such as those that completed a transfer.
    pub(crate) values: u64,
    /// The median over the runs, in the unit of the measure; NaN if no run has a value.
    pub(crate) median: f64,
    /// The 10th percentile of the runs.
    pub(crate) p10: f64,
    /// The 90th percentile of the runs.
    pub(crate) p90: f64,
    /// The bound of the scenario on this measure, and whether it holds.
    pub(crate) bound: Option<(String, bool)>,
}

const HEAD: &str = "scenario\tmeasure\truns\tvalues\tmedian\tp10\tp90\tbound\tholds";

impl Data {
    /// Reads a file. A missing file contains no numbers.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(cannot_read(path, &error)),
        };
        Self::parse(&text).map_err(|line| {
            Failure::new(format!(
                "{}, line {line}: not a measured value; the columns are {}",
                path.display(),
                HEAD.replace('\t', ", ")
            ))
        })
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// Returns the number of the first invalid line.
    pub(crate) fn parse(text: &str) -> Result<Self, usize> {
        let mut data = Self::default();
        for (index, line) in text.lines().enumerate().skip(1) {
            let (scenario, measure, number) = parse_line(line).ok_or(index + 1)?;
            let numbers = data.0.entry(scenario.to_owned()).or_default();
            numbers.insert(measure.to_owned(), number);
        }
        Ok(data)
    }

    /// Returns the text of a file with these numbers.
    pub(crate) fn to_text(&self) -> String {
        let mut text = format!("{HEAD}\n");
        for (scenario, numbers) in &self.0 {
            for (measure, number) in numbers {
                let Number {
                    runs,
                    values,
                    median,
                    p10,
                    p90,
                    ..
                } = number;
                let (bound, holds) = match &number.bound {
                    None => ("", ""),
                    Some((bound, true)) => (bound.as_str(), "yes"),
                    Some((bound, false)) => (bound.as_str(), "no"),
                };
                // Writing to a string cannot fail.
                let _ = writeln!(
                    text,
                    "{scenario}\t{measure}\t{runs}\t{values}\t{median:.6}\t{p10:.6}\t{p90:.6}\t\
                     {bound}\t{holds}"
                );
            }
        }
        text
    }
}

fn parse_line(line: &str) -> Option<(&str, &str, Number)> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [
        scenario,
        measure,
        runs,
        values,
        median,
        p10,
        p90,
        bound,
        holds,
    ] = fields[..]
    else {
        return None;
    };
    let number = Number {
        runs: runs.parse().ok()?,
        values: values.parse().ok()?,
        median: median.parse().ok()?,
        p10: p10.parse().ok()?,
        p90: p90.parse().ok()?,
        bound: match holds {
            "" => None,
            "yes" => Some((bound.to_owned(), true)),
            "no" => Some((bound.to_owned(), false)),
            _ => return None,
        },
    };
    Some((scenario, measure, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_written() {
        let number = Number {
            runs: 3,
            values: 2,
            median: 0.5,
            p10: 0.25,
            p90: 0.75,
            bound: Some(("utilization >=0.95".to_owned(), false)),
        };
        let other = Number {
            median: f64::NAN,
            bound: None,
            ..number.clone()
        };
        let mut data = Data::default();
        let numbers = data.0.entry("bulk".to_owned()).or_default();
        numbers.insert("utilization".to_owned(), number.clone());
        numbers.insert("jain".to_owned(), other);
        let again = Data::parse(&data.to_text()).expect("valid text");
        assert_eq!(again.0["bulk"]["utilization"], number);
        assert!(again.0["bulk"]["jain"].median.is_nan());
        assert_eq!(again.0["bulk"]["jain"].bound, None);
    }

    #[test]
    fn invalid_line_is_reported() {
        let text = format!("{HEAD}\nbulk\tjain\t1\t1\t1\t1\t1\t\t\nbulk\tjain\tmany\n");
        assert_eq!(Data::parse(&text), Err(3));
    }
}
