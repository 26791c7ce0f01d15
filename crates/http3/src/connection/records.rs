//! The records that a connection keeps for telemetry.

use courser_telemetry::{FieldSection, Http3Frame, Pending};

/// The records to be taken. While recording is off, each event costs a branch.
#[derive(Debug, Default)]
pub(super) struct Records {
    pub(super) pending: Pending,
    /// The IDs of the streams of this end, in the order of [`UniStream::ALL`](super::UniStream::ALL).
    pub(super) streams: [Option<u64>; 3],
    /// Frames of the control stream until it is open.
    pub(super) early: Vec<Http3Frame>,
}

impl Records {
    /// Starts the record of a field section to be decoded, while recording is on.
    pub(super) fn begin_section(&self) -> Option<FieldSection> {
        self.pending.is_enabled().then(FieldSection::default)
    }
}
