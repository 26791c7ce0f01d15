//! The command line.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::LazyLock;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, Parser, Subcommand};
use courser::{Algorithm, CipherSuite, QuicVersion};
use courser_perf::{Figure, PlanArguments};
use courser_trace::QlogCommand;
use courser_units::parse_duration;

use crate::interop::InteropCommand;
use crate::sim::SimCommand;
use crate::values::{
    controller_help, controller_long_help, parse_controller, parse_figure, parse_listen, parse_mtu,
    parse_shards,
};

/// QUIC and HTTP/3: server, client, load generator and measuring tools
///
/// Without a command, courser runs a ten-second demonstration on this machine. It needs no network
/// and leaves no files behind.
#[derive(Parser, Debug)]
#[command(name = "courser", version = version(), max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Serve files or proxy another server over HTTP/3, HTTP/2 and HTTP/1.1
    Serve(Box<crate::serve::args::Arguments>),
    /// Forward connections of clients over TCP and UDP (CONNECT, CONNECT-UDP)
    Proxy(Box<crate::proxy::args::Arguments>),
    /// Transfer URLs, with curl's flags and exit codes
    #[command(version = version())]
    Get(Box<crate::get::args::Arguments>),
    /// Open a WebTransport session, and connect it to standard input and output
    Webtransport(Box<crate::webtransport::args::Arguments>),
    /// Send IP packets of this machine through a proxy (CONNECT-IP): a VPN
    Tunnel(Box<crate::tunnel::args::Arguments>),
    /// Load-test an HTTP server, with the flags of h2load or oha
    Load(Box<crate::load::args::Arguments>),
    /// Measure QUIC, or TLS over TCP, between a client and a server
    #[command(subcommand)]
    Perf(PerfCommand),
    /// Emulate networks, in virtual time or between real programs
    #[command(subcommand)]
    Sim(SimCommand),
    /// Run the tests of the QUIC interop runner
    Interop {
        #[command(subcommand)]
        command: Option<InteropCommand>,
    },
    /// Explain, compare and plot traces of QUIC connections (qlog)
    #[command(subcommand)]
    Qlog(QlogCommand),
    /// Check this machine for QUIC, and print the commands that correct problems
    Doctor(courser_diagnose::doctor::Arguments),
    /// Examine a QUIC server with a few handshakes, and grade it
    Probe(Box<courser_diagnose::probe::Arguments>),
}

const EXAMPLES: &str = "\
Examples:
  courser
      Run the demonstration
  courser serve --browse
      Serve the current directory at https://localhost:4433/
  courser get --http3 https://example.org/
      Print a page, over HTTP/3 if the server supports it
  echo hello | courser webtransport https://example.org/echo
      Send a line on a stream of a WebTransport session
  courser load --h3 -n 100000 -c 4 -m 25 https://example.org/
      Send 100 000 requests over HTTP/3

Run 'courser COMMAND --help' for the flags and examples of a command.";

#[derive(Subcommand, Debug)]
#[command(after_help = PERF_EXAMPLES)]
pub(crate) enum PerfCommand {
    /// Run a server for 'courser perf client', quinn-perf and secnetperf
    Server(ServerArguments),
    /// Measure throughput, requests, handshakes, closes or datagrams against a perf server
    Client(Box<ClientArguments>),
    /// Run two commands in turn and compare their figures, with confidence intervals
    Compare(CompareArguments),
}

const PERF_EXAMPLES: &str = "\
Examples:
  courser perf server --listen 127.0.0.1:4433
      Listen on loopback with a certificate generated in memory
  courser perf client 127.0.0.1:4433 --insecure
      Upload to it for 10 seconds";

/// Flags for both ends.
#[derive(Args, Clone, Debug)]
pub(crate) struct CommonArguments {
    #[arg(long, value_name = "NAME", default_value_t, value_parser = parse_controller,
          help = controller_help(), long_help = controller_long_help(), help_heading = "Transport")]
    pub(crate) cc: Algorithm,

    /// Do not search for a larger window when the capacity of the path has risen
    ///
    /// Windows then grow at the speed of RFC 9438 (cubic) and RFC 9002 (newreno).
    #[arg(long, help_heading = "Transport")]
    pub(crate) no_capacity_rise: bool,

    /// Maximum UDP payload, 1200 to 65507 [default: discovered]
    #[arg(long, value_name = "BYTES", value_parser = parse_mtu, help_heading = "Transport")]
    pub(crate) mtu: Option<u16>,

    /// Versions of QUIC, such as 2 or 1,2, the preferred one first [default: client 1, server 1,2]
    ///
    /// A server with this flag upgrades clients to the first version that they support.
    #[arg(long, value_name = "LIST", value_delimiter = ',',
          value_parser = crate::values::parse_quic_version, help_heading = "Transport")]
    pub(crate) quic_version: Vec<QuicVersion>,

    /// Do not use UDP segmentation offload (GSO)
    #[arg(long, help_heading = "Transport")]
    pub(crate) no_udp_gso: bool,

    /// Run on this core only
    #[arg(long, value_name = "CORE", help_heading = "Transport")]
    pub(crate) core: Option<usize>,

    /// Print results as JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,

    /// Write a qlog trace of every QUIC connection to this directory
    #[arg(
        long,
        value_name = "DIR",
        env = "QLOGDIR",
        hide_env_values = true,
        help_heading = "Output"
    )]
    pub(crate) qlog: Option<PathBuf>,
}

#[derive(Args, Debug)]
#[command(after_help = SERVER_EXAMPLES)]
pub(crate) struct ServerArguments {
    /// Listen on this address; port 0 lets the system choose [default: [::]:4433]
    #[arg(long, short, value_name = "ADDR", value_parser = parse_listen)]
    pub(crate) listen: Option<SocketAddr>,

    /// Also serve TLS over TCP, on the same port
    #[arg(long)]
    pub(crate) tcp: bool,

    /// Also serve sessions of WebTransport, for 'perf client --webtransport'
    #[arg(long)]
    pub(crate) webtransport: bool,

    /// Accept early data (0-RTT)
    #[arg(long)]
    pub(crate) early_data: bool,

    /// Number of sockets and tasks for QUIC connections, 1 to 256
    ///
    /// This is the number of cores that can receive and send at the same time.
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_shards())]
    pub(crate) shards: u16,

    /// Certificate chain (PEM) [default: a certificate for localhost in memory]
    #[arg(long, value_name = "FILE", requires = "key", help_heading = "TLS")]
    pub(crate) cert: Option<PathBuf>,

    /// Private key of --cert (PEM)
    #[arg(long, value_name = "FILE", requires = "cert", help_heading = "TLS")]
    pub(crate) key: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) common: CommonArguments,
}

#[derive(Args, Debug)]
#[command(after_help = COMPARE_EXAMPLES)]
pub(crate) struct CompareArguments {
    /// Shell command that is the baseline
    #[arg(long, value_name = "COMMAND")]
    pub(crate) a: String,

    /// Shell command to compare with the baseline
    #[arg(long, value_name = "COMMAND")]
    pub(crate) b: String,

    /// Number of pairs, at least 6 for a verdict; the order of both commands alternates between pairs
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) pairs: u32,

    /// Figure of a run: 'seconds', or a JSON pointer into the output [default: a known rate in the output, or seconds]
    #[arg(long, value_name = "FIGURE", value_parser = parse_figure)]
    pub(crate) figure: Option<Figure>,

    /// A smaller figure is better
    #[arg(long, requires = "figure")]
    pub(crate) less_is_better: bool,

    /// End the comparison if a run takes longer
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = parse_duration)]
    pub(crate) timeout: Duration,

    /// Print all figures as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const COMPARE_EXAMPLES: &str = "\
Examples:
  courser perf compare --a 'iperf3 -c HOST --json' --b 'courser perf client HOST --json'
      Compare the throughput of TCP and QUIC
  courser perf compare --a 'curl -so /dev/null URL' --b 'courser get -so /dev/null URL'
      Compare times of downloads";

const SERVER_EXAMPLES: &str = "\
Examples:
  courser perf server --listen 127.0.0.1:4433
      Listen on loopback only
  courser perf server --tcp --cert cert.pem --key key.pem
      Listen on all addresses, for QUIC and for TLS over TCP";

#[derive(Args, Debug)]
#[command(after_help = CLIENT_EXAMPLES)]
pub(crate) struct ClientArguments {
    /// Server to measure against [default port: 4433]
    #[arg(value_name = "HOST[:PORT]")]
    pub(crate) server: String,

    #[command(flatten)]
    pub(crate) plan: PlanArguments,

    /// Trust the CA certificates in this file (PEM), not the system's
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "insecure",
        help_heading = "Connection"
    )]
    pub(crate) ca: Option<PathBuf>,

    /// Do not verify the server's certificate
    #[arg(long, help_heading = "Connection")]
    pub(crate) insecure: bool,

    /// Name to verify the certificate for [default: HOST]
    #[arg(long, value_name = "NAME", help_heading = "Connection")]
    pub(crate) server_name: Option<String>,

    /// Time limit for connecting
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = parse_duration,
          help_heading = "Connection")]
    pub(crate) connect_timeout: Duration,

    /// Move the QUIC connections to a new socket at this interval, and report the moves and stalls
    #[arg(long, visible_alias = "migrate-every", value_name = "SECONDS", value_parser = parse_duration,
          conflicts_with = "tcp", help_heading = "Connection")]
    pub(crate) rebind_every: Option<Duration>,

    /// Open a further path through this interface, or from this address (RFC 10069); repeatable, 7 at most
    ///
    /// The first path takes the system's route. An interface needs a route to the server, of any metric. Packets from an
    /// address leave through its interface only with a rule: 'ip rule add from ADDRESS table N', with a default route in
    /// table N.
    #[arg(long = "path", value_name = "PLACE", conflicts_with_all = ["tcp", "webtransport", "via", "rebind_every"],
          help_heading = "Connection")]
    pub(crate) paths: Vec<courser::Via>,

    /// Connect through a UDP proxy (CONNECT-UDP): HOST[:PORT], or a template with {target_host} and {target_port}
    ///
    /// Each connection has a tunnel of its own, on one connection over HTTP/3 to the proxy. The certificate of the proxy
    /// is verified like the server's. --mtu is for the packets inside. 'courser proxy --udp' is such a proxy.
    #[arg(
        long,
        value_name = "PROXY",
        conflicts_with = "tcp",
        help_heading = "Connection"
    )]
    pub(crate) via: Option<String>,

    /// Field of the requests to the proxy, such as 'proxy-authorization: Bearer TOKEN'; repeatable
    #[arg(
        long,
        value_name = "FIELD",
        requires = "via",
        help_heading = "Connection"
    )]
    pub(crate) via_header: Vec<String>,

    #[command(flatten)]
    pub(crate) common: CommonArguments,
}

const CLIENT_EXAMPLES: &str = "\
Examples:
  courser perf client 127.0.0.1:4433 --insecure -s download -n 1G
      Download 1 GB
  courser perf client 127.0.0.1:4433 --insecure -P 4 -t 5 -i 1
      Upload on 4 streams for 5 seconds and report every second
  courser perf client 127.0.0.1:4433 --insecure -s rr --in-flight 100
      Measure requests per second and latency with 100 in flight
  courser perf client 127.0.0.1:4433 --insecure -s datagram --rate 10M --bidir
      Send datagrams both ways at 10 Mbit/s and count those that are lost
  courser perf client 127.0.0.1:4433 --insecure -s mixed -R --warm-up 2 -i 1 --csv
      Download with concurrent small requests and datagrams, without slow start, as CSV
  courser perf client 127.0.0.1:4433 --insecure --webtransport
      Upload on a stream of a WebTransport session (needs 'perf server --webtransport')
  courser perf client 127.0.0.1:4433 --insecure --via 127.0.0.1:8443
      Upload through the proxy of 'courser proxy --listen 127.0.0.1:8443 --allow 127.0.0.0/8'
  courser perf client 192.0.2.1 --insecure --path 198.51.100.7
      Upload over the default route and from 198.51.100.7 at once
  courser perf client 127.0.0.1:4433 --insecure --tcp
      Upload over TLS on TCP, for comparison (needs 'perf server --tcp')

SIGINT and SIGTERM end a measurement early: the report covers the time until then, and the
exit code is 130. A second signal ends the process at once. Other exit codes are 0 for a
complete measurement, 1 for a failure and 2 for invalid arguments.";

/// Parses the command line. Errors were printed already.
pub(crate) fn parse() -> Result<Arguments, ExitCode> {
    let words = std::env::args_os().collect();
    let lines = crate::get::words::command_lines(words, &Arguments::command());
    let lines = lines.map_err(|failed| {
        eprintln!("courser: {failed}");
        ExitCode::from(failed.code)
    })?;
    let mut lines = lines.into_iter();
    let mut first = parse_line(lines.next().unwrap_or_default())?;
    for line in lines {
        if let (Some(Command::Get(first)), Some(Command::Get(next))) =
            (&mut first.command, parse_line(line)?.command)
        {
            first.next.push(*next);
        }
    }
    Ok(first)
}

fn parse_line(words: Vec<OsString>) -> Result<Arguments, ExitCode> {
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

/// Returns an error of clap as one line, without the usage.
fn in_one_line(text: &str) -> String {
    let (mut parts, mut tips) = (Vec::new(), Vec::new());
    for line in text.lines().map(str::trim) {
        if line.starts_with("Usage:") || line.starts_with("For more information") {
            break;
        }
        match line.strip_prefix("tip: ") {
            // Tips are separate sentences at the end.
            Some(tip) => tips.push(tip),
            None if line.is_empty() => {}
            None => parts.push(line),
        }
    }
    let mut joined = parts.join(" ");
    for tip in tips {
        joined = format!("{joined}; {tip}");
    }
    for (of_library, ours) in NUMBERS {
        joined = joined.replace(of_library, ours);
    }
    joined.strip_prefix("error: ").unwrap_or(&joined).to_owned()
}

/// Messages of the standard library about invalid numbers, and clearer ones that replace them.
const NUMBERS: [(&str, &str); 2] = [
    (
        "invalid digit found in string",
        "use a whole number, such as 100",
    ),
    (
        "number too large to fit in target type",
        "the number is too large",
    ),
];

/// The exit code for invalid arguments, as in most tools. Other errors have the code 1.
const USAGE_ERROR: u8 = 2;

/// Returns the version, and the cryptography of this build if it is not the default: FIPS mode, or the
/// instructions of the AES-GCM implementation that replaces that of AWS-LC.
fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| {
        let version = env!("CARGO_PKG_VERSION");
        let packets = CipherSuite::Aes128Gcm.implementation();
        match courser::Cryptography::default().is_fips() {
            true => format!("{version} (FIPS mode)"),
            false if cfg!(feature = "fused") => format!("{version} (packets: {packets})"),
            false => version.to_owned(),
        }
    });
    &VERSION
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn errors_are_one_line() {
        let error = Arguments::try_parse_from(["courser", "perf", "client", "x", "--cc", "vegas"]);
        let line = in_one_line(&error.expect_err("unknown controller").to_string());
        assert!(!line.contains('\n'));
        assert!(
            line.contains("unknown controller 'vegas', known are newreno, "),
            "{line}"
        );
    }

    #[test]
    fn errors_list_the_allowed_values() {
        for (words, expected) in [
            (["--read-rate", "fast"], "use a whole number, such as 100"),
            (["--read-rate", "5000000000"], "is not in 0..=4294967295"),
            (
                ["--memry", "1GiB"],
                "'--memry' found; a similar argument exists: '--memory'",
            ),
        ] {
            let error = Arguments::try_parse_from(["courser", "serve"].iter().chain(&words));
            let line = in_one_line(&error.expect_err("a mistake").to_string());
            assert!(line.contains(expected), "{line}");
        }
    }

    #[test]
    fn missing_server_is_reported() {
        let error = Arguments::try_parse_from(["courser", "perf", "client"]);
        let line = in_one_line(&error.expect_err("no server").to_string());
        assert!(
            line.contains("HOST[:PORT]") && !line.contains("Usage"),
            "{line}"
        );
    }
}
