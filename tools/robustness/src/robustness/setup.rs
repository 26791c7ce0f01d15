//! The settings of all measurements.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::store::Conditions;
use crate::process::Site;

/// Settings for all measurements.
pub(super) struct Setup {
    pub(super) courser: PathBuf,
    /// An earlier binary, for comparison.
    pub(super) before: Option<PathBuf>,
    pub(super) site: Site,
    /// The core of the server under test.
    pub(super) server_core: usize,
    /// The core of clients and attackers.
    pub(super) client_core: usize,
    /// The duration of one attack.
    pub(super) attack_time: Duration,
    /// The longest duration of the row that counts hostile datagrams.
    pub(super) flood_time: Duration,
    /// The duration of the row `soak`.
    pub(super) soak_time: Duration,
    /// The attacks to run, or all of them if empty.
    pub(super) attacks: Vec<String>,
    /// Runs fewer and shorter rounds, as a trial.
    pub(super) is_quick: bool,
}

impl Setup {
    pub(super) fn site(&self) -> &Path {
        self.site.path()
    }

    pub(super) fn conditions(&self, took: Duration) -> Conditions {
        Conditions::now(took, self.is_quick)
    }
}
