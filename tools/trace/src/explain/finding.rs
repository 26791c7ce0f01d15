//! Findings: causes with their time.

use serde::Serialize;

use super::cause::Cause;
use super::ledger::Stretch;

/// A cause that limited a transfer, with its evidence.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct Finding {
    /// The cause, from which `text` and `advice` follow.
    pub cause: Cause,
    /// Seconds for which it limited the transfer.
    pub seconds: f64,
    /// The share of the active time, or of the whole time for [`Cause::Idle`], 0 to 1.
    pub share: f64,
    /// True if the share is of the whole time, which includes idle time.
    pub of_all: bool,
    /// A sentence that states the fact.
    pub text: String,
    /// The remedy as a sentence; empty if nothing needs to be done.
    pub advice: String,
    /// The number of stretches of time during which the cause applied.
    pub stretches: u64,
    /// The longest stretches, in the order of time.
    pub evidence: Vec<Stretch>,
}

impl Finding {
    /// Returns the share as text, marked if it is of the whole time.
    pub(crate) fn share_text(&self) -> String {
        let of = if self.of_all { " of all" } else { "" };
        format!("{}{of}", crate::text::percent(self.share))
    }
}
