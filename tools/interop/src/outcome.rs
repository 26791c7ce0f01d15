//! The outcome of runs.

/// The outcome of one run.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// The run passed all checks; with the rate in kbit/s if the case measures one.
    Succeeded(Option<f64>),
    /// One end does not support the test.
    Unsupported,
    /// The run failed for this reason.
    Failed(String),
}
