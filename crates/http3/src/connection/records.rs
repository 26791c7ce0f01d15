//! The state of the records of a connection.

use courser_telemetry::{FieldSection, Http3Frame, Pending};

/// The records that wait. Costs a branch for each event while they are off.
#[derive(Debug, Default)]
pub(super) struct Records {
    pub(super) pending: Pending,
    /// The numbers of our streams, in the order of [`UniStream::ALL`](super::UniStream::ALL).
    pub(super) streams: [Option<u64>; 3],
    /// The frames of our control stream until it is open.
    pub(super) early: Vec<Http3Frame>,
}

impl Records {
    /// Begins the record of a field section that is decoded, while records are kept.
    pub(super) fn begin_section(&self) -> Option<FieldSection> {
        self.pending.is_enabled().then(FieldSection::default)
    }
}
