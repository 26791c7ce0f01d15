//! What is wrong with a file, and where.

use std::fmt;
use std::ops::Range;

use courser_link::suggest::nearest;

/// A mistake in a file: where, what was seen and what is allowed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScenarioError {
    /// Line, from 1 on.
    pub line: usize,
    /// Column in characters, from 1 on.
    pub column: usize,
    /// The key that the mistake stands at, where there is one.
    pub field: Option<String>,
    /// What was seen, what is allowed, what to do.
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

    /// What the TOML reader says, with a guess what was meant.
    pub(super) fn from_toml(text: &str, error: &toml::de::Error) -> Self {
        let message = error.message();
        let message = match guess(message) {
            Some(meant) => format!("{message}; did you mean `{meant}`?"),
            None => message.to_owned(),
        };
        // What is missing is missing everywhere.
        let span = error.span().unwrap_or(0..0);
        let mut error = Self::at(text, &span, message);
        if span.is_empty() && span.start == 0 {
            error.field = None;
        }
        error
    }
}

/// The key in front of the equals sign of a line.
fn key_of(line: &str) -> Option<String> {
    let (key, _) = line.split_once('=')?;
    let key = key.trim();
    let is_key = |c: char| c.is_ascii_alphanumeric() || "_-.@".contains(c);
    (!key.is_empty() && key.chars().all(is_key)).then(|| key.to_owned())
}

/// Takes `unknown field` messages apart: the names between backticks are what was written and
/// what is allowed.
fn guess(message: &str) -> Option<&str> {
    if !message.starts_with("unknown field") && !message.starts_with("unknown variant") {
        return None;
    }
    let mut names = message.split('`').skip(1).step_by(2);
    let written = names.next()?;
    // The guesser writes names with hyphens; TOML keys of ours have underscores.
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
