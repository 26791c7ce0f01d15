//! The plan of a measurement.

use std::time::Duration;

use courser_measure::Failure;
use courser_units::seconds;
use serde::{Deserialize, Serialize};

use crate::meter::Amount;

/// The settings of one measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The kind of load.
    pub scenario: Scenario,
    /// The limit of the measurement.
    pub amount: Amount,
    /// The time before the measurement whose bytes, requests and costs do not count, so that slow start and
    /// cold caches are not measured. Requires an amount that is a longer time.
    pub warm_up: Option<Duration>,
    /// The length of an interval, if the measurement is divided into intervals.
    pub interval: Option<Duration>,
}

impl Plan {
    /// Checks that the plan can be measured.
    ///
    /// # Errors
    /// Returns an error if the amount is a number and the scenario or the warm-up needs a time, if the warm-up
    /// is not shorter than the time, or if there is a warm-up in [`Scenario::Datagram`], which both ends count
    /// from the beginning.
    pub fn check(&self) -> Result<(), Failure> {
        if let (Amount::Number(number), Scenario::Mixed(_)) = (self.amount, self.scenario) {
            return Err(Failure::new(format!(
                "the scenario mixed needs a time as its limit, not the number {number}"
            )));
        }
        let Some(warm_up) = self.warm_up else {
            return Ok(());
        };
        let warm_up = seconds(warm_up.as_secs_f64());
        let refused = match (self.amount, self.scenario) {
            (Amount::Number(_), _) => "needs a time as the limit, not a number".to_owned(),
            (_, Scenario::Datagram { .. }) => {
                "is not possible for datagrams, which both ends count from the first one".to_owned()
            }
            (Amount::Time(time), _) if self.warm_up >= Some(time) => {
                let time = seconds(time.as_secs_f64());
                format!("must be shorter than the measured time of {time}")
            }
            (Amount::Time(_), _) => return Ok(()),
        };
        Err(Failure::new(format!("a warm-up of {warm_up} {refused}")))
    }

    /// Returns the amount of work including the warm-up.
    pub(crate) fn whole_amount(&self) -> Amount {
        match self.amount {
            Amount::Time(time) => Amount::Time(time + self.warm_up.unwrap_or_default()),
            Amount::Number(number) => Amount::Number(number),
        }
    }
}

/// A scenario that a client measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "name", rename_all = "lowercase")]
pub enum Scenario {
    /// Bytes in one direction or both.
    Bulk {
        /// The direction of the payload.
        direction: Direction,
        /// The number of connections.
        connections: u64,
        /// Streams in each direction on each connection.
        streams: u64,
    },
    /// Requests, many in flight at a time.
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
    /// Handshakes, full or resumed.
    Handshake {
        /// Handshakes at a time.
        parallel: u64,
        /// True if handshakes resume TLS sessions.
        resume: bool,
        /// True to send a request of one byte in early data (0-RTT) and measure the time until its response.
        early_data: bool,
    },
    /// Datagrams at a constant rate. The losses are counted.
    Datagram {
        /// The direction of the payload.
        direction: Direction,
        /// Bytes of a datagram.
        size: u16,
        /// Bits of content per second in each direction; `None` sends as fast as congestion control
        /// allows.
        rate: Option<u64>,
    },
    /// Bytes, small requests and datagrams at the same time, on one connection. Requires a time as the limit.
    /// Throughput covers the streams with bytes only; counts and latencies are those of the requests.
    Mixed(Mixed),
    /// Connections that are opened and closed one after the other.
    Close,
}

/// The settings of [`Scenario::Mixed`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Mixed {
    /// The direction of bytes and datagrams.
    pub direction: Direction,
    /// Streams with bytes in each direction.
    pub streams: u64,
    /// Requests in flight on the connection.
    pub in_flight: u64,
    /// Bytes of a request.
    pub request_size: u64,
    /// Bytes of a response.
    pub response_size: u64,
    /// Bytes of a datagram.
    pub datagram_size: u16,
    /// Bits of datagrams per second in each direction; `None` sends as fast as congestion control allows.
    pub datagram_rate: Option<u64>,
}

/// The direction of a transfer.
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
            Self::Mixed(_) => "mixed",
            Self::Close => "close",
        }
    }

    /// Returns the direction of bytes, if the scenario measures bytes.
    pub(crate) fn bulk(self) -> Option<Direction> {
        match self {
            Self::Bulk { direction, .. } => Some(direction),
            Self::Mixed(mixed) => Some(mixed.direction),
            _ => None,
        }
    }

    /// Returns the noun of the count: bytes, requests, handshakes, datagrams or closes.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Bulk { .. } => "bytes",
            Self::Rr { .. } | Self::Latency { .. } | Self::Mixed(_) => "requests",
            Self::Handshake { .. } => "handshakes",
            Self::Datagram { .. } => "datagrams",
            Self::Close => "closes",
        }
    }
}
