//! The plan of a run, from the command line.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Parser;
use peers::Failure;
use peers::command_line::{Scenario, TransportOptions};
use serde::{Serialize, Serializer};

/// courser beside other stacks: goodput, CPU and memory in one interleaved run.
#[derive(Clone, Debug, Parser)]
pub(crate) struct Plan {
    /// Pairs: measurements of each stack and workload.
    #[arg(long, default_value_t = 10)]
    pub(crate) pairs: usize,
    /// Gigabytes (1e9 bytes) of one transfer.
    #[arg(long, default_value_t = 1.0)]
    pub(crate) gigabytes: f64,
    /// Handshakes of one measurement.
    #[arg(long, default_value_t = 1000)]
    pub(crate) handshakes: u64,
    /// Requests of one measurement.
    #[arg(long, default_value_t = 50_000)]
    pub(crate) requests: u64,
    /// Any of up, down, handshake, rr-N with N requests in flight, and of HTTP: http-N with N
    /// requests in flight on one connection, http-NxC with N in flight over C connections,
    /// http-down with one response of --gigabytes, and of files: files-N and files-NxC, which get
    /// one file again and again, walk-N and walk-NxC, which get files of a folder at random.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "up,down,handshake,rr-1,rr-100"
    )]
    pub(crate) workloads: Vec<Workload>,
    /// A link between the ends, as `courser sim proxy` has it: '100mbit,rtt=50ms,1%,queue=1bdp'.
    #[arg(long, value_name = "LINK")]
    pub(crate) link: Option<String>,
    /// Core of the link; without it the system chooses.
    #[arg(long, requires = "link")]
    pub(crate) proxy_core: Option<usize>,
    /// The settings of QUIC.
    #[command(flatten)]
    pub(crate) transport: TransportOptions,
    /// Stacks in their order; without it all there are.
    #[arg(long, value_delimiter = ',')]
    pub(crate) stacks: Vec<String>,
    /// One more stack, or another program for a known one: `name=program`.
    #[arg(long = "peer", value_name = "NAME=PROGRAM")]
    pub(crate) peers: Vec<Peer>,
    /// The stack that ratios are to.
    #[arg(long, default_value = "quinn")]
    pub(crate) baseline: String,
    /// The stack that ratios of HTTP are to.
    #[arg(long, default_value = "h3-quinn")]
    pub(crate) http_baseline: String,
    /// Bytes of each response of http-N.
    #[arg(long, default_value_t = 1)]
    pub(crate) response_size: u64,
    /// Size of each file of files-N and walk-N, in bytes or with a suffix: 100k, 10M, 64Ki, 1Mi.
    #[arg(long, value_name = "SIZE", default_value = "4096", value_parser = parse_size)]
    pub(crate) file_size: u64,
    /// Files in the folder of walk-N.
    #[arg(long, value_name = "N", default_value_t = 100_000,
          value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) files: u32,
    /// Core of the servers.
    #[arg(long, default_value_t = 0)]
    pub(crate) server_core: usize,
    /// Core of the clients.
    #[arg(long, default_value_t = 1)]
    pub(crate) client_core: usize,
    /// Number of repetitions of a measurement that was disturbed, or spoilt in the proxy.
    #[arg(long, default_value_t = 2)]
    pub(crate) retries: u32,
    /// Seconds after which a client is given up.
    #[arg(long, default_value_t = 120)]
    pub(crate) timeout: u64,
    /// One line of JSON for each measurement and one for the summary.
    #[arg(long)]
    pub(crate) json: bool,
    /// Take the programs beside this one as they are.
    #[arg(long)]
    pub(crate) no_build: bool,
}

impl Plan {
    /// Refuses what the parser lets pass.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.pairs == 0 || self.handshakes == 0 || self.requests == 0 {
            return Err("nothing to measure: pairs, handshakes or requests is 0".into());
        }
        if !(self.gigabytes > 0.0 && self.gigabytes <= 1e6) {
            return Err(format!("cannot move {} GB", self.gigabytes).into());
        }
        if self.link.is_some() && self.has(Family::Files) {
            return Err("--link is not for files: half of the stacks are TCP".into());
        }
        Ok(())
    }

    /// Returns true when a workload is of this family.
    pub(crate) fn has(&self, family: Family) -> bool {
        self.workloads
            .iter()
            .any(|workload| workload.family() == family)
    }

    /// Bytes of one transfer.
    pub(crate) fn bytes(&self) -> u64 {
        // `check` bounds it to what a u64 holds.
        (self.gigabytes * 1e9) as u64
    }
}

/// The workload of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Workload {
    /// Client to server.
    Up,
    /// Server to client.
    Down,
    /// Handshakes, one after another.
    Handshake,
    /// Requests of one byte.
    Requests { in_flight: u32 },
    /// `GET`s of small responses; `in_flight` is over all connections.
    Http { in_flight: u32, connections: u32 },
    /// One `GET` of a large response.
    HttpDown,
    /// `GET`s of files; `in_flight` is over all connections.
    Files {
        in_flight: u32,
        connections: u32,
        content: Content,
    },
}

/// Files that clients get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// One file, again and again.
    One,
    /// Files of a folder at random.
    Folder,
}

/// Workloads that the same programs can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// Streams of the protocol `perf`.
    Perf,
    /// Responses made up by a server.
    Http,
    /// Files.
    Files,
}

impl Workload {
    /// The peer programs' word for it.
    pub(crate) fn scenario(self) -> Scenario {
        match self {
            Self::Up => Scenario::Up,
            Self::Down => Scenario::Down,
            Self::Handshake => Scenario::Handshake,
            Self::Requests { .. } => Scenario::Rr,
            Self::Http { .. } | Self::HttpDown | Self::Files { .. } => Scenario::Http,
        }
    }

    /// True when it is measured in bytes, false when in operations.
    pub(crate) fn is_transfer(self) -> bool {
        matches!(self, Self::Up | Self::Down | Self::HttpDown)
    }

    /// The family of programs that it takes.
    pub(crate) fn family(self) -> Family {
        match self {
            Self::Up | Self::Down | Self::Handshake | Self::Requests { .. } => Family::Perf,
            Self::Http { .. } | Self::HttpDown => Family::Http,
            Self::Files { .. } => Family::Files,
        }
    }

    /// Operations under way at once.
    pub(crate) fn in_flight(self) -> u32 {
        match self {
            Self::Requests { in_flight }
            | Self::Http { in_flight, .. }
            | Self::Files { in_flight, .. } => in_flight,
            _ => 1,
        }
    }

    /// Connections at once.
    pub(crate) fn connections(self) -> u32 {
        match self {
            Self::Http { connections, .. } | Self::Files { connections, .. } => connections,
            _ => 1,
        }
    }
}

impl FromStr for Workload {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let requests = text
            .strip_prefix("rr-")
            .and_then(|number| number.parse().ok());
        if let Some(http) = text.strip_prefix("http-") {
            return http_workload(http).ok_or_else(|| unknown(text));
        }
        for content in [Content::One, Content::Folder] {
            let spread = text
                .strip_prefix(content.name())
                .and_then(|rest| rest.strip_prefix('-'));
            if let Some(spread) = spread {
                let (in_flight, connections) = parse_spread(spread).ok_or_else(|| unknown(text))?;
                return Ok(Self::Files {
                    in_flight,
                    connections,
                    content,
                });
            }
        }
        match (text, requests) {
            ("up", _) => Ok(Self::Up),
            ("down", _) => Ok(Self::Down),
            ("handshake", _) => Ok(Self::Handshake),
            (_, Some(in_flight @ 1..=MAX_IN_FLIGHT)) => Ok(Self::Requests { in_flight }),
            _ => Err(unknown(text)),
        }
    }
}

impl Content {
    /// Its name in workloads.
    const fn name(self) -> &'static str {
        match self {
            Self::One => "files",
            Self::Folder => "walk",
        }
    }
}

/// `N`, `NxC` with N a multiple of C, or `down`.
fn http_workload(text: &str) -> Option<Workload> {
    if text == "down" {
        return Some(Workload::HttpDown);
    }
    let (in_flight, connections) = parse_spread(text)?;
    Some(Workload::Http {
        in_flight,
        connections,
    })
}

/// `N`, or `NxC` with N a multiple of C.
fn parse_spread(text: &str) -> Option<(u32, u32)> {
    let (in_flight, connections) = text.split_once('x').unwrap_or((text, "1"));
    let (in_flight, connections): (u32, u32) = (in_flight.parse().ok()?, connections.parse().ok()?);
    let is_spread = connections > 0 && in_flight.is_multiple_of(connections);
    ((1..=MAX_IN_FLIGHT).contains(&in_flight) && is_spread).then_some((in_flight, connections))
}

/// Reads a size in bytes, of powers of ten or, with an `i`, of two.
fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" => Some(1),
        "k" => Some(1_000),
        "M" => Some(1_000_000),
        "Ki" => Some(1 << 10),
        "Mi" => Some(1 << 20),
        _ => None,
    };
    let size = unit.and_then(|unit| digits.parse::<u64>().ok()?.checked_mul(unit));
    size.filter(|size| *size <= MAX_FILE_SIZE)
        .ok_or_else(|| format!("`{text}` is not a size such as 4096, 100k, 10M or 64Ki, to 1000M"))
}

fn unknown(text: &str) -> String {
    format!(
        "`{text}` is none of up, down, handshake, rr-1 to rr-{MAX_IN_FLIGHT}, http-1 to \
         http-{MAX_IN_FLIGHT}, http-8x4 (8 over 4 connections, a multiple), http-down, files-N \
         and walk-N as http-N"
    )
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Up => f.pad("up"),
            Self::Down => f.pad("down"),
            Self::Handshake => f.pad("handshake"),
            Self::Requests { in_flight } => f.pad(&format!("rr-{in_flight}")),
            Self::Http {
                in_flight,
                connections: 1,
            } => f.pad(&format!("http-{in_flight}")),
            Self::Http {
                in_flight,
                connections,
            } => f.pad(&format!("http-{in_flight}x{connections}")),
            Self::HttpDown => f.pad("http-down"),
            Self::Files {
                in_flight,
                connections: 1,
                content,
            } => f.pad(&format!("{}-{in_flight}", content.name())),
            Self::Files {
                in_flight,
                connections,
                content,
            } => f.pad(&format!("{}-{in_flight}x{connections}", content.name())),
        }
    }
}

impl Serialize for Workload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A stack from the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) name: String,
    pub(crate) program: PathBuf,
}

impl FromStr for Peer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, program)) if !name.is_empty() && !program.is_empty() => Ok(Self {
                name: name.to_owned(),
                program: program.into(),
            }),
            _ => Err(format!("`{text}` is not name=program")),
        }
    }
}

/// A request is a connection in `rr` over TCP, and a file descriptor at either end.
const MAX_IN_FLIGHT: u32 = 10_000;

/// A file is written for each run.
const MAX_FILE_SIZE: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_are_read_as_they_are_written() {
        for name in [
            "up",
            "down",
            "handshake",
            "rr-1",
            "rr-100",
            "http-1",
            "http-8x4",
            "http-down",
            "files-1",
            "files-100x4",
            "walk-100x4",
        ] {
            assert_eq!(name.parse::<Workload>().unwrap().to_string(), name);
        }
    }

    #[test]
    fn other_workloads_are_refused() {
        for name in [
            "",
            "rr",
            "rr-0",
            "rr-x",
            "rr-99999",
            "sideways",
            "http-",
            "http-0",
            "http-3x2",
            "http-4x0",
            "files",
            "files-down",
            "files-3x2",
            "walk-",
            "walker-1",
        ] {
            assert!(name.parse::<Workload>().is_err(), "{name}");
        }
    }

    #[test]
    fn sizes_have_suffixes() {
        for (text, size) in [
            ("0", 0),
            ("1", 1),
            ("100k", 100_000),
            ("10M", 10_000_000),
            ("64Ki", 65_536),
            ("1Mi", 1_048_576),
        ] {
            assert_eq!(parse_size(text), Ok(size));
        }
        for text in [
            "",
            "k",
            "-1",
            "1.5M",
            "4kB",
            "4 k",
            "2000M",
            "99999999999999999999",
        ] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_peer_has_a_name_and_a_program() {
        let peer: Peer = "mine=bin/peer-mine".parse().unwrap();
        assert_eq!(
            peer,
            Peer {
                name: "mine".to_owned(),
                program: "bin/peer-mine".into()
            }
        );
        assert!("mine".parse::<Peer>().is_err());
        assert!("=bin".parse::<Peer>().is_err());
    }

    #[test]
    fn the_default_plan_is_sound() {
        let plan = Plan::parse_from(["peers"]);
        assert!(plan.check().is_ok());
        assert_eq!(plan.bytes(), 1_000_000_000);
        assert_eq!(plan.workloads.len(), 5);
        assert_eq!((plan.file_size, plan.files), (4096, 100_000));
    }
}
