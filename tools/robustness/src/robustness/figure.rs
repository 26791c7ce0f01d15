//! Figures with their aims.

use serde_json::Value;

/// A measured figure and its aim.
pub(crate) struct Figure {
    /// The key. A later measurement replaces the figure with the same key.
    pub(crate) id: String,
    /// The subject, as shown in the document.
    pub(crate) title: String,
    pub(crate) aim: String,
    pub(crate) measured: String,
    pub(crate) verdict: Verdict,
    /// A short description of the setup: cores, rounds and statistic.
    pub(crate) method: String,
    /// CPU seconds of the server and of its clients.
    pub(crate) cpu: [f64; 2],
    pub(crate) detail: Value,
}

/// The comparison of a figure with its aim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Met,
    Missed,
    /// The figure has no aim and serves for comparison.
    NoAim,
}

impl Verdict {
    /// Returns `Met` if all conditions hold.
    pub(crate) fn all(conditions: &[bool]) -> Self {
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
    pub(crate) fn line(&self) -> String {
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
    pub(crate) fn is_missed(&self) -> bool {
        self.verdict == Verdict::Missed
    }
}
