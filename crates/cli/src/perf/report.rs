//! What a client reports, for programs: names and units are in the fields.

use courser_units::{bits_per_second, to_f64};
use serde::Serialize;

use super::bench::{Outcome, Side};
use super::meter::{Amount, Interval, Latency};
use super::plan::{Direction, Plan, Scenario};
use super::remote::Remote;
use super::session::Handshake;

/// A measurement from beginning to end.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub(crate) struct Report {
    /// Our version.
    pub(crate) courser: &'static str,
    pub(crate) settings: Settings,
    pub(crate) handshake: Handshake,
    pub(crate) intervals: Vec<Interval>,
    pub(crate) end: End,
    pub(crate) client: Side,
    /// `None` when the server is not courser.
    pub(crate) server: Option<Side>,
}

/// What was asked for.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub(crate) struct Settings {
    pub(crate) target: String,
    pub(crate) address: String,
    pub(crate) transport: &'static str,
    pub(crate) scenario: Scenario,
    pub(crate) congestion: String,
    /// UDP payload of full packets; `None` over TCP.
    pub(crate) mtu: Option<u16>,
    /// The limit, one of the two.
    pub(crate) seconds: Option<f64>,
    pub(crate) number: Option<u64>,
}

/// What came out. The `sum_` fields are where iperf3 has them.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub(crate) struct End {
    pub(crate) seconds: f64,
    /// By the client.
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sum_sent: Option<Sum>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sum_received: Option<Sum>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sum_sent_bidir_reverse: Option<Sum>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sum_received_bidir_reverse: Option<Sum>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cpu_utilization_percent: Option<CpuUtilization>,
    /// Requests, handshakes or closes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resumed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) latency: Option<Latency>,
}

/// One direction.
#[derive(Serialize, Clone, Copy, PartialEq, Debug)]
pub(crate) struct Sum {
    pub(crate) seconds: f64,
    pub(crate) bytes: u64,
    pub(crate) bits_per_second: f64,
    /// Packets that the sender counts as lost.
    pub(crate) retransmits: Option<u64>,
}

/// Of one core.
#[derive(Serialize, Clone, Copy, PartialEq, Debug)]
pub(crate) struct CpuUtilization {
    pub(crate) host_total: f64,
    pub(crate) remote_total: Option<f64>,
}

impl Report {
    pub(crate) fn new(remote: &Remote, plan: &Plan, outcome: Outcome) -> Self {
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
        };
        Self {
            courser: env!("CARGO_PKG_VERSION"),
            settings,
            handshake: outcome.handshake,
            intervals: outcome.intervals,
            end,
            client: outcome.client,
            server: outcome.server,
        }
    }
}

impl End {
    fn new(scenario: Scenario, outcome: &Outcome) -> Self {
        let seconds = outcome.seconds;
        let lost = |side: Option<&Side>| Some(side?.connection?.packets_lost);
        let up = Sum::new(seconds, outcome.sent, lost(Some(&outcome.client)));
        let down = Sum::new(seconds, outcome.received, lost(outcome.server.as_ref()));
        let (forward, backward) = match scenario {
            Scenario::Bulk {
                direction: Direction::Upload,
                ..
            } => (Some(up), None),
            Scenario::Bulk {
                direction: Direction::Download,
                ..
            } => (Some(down), None),
            Scenario::Bulk {
                direction: Direction::Both,
                ..
            } => (Some(up), Some(down)),
            _ => (None, None),
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
            cpu_utilization_percent: Some(CpuUtilization {
                host_total: percent(&outcome.client),
                remote_total: outcome.server.as_ref().map(percent),
            }),
            count: counts.then_some(outcome.count),
            per_second: counts.then(|| to_f64(outcome.count) / seconds.max(1e-9)),
            resumed: outcome.resumed,
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
