//! Figures with their aims.

use serde_json::Value;

/// A measured figure and its aim.
pub(in crate::run) struct Figure {
    /// The key. A later measurement replaces the figure with the same key.
    pub(in crate::run) id: String,
    /// The subject, as shown in the document.
    pub(in crate::run) title: String,
    pub(in crate::run) aim: String,
    pub(in crate::run) measured: String,
    pub(in crate::run) verdict: Verdict,
    /// A short description of the setup: cores, rounds and statistic.
    pub(in crate::run) method: String,
    /// CPU seconds of the server and of its clients.
    pub(in crate::run) cpu: [f64; 2],
    /// All counts.
    pub(in crate::run) detail: Value,
}

/// The comparison of a figure with its aim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::run) enum Verdict {
    Met,
    Missed,
    /// The figure has no aim and serves for comparison.
    NoAim,
}

impl Verdict {
    /// Returns `Met` if all conditions hold.
    pub(in crate::run) fn all(conditions: &[bool]) -> Self {
        match conditions.iter().all(|holds| *holds) {
            true => Self::Met,
            false => Self::Missed,
        }
    }

    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "missed",
            Self::NoAim => "-",
        }
    }
}

impl Figure {
    /// Returns a readable line.
    pub(in crate::run) fn line(&self) -> String {
        format!(
            "{}: {} (aim: {}): {}; CPU {:.2} s server, {:.2} s clients; {}",
            self.title,
            self.measured,
            self.aim,
            self.verdict.word(),
            self.cpu[0],
            self.cpu[1],
            self.method
        )
    }

    /// Returns true if the figure has an aim and misses it.
    pub(in crate::run) fn is_missed(&self) -> bool {
        self.verdict == Verdict::Missed
    }
}
