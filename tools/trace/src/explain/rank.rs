//! Ranks the causes of a transfer by time.

use super::cause::Cause;
use super::finding::Finding;
use super::ledger::Ledger;
use super::words::Case;

/// Returns the causes of a ledger, the longest time first.
pub(super) fn rank(ledger: &Ledger, case: &Case<'_>) -> Vec<Finding> {
    let whole = ledger.total();
    let active = whole - ledger.entry(Cause::Idle).total;
    let mut findings: Vec<Finding> = Cause::ALL
        .into_iter()
        .filter_map(|cause| {
            let entry = ledger.entry(cause);
            let of = match cause {
                Cause::Idle => whole,
                _ => active,
            };
            let share = entry.total / of;
            if entry.total <= 0.0 || !share.is_finite() || share < MIN_SHARE {
                return None;
            }
            Some(Finding {
                cause,
                seconds: entry.total,
                share,
                of_all: cause == Cause::Idle,
                text: case.text(cause, entry.total),
                advice: case.advice(cause),
                stretches: entry.count,
                evidence: entry.stretches(),
            })
        })
        .collect();
    findings.sort_by(|left, right| right.seconds.total_cmp(&left.seconds));
    findings
}

/// The smallest share of the time with which a cause is listed.
const MIN_SHARE: f64 = 0.01;
