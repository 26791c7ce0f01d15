//! The report of a measurement as JSON. Field names contain the units.

use courser_measure::{Latency, MovesReport};
use courser_units::{bits_per_second, to_f64};
use serde::Serialize;

use crate::bench::Outcome;
use crate::datagram::Datagrams;
use crate::meter::{Amount, Interval};
use crate::network::Network;
use crate::plan::{Direction, Plan, Scenario};
use crate::remote::Remote;
use crate::server_side::ServerGap;
use crate::session::Handshake;
use crate::side::Side;
use crate::spread::Spread;

/// The settings and figures of a measurement, as written to JSON.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct Report {
    /// The version of courser.
    pub courser: &'static str,
    /// The settings of the measurement.
    pub settings: Settings,
    /// The handshake of the first connection.
    pub handshake: Handshake,
    /// The QUIC version and socket features in use; `None` over TCP.
    pub network: Option<Network>,
    /// True if the measurement ended before its time or number was reached. The figures cover the time until
    /// then.
    pub interrupted: bool,
    /// The intervals, if the plan has an interval.
    pub intervals: Vec<Interval>,
    /// The figures of the whole measurement.
    pub end: End,
    /// The cost at the client.
    pub client: Side,
    /// The cost at the server, if it is known.
    pub server: Option<Side>,
    /// The reason for which counters of the server are missing, if any are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_gap: Option<ServerGap>,
}

/// The settings of a measurement.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct Settings {
    /// The server as the user wrote it.
    pub target: String,
    /// The address of the server.
    pub address: String,
    /// `quic`, `webtransport` or `tls over tcp`.
    pub transport: &'static str,
    /// The scenario with its parameters.
    pub scenario: Scenario,
    /// The congestion control algorithm.
    pub congestion: String,
    /// UDP payload of full packets; `None` over TCP.
    pub mtu: Option<u16>,
    /// The limit, if it is a time.
    pub seconds: Option<f64>,
    /// The limit, if it is a number.
    pub number: Option<u64>,
    /// The length of the warm-up, which only the figures of the handshake cover.
    pub warm_up_seconds: Option<f64>,
}

/// The figures of a whole measurement. The `sum_` fields have the names and places of iperf3's.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct End {
    /// The duration of the measurement, without the warm-up.
    pub seconds: f64,
    /// Bytes sent by the client; those of requests and datagrams do not count in the scenario mixed.
    pub sent_bytes: u64,
    /// Bytes received by the client; those of requests and datagrams do not count in the scenario mixed.
    pub received_bytes: u64,
    /// The transfer in the direction of the scenario.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum_sent: Option<Sum>,
    /// The same transfer, because all bytes were received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum_received: Option<Sum>,
    /// The transfer in the other direction, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum_sent_bidir_reverse: Option<Sum>,
    /// The same transfer, because all bytes were received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum_received_bidir_reverse: Option<Sum>,
    /// The distribution of throughput over the intervals, or over samples of 100 ms without intervals.
    pub spread: Spread,
    /// CPU time in percent of one core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_utilization_percent: Option<CpuUtilization>,
    /// Number of requests, handshakes, datagrams of both directions or closes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The count per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_second: Option<f64>,
    /// Number of handshakes that resumed a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumed: Option<u64>,
    /// Number of requests in early data that the server accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub early_accepted: Option<u64>,
    /// Datagrams sent, received and lost, by direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<Datagrams>,
    /// Moves of the connections to other sockets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moves: Option<MovesReport>,
    /// Distribution of the durations of requests, handshakes or closes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
}

/// A transfer in one direction.
#[derive(Serialize, Clone, Copy, PartialEq, Debug)]
pub struct Sum {
    /// The time of the transfer.
    pub seconds: f64,
    /// Bytes transferred in this direction, without protocol overhead.
    pub bytes: u64,
    /// Mean throughput in bits per second.
    pub bits_per_second: f64,
    /// Packets that the sender declared lost.
    pub retransmits: Option<u64>,
}

/// CPU time in percent of one core.
#[derive(Serialize, Clone, Copy, PartialEq, Debug)]
pub struct CpuUtilization {
    /// CPU time of the client.
    pub host_total: f64,
    /// CPU time of the server, if it is known.
    pub remote_total: Option<f64>,
}

impl Report {
    /// Creates the report of a measurement.
    pub fn new(remote: &Remote, plan: &Plan, outcome: Outcome) -> Self {
        let end = End::new(plan.scenario, &outcome);
        let (seconds, number) = match plan.amount {
            Amount::Time(time) => (Some(time.as_secs_f64()), None),
            Amount::Number(number) => (None, Some(number)),
        };
        let settings = Settings {
            target: remote.target.clone(),
            address: remote.address.to_string(),
            transport: remote.over.name(),
            scenario: plan.scenario,
            congestion: remote.congestion.to_string(),
            mtu: outcome.client.connection.map(|connection| connection.mtu),
            seconds,
            number,
            warm_up_seconds: plan.warm_up.map(|time| time.as_secs_f64()),
        };
        Self {
            courser: env!("CARGO_PKG_VERSION"),
            settings,
            handshake: outcome.handshake,
            network: outcome.network,
            interrupted: outcome.interrupted,
            intervals: outcome.intervals,
            end,
            client: outcome.client,
            server: outcome.server,
            server_gap: outcome.server_gap,
        }
    }
}

impl End {
    fn new(scenario: Scenario, outcome: &Outcome) -> Self {
        let seconds = outcome.seconds;
        let lost = |side: Option<&Side>| Some(side?.connection?.packets_lost);
        let up = Sum::new(seconds, outcome.sent, lost(Some(&outcome.client)));
        let down = Sum::new(seconds, outcome.received, lost(outcome.server.as_ref()));
        let (forward, backward) = match scenario.bulk() {
            Some(Direction::Upload) => (Some(up), None),
            Some(Direction::Download) => (Some(down), None),
            Some(Direction::Both) => (Some(up), Some(down)),
            None => (None, None),
        };
        let percent = |side: &Side| side.cpu_seconds * 100.0 / seconds.max(1e-9);
        let counts = outcome.count > 0;
        Self {
            seconds,
            sent_bytes: outcome.sent,
            received_bytes: outcome.received,
            sum_sent: forward,
            sum_received: forward,
            sum_sent_bidir_reverse: backward,
            sum_received_bidir_reverse: backward,
            spread: outcome.spread,
            cpu_utilization_percent: Some(CpuUtilization {
                host_total: percent(&outcome.client),
                remote_total: outcome.server.as_ref().map(percent),
            }),
            count: counts.then_some(outcome.count),
            per_second: counts.then(|| to_f64(outcome.count) / seconds.max(1e-9)),
            resumed: outcome.resumed,
            early_accepted: outcome.early_accepted,
            datagrams: outcome.datagrams,
            moves: outcome.moves,
            latency: outcome.latency,
        }
    }
}

impl Sum {
    fn new(seconds: f64, bytes: u64, retransmits: Option<u64>) -> Self {
        let bits_per_second = bits_per_second(bytes, seconds);
        Self {
            seconds,
            bytes,
            bits_per_second,
            retransmits,
        }
    }
}
