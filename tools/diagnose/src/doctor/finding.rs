//! One finding of a check.

use std::fmt;

use courser_measure::printable;
use serde::Serialize;

use crate::doctor::machine::Unseen;

/// The importance of a finding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Nothing to do.
    Ok,
    /// Worth knowing: a default that suits most machines, or something that could not be seen.
    Note,
    /// Costs speed, or will become an error.
    Warning,
    /// Something does not work.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// A finding: what was seen, why it matters, and the command that mends it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// The name of the check, such as `receive buffer`.
    pub check: String,
    /// Its importance.
    pub severity: Severity,
    /// False if the check could not see what it is about.
    pub visible: bool,
    /// The observation.
    pub saw: String,
    /// The reason why it matters.
    pub why: Option<String>,
    /// The commands or changes that mend it, one a line.
    pub fix: Option<String>,
}

impl Finding {
    /// Makes a finding of nothing to do.
    pub(crate) fn ok(check: &str, saw: impl Into<String>) -> Self {
        Self::new(check, Severity::Ok, saw.into())
    }

    /// Makes a finding that is worth knowing.
    pub(crate) fn note(check: &str, saw: impl Into<String>, why: &str) -> Self {
        Self::new(check, Severity::Note, saw.into()).because(why)
    }

    /// Makes a finding of something that costs speed or will become an error.
    pub(crate) fn warning(check: &str, saw: impl Into<String>, why: &str) -> Self {
        Self::new(check, Severity::Warning, saw.into()).because(why)
    }

    /// Makes a finding of something that does not work.
    pub(crate) fn error(check: &str, saw: impl Into<String>, why: &str) -> Self {
        Self::new(check, Severity::Error, saw.into()).because(why)
    }

    /// Makes a finding of something that cannot be seen.
    pub(crate) fn unseen(check: &str, reason: &Unseen) -> Self {
        let mut made = Self::new(check, Severity::Note, format!("not visible: {reason}"));
        made.visible = false;
        if matches!(reason, Unseen::Forbidden(_)) {
            made = made.fix("run courser doctor as root to see it");
        }
        made
    }

    /// Adds the reason why it matters.
    #[must_use]
    pub(crate) fn because(mut self, why: &str) -> Self {
        self.why = Some(why.to_owned());
        self
    }

    /// Adds a command or change that mends it.
    #[must_use]
    pub(crate) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    fn new(check: &str, severity: Severity, saw: String) -> Self {
        Self {
            check: printable(check),
            severity,
            visible: true,
            // Files and certificates may contain anything.
            saw: printable(&saw),
            why: None,
            fix: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_replaced() {
        let found = Finding::ok("a\u{1b}", "b\u{1b}[2J");
        assert_eq!((&*found.check, &*found.saw), ("a?", "b?[2J"));
    }
}
