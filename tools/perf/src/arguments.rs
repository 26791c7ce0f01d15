//! The flags of `courser perf client` that define the plan of a measurement.

use std::time::Duration;

use clap::{Args, ValueEnum};
use courser_measure::Failure;
use courser_units::{parse_duration, parse_positive, parse_quantity};

use crate::csv;
use crate::meter::Amount;
use crate::plan::{Direction, Mixed, Plan, Scenario};

/// The values of `--scenario`.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScenarioName {
    /// Send bytes to the server
    Upload,
    /// Receive bytes from the server
    Download,
    /// Requests and responses, many in flight
    Rr,
    /// Handshakes, one after the other or several in parallel
    Handshake,
    /// Time to close a connection until both ends have closed it
    Close,
    /// Requests and responses, one at a time
    Latency,
    /// Datagrams; reports losses, reordering and jitter
    Datagram,
    /// Bytes, small requests and datagrams on one connection; reports the latency of requests
    Mixed,
}

/// The flags that define a plan.
#[derive(Args, Clone, Debug)]
pub struct PlanArguments {
    /// Scenario to measure
    #[arg(
        long,
        short,
        value_name = "NAME",
        default_value = "upload",
        help_heading = "Load"
    )]
    pub scenario: ScenarioName,

    /// Measure for this long [default: 10]
    #[arg(short = 't', long, value_name = "SECONDS", value_parser = parse_duration,
          conflicts_with = "number", help_heading = "Load")]
    pub time: Option<Duration>,

    /// Exclude this time before the measurement from all figures, as iperf3's --omit; less than --time
    #[arg(long, visible_alias = "omit", value_name = "SECONDS", value_parser = parse_duration,
          conflicts_with = "number", help_heading = "Load")]
    pub warm_up: Option<Duration>,

    /// Stop after N bytes (1G, 64KiB), requests, handshakes, closes or datagrams
    #[arg(short, long, value_name = "N", value_parser = parse_positive, help_heading = "Load")]
    pub number: Option<u64>,

    /// Parallel streams per connection, or parallel handshakes [default: 1]
    #[arg(short = 'P', long, value_name = "N", value_parser = parse_parallel,
          help_heading = "Load")]
    pub parallel: Option<u64>,

    /// Number of connections [default: 1]
    #[arg(long, value_name = "N", value_parser = parse_parallel, help_heading = "Load")]
    pub connections: Option<u64>,

    /// Reverse the direction of upload, download, datagram or mixed
    #[arg(short = 'R', long, conflicts_with = "bidir", help_heading = "Load")]
    pub reverse: bool,

    /// Transfer in both directions at the same time
    #[arg(long, help_heading = "Load")]
    pub bidir: bool,

    /// Size of a request [default: 512]
    #[arg(long, value_name = "BYTES", value_parser = parse_quantity, help_heading = "Load")]
    pub request_size: Option<u64>,

    /// Size of a response [default: 4000]
    #[arg(long, value_name = "BYTES", value_parser = parse_quantity, help_heading = "Load")]
    pub response_size: Option<u64>,

    /// Requests in flight over all connections [default: 100, of mixed 1]
    #[arg(long, value_name = "N", value_parser = parse_parallel, help_heading = "Load")]
    pub in_flight: Option<u64>,

    /// Size of a datagram, 16 to 65507 [default: 1000]
    #[arg(long, value_name = "BYTES", value_parser = parse_datagram_size, help_heading = "Load")]
    pub datagram_size: Option<u16>,

    /// Rate of datagrams in each direction in bits per second, such as 10M; 0 sends as fast as
    /// congestion control allows [default: 1M]
    #[arg(long, value_name = "BITS", value_parser = parse_quantity, help_heading = "Load")]
    pub rate: Option<u64>,

    /// Send requests and responses on unidirectional streams
    #[arg(long, help_heading = "Load")]
    pub uni: bool,

    /// Resume TLS sessions
    #[arg(long, help_heading = "Load")]
    pub resume: bool,

    /// Measure requests of one byte in early data (0-RTT), from the first packet to the response
    ///
    /// Resumes sessions. A courser server needs --early-data too.
    #[arg(long, conflicts_with = "tcp", help_heading = "Load")]
    pub early_data: bool,

    /// Use TLS over TCP instead of QUIC
    #[arg(long, help_heading = "Connection")]
    pub tcp: bool,

    /// Use a session of WebTransport on each connection (needs 'perf server --webtransport')
    #[arg(long, conflicts_with_all = ["tcp", "early_data"], help_heading = "Connection")]
    pub webtransport: bool,

    /// Report at this interval
    #[arg(short, long, value_name = "SECONDS", value_parser = parse_duration,
          help_heading = "Output")]
    pub interval: Option<Duration>,

    /// Print results as CSV
    #[arg(long, conflicts_with = "json", long_help = csv::help(), help_heading = "Output")]
    pub csv: bool,
}

impl PlanArguments {
    /// Returns the plan of a measurement.
    ///
    /// # Errors
    /// Returns a message for the user if a flag has no effect in the scenario or together with another one.
    pub fn plan(&self) -> Result<Plan, Failure> {
        self.refuse_flags_without_effect()?;
        let amount = match (self.number, self.time) {
            (Some(number), _) => Amount::Number(number),
            (None, time) => Amount::Time(time.unwrap_or(DEFAULT_TIME)),
        };
        let plan = Plan {
            scenario: self.scenario(),
            amount,
            warm_up: self.warm_up,
            interval: self.interval,
        };
        plan.check()?;
        Ok(plan)
    }

    fn scenario(&self) -> Scenario {
        let connections = self.connections.unwrap_or(1);
        let (request_size, response_size, uni) = (
            self.request_size.unwrap_or(DEFAULT_REQUEST),
            self.response_size.unwrap_or(DEFAULT_RESPONSE),
            self.uni,
        );
        let parallel = self.parallel.unwrap_or(1);
        match self.scenario {
            ScenarioName::Upload | ScenarioName::Download => Scenario::Bulk {
                direction: self.direction(),
                connections,
                streams: parallel,
            },
            ScenarioName::Rr => Scenario::Rr {
                connections,
                in_flight: self.in_flight.unwrap_or(DEFAULT_IN_FLIGHT),
                request_size,
                response_size,
                uni,
            },
            ScenarioName::Latency => Scenario::Latency {
                request_size,
                response_size,
                uni,
            },
            ScenarioName::Handshake => Scenario::Handshake {
                parallel,
                resume: self.resume || self.early_data,
                early_data: self.early_data,
            },
            ScenarioName::Datagram => Scenario::Datagram {
                direction: self.direction(),
                size: self.datagram_size.unwrap_or(DEFAULT_DATAGRAM),
                rate: self.datagram_rate(),
            },
            ScenarioName::Mixed => Scenario::Mixed(Mixed {
                direction: self.direction(),
                streams: parallel,
                in_flight: self.in_flight.unwrap_or(1),
                request_size,
                response_size,
                datagram_size: self.datagram_size.unwrap_or(DEFAULT_DATAGRAM),
                datagram_rate: self.datagram_rate(),
            }),
            ScenarioName::Close => Scenario::Close,
        }
    }

    fn datagram_rate(&self) -> Option<u64> {
        Some(self.rate.unwrap_or(DEFAULT_RATE)).filter(|rate| *rate > 0)
    }

    /// Returns the direction of bytes. A reversed download is an upload.
    fn direction(&self) -> Direction {
        match (self.bidir, self.scenario == ScenarioName::Download) {
            (true, _) => Direction::Both,
            (false, is_download) if is_download == self.reverse => Direction::Upload,
            _ => Direction::Download,
        }
    }

    /// Returns the flags, whether each is given, and the scenarios in which it has an effect.
    fn scopes(&self) -> [(&'static str, bool, &'static [ScenarioName]); 14] {
        use ScenarioName::{Close, Datagram, Download, Handshake, Latency, Mixed, Rr, Upload};
        [
            (
                "--reverse",
                self.reverse,
                &[Upload, Download, Datagram, Mixed],
            ),
            ("--bidir", self.bidir, &[Upload, Download, Datagram, Mixed]),
            (
                "--parallel",
                self.parallel.is_some(),
                &[Upload, Download, Handshake, Mixed],
            ),
            (
                "--connections",
                self.connections.is_some(),
                &[Upload, Download, Rr],
            ),
            (
                "--request-size",
                self.request_size.is_some(),
                &[Rr, Latency, Mixed],
            ),
            (
                "--response-size",
                self.response_size.is_some(),
                &[Rr, Latency, Mixed],
            ),
            ("--in-flight", self.in_flight.is_some(), &[Rr, Mixed]),
            ("--uni", self.uni, &[Rr, Latency]),
            ("--resume", self.resume, &[Handshake]),
            ("--early-data", self.early_data, &[Handshake]),
            (
                "--datagram-size",
                self.datagram_size.is_some(),
                &[Datagram, Mixed],
            ),
            ("--rate", self.rate.is_some(), &[Datagram, Mixed]),
            (
                "--warm-up",
                self.warm_up.is_some(),
                &[Upload, Download, Rr, Handshake, Close, Latency, Mixed],
            ),
            (
                "--number",
                self.number.is_some(),
                &[Upload, Download, Rr, Handshake, Close, Latency, Datagram],
            ),
        ]
    }

    /// Refuses flags that have no effect in the scenario.
    fn refuse_flags_without_effect(&self) -> Result<(), Failure> {
        use ScenarioName::{Datagram, Mixed};
        for (flag, is_given, scenarios) in self.scopes() {
            if is_given && !scenarios.contains(&self.scenario) {
                let names: Vec<String> = scenarios.iter().map(|it| it.flag()).collect();
                return Err(Failure::new(format!(
                    "{flag} cannot be used with --scenario {}, only with {}",
                    self.scenario.flag(),
                    names.join(", "),
                )));
            }
        }
        if self.webtransport && self.resume {
            return Err(Failure::new(
                "--resume cannot be used with --webtransport: a handshake is measured without its session",
            ));
        }
        if self.uni && self.tcp {
            return Err(Failure::new(
                "--uni cannot be used with --tcp: TCP has no streams",
            ));
        }
        if matches!(self.scenario, Datagram | Mixed) && self.tcp {
            return Err(Failure::new(format!(
                "--scenario {} cannot be used with --tcp: TCP has no datagrams",
                self.scenario.flag(),
            )));
        }
        Ok(())
    }
}

impl ScenarioName {
    /// Returns the name on the command line.
    fn flag(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

fn parse_parallel(text: &str) -> Result<u64, String> {
    let count = parse_quantity(text)?;
    if (1..=MAX_PARALLEL).contains(&count) {
        Ok(count)
    } else {
        Err(format!("{count} is not between 1 and {MAX_PARALLEL}"))
    }
}

/// Reads the size of a datagram.
fn parse_datagram_size(text: &str) -> Result<u16, String> {
    let size = parse_quantity(text)?;
    let range = || format!("{size} is not between 16 and 65507");
    u16::try_from(size)
        .ok()
        .filter(|size| (16..=65_507).contains(size))
        .ok_or_else(range)
}

/// The largest number of parallel streams, handshakes or requests. More would measure this program.
const MAX_PARALLEL: u64 = 16_384;

const DEFAULT_TIME: Duration = Duration::from_secs(10);

/// The sizes and the number in flight of secnetperf's requests.
const DEFAULT_REQUEST: u64 = 512;
const DEFAULT_RESPONSE: u64 = 4000;
const DEFAULT_IN_FLIGHT: u64 = 100;

/// The rate of iperf3 over UDP, in bits per second.
const DEFAULT_RATE: u64 = 1_000_000;

/// A size that fits into the smallest packets.
const DEFAULT_DATAGRAM: u16 = 1000;

#[cfg(test)]
mod tests;
