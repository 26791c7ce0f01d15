//! The plan of a measurement.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::meter::Amount;

/// The plan of a measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The scenario.
    pub scenario: Scenario,
    /// The end of the measurement.
    pub amount: Amount,
    /// The length of an interval, if the measurement is divided into intervals.
    pub interval: Option<Duration>,
}

/// A scenario that a client measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "name", rename_all = "lowercase")]
pub enum Scenario {
    /// Bytes in one direction or both.
    Bulk {
        /// The direction.
        direction: Direction,
        /// The number of connections.
        connections: u64,
        /// Streams each way on each connection.
        streams: u64,
    },
    /// Requests, many at a time.
    Rr {
        /// The number of connections.
        connections: u64,
        /// Requests in flight over all connections.
        in_flight: u64,
        /// Bytes of a request.
        request_size: u64,
        /// Bytes of a response.
        response_size: u64,
        /// Sends requests and responses on unidirectional streams.
        uni: bool,
    },
    /// Requests, one at a time.
    Latency {
        /// Bytes of a request.
        request_size: u64,
        /// Bytes of a response.
        response_size: u64,
        /// Sends requests and responses on unidirectional streams.
        uni: bool,
    },
    /// Handshakes.
    Handshake {
        /// Handshakes at a time.
        parallel: u64,
        /// Resumes TLS sessions.
        resume: bool,
        /// Sends a request of one byte in early data (0-RTT), and measures the time until its response.
        early_data: bool,
    },
    /// Datagrams, which may be lost.
    Datagram {
        /// The direction.
        direction: Direction,
        /// Bytes of a datagram.
        size: u16,
        /// Bits of content per second in each direction; `None` sends as fast as congestion control
        /// allows.
        rate: Option<u64>,
    },
    /// Connections, closed one after the other.
    Close,
}

/// The direction of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the client to the server.
    Upload,
    /// From the server to the client.
    Download,
    /// In both directions at the same time.
    Both,
}

impl Direction {
    /// Returns the name for reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Upload => "upload",
            Self::Download => "download",
            Self::Both => "upload and download",
        }
    }
}

impl Scenario {
    /// Returns the name for reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bulk { direction, .. } => direction.name(),
            Self::Rr { .. } => "rr",
            Self::Latency { .. } => "latency",
            Self::Handshake { .. } => "handshake",
            Self::Datagram { .. } => "datagram",
            Self::Close => "close",
        }
    }

    /// Returns what is counted: bytes, requests, handshakes, datagrams or closes.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Bulk { .. } => "bytes",
            Self::Rr { .. } | Self::Latency { .. } => "requests",
            Self::Handshake { .. } => "handshakes",
            Self::Datagram { .. } => "datagrams",
            Self::Close => "closes",
        }
    }
}
