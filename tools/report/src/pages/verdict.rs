//! Bounds, as reports show them.

/// A bound of a scenario and its verdict.
#[derive(Clone, PartialEq, Debug)]
pub struct Verdict {
    /// Name of the scenario.
    pub scenario: String,
    /// The bound as it is written: `goodput_share >=0.95`.
    pub bound: String,
    /// The value that was compared, with its unit.
    pub seen: String,
    /// True if the bound was kept.
    pub is_kept: bool,
}
