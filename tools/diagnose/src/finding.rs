//! A finding of either diagnosis with its verdict.

use courser_measure::printable;
use serde::Serialize;

/// The verdict on what was observed, the best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The observation is as it should be.
    Good,
    /// The observation is neither good nor bad: a choice, a property, or a default that suits most users.
    Fact,
    /// The subject could not be observed.
    Unknown,
    /// The observation reduces performance, ignores a recommendation, or will become an error.
    Weak,
    /// The subject does not work, or violates a rule.
    Bad,
}

impl Verdict {
    /// Returns the exit code of a command with this outcome: 3 for [`Weak`](Self::Weak), 4 for
    /// [`Bad`](Self::Bad), and 0 otherwise. Programs use 1 for their own failures and 2 for invalid arguments.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::Good | Self::Fact | Self::Unknown => 0,
            Self::Weak => 3,
            Self::Bad => 4,
        }
    }
}

/// One observation with its verdict, the reason why it matters, and the remedy.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// The name of the subject, such as `receive buffer`.
    pub name: String,
    /// The verdict, which determines the exit code of a command.
    pub verdict: Verdict,
    /// The observation as text, without control characters.
    pub saw: String,
    /// The reason why it matters.
    pub why: Option<String>,
    /// The commands or changes that correct the problem, one per line.
    pub fix: Option<String>,
    /// The points of 100 that the finding costs in a grade.
    pub points: u32,
}

impl Finding {
    pub(crate) fn good(name: &str, saw: impl Into<String>) -> Self {
        Self::new(name, Verdict::Good, saw.into())
    }

    pub(crate) fn fact(name: &str, saw: impl Into<String>) -> Self {
        Self::new(name, Verdict::Fact, saw.into())
    }

    pub(crate) fn unknown(name: &str, saw: impl Into<String>) -> Self {
        Self::new(name, Verdict::Unknown, saw.into())
    }

    pub(crate) fn weak(name: &str, saw: impl Into<String>, why: &str) -> Self {
        Self::new(name, Verdict::Weak, saw.into()).because(why)
    }

    pub(crate) fn bad(name: &str, saw: impl Into<String>, why: &str) -> Self {
        Self::new(name, Verdict::Bad, saw.into()).because(why)
    }

    /// Adds the reason why it matters.
    #[must_use]
    pub(crate) fn because(mut self, why: &str) -> Self {
        self.why = Some(why.to_owned());
        self
    }

    /// Adds the commands or changes that correct the problem.
    #[must_use]
    pub(crate) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// Sets the points that the finding costs.
    #[must_use]
    pub(crate) fn costs(mut self, points: u32) -> Self {
        self.points = points;
        self
    }

    fn new(name: &str, verdict: Verdict, saw: String) -> Self {
        Self {
            // Text from files, certificates and servers may contain control characters.
            name: printable(name),
            verdict,
            saw: printable(&saw),
            why: None,
            fix: None,
            points: 0,
        }
    }
}

/// Returns the width of the column of names.
pub(crate) fn name_width(findings: &[Finding]) -> usize {
    findings.iter().map(|it| it.name.len()).max().unwrap_or(0)
}

/// Returns a report as JSON.
pub(crate) fn to_json(report: &impl Serialize) -> String {
    // Serializing strings, numbers and booleans cannot fail.
    serde_json::to_string_pretty(report).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_replaced() {
        let found = Finding::good("a\u{1b}", "b\u{1b}[2J");
        assert_eq!((&*found.name, &*found.saw), ("a?", "b?[2J"));
    }

    #[test]
    fn exit_codes_follow_the_verdict() {
        use Verdict::{Bad, Fact, Good, Unknown, Weak};
        let codes = [Good, Fact, Unknown, Weak, Bad].map(Verdict::exit_code);
        assert_eq!(codes, [0, 0, 0, 3, 4]);
    }
}
