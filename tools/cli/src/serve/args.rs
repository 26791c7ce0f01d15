//! The command line of `courser serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use courser::{Algorithm, QuicVersion};
use courser_services::{Backend, UpgradeProtocol};
use courser_units::{parse_duration, parse_quantity};

use super::acme::AcmeArguments;
use super::moves::MoveArguments;
use super::webtransport::WebTransportArguments;
use crate::values::{
    controller_help, controller_long_help, parse_controller, parse_listen, parse_origin,
    parse_shards,
};

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Directory to serve [default: the current directory]
    #[arg(value_name = "DIR", conflicts_with_all = ["root", "proxy"])]
    pub(crate) folder: Option<PathBuf>,

    /// Listen on this address, UDP and TCP; repeatable [default port: 4433]
    ///
    /// Port 0 lets the system choose a port. The default is 127.0.0.1:4433 and [::1]:4433 with a
    /// development certificate, [::]:4433 with --cert, and [::]:443 with --acme; sockets that a service manager has
    /// opened (LISTEN_FDS) take its place. A link-local
    /// address needs its interface, as in [fe80::1%eth0]:4433. [::] accepts IPv4 clients too; a machine
    /// without IPv6 needs 0.0.0.0.
    #[arg(short, long, value_name = "ADDR", value_parser = parse_listen)]
    pub(crate) listen: Vec<SocketAddr>,

    /// Do not compress responses
    #[arg(long)]
    pub(crate) no_compress: bool,

    /// Same as DIR
    #[arg(
        short,
        long,
        value_name = "DIR",
        conflicts_with = "proxy",
        help_heading = "Files"
    )]
    pub(crate) root: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) files: FileArguments,

    /// Forward requests to this server instead of serving files
    ///
    /// Use http://HOST[:PORT] for HTTP/1.1 and h2c://HOST[:PORT] for HTTP/2 without TLS.
    #[arg(long, value_name = "URL", value_parser = Backend::parse, help_heading = "Proxy")]
    pub(crate) proxy: Option<Backend>,

    #[command(flatten)]
    pub(crate) proxy_times: ProxyTimes,

    #[command(flatten)]
    pub(crate) proxy_limits: ProxyLimits,

    /// Compress the responses of the upstream server
    ///
    /// Off by default: if a response holds both a secret and text that others choose, its compressed
    /// size reveals the secret (BREACH).
    #[arg(
        long,
        requires = "proxy",
        conflicts_with = "no_compress",
        help_heading = "Proxy"
    )]
    pub(crate) proxy_compress: bool,

    #[command(flatten)]
    pub(crate) proxy_messages: ProxyMessages,

    /// Host name of the server; repeatable
    ///
    /// Required with --acme; added to the names of a generated certificate otherwise.
    #[arg(short, long, value_name = "NAME", help_heading = "Certificates")]
    pub(crate) domain: Vec<String>,

    #[command(flatten)]
    pub(crate) certificate: CertificateArguments,

    /// Number of sockets and tasks for the QUIC connections of each address, 1 to 256 [default: the number of cores]
    ///
    /// Each can use one core. Limits apply to all of them together. On systems where sockets cannot share an
    /// address, there is only one.
    #[arg(long, value_name = "N", value_parser = parse_shards())]
    pub(crate) shards: Option<u16>,

    #[command(flatten)]
    pub(crate) limits: LimitArguments,

    /// Minimum rate of request bodies in bytes per second; 0 for no minimum
    ///
    /// Slower requests are aborted. CONNECT is exempt because its streams may be idle, and gRPC may be silent for
    /// an hour between messages.
    #[arg(long, value_name = "N", default_value = "240", help_heading = "Limits")]
    pub(crate) body_rate: u32,

    /// Enforce --body-rate after this time
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = parse_duration,
          help_heading = "Limits")]
    pub(crate) body_grace: Duration,

    /// Minimum rate at which clients read, in bytes per second; 0 for no minimum
    ///
    /// Connections of slower clients are closed. Time counts only while the client keeps a response
    /// from being sent.
    #[arg(long, value_name = "N", default_value = "240", help_heading = "Limits")]
    pub(crate) read_rate: u32,

    /// Close connections whose clients are this far behind --read-rate
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = parse_duration,
          help_heading = "Limits")]
    pub(crate) read_grace: Duration,

    /// Time limit for requests in progress after SIGTERM or SIGINT
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = parse_duration,
          help_heading = "Limits")]
    pub(crate) drain_timeout: Duration,

    /// Keep accepting requests for this long after SIGTERM or SIGINT
    ///
    /// /ready answers 503 meanwhile, so that load balancers can take the server out of rotation.
    #[arg(long, value_name = "SECONDS", value_parser = parse_duration, help_heading = "Limits")]
    pub(crate) drain_delay: Option<Duration>,

    /// Disable HTTP/2 and HTTP/1.1
    #[arg(long, conflicts_with = "no_quic", help_heading = "Protocols")]
    pub(crate) no_tcp: bool,

    /// Disable HTTP/3
    #[arg(long, help_heading = "Protocols")]
    pub(crate) no_quic: bool,

    /// Do not announce HTTP/3 over HTTP/2 and HTTP/1.1 (Alt-Svc)
    #[arg(long, help_heading = "Protocols")]
    pub(crate) no_alt_svc: bool,

    /// Announce HTTP/3 at this port
    ///
    /// [default: the port in the Host of each request, which is right behind port mappings that map UDP like TCP]
    /// Origins that HTTP/3 clients are told (RFC 9412) have this port too.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..),
          conflicts_with_all = ["no_alt_svc", "no_quic"], help_heading = "Protocols")]
    pub(crate) alt_svc_port: Option<u16>,

    /// Time for which clients may remember that HTTP/3 is available
    #[arg(long, value_name = "SECONDS", default_value = "86400", value_parser = parse_duration,
          conflicts_with_all = ["no_alt_svc", "no_quic"], help_heading = "Protocols")]
    pub(crate) alt_svc_max_age: Duration,

    /// Origins that HTTP/3 clients may use a connection for, such as https://example.org
    ///
    /// Announced with ORIGIN (RFC 9412) [default: the names of the certificate, without wildcards]. Clients
    /// also require that the certificate is valid for them. May be given several times.
    #[arg(long, value_name = "ORIGIN", value_parser = parse_origin, help_heading = "Protocols")]
    pub(crate) origin: Vec<String>,

    /// Serve requests for any host, also if the certificate does not name it
    ///
    /// Without this flag, such requests are answered with 421 (Misdirected Request), except those for the address
    /// to which the client has connected, such as health checks. It is the default without --cert and --acme,
    /// because nobody trusts the generated certificate, and if the certificate has no names.
    #[arg(long, help_heading = "Protocols")]
    pub(crate) any_host: bool,

    /// Answer requests for other hosts with 421 with a generated certificate too
    #[arg(long, conflicts_with = "any_host", help_heading = "Protocols")]
    pub(crate) only_names: bool,

    /// Versions of QUIC, such as 1 or 2,1, the preferred one first [default: 1,2]
    ///
    /// With this flag the server upgrades clients to the first version that they support.
    #[arg(long, value_name = "LIST", value_delimiter = ',',
          value_parser = crate::values::parse_quic_version, help_heading = "Protocols")]
    pub(crate) quic_version: Vec<QuicVersion>,

    #[command(flatten)]
    pub(crate) moves: MoveArguments,

    #[command(flatten)]
    pub(crate) webtransport: WebTransportArguments,

    /// Put a server ID for load balancers into connection IDs: quic-lb:FILE
    ///
    /// Each line of the file has a name, = and a value; # begins a comment, and bytes are hexadecimal.
    /// config-id is 0 to 6, server-id 1 to 15 bytes, nonce-length 4 to 18. key (16 bytes) encrypts the
    /// server ID, so that observers cannot link the connection IDs of a server. first-octet = length
    /// describes the length of IDs (draft-ietf-quic-load-balancers). The file is read at the start.
    #[arg(long, value_name = "FORMAT", value_parser = parse_connection_ids, conflicts_with = "no_quic",
          help_heading = "Protocols")]
    pub(crate) connection_ids: Option<PathBuf>,

    /// Accept HTTP/3 requests in early data (0-RTT), which saves returning clients a round trip
    ///
    /// An attacker who records early data can send it again, and it has no forward secrecy. This server
    /// accepts each ticket once, but a request can still be processed twice: here, and when its client
    /// repeats it. Only requests with safe methods (GET, HEAD, OPTIONS, TRACE) are therefore processed
    /// early. Others are answered with 425 Too Early, and clients send them again. Do not use this flag if
    /// such requests change anything. With --proxy, early requests have the field Early-Data: 1. Use both
    /// flags only if the upstream server understands that field, and answers 425 to requests that it must
    /// not process early (RFC 8470). With --client-ca, all requests wait for the end of the handshake.
    /// Tickets are kept in memory and end with the process. Clients need a token of an earlier connection
    /// too, which proves their address: without one, their requests wait for the end of the handshake, and
    /// /status counts them (connections_without_token).
    #[arg(long, conflicts_with = "no_quic", help_heading = "Protocols")]
    pub(crate) early_data: bool,

    /// Remember the paths to clients: later connections start faster (Careful Resume, RFC 9959)
    ///
    /// A connection to an address whose path was observed in the last hour skips most of slow start, if
    /// the round-trip time is the same, and goes back if packets are lost. At most 1024 addresses are
    /// remembered, without ports.
    #[arg(long, conflicts_with = "no_quic", help_heading = "Protocols")]
    pub(crate) remember_paths: bool,

    /// Paths that a client may open on a connection, over several of its links (RFC 10069): 1 to 8
    ///
    /// With more than one, each connection takes about a kilobyte more. A client opens and chooses the paths, this server
    /// chooses among them for what it sends: all that work, those that the client prefers first.
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "no_quic",
          value_parser = clap::value_parser!(u8).range(1..=8), help_heading = "Protocols")]
    pub(crate) paths: u8,

    /// Report to clients that ask from which address their packets arrive (address discovery)
    ///
    /// Not for a server behind a load balancer or a NAT that rewrites the addresses of clients: it would
    /// report that of an inner machine.
    #[arg(long, conflicts_with = "no_quic", help_heading = "Protocols")]
    pub(crate) observe_addresses: bool,

    #[arg(long, value_name = "NAME", default_value_t, value_parser = parse_controller,
          help = controller_help(), long_help = controller_long_help(), help_heading = "Protocols")]
    pub(crate) cc: Algorithm,

    /// Do not search for a larger window when the capacity of a path has risen
    ///
    /// Windows of QUIC connections then grow at the speed of RFC 9438 (cubic) and RFC 9002 (newreno).
    #[arg(long, conflicts_with = "no_quic", help_heading = "Protocols")]
    pub(crate) no_capacity_rise: bool,

    /// Memory that connections may hold for their clients [default: a quarter of the machine's]
    ///
    /// At least 1 MiB, for each address. With a limit (cgroup, ulimit -v or -d), the default is a quarter
    /// of it. Unacknowledged and unread bytes, datagrams and handshakes count. Half of it is for connections
    /// over TCP, with what they have received and not processed, and for requests in progress. Uploads over
    /// HTTP/2 that wait to be read have a further quarter. When memory runs short, the server reads responses later, stops growing windows and refuses clients. In the end it
    /// closes the connection that holds the most memory for the least progress.
    #[arg(long, value_name = "SIZE", value_parser = parse_memory, help_heading = "Protocols")]
    pub(crate) memory: Option<u64>,

    /// Log every request: common, combined or json [default format: common]
    #[arg(short, long, value_name = "FORMAT", num_args = 0..=1, require_equals = true,
          default_missing_value = "common", hide_possible_values = true,
          help_heading = "Logging and monitoring")]
    pub(crate) access_log: Option<LogFormat>,

    /// Write the access log to a file instead of standard output
    ///
    /// The file is reopened on SIGHUP, for log rotation.
    #[arg(
        long,
        value_name = "FILE",
        requires = "access_log",
        help_heading = "Logging and monitoring"
    )]
    pub(crate) access_log_file: Option<PathBuf>,

    /// Serve a live page, metrics and health checks at this address
    ///
    /// The endpoints /, /metrics, /status, /connections, /health and /ready use plain HTTP. Do not expose them to
    /// untrusted networks. Requests must name the address or localhost in their Host field; see
    /// --admin-host. With --admin-token-file, POST /busy refuses new clients until DELETE /busy, and
    /// /ready answers 503 meanwhile; /qlog?connection=N streams the trace of a connection with its
    /// requests.
    #[arg(long, value_name = "ADDR", value_parser = parse_admin,
          help_heading = "Logging and monitoring")]
    pub(crate) admin: Option<SocketAddr>,

    /// Another host name of the --admin address; repeatable
    ///
    /// Requests for other hosts are refused, so that web pages cannot read the endpoints through
    /// the browser of a user who can reach them (DNS rebinding).
    #[arg(
        long,
        value_name = "NAME",
        requires = "admin",
        help_heading = "Logging and monitoring"
    )]
    pub(crate) admin_host: Vec<String>,

    /// Require the bearer token in this file for /metrics, /status, /connections, /qlog and /busy
    ///
    /// /qlog and /busy exist only with a token. /health, /ready and the page itself reveal no data and stay open. The
    /// page asks for the token.
    #[arg(
        long,
        value_name = "FILE",
        requires = "admin",
        help_heading = "Logging and monitoring"
    )]
    pub(crate) admin_token_file: Option<PathBuf>,

    /// Write a qlog trace of every QUIC connection to this directory
    #[arg(
        long,
        value_name = "DIR",
        env = "QLOGDIR",
        hide_env_values = true,
        help_heading = "Logging and monitoring"
    )]
    pub(crate) qlog: Option<PathBuf>,

    /// Print events as JSON, one object per line
    #[arg(long, help_heading = "Logging and monitoring")]
    pub(crate) json: bool,
}

/// Limits on what clients may open, together and from one address.
#[derive(Args, Debug)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitArguments {
    /// Maximum number of connections over TCP, and the same number over QUIC
    ///
    /// The limit applies to each --listen address. A connection over TCP needs a file descriptor and at least
    /// 28 KiB of memory. Fewer are accepted if three quarters of the free descriptors or three eighths of
    /// --memory do not suffice.
    #[arg(long, value_name = "N", default_value = "20000", value_parser = at_least_one())]
    pub(crate) max_connections: u32,

    /// Maximum number of connections from one address, over TCP and over QUIC
    ///
    /// An IPv6 address counts as its /64, except addresses of a link or a site. Without this flag, an address may hold three times as many
    /// connections as are left. Clients behind a NAT or a load balancer share an address.
    #[arg(long, value_name = "N", value_parser = at_least_one())]
    pub(crate) max_connections_per_address: Option<u32>,

    /// Maximum number of new connections per second from one address, over TCP and over QUIC
    ///
    /// A network (/24, or /56 of IPv6) may open four times as many, a site (/16, or /48 of IPv6) 16 times, and
    /// an allocation (/32 of IPv6) 64 times. No limit by default.
    #[arg(long, value_name = "N", value_parser = rate(1))]
    pub(crate) connection_rate: Option<u32>,

    /// Like --connection-rate, but only while CPU time or memory is short
    ///
    /// No limit by default: networks take turns while CPU time is short.
    #[arg(long, value_name = "N", value_parser = rate(1))]
    pub(crate) loaded_connection_rate: Option<u32>,

    /// Maximum number of Retry, Version Negotiation and refusal packets per second; 0 for none
    ///
    /// Each network gets at most a quarter of them.
    #[arg(long, value_name = "N", default_value = "40000", value_parser = rate(0))]
    pub(crate) reply_rate: u32,

    /// Maximum number of stateless resets per second; 0 for none
    ///
    /// Each network gets at most a tenth of them.
    #[arg(long, value_name = "N", default_value = "2000", value_parser = rate(0))]
    pub(crate) reset_rate: u32,

    /// Largest header section of a request in bytes, over every version of HTTP
    ///
    /// Requests with a larger one are answered with 431.
    #[arg(long, value_name = "BYTES", default_value = "65536", value_parser = clap::value_parser!(u32).range(8192..=1_048_576))]
    pub(crate) max_header_size: u32,

    /// Largest number of fields in the header section of a request, over every version of HTTP
    ///
    /// Requests with more are answered with 431.
    #[arg(long, value_name = "N", default_value = "1024", value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub(crate) max_header_fields: u32,

    /// Block the addresses in this file, one address or prefix per line
    ///
    /// Their packets are dropped unread. The file is reloaded when it changes and on SIGHUP, and open
    /// connections of newly blocked addresses are closed. '#' begins a comment. Replace the file by
    /// renaming a new one, so that an incomplete file is never read.
    #[arg(long, value_name = "FILE")]
    pub(crate) block: Option<PathBuf>,

    /// Allow the addresses in this file despite --block
    ///
    /// The longest matching prefix of both files decides. To serve these addresses only, block
    /// 0.0.0.0/0 and ::/0.
    #[arg(long, value_name = "FILE", requires = "block")]
    pub(crate) allow: Option<PathBuf>,
}

fn at_least_one() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..)
}

/// Reads the format of connection IDs. Returns the file of its settings.
fn parse_connection_ids(text: &str) -> Result<PathBuf, String> {
    match text.strip_prefix("quic-lb:") {
        None | Some("") => Err(format!(
            "'{text}' is not a format of connection IDs: use quic-lb:FILE"
        )),
        Some(file) => Ok(file.into()),
    }
}

/// Reads the memory budget of an endpoint: at least 1 MiB.
fn parse_memory(text: &str) -> Result<u64, String> {
    match parse_quantity(text)? {
        bytes if bytes < 1 << 20 => Err(format!("{bytes} bytes are too few: use at least 1MiB")),
        bytes => Ok(bytes),
    }
}

/// Reads a rate of packets or connections per second, up to a million.
fn rate(least: i64) -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(least..=1_000_000)
}

/// Time limits for the upstream server.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Proxy")]
pub(crate) struct ProxyTimes {
    /// Time limit for connecting to the upstream server
    #[arg(id = "proxy_connect_timeout", long = "proxy-connect-timeout", value_name = "SECONDS",
          default_value = "5", value_parser = parse_duration, requires = "proxy")]
    pub(crate) connect: Duration,

    /// Time limit for the upstream server to start its response
    ///
    /// The time begins at the end of the request. While a body is sent, it begins again whenever the
    /// upstream server accepts some of it. Slow clients are limited by --body-rate.
    #[arg(id = "proxy_timeout", long = "proxy-timeout", value_name = "SECONDS",
          default_value = "60", value_parser = parse_duration, requires = "proxy")]
    pub(crate) response: Duration,

    /// Time limit for pauses in the body of a response
    ///
    /// The response is aborted if the upstream server sends nothing for this long. Raise it for
    /// streams of rare events.
    #[arg(id = "proxy_body_timeout", long = "proxy-body-timeout", value_name = "SECONDS",
          default_value = "300", value_parser = parse_duration, requires = "proxy")]
    pub(crate) body: Duration,
}

impl ProxyTimes {
    pub(crate) fn times(&self) -> courser_services::ProxyTimes {
        courser_services::ProxyTimes {
            connect: self.connect,
            response: self.response,
            body: self.body,
        }
    }
}

/// Exceptions from the rules for forwarded messages.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Proxy")]
pub(crate) struct ProxyMessages {
    /// Forward upgrades to this protocol besides WebSocket; repeatable
    ///
    /// The name in the Upgrade field, with its version if it has one, such as example/1. Requests for other
    /// protocols are forwarded without the upgrade. After an upgrade, this server forwards bytes without
    /// reading them.
    #[arg(long = "proxy-upgrade", value_name = "NAME", value_parser = UpgradeProtocol::parse,
          requires = "proxy")]
    pub(crate) upgrades: Vec<UpgradeProtocol>,

    /// Forward request fields whose names contain an underscore
    ///
    /// Removed by default: CGI, WSGI and PHP read user_id and user-id as the same field. Names such as
    /// x_forwarded_for, which resemble fields that this server sets, are removed in any case.
    #[arg(long = "proxy-underscores", requires = "proxy")]
    pub(crate) keeps_underscores: bool,
}

/// Limits on the connections to the upstream server.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Proxy")]
pub(crate) struct ProxyLimits {
    /// Maximum number of connections to the upstream server
    ///
    /// The default is a third of the files that the process may open, at most 4096. Idle connections
    /// and tunnels such as WebSockets count. Requests beyond it wait, see --proxy-queue. An address of
    /// clients uses at most four fifths of the connections, and a network nine tenths. An HTTP/2
    /// connection carries up to 100 requests at a time.
    #[arg(id = "proxy_connections", long = "proxy-connections", value_name = "N",
          value_parser = at_least_one(), requires = "proxy")]
    pub(crate) connections: Option<u32>,

    /// Maximum number of requests that wait for a connection
    ///
    /// Requests beyond it are answered with 503 and Retry-After. The clients of one address can fill at most
    /// three quarters of the queue.
    #[arg(
        id = "proxy_queue",
        long = "proxy-queue",
        value_name = "N",
        default_value = "1024",
        requires = "proxy"
    )]
    pub(crate) queue: u32,

    /// Time limit for waiting for a connection
    ///
    /// Requests that wait for longer are answered with 503 and Retry-After.
    #[arg(id = "proxy_queue_timeout", long = "proxy-queue-timeout", value_name = "SECONDS",
          default_value = "10", value_parser = parse_duration, requires = "proxy")]
    pub(crate) queue_timeout: Duration,

    /// Repeat refused connections for this long, for example while the upstream server restarts
    ///
    /// The time begins with the first refusal. Requests then fail with 502, and at once, until the server
    /// accepts connections again; 0 for no repetition. No request is sent twice.
    #[arg(id = "proxy_retry", long = "proxy-retry", value_name = "SECONDS",
          default_value = "3", value_parser = parse_duration, requires = "proxy")]
    pub(crate) retry: Duration,

    /// Close tunnels, such as WebSockets, that are idle for this long
    ///
    /// A tunnel is idle while neither end sends. Pings of WebSockets count as traffic.
    #[arg(id = "proxy_tunnel_timeout", long = "proxy-tunnel-timeout", value_name = "SECONDS",
          default_value = "3600", value_parser = parse_duration, requires = "proxy")]
    pub(crate) tunnel_timeout: Duration,
}

impl ProxyLimits {
    /// Returns the limits for a process that may open this many files.
    pub(crate) fn limits(&self, descriptors: u64) -> courser_services::ProxyLimits {
        let count = |given: u32| usize::try_from(given).unwrap_or(usize::MAX);
        let mut limits = courser_services::ProxyLimits::for_descriptors(descriptors);
        if let Some(connections) = self.connections {
            limits.connections = count(connections);
        }
        limits.queue = count(self.queue);
        limits.queue_wait = self.queue_timeout;
        limits.retry = self.retry;
        limits.tunnel_idle = self.tunnel_timeout;
        limits
    }
}

/// Flags for serving files.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Files")]
pub(crate) struct FileArguments {
    /// List directories that have no index.html
    #[arg(short, long, conflicts_with = "proxy")]
    pub(crate) browse: bool,

    /// Serve FILE.zst, FILE.br or FILE.gz to clients that accept the encoding
    #[arg(long, conflicts_with = "proxy")]
    pub(crate) precompressed: bool,

    /// Serve files whose names begin with a dot
    ///
    /// Without this flag, only /.well-known is served.
    #[arg(long, conflicts_with = "proxy")]
    pub(crate) dotfiles: bool,

    /// Follow symbolic links that lead out of the directory
    ///
    /// Without this flag, only links to targets inside the directory are followed.
    #[arg(long, conflicts_with = "proxy")]
    pub(crate) follow_symlinks: bool,

    /// Take content types from this file, in the format of mime.types
    ///
    /// Each line is a media type and the suffixes of its files, as in: video/mp2t ts m2ts. '#' begins a
    /// comment. The types take precedence over those that are built in, which are the registered ones for
    /// the files of web sites. Text without parameters is declared as UTF-8. Files with unknown suffixes
    /// are application/octet-stream. The file is read at the start.
    #[arg(long, value_name = "FILE", conflicts_with = "proxy")]
    pub(crate) mime: Option<PathBuf>,

    /// Memory for small files and their compressed forms; 0 for no cache [default: 64MiB]
    ///
    /// With less than 512 MiB of memory, or a limit below that (cgroup, ulimit -v or -d), the default is
    /// an eighth of it.
    #[arg(long, value_name = "SIZE", value_parser = parse_quantity, conflicts_with = "proxy")]
    pub(crate) cache_size: Option<u64>,
}

/// Flags for the server's certificate. Without any of them a certificate is generated in memory.
#[derive(Args, Debug)]
#[command(next_help_heading = "Certificates")]
pub(crate) struct CertificateArguments {
    /// Certificate chain (PEM) [default: a development certificate in memory]
    ///
    /// Can be repeated, each time with --key: clients get the certificate for the name that they ask
    /// for (also *.example.org), and the first one if there is none. Files are reloaded when they
    /// change and on SIGHUP.
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) cert: Vec<PathBuf>,

    /// Private key of --cert (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Vec<PathBuf>,

    /// OCSP response (DER) for --cert, stapled to it
    ///
    /// Can be repeated, in the order of --cert. The file is checked for changes like the certificate. A
    /// response that is malformed, expired or for another certificate is left out with a warning.
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) ocsp: Vec<PathBuf>,

    /// Require a client certificate that is issued by a CA in this file (PEM)
    #[arg(long, value_name = "FILE")]
    pub(crate) client_ca: Option<PathBuf>,

    /// Accept clients without a certificate despite --client-ca
    #[arg(long, requires = "client_ca")]
    pub(crate) client_cert_optional: bool,

    /// Key exchange groups, separated by colons, the preferred one first
    ///
    /// X25519MLKEM768, SecP256r1MLKEM768, MLKEM768, MLKEM1024, x25519, secp256r1 and secp384r1.
    #[arg(long, value_name = "LIST")]
    pub(crate) curves: Option<String>,

    /// Cipher suites of TLS 1.3, separated by colons, the preferred one first
    ///
    /// TLS_AES_128_GCM_SHA256, TLS_AES_256_GCM_SHA384 and TLS_CHACHA20_POLY1305_SHA256.
    #[arg(long, value_name = "LIST")]
    pub(crate) tls13_ciphers: Option<String>,

    /// Keep the development certificate in this directory
    ///
    /// The certificate and its hash then stay the same after a restart. The directory also holds the
    /// secret for stateless resets, so that clients detect a restart immediately.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["cert", "acme"])]
    pub(crate) tls_dev_dir: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) acme: AcmeArguments,
}

impl From<LogFormat> for courser_services::LogFormat {
    fn from(format: LogFormat) -> Self {
        match format {
            LogFormat::Common => Self::Common,
            LogFormat::Combined => Self::Combined,
            LogFormat::Json => Self::Json,
        }
    }
}

/// Format of the access log.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LogFormat {
    /// Common Log Format
    Common,
    /// Common Log Format with Referer and User-Agent
    Combined,
    /// One JSON object per line
    Json,
}

const EXAMPLES: &str = "\
Examples:
  courser serve --browse
      Serve the current directory at https://localhost:4433/
  courser serve public --cert cert.pem --key key.pem --listen [::]:443
      Serve a directory with a certificate; repeat both flags for other names
  courser serve --proxy http://localhost:8080 --acme --domain example.org
      Forward requests to a local server and obtain a certificate
  courser serve --admin 127.0.0.1:9443 --access-log=json
      Log requests as JSON and show a live page at http://127.0.0.1:9443/
  courser serve --webtransport-echo
      Test WebTransport in a browser at https://localhost:4433/webtransport";

pub(crate) fn parse_admin(text: &str) -> Result<SocketAddr, String> {
    courser_measure::target::parse_socket_addr(text).map_err(|_| {
        format!("'{text}' is not an address with a port: use one such as 127.0.0.1:9443")
    })
}
