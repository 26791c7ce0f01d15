//! Settings that are accepted and have no effect.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

static USED: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// Returns the settings without effect that the program has changed so far, in alphabetical order, such as
/// `NewRenoConfig::loss_reduction_factor`.
///
/// courser has no counterpart of them. Each is also reported once, as a warning of `tracing` with the target `quinn`,
/// and by the feature `log` as a record of the crate `log` where no subscriber of `tracing` is set.
pub fn settings_without_effect() -> Vec<&'static str> {
    lock().iter().copied().collect()
}

/// Records that the program has changed a setting that has no effect.
pub(crate) fn note(setting: &'static str) {
    if lock().insert(setting) {
        warn(&format!(
            "{setting} has no effect: courser has no such setting"
        ));
    }
}

/// Reports a warning.
pub(crate) fn warn(message: &str) {
    tracing::warn!(target: "quinn", "{message}");
}

fn lock() -> MutexGuard<'static, BTreeSet<&'static str>> {
    // A set is whole between calls.
    USED.lock().unwrap_or_else(PoisonError::into_inner)
}
