//! Errors of specifications.

use std::fmt;

/// An error in a link specification, with the field, its value and the allowed values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SpecError {
    field: String,
    problem: String,
}

impl SpecError {
    /// Creates an error for a value. `allowed` describes the allowed values.
    pub(super) fn value(field: &str, value: &str, allowed: &str) -> Self {
        let value = shortened(value);
        Self::new(field, format!("'{value}' is not {allowed}"))
    }

    /// Creates an error for any other problem with `field`.
    pub(super) fn new(field: &str, problem: impl Into<String>) -> Self {
        Self {
            field: shortened(field),
            problem: problem.into(),
        }
    }

    /// Returns the name of the field, or an empty string if no field was recognised.
    pub fn field(&self) -> &str {
        &self.field
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            return f.write_str(&self.problem);
        }
        write!(f, "{}: {}", self.field, self.problem)
    }
}

impl std::error::Error for SpecError {}

/// Returns text of the user, shortened to 60 characters and without control characters.
pub(super) fn shortened(text: &str) -> String {
    const MAX: usize = 60;
    let clean = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    if text.chars().count() <= MAX {
        return clean.collect();
    }
    clean.take(MAX).chain("...".chars()).collect()
}
