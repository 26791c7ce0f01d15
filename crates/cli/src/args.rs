//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};
use courser::Algorithm;

use crate::qlog::args::QlogCommand;
use crate::quantity::{parse_duration, parse_positive, parse_quantity};
use crate::sim::SimCommand;

/// QUIC, and tools that measure it.
///
/// Without a command: a demonstration on this machine alone, some ten seconds long.
#[derive(Parser, Debug)]
#[command(name = "courser", version, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Serves a folder or another server over HTTP/3, HTTP/2 and HTTP/1.1.
    Serve(Box<crate::serve::args::Arguments>),
    /// Gets what URLs name, as curl does.
    Get(Box<crate::get::args::Arguments>),
    /// Loads a server with requests and measures how it answers.
    Load(Box<crate::load::args::Arguments>),
    /// Measures throughput, requests, handshakes and closes, over QUIC and over TLS on TCP.
    #[command(subcommand)]
    Perf(PerfCommand),
    /// Networks with delay, loss and narrow links, made in software.
    #[command(subcommand)]
    Sim(SimCommand),
    /// Reads traces of QUIC connections (qlog), of this stack and of others.
    #[command(subcommand)]
    Qlog(QlogCommand),
}

#[derive(Subcommand, Debug)]
pub(crate) enum PerfCommand {
    /// Serves what `courser perf client`, quinn-perf and secnetperf ask for.
    Server(ServerArguments),
    /// Measures against a perf server.
    Client(Box<ClientArguments>),
}

/// What both ends may be told.
#[derive(Args, Clone, Debug)]
pub(crate) struct CommonArguments {
    /// Congestion controller: newreno, cubic, bbr or prague.
    #[arg(long, value_name = "NAME", default_value = "cubic", value_parser = parse_controller)]
    pub(crate) cc: Algorithm,

    /// UDP payload of full packets in bytes, 1200 to 65507. Without it they grow to what the path
    /// carries.
    #[arg(long, value_name = "BYTES", value_parser = parse_mtu)]
    pub(crate) mtu: Option<u16>,

    /// Sends each UDP datagram in a system call of its own instead of many in one (GSO).
    #[arg(long)]
    pub(crate) no_udp_gso: bool,

    /// Writes JSON to standard output, for programs.
    #[arg(long)]
    pub(crate) json: bool,

    /// Writes a trace of each QUIC connection into this directory (qlog, JSON-SEQ).
    #[arg(long, value_name = "DIR", env = "QLOGDIR")]
    pub(crate) qlog: Option<PathBuf>,

    /// Runs on this core only.
    #[arg(long, value_name = "CORE")]
    pub(crate) core: Option<usize>,
}

#[derive(Args, Debug)]
pub(crate) struct ServerArguments {
    /// Address to listen on; port 0 lets the system choose one. [default: [::]:4433]
    #[arg(long, short, value_name = "ADDR", value_parser = parse_listen)]
    pub(crate) listen: Option<SocketAddr>,

    /// Certificate chain, PEM. Without one, a certificate for localhost is made in memory.
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) cert: Option<PathBuf>,

    /// Private key of the certificate, PEM.
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,

    /// Serves TLS over TCP too, on the same port.
    #[arg(long)]
    pub(crate) tcp: bool,

    #[command(flatten)]
    pub(crate) common: CommonArguments,
}

/// What is measured.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ScenarioName {
    /// Bytes to the server.
    Upload,
    /// Bytes from the server.
    Download,
    /// Requests and responses, many at a time.
    Rr,
    /// Handshakes, one after the other or several at a time.
    Handshake,
    /// How long it takes to close a connection so that both ends know.
    Close,
    /// Requests and responses, one at a time.
    Latency,
}

#[derive(Args, Debug)]
pub(crate) struct ClientArguments {
    /// The server; without a port it is 4433.
    #[arg(value_name = "HOST[:PORT]")]
    pub(crate) server: String,

    /// What to measure.
    #[arg(long, short, value_name = "NAME", default_value = "upload")]
    pub(crate) scenario: ScenarioName,

    /// How long to measure, in seconds. [default: 10]
    #[arg(short = 't', long, value_name = "SECONDS", value_parser = parse_duration,
          conflicts_with = "number")]
    pub(crate) time: Option<Duration>,

    /// How much instead of how long: bytes in all (1G, 64KiB), or how many requests, handshakes
    /// or closes.
    #[arg(short, long, value_name = "N", value_parser = parse_positive)]
    pub(crate) number: Option<u64>,

    /// Streams on each connection that send at once; handshakes at once.
    #[arg(short = 'P', long, value_name = "N", value_parser = parse_parallel)]
    pub(crate) parallel: Option<u64>,

    /// Connections to spread the streams over.
    #[arg(long, value_name = "N", value_parser = parse_parallel)]
    pub(crate) connections: Option<u64>,

    /// Turns upload into download, and the other way round.
    #[arg(short = 'R', long, conflicts_with = "bidir")]
    pub(crate) reverse: bool,

    /// Upload and download at once.
    #[arg(long)]
    pub(crate) bidir: bool,

    /// Reports every so many seconds.
    #[arg(short, long, value_name = "SECONDS", value_parser = parse_duration)]
    pub(crate) interval: Option<Duration>,

    /// Bytes of a request. [default: 512]
    #[arg(long, value_name = "BYTES", value_parser = parse_quantity)]
    pub(crate) request_size: Option<u64>,

    /// Bytes of a response. [default: 4000]
    #[arg(long, value_name = "BYTES", value_parser = parse_quantity)]
    pub(crate) response_size: Option<u64>,

    /// Requests at a time, over all connections. [default: 100]
    #[arg(long, value_name = "N", value_parser = parse_parallel)]
    pub(crate) in_flight: Option<u64>,

    /// Sends requests on unidirectional streams, answered on the server's.
    #[arg(long)]
    pub(crate) uni: bool,

    /// Resumes sessions with the tickets of earlier ones.
    #[arg(long)]
    pub(crate) resume: bool,

    /// Uses TLS over TCP instead of QUIC, for comparison.
    #[arg(long)]
    pub(crate) tcp: bool,

    /// Trusts servers with certificates from this PEM file instead of the system's.
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub(crate) ca: Option<PathBuf>,

    /// Trusts any server.
    #[arg(long)]
    pub(crate) insecure: bool,

    /// The name that the certificate has to be for, if it is not HOST.
    #[arg(long, value_name = "NAME")]
    pub(crate) server_name: Option<String>,

    /// How long to wait for a handshake, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = parse_duration)]
    pub(crate) connect_timeout: Duration,

    #[command(flatten)]
    pub(crate) common: CommonArguments,
}

/// Reads the command line. In the error case everything was said already.
pub(crate) fn parse() -> Result<Arguments, ExitCode> {
    let words = std::env::args_os().collect();
    let words = crate::get::config::expand(words, &Arguments::command()).map_err(|failed| {
        eprintln!("courser: {failed}");
        ExitCode::from(failed.code)
    })?;
    Arguments::try_parse_from(words).map_err(|error| {
        let shown = matches!(
            error.kind(),
            ErrorKind::DisplayHelp
                | ErrorKind::DisplayVersion
                | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        );
        if shown {
            let _ = error.print();
            return ExitCode::from(u8::from(error.use_stderr()) * USAGE_ERROR);
        }
        eprintln!("courser: {}", in_one_line(&error.to_string()));
        ExitCode::from(USAGE_ERROR)
    })
}

/// The part of clap's text that says what is wrong, without the usage behind it.
fn in_one_line(text: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with("Usage:") || line.starts_with("For more information") {
            break;
        }
        if !line.is_empty() {
            parts.push(line);
        }
    }
    let joined = parts.join(" ");
    joined.strip_prefix("error: ").unwrap_or(&joined).to_owned()
}

pub(crate) fn parse_controller(name: &str) -> Result<Algorithm, String> {
    name.parse().map_err(|error| format!("{error}"))
}

pub(crate) fn parse_mtu(text: &str) -> Result<u16, String> {
    let size = parse_quantity(text)?;
    let range = || format!("{size} is not within 1200 and 65507");
    u16::try_from(size)
        .ok()
        .filter(|mtu| (1200..=65_507).contains(mtu))
        .ok_or_else(range)
}

fn parse_parallel(text: &str) -> Result<u64, String> {
    let count = parse_quantity(text)?;
    if (1..=MAX_PARALLEL).contains(&count) {
        Ok(count)
    } else {
        Err(format!("{count} is not within 1 and {MAX_PARALLEL}"))
    }
}

/// `1.2.3.4:5`, `[::1]:5`, or either without the port.
pub(crate) fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    match bare.parse() {
        Ok(ip) => Ok(SocketAddr::new(ip, DEFAULT_PORT)),
        Err(_) => Err(format!(
            "'{text}' is not an address: use one such as 127.0.0.1:4433 or [::]:0"
        )),
    }
}

/// The port that perf servers listen on by convention.
pub(crate) const DEFAULT_PORT: u16 = 4433;

/// More would measure this program's bookkeeping.
const MAX_PARALLEL: u64 = 16_384;

/// As most tools have it: 2 is a mistake in the command line, 1 any other.
const USAGE_ERROR: u8 = 2;

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn mistakes_are_told_in_one_line() {
        let error = Arguments::try_parse_from(["courser", "perf", "client", "x", "--cc", "vegas"]);
        let line = in_one_line(&error.expect_err("unknown controller").to_string());
        assert!(!line.contains('\n'));
        assert!(
            line.contains("unknown controller 'vegas', known are newreno, cubic, bbr, prague"),
            "{line}"
        );
    }

    #[test]
    fn missing_server_is_named() {
        let error = Arguments::try_parse_from(["courser", "perf", "client"]);
        let line = in_one_line(&error.expect_err("no server").to_string());
        assert!(
            line.contains("HOST[:PORT]") && !line.contains("Usage"),
            "{line}"
        );
    }

    #[test]
    fn listening_addresses_may_leave_the_port_out() {
        assert_eq!(parse_listen("127.0.0.1"), Ok(([127, 0, 0, 1], 4433).into()));
        assert_eq!(parse_listen("[::]:0").map(|address| address.port()), Ok(0));
        assert_eq!(parse_listen("::1").map(|address| address.port()), Ok(4433));
        assert!(parse_listen("here").is_err());
    }

    #[test]
    fn packet_sizes_out_of_range_are_refused_with_the_range() {
        let error = parse_mtu("1199").expect_err("too small");
        assert!(error.contains("1200 and 65507"), "{error}");
        assert!(parse_mtu("70000").is_err());
        assert_eq!(parse_mtu("1452"), Ok(1452));
    }
}
