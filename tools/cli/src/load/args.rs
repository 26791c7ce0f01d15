//! The command line of `courser load`, with the short flags of h2load or oha, and one set of long flags.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use courser::QuicVersion;
use courser_units::{parse_duration, parse_positive, parse_quantity};
use http::{HeaderName, HeaderValue, Method};

/// The tool whose flags, defaults and report are used.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Style {
    /// nghttp2's h2load
    #[default]
    H2load,
    /// oha
    Oha,
}

/// A value of --http-version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Version {
    /// HTTP/1.1: `1` or `1.1`.
    One,
    /// HTTP/2: `2`.
    Two,
    /// HTTP/3: `3`.
    Three,
}

/// The command line, parsed in the style that it selects.
#[derive(Debug)]
pub(crate) struct Arguments {
    pub(crate) style: Style,
    pub(crate) flags: Flags,
}

#[derive(Args, Debug)]
pub(crate) struct Flags {
    /// URL to request; several are requested in rotation and must have the same server
    #[arg(value_name = "URL", required_unless_present = "input_file")]
    pub(crate) urls: Vec<String>,

    /// Use the short flags, defaults and report of this tool: h2load or oha
    ///
    /// Long flags are the same in both styles.
    #[arg(
        long,
        value_name = "STYLE",
        default_value = "h2load",
        hide_possible_values = true
    )]
    pub(crate) style: Style,

    /// Total number of requests [default: one per connection; 200 in oha's style]
    #[arg(long, value_name = "N", value_parser = parse_positive, conflicts_with = "duration",
          help_heading = LOAD)]
    pub(crate) requests: Option<u64>,

    /// Number of connections [default: 1; 50 in oha's style]
    #[arg(long, alias = "connections", value_name = "N", value_parser = parse_count,
          help_heading = LOAD)]
    pub(crate) clients: Option<u64>,

    /// Number of threads to run the connections on [default: 1; one per core in oha's style]
    #[arg(long, value_name = "N", value_parser = parse_count, help_heading = LOAD)]
    pub(crate) threads: Option<u64>,

    /// Number of concurrent requests per connection, over HTTP/2 and HTTP/3
    #[arg(long, alias = "parallel", value_name = "N", default_value = "1",
          value_parser = parse_count, help_heading = LOAD)]
    pub(crate) max_concurrent_streams: u64,

    /// Measure for this long instead of for a number of requests
    ///
    /// Requests in progress at the end are abandoned and not counted.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = LOAD)]
    pub(crate) duration: Option<Duration>,

    /// Wait for requests in progress at the end of --duration
    #[arg(long, requires = "duration", help_heading = LOAD)]
    pub(crate) wait_ongoing_requests_after_deadline: bool,

    /// Send load for this long before --duration begins, without measuring
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "duration",
          help_heading = LOAD)]
    pub(crate) warm_up_time: Option<Duration>,

    /// Connections to open per --rate-period [default: all at once]
    #[arg(long, value_name = "N", value_parser = parse_positive, help_heading = LOAD)]
    pub(crate) rate: Option<u64>,

    /// Period of --rate
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration,
          requires = "rate", help_heading = LOAD)]
    pub(crate) rate_period: Duration,

    /// Send requests at a fixed rate: N per second and connection
    ///
    /// Requests are sent on schedule, whether or not earlier ones have been answered.
    #[arg(long, value_name = "N", value_parser = parse_rate, conflicts_with = "qps",
          help_heading = LOAD)]
    pub(crate) rps: Option<f64>,

    /// Send requests at a fixed rate: N per second over all connections
    ///
    /// Requests are sent on schedule, whether or not earlier ones have been answered.
    #[arg(long, value_name = "N", value_parser = parse_rate, help_heading = LOAD)]
    pub(crate) qps: Option<f64>,

    /// With a fixed rate, measure latency from the scheduled time [default]
    ///
    /// A stalled server then shows in every request that it delayed (coordinated omission).
    #[arg(long, overrides_with = "no_latency_correction", help_heading = LOAD)]
    pub(crate) latency_correction: bool,

    /// With a fixed rate, measure latency from the time of sending
    #[arg(long, help_heading = LOAD)]
    pub(crate) no_latency_correction: bool,

    /// Read URLs from a file, one per line; - for standard input
    #[arg(
        long,
        alias = "urls-from-file",
        value_name = "FILE",
        conflicts_with = "urls",
        help_heading = REQUESTS
    )]
    pub(crate) input_file: Option<PathBuf>,

    /// Generate a URL for each request from a regular expression
    #[cfg_attr(
        not(feature = "rand-regex"),
        doc = "(not in this build: needs --features rand-regex)"
    )]
    ///
    /// The part of the URL after the host is the expression. A dot is literal; write \? for the ?
    /// before a query.
    #[arg(long, conflicts_with = "input_file", help_heading = REQUESTS)]
    pub(crate) rand_regex_url: bool,

    /// Maximum extra repetitions of *, + and {n,} with --rand-regex-url
    #[arg(
        long,
        value_name = "N",
        default_value_t = 4,
        requires = "rand_regex_url",
        help_heading = REQUESTS
    )]
    pub(crate) max_repeat: u32,

    /// Print N URLs generated by --rand-regex-url and exit
    #[arg(long, value_name = "N", requires = "rand_regex_url", help_heading = REQUESTS)]
    pub(crate) dump_urls: Option<u64>,

    /// Add a header field, "name: value"; repeatable
    #[arg(long, value_name = "FIELD", value_parser = parse_header, help_heading = REQUESTS)]
    pub(crate) header: Vec<(HeaderName, HeaderValue)>,

    /// Request method [default: GET; POST with a body]
    #[arg(long, value_name = "NAME", value_parser = parse_method, help_heading = REQUESTS)]
    pub(crate) method: Option<Method>,

    /// Send this file as the request body
    #[arg(
        long,
        alias = "body-path",
        value_name = "FILE",
        conflicts_with = "body",
        help_heading = REQUESTS
    )]
    pub(crate) data: Option<PathBuf>,

    /// Send this text as the request body
    #[arg(long, value_name = "TEXT", help_heading = REQUESTS)]
    pub(crate) body: Option<String>,

    /// Time limit for each request [default: none]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = REQUESTS)]
    pub(crate) timeout: Option<Duration>,

    /// Use HTTP/3
    #[arg(long, alias = "http3", conflicts_with_all = ["h1", "h2", "http_version"],
          help_heading = CONNECTION)]
    pub(crate) h3: bool,

    /// Use HTTP/2; with prior knowledge for http:// URLs
    #[arg(long, alias = "http2", conflicts_with_all = ["h1", "http_version"],
          help_heading = CONNECTION)]
    pub(crate) h2: bool,

    /// Use HTTP/1.1
    #[arg(long, conflicts_with = "http_version", help_heading = CONNECTION)]
    pub(crate) h1: bool,

    /// Use this HTTP version: 1.1, 2 or 3
    #[arg(long, value_name = "VERSION", value_parser = parse_version, help_heading = CONNECTION)]
    pub(crate) http_version: Option<Version>,

    /// Protocols to offer, in order of preference [default: h2,http/1.1; http/1.1 in oha's style]
    ///
    /// h3 cannot be combined with others, because it runs over QUIC.
    #[arg(long, alias = "npn-list", value_name = "LIST", value_delimiter = ',',
          conflicts_with_all = ["http_version", "h1", "h2", "h3"], help_heading = CONNECTION)]
    pub(crate) alpn_list: Vec<String>,

    /// Connect to HOST[:PORT] instead of the URL's host
    ///
    /// Also accepts oha's form host:port:to-host:to-port.
    #[arg(long, value_name = "TARGET", help_heading = CONNECTION)]
    pub(crate) connect_to: Option<String>,

    /// Server name for TLS, in place of the URL's host
    #[arg(long, alias = "server-name", value_name = "NAME", help_heading = CONNECTION)]
    pub(crate) sni: Option<String>,

    /// Trust the CA certificates in this file (PEM), not the system's
    #[arg(
        long,
        alias = "cacert",
        value_name = "FILE",
        conflicts_with = "insecure",
        help_heading = CONNECTION
    )]
    pub(crate) ca: Option<PathBuf>,

    /// Do not verify the server's certificate
    #[arg(long, help_heading = CONNECTION)]
    pub(crate) insecure: bool,

    /// Time limit for connecting
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration,
          help_heading = CONNECTION)]
    pub(crate) connect_timeout: Duration,

    /// Idle timeout of QUIC connections
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration,
          help_heading = CONNECTION)]
    pub(crate) connection_inactivity_timeout: Duration,

    /// Open a new connection for each request
    #[arg(long, help_heading = CONNECTION)]
    pub(crate) disable_keepalive: bool,

    /// Resume TLS sessions
    ///
    /// Needs --disable-keepalive, which opens a connection for each request. Each connection uses the tickets
    /// of its predecessor; the first ones perform full handshakes.
    #[arg(long, requires = "disable_keepalive", help_heading = CONNECTION)]
    pub(crate) resume: bool,

    /// Resume TLS sessions and send requests in early data (0-RTT) over HTTP/3
    ///
    /// Needs --disable-keepalive, which opens a connection for each request, and a safe method, such as GET.
    /// Requests in rejected early data are sent again. Requests that the server answers with 425 Too Early
    /// count as answered and are not sent again.
    #[arg(long, requires = "disable_keepalive", help_heading = CONNECTION)]
    pub(crate) early_data: bool,

    /// Stream window: 2^N - 1 bytes [default: 30 over HTTP/2, automatic over HTTP/3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(10..=30),
          help_heading = CONNECTION)]
    pub(crate) window_bits: Option<u8>,

    /// Connection window: 2^N - 1 bytes [default: 30 over HTTP/2, automatic over HTTP/3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(10..=30),
          help_heading = CONNECTION)]
    pub(crate) connection_window_bits: Option<u8>,

    /// Maximum UDP payload, 1200 to 65507 [default: discovered]
    #[arg(long, value_name = "BYTES", value_parser = crate::values::parse_mtu,
          help_heading = CONNECTION)]
    pub(crate) max_udp_payload_size: Option<u16>,

    /// Versions of QUIC, such as 2 or 1,2: the first one is tried first [default: 1]
    #[arg(long, value_name = "LIST", value_delimiter = ',',
          value_parser = crate::values::parse_quic_version, help_heading = CONNECTION)]
    pub(crate) quic_version: Vec<QuicVersion>,

    /// Move each QUIC connection to a new socket at this interval, and report the moves and stalls
    #[arg(long, visible_alias = "migrate-every", value_name = "TIME", value_parser = parse_duration,
          help_heading = CONNECTION)]
    pub(crate) rebind_every: Option<Duration>,

    /// Do not use UDP segmentation offload (GSO)
    #[arg(long, help_heading = CONNECTION)]
    pub(crate) no_udp_gso: bool,

    /// Run on this core only
    #[arg(long, value_name = "CORE")]
    pub(crate) core: Option<usize>,

    /// Print the report as JSON
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,

    /// Do not show progress; it is shown on terminals only
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) no_tui: bool,

    /// Log every request to a file
    ///
    /// Each line has the start time in microseconds since 1970, the status code (-1 if none) and
    /// the duration in microseconds, separated by tabs.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) log_file: Option<PathBuf>,

    /// Write a qlog trace of every QUIC connection to this directory
    #[arg(long, value_name = "DIR", help_heading = OUTPUT)]
    pub(crate) qlog_file_base: Option<PathBuf>,
}

const LOAD: &str = "Load";
const REQUESTS: &str = "Requests";
const CONNECTION: &str = "Connection";
const OUTPUT: &str = "Output";

/// The names of long flags, with their short flags in the styles of h2load and oha.
const SHORT_FLAGS: [(&str, Option<char>, Option<char>); 19] = [
    ("requests", Some('n'), Some('n')),
    ("clients", Some('c'), Some('c')),
    ("threads", Some('t'), None),
    ("timeout", None, Some('t')),
    ("max_concurrent_streams", Some('m'), Some('p')),
    ("method", None, Some('m')),
    ("duration", Some('D'), Some('z')),
    ("data", Some('d'), Some('D')),
    ("body", None, Some('d')),
    ("rate", Some('r'), None),
    ("qps", Some('q'), Some('q')),
    ("input_file", Some('i'), None),
    ("header", Some('H'), Some('H')),
    ("window_bits", Some('w'), None),
    ("wait_ongoing_requests_after_deadline", None, Some('w')),
    ("connection_window_bits", Some('W'), None),
    ("connection_inactivity_timeout", Some('N'), None),
    ("insecure", Some('k'), Some('k')),
    ("json", None, Some('j')),
];

/// Returns the command of one style, for the arguments of `courser load`.
pub(crate) fn command(style: Style) -> Command {
    let command = Command::new("courser load")
        .about("Load-test an HTTP server and measure its responses")
        .after_help(notes(style))
        .max_term_width(100)
        .no_binary_name(true);
    let mut command = Flags::augment_args(command);
    for (name, h2load, oha) in SHORT_FLAGS {
        let short = match style {
            Style::H2load => h2load,
            Style::Oha => oha,
        };
        if let Some(short) = short {
            command = command.mut_arg(name, |flag| flag.short(short));
        }
    }
    if style == Style::H2load {
        // A short flag of oha that has no other meaning in h2load.
        command = command.mut_arg("duration", |flag| flag.visible_short_alias('z'));
    }
    command
}

fn notes(style: Style) -> &'static str {
    match style {
        Style::H2load => H2LOAD_NOTES,
        Style::Oha => OHA_NOTES,
    }
}

/// The exit codes, which both styles share.
macro_rules! exit_codes {
    () => {
        "

Exit codes: 0 if a request succeeded, 3 if none did or if the server could not be reached any more, 130
after an interruption, 1 for other failures and 2 for invalid arguments."
    };
}

const H2LOAD_NOTES: &str = concat!(
    "\
Short flags, defaults and the report are those of h2load. Use --style oha for those of oha.
As in h2load, the default is HTTP/2 or HTTP/1.1 over TLS; use --h3 for HTTP/3.

Examples:
  courser load --h3 -n 100000 -c 4 -m 25 https://example.org/
      100 000 requests over HTTP/3, on 4 connections with 25 concurrent requests each
  courser load -D 10 -c 50 --insecure https://localhost:4433/
      Measure for 10 seconds over HTTP/2 with 50 connections
  courser load --h3 -D 10 -c 10 -m 10 --qps 5000 https://example.org/
      5000 requests per second, with latency measured from the scheduled time
  courser load --style oha -z 10s -c 50 --http-version 3 https://example.org/
      The same flags as oha",
    exit_codes!()
);

const OHA_NOTES: &str = concat!(
    "\
Short flags, defaults and the report are those of oha. Use --style h2load for those of h2load.

Examples:
  courser load --style oha -n 10000 -c 50 https://example.org/
      10 000 requests over HTTP/1.1, on 50 connections
  courser load --style oha -z 10s -c 50 -p 10 --http-version 3 https://example.org/
      Measure for 10 seconds over HTTP/3 with 10 concurrent requests per connection
  courser load --style oha -z 10s -q 5000 --http-version 2 https://example.org/
      5000 requests per second, with latency measured from the scheduled time",
    exit_codes!()
);

impl Args for Arguments {
    fn augment_args(command: Command) -> Command {
        let words = clap::Arg::new(WORDS)
            .num_args(0..)
            .trailing_var_arg(true)
            .allow_hyphen_values(true)
            .value_parser(clap::value_parser!(std::ffi::OsString))
            .hide(true);
        command
            .disable_help_flag(true)
            .arg(words)
            // `courser help load` shows this command instead of that of a style.
            .override_usage("courser load [OPTIONS] [URL]...")
            .after_help("Run 'courser load --help' for the flags and examples.")
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Arguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let words: Vec<_> = matches
            .get_many::<std::ffi::OsString>(WORDS)
            .unwrap_or_default()
            .cloned()
            .collect();
        let style = style_in(&words);
        let matches = command(style).try_get_matches_from(words)?;
        let flags = Flags::from_arg_matches(&matches)?;
        Ok(Self { style, flags })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Returns the style, which determines the meaning of short flags.
fn style_in(words: &[std::ffi::OsString]) -> Style {
    let mut words = words.iter().filter_map(|word| word.to_str());
    while let Some(word) = words.next() {
        let name = match word {
            "--style" => words.next(),
            "--" => return Style::default(),
            word => word.strip_prefix("--style="),
        };
        if let Some(name) = name {
            // Unknown names are refused when the flags are parsed.
            return Style::from_str(name, false).unwrap_or_default();
        }
    }
    Style::default()
}

fn parse_count(text: &str) -> Result<u64, String> {
    let count = parse_quantity(text)?;
    if (1..=MAX_CONNECTIONS).contains(&count) {
        Ok(count)
    } else {
        Err(format!("{count} is not between 1 and {MAX_CONNECTIONS}"))
    }
}

fn parse_rate(text: &str) -> Result<f64, String> {
    let wrong = || format!("'{text}' is not a rate: use a number from 0.001 to 10000000");
    let rate: f64 = text.trim().parse().map_err(|_| wrong())?;
    if (0.001..=1e7).contains(&rate) {
        Ok(rate)
    } else {
        Err(wrong())
    }
}

fn parse_header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let wrong = |what: &str| format!("'{text}' is not a header field: {what}; use 'name: value'");
    // A leading colon marks a pseudo-header field, which follows from the URL and --method.
    if text.starts_with(':') {
        return Err(wrong("names cannot begin with ':'"));
    }
    let (name, value) = text
        .split_once(':')
        .ok_or_else(|| wrong("':' is missing"))?;
    let name = HeaderName::from_bytes(name.trim().as_bytes())
        .map_err(|_| wrong("names consist of shorts, digits and '-'"))?;
    let value = HeaderValue::from_str(value.trim())
        .map_err(|_| wrong("values cannot contain control characters"))?;
    Ok((name, value))
}

fn parse_method(text: &str) -> Result<Method, String> {
    match Method::from_bytes(text.as_bytes()) {
        Ok(Method::CONNECT) => Err("CONNECT opens tunnels and cannot be measured".to_owned()),
        Ok(method) => Ok(method),
        Err(_) => Err(format!(
            "'{text}' is not a method: use one such as GET or POST"
        )),
    }
}

fn parse_version(text: &str) -> Result<Version, String> {
    match text {
        "1" | "1.1" => Ok(Version::One),
        "2" => Ok(Version::Two),
        "3" => Ok(Version::Three),
        _ => Err(format!("'{text}' is not a version: use 1.1, 2 or 3")),
    }
}

const WORDS: &str = "words";

/// The largest number of connections and streams. More would exceed the ports of a machine.
const MAX_CONNECTIONS: u64 = 60_000;

#[cfg(test)]
mod tests;
