//! A finding of either diagnosis, and the verdict on it.

use courser_measure::printable;
use serde::Serialize;

/// The verdict on what was observed, the best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Nothing to improve.
    Good,
    /// Neither good nor bad: a choice, a property, or a default that suits most.
    Fact,
    /// The subject could not be observed.
    Unknown,
    /// Costs speed, leaves a recommendation aside, or will become an error.
    Weak,
    /// Does not work, or breaks a rule.
    Bad,
}

impl Verdict {
    /// Returns the exit code of a command with this outcome: 3 for [`Weak`](Self::Weak), 4 for
    /// [`Bad`](Self::Bad), and 0 otherwise. Programs use 1 for failures of their own and 2 for mistakes in
    /// the arguments.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::Good | Self::Fact | Self::Unknown => 0,
            Self::Weak => 3,
            Self::Bad => 4,
        }
    }
}

/// One observation, its verdict, the reason why it matters, and what to do about it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// The name of the subject, such as `receive buffer`.
    pub name: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The observation.
    pub saw: String,
    /// The reason why it matters.
    pub why: Option<String>,
    /// The commands or changes that correct it, one per line.
    pub fix: Option<String>,
    /// The points that it costs, of 100.
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

    /// Adds the commands or changes that correct it.
    #[must_use]
    pub(crate) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// Sets the points that it costs.
    #[must_use]
    pub(crate) fn costs(mut self, points: u32) -> Self {
        self.points = points;
        self
    }

    fn new(name: &str, verdict: Verdict, saw: String) -> Self {
        Self {
            // Files, certificates and fields of servers may contain anything.
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
    // Strings, numbers and booleans cannot fail.
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
