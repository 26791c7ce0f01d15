//! What `courser load` may be told: the letters of h2load or of oha, one set of long names.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use http::{HeaderName, HeaderValue, Method};

use crate::quantity::{parse_duration, parse_positive, parse_quantity};

/// Whose letters, defaults and text are used.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Style {
    /// Those of nghttp2's h2load.
    #[default]
    H2load,
    /// Those of oha.
    Oha,
}

/// A version of HTTP as users name it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Version {
    /// HTTP/1.1.
    One,
    /// HTTP/2.
    Two,
    /// HTTP/3.
    Three,
}

/// The command line, read in its style.
#[derive(Debug)]
pub(crate) struct Arguments {
    pub(crate) style: Style,
    pub(crate) flags: Flags,
}

#[derive(Args, Debug)]
pub(crate) struct Flags {
    /// What to ask for. Several are asked for in turn; they name the same server.
    #[arg(value_name = "URL", required_unless_present = "input_file")]
    pub(crate) urls: Vec<String>,

    /// Whose letters, defaults and text to use. Long names are the same in both.
    #[arg(long, value_name = "STYLE", default_value = "h2load")]
    pub(crate) style: Style,

    /// Requests in all. [default: one for each connection; 200 in oha's style]
    #[arg(long, value_name = "N", value_parser = parse_positive, conflicts_with = "duration")]
    pub(crate) requests: Option<u64>,

    /// Connections. [default: 1; 50 in oha's style]
    #[arg(long, alias = "connections", value_name = "N", value_parser = parse_many)]
    pub(crate) clients: Option<u64>,

    /// Threads, each with its share of the connections. [default: 1; one for each core in oha's
    /// style]
    #[arg(long, value_name = "N", value_parser = parse_many)]
    pub(crate) threads: Option<u64>,

    /// Requests under way at once on each connection of HTTP/2 and 3. HTTP/1.1 has one.
    #[arg(long, alias = "parallel", value_name = "N", default_value = "1", value_parser = parse_many)]
    pub(crate) max_concurrent_streams: u64,

    /// How long to measure instead of how many requests, in seconds. Requests under way at the
    /// end are abandoned and not counted.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) duration: Option<Duration>,

    /// Waits for requests that are under way at the end of the duration.
    #[arg(long, requires = "duration")]
    pub(crate) wait_ongoing_requests_after_deadline: bool,

    /// How long to load before the duration begins; nothing of it is counted.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "duration")]
    pub(crate) warm_up_time: Option<Duration>,

    /// Connections opened per rate period; all at once without it.
    #[arg(long, value_name = "N", value_parser = parse_positive)]
    pub(crate) rate: Option<u64>,

    /// What --rate counts in.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration, requires = "rate")]
    pub(crate) rate_period: Duration,

    /// Requests each connection sends a second, whether or not earlier ones are answered.
    #[arg(long, value_name = "N", value_parser = parse_rate, conflicts_with = "qps")]
    pub(crate) rps: Option<f64>,

    /// Requests a second over all connections, whether or not earlier ones are answered.
    #[arg(long, value_name = "N", value_parser = parse_rate)]
    pub(crate) qps: Option<f64>,

    /// With a rate, counts latency from when a request was due, so that a stalled server shows
    /// in every request that it kept waiting. On unless switched off.
    #[arg(long, overrides_with = "no_latency_correction")]
    pub(crate) latency_correction: bool,

    /// Counts latency from when a request was sent, even with a rate.
    #[arg(long)]
    pub(crate) no_latency_correction: bool,

    /// File with a URL on each line, '-' for standard input; asked for in turn.
    #[arg(
        long,
        alias = "urls-from-file",
        value_name = "FILE",
        conflicts_with = "urls"
    )]
    pub(crate) input_file: Option<PathBuf>,

    /// The URL is a regular expression behind its host, and each request asks for one that is
    /// drawn from it. A dot means itself; a query begins with `\?`.
    #[cfg_attr(
        not(feature = "rand-regex"),
        doc = "Not in this build: needs --features rand-regex."
    )]
    #[arg(long, conflicts_with = "input_file")]
    pub(crate) rand_regex_url: bool,

    /// With --rand-regex-url, how often `*`, `+` and `{n,}` repeat beyond what they have to.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 4,
        requires = "rand_regex_url"
    )]
    pub(crate) max_repeat: u32,

    /// With --rand-regex-url, writes so many URLs as would be asked for, and ends.
    #[arg(long, value_name = "N", requires = "rand_regex_url")]
    pub(crate) dump_urls: Option<u64>,

    /// Field to send, may be repeated: 'name: value'.
    #[arg(long, value_name = "FIELD", value_parser = parse_header)]
    pub(crate) header: Vec<(HeaderName, HeaderValue)>,

    /// Method. [default: GET; POST with a body]
    #[arg(long, value_name = "NAME", value_parser = parse_method)]
    pub(crate) method: Option<Method>,

    /// File to send as body.
    #[arg(
        long,
        alias = "body-path",
        value_name = "FILE",
        conflicts_with = "body"
    )]
    pub(crate) data: Option<PathBuf>,

    /// Text to send as body.
    #[arg(long, value_name = "TEXT")]
    pub(crate) body: Option<String>,

    /// Window of each stream: 2^N - 1 bytes. [default: 30 over HTTP/2; grows by itself over HTTP/3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(10..=30))]
    pub(crate) window_bits: Option<u8>,

    /// Window of each connection, counted as --window-bits is.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(10..=30))]
    pub(crate) connection_window_bits: Option<u8>,

    /// Protocols to offer, the preferred one first; with h3 it has to be h3 alone.
    /// [default: h2,http/1.1; http/1.1 in oha's style]
    #[arg(long, alias = "npn-list", value_name = "LIST", value_delimiter = ',',
          conflicts_with_all = ["http_version", "h1", "h2", "h3"])]
    pub(crate) alpn_list: Vec<String>,

    /// Uses HTTP/3.
    #[arg(long, alias = "http3", conflicts_with_all = ["h1", "h2", "http_version"])]
    pub(crate) h3: bool,

    /// Uses HTTP/2; without TLS by prior knowledge.
    #[arg(long, alias = "http2", conflicts_with_all = ["h1", "http_version"])]
    pub(crate) h2: bool,

    /// Uses HTTP/1.1.
    #[arg(long, conflicts_with = "http_version")]
    pub(crate) h1: bool,

    /// Version of HTTP: 1.1, 2 or 3.
    #[arg(long, value_name = "VERSION", value_parser = parse_version)]
    pub(crate) http_version: Option<Version>,

    /// Connects to this HOST[:PORT] whatever the URL says; oha's host:port:to-host:to-port is
    /// understood too.
    #[arg(long, value_name = "TARGET")]
    pub(crate) connect_to: Option<String>,

    /// Name for TLS, in place of the URL's: it is sent, and the certificate has to be for it.
    #[arg(long, alias = "server-name", value_name = "NAME")]
    pub(crate) sni: Option<String>,

    /// Trusts servers with certificates from this PEM file instead of the system's.
    #[arg(
        long,
        alias = "cacert",
        value_name = "FILE",
        conflicts_with = "insecure"
    )]
    pub(crate) ca: Option<PathBuf>,

    /// Trusts any server.
    #[arg(long)]
    pub(crate) insecure: bool,

    /// Longest time for a request; without it none is limited.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) timeout: Option<Duration>,

    /// Longest time for a handshake.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    pub(crate) connect_timeout: Duration,

    /// How long a QUIC connection may hear nothing of its server before it is given up.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    pub(crate) connection_inactivity_timeout: Duration,

    /// Largest UDP payload to send, 1200 to 65507. Without it they grow to what the path carries.
    #[arg(long, value_name = "BYTES", value_parser = crate::args::parse_mtu)]
    pub(crate) max_udp_payload_size: Option<u16>,

    /// Sends each UDP datagram in a system call of its own instead of many in one (GSO).
    #[arg(long)]
    pub(crate) no_udp_gso: bool,

    /// Writes a trace of each QUIC connection into the directory of this name (qlog, JSON-SEQ).
    #[arg(long, value_name = "DIR")]
    pub(crate) qlog_file_base: Option<PathBuf>,

    /// Writes a line for each request: when it began in microseconds since 1970, its status (-1
    /// without one), how long it took in microseconds, with tabs between.
    #[arg(long, value_name = "FILE")]
    pub(crate) log_file: Option<PathBuf>,

    /// Draws no progress. It is drawn on terminals only anyway.
    #[arg(long)]
    pub(crate) no_tui: bool,

    /// Writes JSON to standard output, for programs.
    #[arg(long)]
    pub(crate) json: bool,

    /// Runs on this core only.
    #[arg(long, value_name = "CORE")]
    pub(crate) core: Option<usize>,
}

/// The letters of each style, by the long name they stand for.
const LETTERS: [(&str, Option<char>, Option<char>); 19] = [
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

/// The command of one style, to read the words after `courser load` with.
fn command(style: Style) -> Command {
    let command = Command::new("courser load")
        .about("Loads a server with requests and measures how it answers.")
        .after_help(NOTES)
        .max_term_width(100)
        .no_binary_name(true);
    let mut command = Flags::augment_args(command);
    for (name, h2load, oha) in LETTERS {
        let letter = match style {
            Style::H2load => h2load,
            Style::Oha => oha,
        };
        if let Some(letter) = letter {
            command = command.mut_arg(name, |flag| flag.short(letter));
        }
    }
    if style == Style::H2load {
        // A letter of oha's that h2load leaves free.
        command = command.mut_arg("duration", |flag| flag.visible_short_alias('z'));
    }
    command
}

const NOTES: &str = "\
Letters are those of h2load. With --style oha they are oha's: -t is --timeout, -m --method, \
-D --data, -d --body, -p --max-concurrent-streams, -z --duration, -w \
--wait-ongoing-requests-after-deadline, -j --json.

HTTP over TLS on TCP unless told otherwise, as h2load has it: --h3 for HTTP/3.";

impl Args for Arguments {
    fn augment_args(command: Command) -> Command {
        let words = clap::Arg::new(WORDS)
            .num_args(0..)
            .trailing_var_arg(true)
            .allow_hyphen_values(true)
            .value_parser(clap::value_parser!(std::ffi::OsString));
        command.disable_help_flag(true).arg(words)
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

/// The style decides what letters mean, so it is looked for first.
fn style_in(words: &[std::ffi::OsString]) -> Style {
    let mut words = words.iter().filter_map(|word| word.to_str());
    while let Some(word) = words.next() {
        let name = match word {
            "--style" => words.next(),
            "--" => return Style::default(),
            word => word.strip_prefix("--style="),
        };
        if let Some(name) = name {
            // A name that nobody knows is refused when all is read.
            return Style::from_str(name, false).unwrap_or_default();
        }
    }
    Style::default()
}

fn parse_many(text: &str) -> Result<u64, String> {
    let count = parse_quantity(text)?;
    if (1..=MANY).contains(&count) {
        Ok(count)
    } else {
        Err(format!("{count} is not within 1 and {MANY}"))
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
    let wrong = |what: &str| format!("'{text}' is not a field: {what}, as in 'name: value'");
    // A colon in front names a pseudo-header, which come of the URL and --method.
    if text.starts_with(':') {
        return Err(wrong("a name does not begin with ':'"));
    }
    let (name, value) = text
        .split_once(':')
        .ok_or_else(|| wrong("':' is missing"))?;
    let name = HeaderName::from_bytes(name.trim().as_bytes())
        .map_err(|_| wrong("a name has letters, digits and '-'"))?;
    let value =
        HeaderValue::from_str(value.trim()).map_err(|_| wrong("a value has no controls"))?;
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

/// More connections than ports, or streams than a connection is granted, measure nothing.
const MANY: u64 = 60_000;

#[cfg(test)]
mod tests;
