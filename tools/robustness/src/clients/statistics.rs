//! Statistics that the modes report.

/// Returns a quantile of sorted times in seconds.
pub(super) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    let index = (share * last as f64).round() as usize;
    sorted.get(index.min(last)).copied().unwrap_or(0.0)
}
