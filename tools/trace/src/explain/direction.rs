//! The direction of application data, as seen from the end that wrote the trace.

use serde::Serialize;

/// The direction of the data that an explanation is about.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// The end that wrote the trace sent it.
    Sent,
    /// The end that wrote the trace received it.
    Received,
}
