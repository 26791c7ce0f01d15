//! The figure of a run: a number in the JSON that a command prints, or the duration of the run.

use serde_json::Value;

/// The source of the figure of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Figure {
    /// A known figure in the JSON of the first run, or the duration if there is none.
    Auto,
    /// The duration of the run.
    Seconds,
    /// A number in the JSON, at a pointer such as `/end/per_second` (RFC 6901).
    Json {
        /// The pointer into the command's output.
        pointer: String,
        /// True for times and costs.
        less_is_better: bool,
    },
}

/// Figures in the reports of `courser perf client` and iperf3, and in that of `courser load`.
const KNOWN: [&str; 3] = [
    "/end/sum_received/bits_per_second",
    "/end/per_second",
    "/summary/requestsPerSec",
];

impl Figure {
    /// Returns the name of the figure.
    pub fn name(&self) -> &str {
        match self {
            Self::Json { pointer, .. } => pointer,
            Self::Auto | Self::Seconds => "seconds",
        }
    }

    /// Returns true if a smaller figure is better.
    pub fn less_is_better(&self) -> bool {
        match self {
            Self::Json { less_is_better, .. } => *less_is_better,
            Self::Auto | Self::Seconds => true,
        }
    }

    /// Chooses a figure by the output of a command, unless one was chosen.
    pub(super) fn choose(&mut self, output: &str) -> &Self {
        if *self == Self::Auto {
            let report = json(output);
            let known = KNOWN.into_iter().find(|pointer| {
                report
                    .as_ref()
                    .and_then(|report| report.pointer(pointer))
                    .is_some_and(Value::is_number)
            });
            *self = known.map_or(Self::Seconds, |pointer| Self::Json {
                pointer: pointer.to_owned(),
                less_is_better: false,
            });
        }
        self
    }

    /// Reads the figure of a run. `seconds` is the duration of the run.
    ///
    /// # Errors
    /// Returns a description of the error, which completes a sentence about the command.
    pub(super) fn read(&self, output: &str, seconds: f64) -> Result<f64, String> {
        let Self::Json { pointer, .. } = self else {
            return Ok(seconds);
        };
        let report = json(output).ok_or_else(|| {
            format!("printed no JSON, so it has no {pointer}: does it need --json?")
        })?;
        let value = report.pointer(pointer).and_then(Value::as_f64);
        match value {
            Some(value) if value > 0.0 => Ok(value),
            Some(value) => Err(format!(
                "has {value} at {pointer}: only numbers above 0 can be compared"
            )),
            None => Err(format!("has no number at {pointer} in its JSON")),
        }
    }
}

/// Returns the JSON in the output of a command: all of it, or its last line that is an object.
fn json(output: &str) -> Option<Value> {
    if let Ok(all) = serde_json::from_str(output) {
        return Some(all);
    }
    let mut lines = output.lines().rev().filter(|line| line.starts_with('{'));
    lines.find_map(|line| serde_json::from_str(line).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pointer(pointer: &str) -> Figure {
        Figure::Json {
            pointer: pointer.to_owned(),
            less_is_better: false,
        }
    }

    #[test]
    fn first_run_decides_on_a_known_figure_or_the_time() {
        let mut figure = Figure::Auto;
        let iperf = r#"{"end": {"sum_received": {"bits_per_second": 5.5e9}}}"#;
        assert_eq!(figure.choose(iperf).read(iperf, 1.0), Ok(5.5e9));
        assert_eq!(figure.name(), "/end/sum_received/bits_per_second");
        let mut figure = Figure::Auto;
        assert_eq!(figure.choose("done\n").read("done\n", 1.5), Ok(1.5));
        assert_eq!((figure.name(), figure.less_is_better()), ("seconds", true));
    }

    #[test]
    fn report_may_be_the_last_of_several_lines() {
        let output = "{\"end\": 1}\nhello\n{\"end\": {\"per_second\": 3}}\ngoodbye\n";
        assert_eq!(pointer("/end/per_second").read(output, 1.0), Ok(3.0));
    }

    #[test]
    fn outputs_without_the_figure_are_errors_that_name_it() {
        for (output, part) in [
            ("plain text", "printed no JSON"),
            ("{}", "no number at /x"),
            (r#"{"x": "3"}"#, "no number at /x"),
            (r#"{"x": 0}"#, "has 0 at /x"),
        ] {
            let error = pointer("/x").read(output, 1.0).expect_err(output);
            assert!(error.contains(part), "{error}");
        }
    }
}
