//! What is wrong with a specification.

use std::fmt;

/// A mistake in a link specification: which field, what was seen and what is allowed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SpecError {
    field: String,
    problem: String,
}

impl SpecError {
    /// `value` is not what `field` takes; `allowed` says what it takes.
    pub(super) fn value(field: &str, value: &str, allowed: &str) -> Self {
        let value = shortened(value);
        Self::new(field, format!("'{value}' is not {allowed}"))
    }

    /// Something else is wrong with `field`.
    pub(super) fn new(field: &str, problem: impl Into<String>) -> Self {
        Self {
            field: shortened(field),
            problem: problem.into(),
        }
    }

    /// The field with the mistake; empty when no field was recognised.
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

/// What was seen, as far as a line has room for it.
pub(super) fn shortened(text: &str) -> String {
    const MAX: usize = 60;
    let clean = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    if text.chars().count() <= MAX {
        return clean.collect();
    }
    clean.take(MAX).chain("...".chars()).collect()
}
