//! The plan of a measurement.

use std::time::Duration;

use serde::Serialize;

use super::meter::Amount;

/// What a client is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Plan {
    pub(crate) scenario: Scenario,
    pub(crate) amount: Amount,
    pub(crate) interval: Option<Duration>,
}

/// What is measured, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "name", rename_all = "lowercase")]
pub(crate) enum Scenario {
    /// Bytes in one direction or both, on so many streams each way of so many connections.
    Bulk {
        direction: Direction,
        connections: u64,
        streams: u64,
    },
    /// Requests, so many at a time over so many connections.
    Rr {
        connections: u64,
        in_flight: u64,
        request_size: u64,
        response_size: u64,
        uni: bool,
    },
    /// Requests, one at a time.
    Latency {
        request_size: u64,
        response_size: u64,
        uni: bool,
    },
    /// Handshakes, so many at a time.
    Handshake { parallel: u64, resume: bool },
    /// Connections, closed one after the other.
    Close,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Direction {
    Upload,
    Download,
    Both,
}

impl Direction {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Upload => "upload",
            Self::Download => "download",
            Self::Both => "upload and download",
        }
    }
}

impl Scenario {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bulk { direction, .. } => direction.name(),
            Self::Rr { .. } => "rr",
            Self::Latency { .. } => "latency",
            Self::Handshake { .. } => "handshake",
            Self::Close => "close",
        }
    }

    /// What is counted.
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Self::Bulk { .. } => "bytes",
            Self::Rr { .. } | Self::Latency { .. } => "requests",
            Self::Handshake { .. } => "handshakes",
            Self::Close => "closes",
        }
    }
}
