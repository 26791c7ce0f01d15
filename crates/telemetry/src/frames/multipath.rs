//! Frames of connections with several paths as they are recorded. RFC 10069 §4.

use std::ops::RangeInclusive;
use std::time::Duration;

use courser_base::EcnCounts;
use courser_wire::ConnectionId;
use courser_wire::frame::{
    FrameType, MaxPathId, PathAbandon, PathAck, PathCidsBlocked, PathNewConnectionId,
    PathRetireConnectionId, PathStatus, PathsBlocked,
};

use super::acks::{MAX_ACK_RANGES, delay_of};

/// Record of one frame of a connection with several paths. RFC 10069 §4.
///
/// Path IDs are recorded as they were received, also above the limit of 2^32 - 1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MultipathRecord {
    /// A PATH_ACK frame (§4.1).
    Ack {
        /// ID of the path whose packets are acknowledged.
        path_id: u64,
        /// Delay of the acknowledgement, as reported in the frame.
        delay: Duration,
        /// Acknowledged ranges, newest first, at most [`MAX_ACK_RANGES`].
        ranges: Vec<RangeInclusive<u64>>,
        /// ECN counts of the path, if the frame carries them.
        ecn: Option<EcnCounts>,
    },
    /// A PATH_ABANDON frame: the sender no longer uses the path (§4.2).
    Abandon {
        /// ID of the path.
        path_id: u64,
        /// The reason.
        error_code: u64,
    },
    /// A PATH_STATUS_AVAILABLE or PATH_STATUS_BACKUP frame (§4.3).
    Status {
        /// ID of the path.
        path_id: u64,
        /// Sequence number of the status.
        sequence: u64,
        /// True for PATH_STATUS_AVAILABLE.
        is_available: bool,
    },
    /// A PATH_NEW_CONNECTION_ID frame (§4.4). The stateless reset token is secret and not recorded.
    NewConnectionId {
        /// ID of the path.
        path_id: u64,
        /// Sequence number of the connection ID on its path.
        sequence: u64,
        /// Connection IDs of the path with smaller sequence numbers must be retired.
        retire_prior_to: u64,
        /// The connection ID that the receiver may use.
        id: ConnectionId,
    },
    /// A PATH_RETIRE_CONNECTION_ID frame (§4.5).
    RetireConnectionId {
        /// ID of the path.
        path_id: u64,
        /// Sequence number of the connection ID on its path.
        sequence: u64,
    },
    /// A MAX_PATH_ID frame (§4.6).
    MaxPathId {
        /// The largest path ID that the receiver may use.
        maximum: u64,
    },
    /// A PATHS_BLOCKED frame (§4.7).
    PathsBlocked {
        /// The largest path ID that the sender may use.
        maximum: u64,
    },
    /// A PATH_CIDS_BLOCKED frame (§4.7).
    CidsBlocked {
        /// ID of the path that lacks connection IDs.
        path_id: u64,
        /// Sequence number of the connection ID that the sender expects next.
        next_sequence: u64,
    },
}

impl MultipathRecord {
    /// Returns the type of the frame.
    pub const fn frame_type(&self) -> FrameType {
        match self {
            Self::Ack { ecn: None, .. } => FrameType::PATH_ACK,
            Self::Ack { ecn: Some(_), .. } => FrameType::PATH_ACK_ECN,
            Self::Abandon { .. } => FrameType::PATH_ABANDON,
            Self::Status {
                is_available: true, ..
            } => FrameType::PATH_STATUS_AVAILABLE,
            Self::Status { .. } => FrameType::PATH_STATUS_BACKUP,
            Self::NewConnectionId { .. } => FrameType::PATH_NEW_CONNECTION_ID,
            Self::RetireConnectionId { .. } => FrameType::PATH_RETIRE_CONNECTION_ID,
            Self::MaxPathId { .. } => FrameType::MAX_PATH_ID,
            Self::PathsBlocked { .. } => FrameType::PATHS_BLOCKED,
            Self::CidsBlocked { .. } => FrameType::PATH_CIDS_BLOCKED,
        }
    }
}

pub(super) fn ack(frame: &PathAck<'_>, ack_delay_exponent: u64) -> MultipathRecord {
    MultipathRecord::Ack {
        path_id: frame.path_id,
        delay: delay_of(&frame.ack, ack_delay_exponent),
        ranges: frame.ack.ranges().take(MAX_ACK_RANGES).collect(),
        ecn: frame.ack.ecn,
    }
}

pub(super) fn abandon(frame: PathAbandon) -> MultipathRecord {
    MultipathRecord::Abandon {
        path_id: frame.path_id,
        error_code: frame.error_code,
    }
}

pub(super) fn status(frame: PathStatus, is_available: bool) -> MultipathRecord {
    MultipathRecord::Status {
        path_id: frame.path_id,
        sequence: frame.sequence,
        is_available,
    }
}

pub(super) fn new_id(frame: PathNewConnectionId) -> MultipathRecord {
    MultipathRecord::NewConnectionId {
        path_id: frame.path_id,
        sequence: frame.issued.sequence,
        retire_prior_to: frame.issued.retire_prior_to,
        id: frame.issued.id,
    }
}

pub(super) fn retire_id(frame: PathRetireConnectionId) -> MultipathRecord {
    MultipathRecord::RetireConnectionId {
        path_id: frame.path_id,
        sequence: frame.retired.sequence,
    }
}

pub(super) fn max_path_id(frame: MaxPathId) -> MultipathRecord {
    MultipathRecord::MaxPathId {
        maximum: frame.limit,
    }
}

pub(super) fn paths_blocked(frame: PathsBlocked) -> MultipathRecord {
    MultipathRecord::PathsBlocked {
        maximum: frame.limit,
    }
}

pub(super) fn cids_blocked(frame: PathCidsBlocked) -> MultipathRecord {
    MultipathRecord::CidsBlocked {
        path_id: frame.path_id,
        next_sequence: frame.next_sequence,
    }
}
