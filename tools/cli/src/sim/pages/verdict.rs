//! Bounds, as reports show them.

/// A bound of a scenario and its verdict.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Verdict {
    /// Name of the scenario.
    pub(crate) scenario: String,
    /// The bound as it is written: `goodput_share >=0.95`.
    pub(crate) bound: String,
    /// The value that was compared, with its unit.
    pub(crate) seen: String,
    /// True if the bound was kept.
    pub(crate) is_kept: bool,
}
