//! What `courser get` may be told: the flags of curl, as far as they concern HTTP.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};

use crate::quantity::{parse_duration, parse_quantity};

#[derive(Args, Debug, Clone, Default)]
#[command(
    // As curl has it: of a flag that is given twice the later one counts.
    args_override_self = true,
    after_help = "Exit codes are those of curl: 5 no such proxy, 6 no such name, 7 no connection, 22 \
    --fail, 23 cannot write, 28 time ran out, 35 TLS, 47 too many redirects, 52 no answer, 60 \
    certificate, 95 HTTP/3, 96 QUIC, 97 SOCKS proxy."
)]
pub(crate) struct Arguments {
    /// What to get. `{a,b}` and `[1-9]`, `[01-20:2]`, `[a-z]` stand for several.
    #[arg(value_name = "URL", required_unless_present = "more_urls")]
    pub(crate) urls: Vec<String>,
    /// The same as URL.
    #[arg(long = "url", value_name = "URL")]
    pub(crate) more_urls: Vec<String>,
    /// Reads flags from a file, as if they stood here: one a line, `name = value`, with or without
    /// dashes, values with blanks in double quotes, comments behind `#`. `-` is standard input.
    #[arg(short = 'K', long, value_name = "FILE")]
    pub(crate) config: Vec<String>,

    #[command(flatten)]
    pub(crate) request: RequestArguments,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) transfer: TransferArguments,
}

#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Request")]
pub(crate) struct RequestArguments {
    /// The method.
    #[arg(short = 'X', long = "request", value_name = "METHOD")]
    pub(crate) method: Option<String>,
    /// A field of the request, `Name: value`. `Name:` leaves one out, `Name;` makes it empty,
    /// `@FILE` reads them from a file.
    #[arg(short = 'H', long = "header", value_name = "FIELD")]
    pub(crate) headers: Vec<String>,
    /// Content of a form, sent with POST; `@FILE` reads it from a file without line ends.
    #[arg(short, long, visible_alias = "data-ascii", value_name = "DATA")]
    pub(crate) data: Vec<String>,
    /// Like --data, but `@` means nothing.
    #[arg(long, value_name = "DATA")]
    pub(crate) data_raw: Vec<String>,
    /// Like --data, but files are taken as they are.
    #[arg(long, value_name = "DATA")]
    pub(crate) data_binary: Vec<String>,
    /// Like --data, percent-encoded: `content`, `=content`, `name=content`, `@FILE`, `name@FILE`.
    #[arg(long, value_name = "DATA")]
    pub(crate) data_urlencode: Vec<String>,
    /// A part of a form (multipart/form-data): `name=content`, `name=@FILE`, `name=<FILE`, with
    /// `;type=` and `;filename=`.
    #[arg(short = 'F', long, value_name = "PART", conflicts_with_all = ["data", "data_raw", "data_binary", "data_urlencode"])]
    pub(crate) form: Vec<String>,
    /// Like --form, but `@` and `<` mean nothing.
    #[arg(long, value_name = "PART")]
    pub(crate) form_string: Vec<String>,
    /// Sends a file with PUT; `-` is standard input.
    #[arg(short = 'T', long, value_name = "FILE")]
    pub(crate) upload_file: Option<String>,
    /// Puts --data behind the URL and uses GET.
    #[arg(short = 'G', long)]
    pub(crate) get: bool,
    /// Asks for the head alone.
    #[arg(short = 'I', long)]
    pub(crate) head: bool,
    /// Credentials for the server, sent with each request to it.
    #[arg(short, long, value_name = "USER:PASSWORD")]
    pub(crate) user: Option<String>,
    /// A bearer token for the server.
    #[arg(long, value_name = "TOKEN", conflicts_with = "user")]
    pub(crate) oauth2_bearer: Option<String>,
    /// The `user-agent` field.
    #[arg(short = 'A', long, value_name = "NAME")]
    pub(crate) user_agent: Option<String>,
    /// The `referer` field.
    #[arg(short = 'e', long, value_name = "URL")]
    pub(crate) referer: Option<String>,
    /// Cookies to send, `name=value; name=value`. Without a `=` it is a file to read them from, in
    /// Netscape's format or heads of responses, and what servers set is kept and sent back to them
    /// from then on; an empty name does that without a file.
    #[arg(short = 'b', long, value_name = "COOKIES|FILE")]
    pub(crate) cookie: Vec<String>,
    /// Keeps cookies as --cookie FILE does, and writes them to this file in the end, in Netscape's
    /// format; `-` is standard output.
    #[arg(short = 'c', long, value_name = "FILE")]
    pub(crate) cookie_jar: Option<String>,
    /// Leaves out of the files of --cookie what was for one session only.
    #[arg(short = 'j', long)]
    pub(crate) junk_session_cookies: bool,
    /// Asks for a part: `0-499`, `500-`, `-500`.
    #[arg(short, long, value_name = "RANGE")]
    pub(crate) range: Option<String>,
    /// Asks for compressed content and decompresses it.
    #[cfg_attr(
        not(feature = "brotli"),
        doc = "brotli is not in this build: it needs --features brotli."
    )]
    #[cfg_attr(
        not(feature = "zstd"),
        doc = "zstd is not in this build: it needs --features zstd."
    )]
    #[arg(long)]
    pub(crate) compressed: bool,
    /// Follows redirects.
    #[arg(short = 'L', long)]
    pub(crate) location: bool,
    /// Follows redirects, and takes the credentials along wherever they lead.
    #[arg(long)]
    pub(crate) location_trusted: bool,
    /// How many redirects are followed; -1 is any number.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 50,
        allow_negative_numbers = true
    )]
    pub(crate) max_redirs: i64,
    /// Takes URLs as they are, with their braces and brackets.
    #[arg(short, long)]
    pub(crate) globoff: bool,
}

#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArguments {
    /// Writes to a file, `-` is standard output; once for each URL. `#1` stands for what the first
    /// `{}` or `[]` of the URL was.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Vec<String>,
    /// Writes to a file that is named like the last part of the URL; once for each URL.
    #[arg(short = 'O', long, action = ArgAction::Count)]
    pub(crate) remote_name: u8,
    /// --remote-name for all URLs.
    #[arg(long)]
    pub(crate) remote_name_all: bool,
    /// With --remote-name: takes the name that the server gives, if it does.
    #[arg(short = 'J', long)]
    pub(crate) remote_header_name: bool,
    /// Where files are written.
    #[arg(long, value_name = "DIR")]
    pub(crate) output_dir: Option<PathBuf>,
    /// Makes the directories that files are to be in.
    #[arg(long)]
    pub(crate) create_dirs: bool,
    /// Writes the head of the response, and of interim ones, before its body.
    #[arg(short, long, visible_alias = "show-headers")]
    pub(crate) include: bool,
    /// Writes the heads of responses to a file, `-` is standard output.
    #[arg(short = 'D', long, value_name = "FILE")]
    pub(crate) dump_header: Option<String>,
    /// Writes this behind each transfer, with its %{variables}; `@FILE` reads it from a file.
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) write_out: Option<String>,
    /// Tells everything that happens, on standard error.
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// No progress, no errors.
    #[arg(short, long)]
    pub(crate) silent: bool,
    /// Errors in spite of --silent.
    #[arg(short = 'S', long)]
    pub(crate) show_error: bool,
    /// No progress.
    #[arg(long)]
    pub(crate) no_progress_meter: bool,
    /// Statuses of 400 and more are errors, and their bodies are not written.
    #[arg(short, long)]
    pub(crate) fail: bool,
    /// Statuses of 400 and more are errors, and their bodies are written.
    #[arg(long, conflicts_with = "fail")]
    pub(crate) fail_with_body: bool,
    /// Shows how long the steps of each transfer took: on standard output if the body goes
    /// elsewhere, else on standard error. They add up to the total; connections that did not win
    /// the race are in brackets.
    #[arg(long)]
    pub(crate) timing: bool,
    /// Like --timing, in JSON, a line for each transfer.
    #[arg(long)]
    pub(crate) json: bool,
    /// Writes a trace of each QUIC connection into this directory (qlog, JSON-SEQ).
    #[arg(long, value_name = "DIR", env = "QLOGDIR")]
    pub(crate) qlog: Option<PathBuf>,
}

#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Connection")]
pub(crate) struct ConnectionArguments {
    /// Tries HTTP/3 with every server, and TCP a moment later.
    #[arg(long, group = "http")]
    pub(crate) http3: bool,
    /// HTTP/3 and nothing else.
    #[arg(long, group = "http")]
    pub(crate) http3_only: bool,
    /// No HTTP/3.
    #[arg(long, group = "http")]
    pub(crate) http2: bool,
    /// HTTP/1.1 and nothing else.
    #[arg(long = "http1.1", group = "http")]
    pub(crate) http1: bool,
    /// Keeps what servers announce of HTTP/3 (Alt-Svc) in this file, in curl's format.
    #[arg(long, value_name = "FILE")]
    pub(crate) alt_svc: Option<PathBuf>,
    /// Believes any server. Whoever sits in the path can read and change everything.
    #[arg(short = 'k', long)]
    pub(crate) insecure: bool,
    /// Trusts servers with certificates from this PEM file instead of the system's.
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
    /// A certificate to show to servers that ask for one, PEM.
    #[arg(short = 'E', long, value_name = "FILE")]
    pub(crate) cert: Option<PathBuf>,
    /// Its private key, PEM, if it is not in the same file.
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// Addresses of a host at a port: `host:port:address[,address]`.
    #[arg(long, value_name = "PLACE")]
    pub(crate) resolve: Vec<String>,
    /// Connects elsewhere: `host:port:otherhost:otherport`; what is empty is any, or the same.
    #[arg(long, value_name = "PLACES")]
    pub(crate) connect_to: Vec<String>,
    /// IPv4 only.
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    pub(crate) ipv4: bool,
    /// IPv6 only.
    #[arg(short = '6', long)]
    pub(crate) ipv6: bool,
    /// The address or interface to connect from.
    #[arg(long, value_name = "NAME")]
    pub(crate) interface: Option<String>,
    /// Name servers to ask instead of the system.
    #[cfg_attr(not(feature = "dns"), doc = "Not in this build: needs --features dns.")]
    #[arg(long, value_name = "ADDRESSES", value_delimiter = ',')]
    pub(crate) dns_servers: Vec<String>,
    /// A proxy, `http://user:password@host:port`, or https:// for one that is reached over TLS: who
    /// it is, is judged like servers are. Or one of SOCKS: socks5h:// and socks4a:// have it resolve
    /// names, with socks5:// and socks4:// they are resolved here. HTTP/3 is not used then.
    #[arg(short = 'x', long, value_name = "URL")]
    pub(crate) proxy: Option<String>,
    /// Hosts that are reached without a proxy, separated by commas; `*` is all.
    #[arg(long, value_name = "HOSTS")]
    pub(crate) noproxy: Option<String>,
    /// How long to wait for a connection, in seconds.
    #[arg(long, value_name = "SECONDS", value_parser = parse_duration)]
    pub(crate) connect_timeout: Option<Duration>,
    /// The head start of HTTP/3 over TCP, and of each address over the next.
    #[arg(long, value_name = "MS", default_value_t = 250)]
    pub(crate) happy_eyeballs_timeout_ms: u64,
}

#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Transfer")]
pub(crate) struct TransferArguments {
    /// How long a transfer may take, in seconds.
    #[arg(short, long, value_name = "SECONDS", value_parser = parse_duration)]
    pub(crate) max_time: Option<Duration>,
    /// Goes on where a file ends (`-`), or at this byte.
    #[arg(short = 'C', long, value_name = "OFFSET")]
    pub(crate) continue_at: Option<String>,
    /// Refuses bodies that are longer than this.
    #[arg(long, value_name = "BYTES", value_parser = parse_quantity)]
    pub(crate) max_filesize: Option<u64>,
    /// Tries again, so many times, after failures that may pass: time ran out, status 408, 429,
    /// 500, 502, 503, 504.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) retry: u32,
    /// How long to wait before trying again. Without it 1 s, doubled each time up to 10 minutes, or
    /// what the server asks for.
    #[arg(long, value_name = "SECONDS", value_parser = parse_duration)]
    pub(crate) retry_delay: Option<Duration>,
    /// Does not try again when so long has passed.
    #[arg(long, value_name = "SECONDS", value_parser = parse_duration)]
    pub(crate) retry_max_time: Option<Duration>,
    /// Tries again when nobody listens, too.
    #[arg(long)]
    pub(crate) retry_connrefused: bool,
    /// Tries again after all failures.
    #[arg(long)]
    pub(crate) retry_all_errors: bool,
    /// Several transfers at a time.
    #[arg(short = 'Z', long)]
    pub(crate) parallel: bool,
    /// How many at a time.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=300))]
    pub(crate) parallel_max: u16,
    /// Ends with the first failure.
    #[arg(long)]
    pub(crate) fail_early: bool,
}

impl Arguments {
    /// All URLs, in the order of their kinds.
    pub(crate) fn all_urls(&self) -> impl Iterator<Item = &String> {
        self.urls.iter().chain(&self.more_urls)
    }

    /// True when redirects are followed.
    pub(crate) const fn follows(&self) -> bool {
        self.request.location || self.request.location_trusted
    }
}
