//! Errors in files, with their place.

use std::fmt;
use std::ops::Range;

use courser_link::suggest::nearest;

/// An error in a file, with its place, the value and the allowed values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScenarioError {
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// The key at the place of the error, if there is one.
    pub field: Option<String>,
    /// The value, the allowed values, and a suggestion.
    pub message: String,
}

impl ScenarioError {
    pub(super) fn at(text: &str, span: &Range<usize>, message: impl Into<String>) -> Self {
        let start = span.start.min(text.len());
        let before = text.get(..start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line_text = text[line_start..].lines().next().unwrap_or_default();
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            field: key_of(line_text),
            message: message.into(),
        }
    }

    /// Converts an error of the TOML parser, with a suggestion for misspelt names.
    pub(super) fn from_toml(text: &str, error: &toml::de::Error) -> Self {
        let message = error.message();
        let message = match guess(message) {
            Some(meant) => format!("{message}; did you mean `{meant}`?"),
            None => message.to_owned(),
        };
        // A missing key has no place.
        let span = error.span().unwrap_or(0..0);
        let mut error = Self::at(text, &span, message);
        if span.is_empty() && span.start == 0 {
            error.field = None;
        }
        error
    }
}

/// Returns the key before the equals sign of a line.
fn key_of(line: &str) -> Option<String> {
    let (key, _) = line.split_once('=')?;
    let key = key.trim();
    let is_key = |c: char| c.is_ascii_alphanumeric() || "_-.@".contains(c);
    (!key.is_empty() && key.chars().all(is_key)).then(|| key.to_owned())
}

/// Splits `unknown field` messages: the names between backticks are the written one and the allowed
/// ones.
fn guess(message: &str) -> Option<&str> {
    if !message.starts_with("unknown field") && !message.starts_with("unknown variant") {
        return None;
    }
    let mut names = message.split('`').skip(1).step_by(2);
    let written = names.next()?;
    // The suggestion uses names with hyphens, but our TOML keys have underscores.
    let names: Vec<&str> = names.collect();
    let hyphenated: Vec<String> = names.iter().map(|name| name.replace('_', "-")).collect();
    let found = nearest(written, hyphenated.iter().map(String::as_str))?;
    let index = hyphenated.iter().position(|name| name == found)?;
    names.get(index).copied()
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: ", self.line, self.column)?;
        match &self.field {
            Some(field) if !self.message.contains(field.as_str()) => {
                write!(f, "{field}: {}", self.message)
            }
            _ => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for ScenarioError {}
