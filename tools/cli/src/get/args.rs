//! The command line of `courser get`, with the flags of curl for HTTP.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum};
use courser::{PathSchedule, QuicVersion};
use courser_units::{parse_duration, parse_quantity};

use super::content_flags::ContentFlags;
use super::links::{self, Link};
use super::speed::{parse_rate, parse_seconds, parse_speed};

#[derive(Args, Debug, Clone, Default)]
#[command(
    // As in curl, the last occurrence of a flag wins.
    args_override_self = true,
    after_help = EXAMPLES,
    after_long_help = EXAMPLES_AND_EXIT_CODES
)]
pub(crate) struct Arguments {
    /// URL to transfer; {a,b} and [1-9] expand to several
    ///
    /// Ranges may have leading zeros and a step, [01-20:2], or letters, [a-z].
    #[arg(value_name = "URL")]
    pub(crate) urls: Vec<String>,
    /// Same as URL; repeatable
    #[arg(long = "url", value_name = "URL")]
    pub(crate) more_urls: Vec<String>,
    /// Read flags from a file in curl's format; - for standard input
    ///
    /// One flag per line, "name = value", with or without leading dashes. Put values with spaces in
    /// double quotes. Lines that begin with # are comments.
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
    /// The command lines after --next.
    #[arg(skip)]
    pub(crate) next: Vec<Self>,
}

#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Request")]
pub(crate) struct RequestArguments {
    /// Request method
    #[arg(short = 'X', long = "request", value_name = "METHOD")]
    pub(crate) method: Option<String>,
    /// Add a header field, "Name: value"
    ///
    /// "Name:" removes a field, "Name;" sends it with an empty value, @FILE reads fields from a
    /// file.
    #[arg(short = 'H', long = "header", value_name = "FIELD")]
    pub(crate) headers: Vec<String>,
    #[command(flatten)]
    pub(crate) content: ContentFlags,
    /// Escape names of --form with backslashes instead of percent signs
    #[arg(long)]
    pub(crate) form_escape: bool,
    /// Upload a file with PUT; - for standard input; once per URL
    ///
    /// {a,b} and [1-9] expand to several files, each of which is sent to the URL.
    #[arg(short = 'T', long, value_name = "FILE")]
    pub(crate) upload_file: Vec<String>,
    /// Append --data to the URL as its query and use GET
    #[arg(short = 'G', long)]
    pub(crate) get: bool,
    /// Append to the query of the URL, with the forms of --data-urlencode
    #[arg(long, value_name = "DATA")]
    pub(crate) url_query: Vec<String>,
    /// Send this target instead of the path and query of the URL; * with -X OPTIONS for the server
    #[arg(long, value_name = "TARGET")]
    pub(crate) request_target: Option<String>,
    /// Do not resolve /./ and /../ in the path of the URL
    #[arg(long)]
    pub(crate) path_as_is: bool,
    /// Scheme of URLs without one: https or http [default: http]
    #[arg(long, value_name = "SCHEME")]
    pub(crate) proto_default: Option<String>,
    /// Allow only these schemes, such as =https or -http
    ///
    /// A list of http, https and all. A name with = allows only that one, with - forbids it, and
    /// with + or nothing allows it.
    #[arg(long, value_name = "SCHEMES")]
    pub(crate) proto: Option<String>,
    /// Like --proto, for redirects
    #[arg(long, value_name = "SCHEMES")]
    pub(crate) proto_redir: Option<String>,
    /// Send a HEAD request
    #[arg(short = 'I', long)]
    pub(crate) head: bool,
    /// User name and password for the server
    #[arg(short, long, value_name = "USER:PASSWORD")]
    pub(crate) user: Option<String>,
    /// Read user name and password from ~/.netrc
    #[arg(short = 'n', long)]
    pub(crate) netrc: bool,
    /// Like --netrc, from this file
    #[arg(long, value_name = "FILE")]
    pub(crate) netrc_file: Option<PathBuf>,
    /// Like --netrc, but prefer credentials of the URL and accept that there is no file
    #[arg(long)]
    pub(crate) netrc_optional: bool,
    /// Bearer token for the server
    #[arg(long, value_name = "TOKEN", conflicts_with = "user")]
    pub(crate) oauth2_bearer: Option<String>,
    /// Value of the User-Agent field
    #[arg(short = 'A', long, value_name = "NAME")]
    pub(crate) user_agent: Option<String>,
    /// Value of the Referer field; ;auto sets it after redirects
    ///
    /// With "URL;auto" or ";auto", requests after a redirect name the URL of the request before
    /// them, without credentials and fragment.
    #[arg(short = 'e', long, value_name = "URL")]
    pub(crate) referer: Option<String>,
    /// Send cookies, "name=value; ...", or read them from a file
    ///
    /// An argument without = is a file in Netscape's format or with response headers. It also turns
    /// on the cookie engine, which stores and returns the cookies that servers set. Use "" to turn
    /// it on without a file.
    #[arg(short = 'b', long, value_name = "COOKIES|FILE")]
    pub(crate) cookie: Vec<String>,
    /// Write all cookies to a file at exit; - for standard output
    ///
    /// The file is in Netscape's format. This flag turns on the cookie engine, see --cookie.
    #[arg(short = 'c', long, value_name = "FILE")]
    pub(crate) cookie_jar: Option<String>,
    /// Ignore session cookies in the files of --cookie
    #[arg(short = 'j', long)]
    pub(crate) junk_session_cookies: bool,
    /// Request a byte range: 0-499, 500-, -500
    #[arg(short, long, value_name = "RANGE")]
    pub(crate) range: Option<String>,
    /// Request the content only if it is newer than a date or a file
    ///
    /// A dash before the date asks for content that is older.
    #[arg(short = 'z', long, value_name = "DATE|FILE")]
    pub(crate) time_cond: Option<String>,
    /// Write the ETag of the response to a file
    #[arg(long, value_name = "FILE")]
    pub(crate) etag_save: Option<PathBuf>,
    /// Request the content only if its ETag is not the one in this file
    #[arg(long, value_name = "FILE")]
    pub(crate) etag_compare: Option<PathBuf>,
    /// Request a compressed response and decompress it
    ///
    /// Codings: gzip, deflate, brotli and zstd.
    #[cfg_attr(
        not(feature = "brotli"),
        doc = "This build lacks brotli: build with --features brotli."
    )]
    #[cfg_attr(
        not(feature = "zstd"),
        doc = "This build lacks zstd: build with --features zstd."
    )]
    #[arg(long)]
    pub(crate) compressed: bool,
    /// Follow redirects
    #[arg(short = 'L', long)]
    pub(crate) location: bool,
    /// Like --location, and send credentials to all hosts
    #[arg(long)]
    pub(crate) location_trusted: bool,
    /// Do not change POST to GET after a 301 redirect
    #[arg(long)]
    pub(crate) post301: bool,
    /// Do not change POST to GET after a 302 redirect
    #[arg(long)]
    pub(crate) post302: bool,
    /// Do not change POST to GET after a 303 redirect
    #[arg(long)]
    pub(crate) post303: bool,
    /// Read and update this HSTS cache file, in curl's format
    ///
    /// Requests to http URLs of hosts in the cache are sent over https (RFC 6797).
    #[arg(long, value_name = "FILE")]
    pub(crate) hsts: Option<PathBuf>,
    /// Maximum number of redirects; -1 for no limit
    #[arg(
        long,
        value_name = "N",
        default_value_t = 50,
        allow_negative_numbers = true
    )]
    pub(crate) max_redirs: i64,
    /// Do not expand {} and [] in URLs
    #[arg(short, long)]
    pub(crate) globoff: bool,
}

#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArguments {
    /// Write to a file instead of standard output; once per URL
    ///
    /// "#1" in the name stands for the current value of the first {} or [] of the URL. Use - for
    /// standard output.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Vec<String>,
    /// Name the file after the last segment of the URL; once per URL
    #[arg(short = 'O', long, action = ArgAction::Count)]
    pub(crate) remote_name: u8,
    /// Use --remote-name for all URLs
    #[arg(long)]
    pub(crate) remote_name_all: bool,
    /// With --remote-name, prefer the name in Content-Disposition
    ///
    /// Existing files are never overwritten or appended to: --continue-at is refused.
    #[arg(short = 'J', long, conflicts_with = "continue_at")]
    pub(crate) remote_header_name: bool,
    /// Directory for output files
    #[arg(long, value_name = "DIR")]
    pub(crate) output_dir: Option<PathBuf>,
    /// Create missing directories of output files
    #[arg(long)]
    pub(crate) create_dirs: bool,
    /// Include response headers in the output
    #[arg(short, long, visible_alias = "show-headers")]
    pub(crate) include: bool,
    /// Write response headers to a file; - for standard output
    #[arg(short = 'D', long, value_name = "FILE")]
    pub(crate) dump_header: Option<String>,
    /// Print FORMAT after each transfer; %{name} inserts a variable
    ///
    /// @FILE reads the format from a file. The variables are those of curl.
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) write_out: Option<String>,
    /// Print headers and connection details to standard error
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Write headers and content to a file in hexadecimal; - for standard output, % for standard error
    ///
    /// The bytes are those of HTTP messages before compression and encryption, in the notation of HTTP/1.1. Values
    /// of credentials are left out. With this flag, --verbose has no effect.
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<String>,
    /// Like --trace, without hexadecimal digits
    #[arg(long, value_name = "FILE")]
    pub(crate) trace_ascii: Option<String>,
    /// Do not show progress or errors
    #[arg(short, long)]
    pub(crate) silent: bool,
    /// Show errors even with --silent
    #[arg(short = 'S', long)]
    pub(crate) show_error: bool,
    /// Do not show progress
    #[arg(long)]
    pub(crate) no_progress_meter: bool,
    /// Fail on status codes of 400 and above, without output
    #[arg(short, long)]
    pub(crate) fail: bool,
    /// Fail on status codes of 400 and above, but write the body
    #[arg(long, conflicts_with = "fail")]
    pub(crate) fail_with_body: bool,
    /// Show how long each step of a transfer took
    ///
    /// The steps add up to the total. Connection attempts that lost the race are in brackets. The
    /// report goes to standard output if the body is written to a file, and to standard error
    /// otherwise.
    #[arg(long)]
    pub(crate) timing: bool,
    /// Like --timing, as JSON, one line per transfer
    #[arg(long)]
    pub(crate) timing_json: bool,
    /// Write messages to a file instead of standard error; - for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) stderr: Option<PathBuf>,
    /// Give files the time of the Last-Modified field
    #[arg(short = 'R', long)]
    pub(crate) remote_time: bool,
    /// Remove the output file if the transfer fails
    #[arg(long, conflicts_with = "continue_at")]
    pub(crate) remove_on_error: bool,
    /// Append a number to the name of the output file instead of replacing an existing file
    #[arg(long)]
    pub(crate) no_clobber: bool,
    /// Write a qlog trace of every QUIC connection to this directory
    #[arg(long, value_name = "DIR", env = "QLOGDIR", hide_env_values = true)]
    pub(crate) qlog: Option<PathBuf>,
}

#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Connection")]
pub(crate) struct ConnectionArguments {
    /// Try HTTP/3 first with every server, and TCP shortly after
    ///
    /// Without this flag HTTP/3 is used with servers that announce it in DNS (HTTPS records) or
    /// with Alt-Svc.
    #[arg(long, group = "http")]
    pub(crate) http3: bool,
    /// Use HTTP/3 only
    #[arg(long, group = "http")]
    pub(crate) http3_only: bool,
    /// Do not use HTTP/3
    #[arg(long, group = "http")]
    pub(crate) http2: bool,
    /// Use HTTP/2 only, also with http URLs, whose servers must support it
    #[arg(long, group = "http")]
    pub(crate) http2_prior_knowledge: bool,
    /// Send HTTP/1.0 requests
    #[arg(short = '0', long = "http1.0", group = "http")]
    pub(crate) http10: bool,
    /// Use HTTP/1.1 only
    #[arg(long = "http1.1", group = "http")]
    pub(crate) http1: bool,
    /// Versions of QUIC, such as 2 or 1,2: the first one is tried first [default: 1]
    #[arg(long, value_name = "LIST", value_delimiter = ',',
          value_parser = crate::values::parse_quic_version)]
    pub(crate) quic_version: Vec<QuicVersion>,
    /// Send requests in early data (0-RTT) on connections that resume a session
    ///
    /// Saves a round trip. GET, HEAD, OPTIONS and TRACE only: an attacker who records the request can
    /// send it again. Sessions are kept in memory, so that without a value only later connections of this
    /// command send early data, for example after a server has closed one. With --early-data=first, the
    /// command connects to each server once in advance to get a session. Early data works over HTTP/3 only:
    /// use --http3 or --http3-only with servers that do not announce it. -v and the variable early_data of
    /// --write-out show whether the server accepted the early data.
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true,
          default_missing_value = "later", conflicts_with_all = ["http2", "http1"],
          hide_possible_values = true)]
    pub(crate) early_data: Option<EarlyDataUse>,
    /// Read and update this Alt-Svc cache file, in curl's format
    #[arg(long, value_name = "FILE")]
    pub(crate) alt_svc: Option<PathBuf>,
    /// Keep tokens of QUIC servers in this file; they save the round trip of address validation
    ///
    /// A new file is readable by its owner only. A file of another user or format is reported and ignored.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Do not verify the server's certificate
    ///
    /// Anyone on the network path can then read and modify the traffic.
    #[arg(short = 'k', long, help_heading = "TLS")]
    pub(crate) insecure: bool,
    /// Trust the CA certificates in this file (PEM), not the system's
    #[arg(long, value_name = "FILE", help_heading = "TLS")]
    pub(crate) cacert: Option<PathBuf>,
    /// Trust the CA certificates in the files of this directory (PEM), not the system's
    #[arg(long, value_name = "DIR", help_heading = "TLS")]
    pub(crate) capath: Option<PathBuf>,
    /// Client certificate (PEM)
    #[arg(
        short = 'E',
        long,
        visible_alias = "client-cert",
        value_name = "FILE",
        help_heading = "TLS"
    )]
    pub(crate) cert: Option<PathBuf>,
    /// Private key of --cert (PEM), if it is in another file
    #[arg(
        long,
        visible_alias = "client-key",
        value_name = "FILE",
        requires = "cert",
        help_heading = "TLS"
    )]
    pub(crate) key: Option<PathBuf>,
    /// Type of the client certificate: PEM
    #[arg(long, value_name = "TYPE", help_heading = "TLS")]
    pub(crate) cert_type: Option<String>,
    /// Type of the private key: PEM
    #[arg(long, value_name = "TYPE", help_heading = "TLS")]
    pub(crate) key_type: Option<String>,
    /// Require TLS 1.3
    #[arg(long = "tlsv1.3", help_heading = "TLS")]
    pub(crate) tls13: bool,
    /// Latest version of TLS over TCP: 1.2 or 1.3
    #[arg(long, value_name = "VERSION", help_heading = "TLS")]
    pub(crate) tls_max: Option<String>,
    /// Require this public key of the server: sha256//BASE64, several separated by ;
    #[arg(long, value_name = "HASHES", help_heading = "TLS")]
    pub(crate) pinnedpubkey: Option<String>,
    /// Encrypt the name of the server (ECH): an ECHConfigList as file or base64, or grease
    ///
    /// The list is the parameter ech of the server's HTTPS record in the DNS. "grease" sends a fake
    /// extension, and "false" turns ECH off. Needs TLS 1.3 and applies to all URLs.
    #[arg(long, value_name = "LIST", help_heading = "TLS")]
    pub(crate) ech: Option<String>,
    /// Key exchange groups, separated by colons, the preferred one first
    ///
    /// X25519MLKEM768, SecP256r1MLKEM768, MLKEM768, MLKEM1024, x25519, secp256r1 and secp384r1.
    #[arg(long, value_name = "LIST", help_heading = "TLS")]
    pub(crate) curves: Option<String>,
    /// Cipher suites of TLS 1.3, separated by colons, the preferred one first
    ///
    /// TLS_AES_128_GCM_SHA256, TLS_AES_256_GCM_SHA384 and TLS_CHACHA20_POLY1305_SHA256.
    #[arg(long, value_name = "LIST", help_heading = "TLS")]
    pub(crate) tls13_ciphers: Option<String>,
    /// Move the QUIC connections to a new socket at this interval, and report the moves and stalls
    #[arg(long, visible_alias = "migrate-every", value_name = "SECONDS", value_parser = parse_duration,
          conflicts_with_all = ["interface", "http2", "http1"])]
    pub(crate) rebind_every: Option<Duration>,
    /// Use these addresses: host:port:address[,address]
    #[arg(long, value_name = "PLACE")]
    pub(crate) resolve: Vec<String>,
    /// Connect elsewhere: host:port:otherhost:otherport
    ///
    /// An empty host or port matches any; an empty other host or port keeps that of the URL.
    #[arg(long, value_name = "PLACES")]
    pub(crate) connect_to: Vec<String>,
    /// Use IPv4 only
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    pub(crate) ipv4: bool,
    /// Use IPv6 only
    #[arg(short = '6', long)]
    pub(crate) ipv6: bool,
    /// Connect to this Unix domain socket instead of the host of the URL
    #[arg(long, value_name = "PATH", group = "socket")]
    pub(crate) unix_socket: Option<PathBuf>,
    /// Connect to this abstract Unix domain socket (Linux)
    #[arg(long, value_name = "NAME", group = "socket")]
    pub(crate) abstract_unix_socket: Option<String>,
    /// Begin TCP connections with a header of the PROXY protocol
    #[arg(long)]
    pub(crate) haproxy_protocol: bool,
    /// Time before and between probes of idle TCP connections
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) keepalive_time: Option<Duration>,
    /// Local port of TCP connections, or a range of them: 4000-4100
    #[arg(long, value_name = "PORTS")]
    pub(crate) local_port: Option<String>,
    /// Local address or network interface to use
    #[arg(long, value_name = "NAME")]
    pub(crate) interface: Option<String>,
    /// Use this interface or local address, and further ones at the same time over HTTP/3 (RFC 10069): wlan0, wwan0,backup
    ///
    /// Repeatable. The first one is that of the first path and of TCP connections. With ",backup" it is used only while
    /// no other one works. An interface needs a route to the server, of any metric; packets from an address need a rule
    /// that sends them through its interface. The server must permit several paths: 'courser serve --paths 2'.
    #[arg(long, value_name = "PLACE", conflicts_with_all = ["interface", "rebind_every"])]
    pub(crate) via: Vec<Link>,
    /// How data is spread over the paths of --via: earliest, or fastest (the least round-trip time that has room)
    #[arg(long, value_name = "NAME", requires = "via", value_parser = links::scheduler, default_value = "earliest")]
    pub(crate) scheduler: PathSchedule,
    /// Use these name servers, separated by commas
    #[cfg_attr(
        not(feature = "dns"),
        doc = "(not in this build: needs --features dns)"
    )]
    #[arg(long, value_name = "ADDRESSES", value_delimiter = ',')]
    pub(crate) dns_servers: Vec<String>,
    /// Resolve names with a DNS server over HTTPS (RFC 8484), such as https://dns.example/dns-query
    ///
    /// The name of that server is resolved by the system. It is connected to with the TLS flags, over HTTP/3 with
    /// --http3.
    #[cfg_attr(
        not(feature = "dns"),
        doc = "(not in this build: needs --features dns)"
    )]
    #[arg(long, value_name = "URL", conflicts_with = "dns_servers")]
    pub(crate) doh_url: Option<String>,
    /// Use a proxy: [scheme://][user:password@]host[:port]
    ///
    /// Schemes: http, https, socks5h and socks4a (the proxy resolves names), socks5 and socks4
    /// (names are resolved locally), and masque: the proxy is reached over HTTP/3, servers over HTTP/3 through
    /// CONNECT-UDP, or over HTTP/2 and HTTP/1.1 through CONNECT. A URI template with {target_host} and
    /// {target_port} is a masque proxy too. Other proxies carry no HTTP/3. The certificate of a proxy is verified
    /// like a server's, also with --insecure, unless --proxy-cacert or --proxy-insecure is given.
    #[arg(short = 'x', long, value_name = "URL")]
    pub(crate) proxy: Option<String>,
    /// User name and password for the proxy
    #[arg(short = 'U', long, value_name = "USER:PASSWORD")]
    pub(crate) proxy_user: Option<String>,
    /// Field for the proxy alone, such as 'Proxy-Authorization: Bearer TOKEN'; repeatable
    #[arg(long, value_name = "FIELD")]
    pub(crate) proxy_header: Vec<String>,
    /// Trust the CA certificates in this file (PEM) for the proxy, not those for servers
    #[arg(long, value_name = "FILE")]
    pub(crate) proxy_cacert: Option<PathBuf>,
    /// Do not verify the certificate of the proxy
    #[arg(long)]
    pub(crate) proxy_insecure: bool,
    /// Client certificate for the proxy (PEM); that of --cert is for servers alone
    #[arg(long, value_name = "FILE")]
    pub(crate) proxy_cert: Option<PathBuf>,
    /// Private key of --proxy-cert (PEM), if it is in another file
    #[arg(long, value_name = "FILE", requires = "proxy_cert")]
    pub(crate) proxy_key: Option<PathBuf>,
    /// Same as --proxy socks4://HOST
    #[arg(long, value_name = "HOST")]
    pub(crate) socks4: Option<String>,
    /// Same as --proxy socks4a://HOST
    #[arg(long, value_name = "HOST")]
    pub(crate) socks4a: Option<String>,
    /// Same as --proxy socks5://HOST
    #[arg(long, value_name = "HOST")]
    pub(crate) socks5: Option<String>,
    /// Same as --proxy socks5h://HOST
    #[arg(long, value_name = "HOST")]
    pub(crate) socks5_hostname: Option<String>,
    /// Hosts to connect to directly, separated by commas; * for all
    #[arg(long, value_name = "HOSTS")]
    pub(crate) noproxy: Option<String>,
    /// Time limit for connecting
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) connect_timeout: Option<Duration>,
    /// Time to wait for 100 (Continue) before content is sent [default: 1]
    ///
    /// Requests with the field "Expect: 100-continue" wait, except over HTTP/2. Over HTTP/1.1 it is added to
    /// requests whose content has more than 1 MiB or an unknown length, unless --header "Expect:" removes it.
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) expect100_timeout: Option<Duration>,
    /// Head start of HTTP/3 over TCP and of each address over the next
    #[arg(long, value_name = "MS", default_value_t = 250)]
    pub(crate) happy_eyeballs_timeout_ms: u64,
}

/// The connections that carry requests in early data.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EarlyDataUse {
    /// Connections for which a session is known.
    Later,
    /// Also the first connection to a server, for which another connection gets a session in advance.
    First,
}

#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Transfer")]
pub(crate) struct TransferArguments {
    /// Time limit for each transfer
    #[arg(short, long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) max_time: Option<Duration>,
    /// Resume at this byte offset; - for the size of the output file
    #[arg(short = 'C', long, value_name = "OFFSET")]
    pub(crate) continue_at: Option<String>,
    /// Reject bodies larger than this
    #[arg(long, value_name = "BYTES", value_parser = parse_quantity)]
    pub(crate) max_filesize: Option<u64>,
    /// Limit the rate of the transfer in bytes per second, such as 100K
    ///
    /// K, M and G are powers of 1024, as in curl.
    #[arg(long, value_name = "RATE", value_parser = parse_speed)]
    pub(crate) limit_rate: Option<u64>,
    /// Fail if the transfer is slower than this for the time of --speed-time
    #[arg(short = 'Y', long, value_name = "BYTES/S")]
    pub(crate) speed_limit: Option<u64>,
    /// Seconds for --speed-limit [default: 30]
    #[arg(short = 'y', long, value_name = "SECONDS")]
    pub(crate) speed_time: Option<u64>,
    /// Start at most this many transfers per time, such as 2/s, 5/m or 100/h
    #[arg(long, value_name = "N/UNIT", value_parser = parse_rate)]
    pub(crate) rate: Option<Duration>,
    /// Retry this many times after transient failures
    ///
    /// Transient failures are timeouts and status codes 408, 429, 500, 502, 503 and 504.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) retry: u32,
    /// Wait this long before each retry
    ///
    /// The default is the server's Retry-After, or 1 second, doubled with each retry up to 10
    /// minutes.
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) retry_delay: Option<Duration>,
    /// Stop retrying after this time
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) retry_max_time: Option<Duration>,
    /// Retry when the connection is refused
    #[arg(long)]
    pub(crate) retry_connrefused: bool,
    /// Retry after every failure
    #[arg(long)]
    pub(crate) retry_all_errors: bool,
    /// Run transfers in parallel
    #[arg(short = 'Z', long)]
    pub(crate) parallel: bool,
    /// Maximum number of parallel transfers
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=300))]
    pub(crate) parallel_max: u16,
    /// Exit at the first failure
    #[arg(long)]
    pub(crate) fail_early: bool,
}

/// The text after the flags, in `-h` and, with the exit codes, in `--help`.
macro_rules! examples {
    () => {
        "\
Examples:
  courser get https://example.org/
      Print a page
  courser get -L -O https://example.org/file.tar.gz
      Follow redirects and save the file under its own name
  courser get --http3-only --insecure --timing https://localhost:4433/
      Use HTTP/3 only, accept any certificate and show the duration of each step
  courser get --json '{\"name\":\"value\"}' https://example.org/items
      Send JSON"
    };
}

const EXAMPLES: &str = examples!();
const EXAMPLES_AND_EXIT_CODES: &str = concat!(
    examples!(),
    "

Exit codes (those of curl):
   5  cannot resolve the proxy           47  too many redirects
   6  cannot resolve the host            52  empty response
   7  cannot connect                     60  certificate not trusted
  22  status 400 or above, with --fail   95  HTTP/3 error
  23  cannot write                       96  QUIC connection error
  28  timeout                            97  SOCKS proxy error
  35  TLS handshake failed

Further flags of curl:
  --next begins another set of flags and URLs. --no-FLAG turns a flag without a value off.
  Flags whose effect is the default are accepted: -N, -#, -q, -a, --basic, --tcp-nodelay,
  --tlsv1.2, --ssl-reqd, --no-keepalive and others. Flags that are not built are refused."
);

impl Arguments {
    /// Returns all URLs; those of --url come last.
    pub(crate) fn all_urls(&self) -> impl Iterator<Item = &String> {
        self.urls.iter().chain(&self.more_urls)
    }
}
