//! The plan of a run, from the command line.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Parser;
use peers::Failure;
use peers::command_line::TransportOptions;
use peers::settings;

use super::workload::{Family, Workload};

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
    /// Unreliable datagrams of one measurement.
    #[arg(long, default_value_t = 500_000)]
    pub(crate) datagrams: u64,
    /// Bytes of each unreliable datagram.
    #[arg(long, default_value_t = settings::DATAGRAM_PAYLOAD)]
    pub(crate) payload: usize,
    /// Any of up, down, streams-N-up and -down with N streams on one connection, connections-N-up
    /// and -down with a stream on each of N connections, handshake, rr-N with N requests in flight,
    /// latency-up and -down with requests beside a transfer, datagrams, idle-N with N connections,
    /// and of HTTP: http-N with N
    /// requests in flight on one connection, http-NxC with N in flight over C connections,
    /// http-down with one response of --gigabytes, and of files: files-N and files-NxC, which get
    /// one file again and again, walk-N and walk-NxC, which get files of a folder at random, and of
    /// proxies: proxy-N and proxy-NxC, which get responses of --file-size from an origin behind them.
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
    /// Both ends in network namespaces of their own, with a veth pair between them; needs root.
    #[arg(long, conflicts_with = "link")]
    pub(crate) veth: bool,
    /// The settings of QUIC.
    #[command(flatten)]
    pub(crate) transport: TransportOptions,
    /// Stacks in their order; without it all there are: courser, quinn, noq, s2n-quic, msquic, tquic,
    /// tls-tcp, ktls, tcp and pipe, and of HTTP and files those of the README. msquic and tquic are
    /// left out where they cannot be built.
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
    /// Size of each file of files-N and walk-N and of each response of proxy-N, in bytes or with a suffix: 100k, 10M, 64Ki, 1Mi.
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
    /// Write bars of all figures into this file, with whiskers for the 95 % intervals.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Take the programs beside this one as they are.
    #[arg(long)]
    pub(crate) no_build: bool,
}

impl Plan {
    /// Refuses what the parser lets pass.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let counts = [self.handshakes, self.requests, self.datagrams];
        if self.pairs == 0 || counts.contains(&0) {
            let counted = "pairs, handshakes, requests or datagrams";
            return Err(format!("nothing to measure: {counted} is 0").into());
        }
        if !(self.gigabytes > 0.0 && self.gigabytes <= 1e6) {
            return Err(format!("cannot move {} GB", self.gigabytes).into());
        }
        if self.link.is_some() && self.has_installed() {
            return Err("--link is not for files and proxies: half of the stacks are TCP".into());
        }
        if self.veth && (self.has_installed() || self.has(Family::Http)) {
            return Err(
                "--veth is not for HTTP, files and proxies, whose servers listen on 127.0.0.1"
                    .into(),
            );
        }
        Ok(())
    }

    /// Returns true when a workload is of this family.
    pub(crate) fn has(&self, family: Family) -> bool {
        self.workloads
            .iter()
            .any(|workload| workload.family() == family)
    }

    /// Returns true when a workload is one of servers that are measured as they are installed.
    pub(crate) fn has_installed(&self) -> bool {
        self.has(Family::Files) || self.has(Family::Proxy)
    }

    /// Bytes of one transfer.
    pub(crate) fn bytes(&self) -> u64 {
        // `check` bounds it to what a u64 holds.
        (self.gigabytes * 1e9) as u64
    }
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

/// A file is written for each run.
const MAX_FILE_SIZE: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

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
