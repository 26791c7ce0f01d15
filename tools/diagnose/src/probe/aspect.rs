//! One aspect of a server, and the verdict on it.

use std::fmt;

use courser_measure::printable;
use serde::Serialize;

/// The verdict on an aspect.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As it should be.
    Good,
    /// Neither good nor bad: a choice of the server, or a property.
    Fact,
    /// It could not be observed.
    Unknown,
    /// Costs speed, or leaves a recommendation aside.
    Weak,
    /// Breaks a rule, or users.
    Bad,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Good => "good",
            Self::Fact => "",
            Self::Unknown => "?",
            Self::Weak => "weak",
            Self::Bad => "BAD",
        })
    }
}

/// One aspect: what was seen, and why it matters if it costs points.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct Aspect {
    /// The name, such as `certificate`.
    pub name: &'static str,
    /// The verdict.
    pub verdict: Verdict,
    /// The observation.
    pub saw: String,
    /// The reason why it costs points.
    pub why: Option<&'static str>,
    /// The points that it costs, of 100.
    pub points: u32,
}

impl Aspect {
    pub(crate) fn good(name: &'static str, saw: impl Into<String>) -> Self {
        Self::new(name, Verdict::Good, saw.into(), None, 0)
    }

    pub(crate) fn fact(name: &'static str, saw: impl Into<String>) -> Self {
        Self::new(name, Verdict::Fact, saw.into(), None, 0)
    }

    pub(crate) fn unknown(name: &'static str, saw: impl Into<String>) -> Self {
        Self::new(name, Verdict::Unknown, saw.into(), None, 0)
    }

    pub(crate) fn weak(
        name: &'static str,
        points: u32,
        saw: impl Into<String>,
        why: &'static str,
    ) -> Self {
        Self::new(name, Verdict::Weak, saw.into(), Some(why), points)
    }

    pub(crate) fn bad(
        name: &'static str,
        points: u32,
        saw: impl Into<String>,
        why: &'static str,
    ) -> Self {
        Self::new(name, Verdict::Bad, saw.into(), Some(why), points)
    }

    fn new(
        name: &'static str,
        verdict: Verdict,
        saw: String,
        why: Option<&'static str>,
        points: u32,
    ) -> Self {
        Self {
            name,
            verdict,
            // Names and fields of the server may contain anything.
            saw: printable(&saw),
            why,
            points,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(Aspect::fact("name", "a\u{1b}[2J").saw, "a?[2J");
    }
}
