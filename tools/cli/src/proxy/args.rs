//! The command line of `courser proxy`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use courser::masque::Prefix;
use courser_units::parse_duration;

use super::prefixes::parse_prefix;
use super::rules::RuleArguments;
use crate::serve::args::{CertificateArguments, LogFormat, parse_admin};
use crate::values::{parse_listen, parse_shards};

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Listen on this address, UDP and TCP; repeatable [default: 127.0.0.1:4433 and [::1]:4433]
    ///
    /// Clients speak TLS or QUIC to it. Port 0 lets the system choose a port. Sockets that a service manager has
    /// opened (LISTEN_FDS) take the place of the default.
    #[arg(short, long, value_name = "ADDR", value_parser = parse_listen)]
    pub(super) listen: Vec<SocketAddr>,

    /// Also serve HTTP/1.1 without TLS at this address, such as 127.0.0.1:3128; repeatable
    ///
    /// For clients that do not support TLS to their proxy. Networks in between can read credentials and targets.
    #[arg(long, value_name = "ADDR", value_parser = parse_listen)]
    pub(super) plain: Vec<SocketAddr>,

    /// Serve TCP: CONNECT, and requests for http URLs [default: TCP and UDP]
    #[arg(long)]
    pub(super) tcp: bool,

    /// Serve UDP: CONNECT-UDP (RFC 9298) [default: TCP and UDP]
    #[arg(long)]
    pub(super) udp: bool,

    #[command(flatten)]
    pub(super) ip: IpArguments,

    #[command(flatten)]
    pub(super) clients: ClientArguments,

    #[command(flatten)]
    pub(super) rules: RuleArguments,

    #[command(flatten)]
    pub(super) limits: LimitArguments,

    /// Host name of the proxy; repeatable
    ///
    /// Required with --acme; added to the names of a generated certificate otherwise.
    #[arg(short, long, value_name = "NAME", help_heading = "Certificates")]
    pub(super) domain: Vec<String>,

    #[command(flatten)]
    pub(super) certificate: CertificateArguments,

    /// Number of sockets and tasks for the QUIC connections of each address, 1 to 256 [default: the number of cores]
    #[arg(long, value_name = "N", value_parser = parse_shards(), help_heading = "Protocols")]
    pub(super) shards: Option<u16>,

    /// Serve clients over HTTP/2 and HTTP/1.1 only
    #[arg(long, help_heading = "Protocols")]
    pub(super) no_quic: bool,

    /// Serve clients over HTTP/3 only
    #[arg(
        id = "no_tcp",
        long = "only-http3",
        conflicts_with = "no_quic",
        help_heading = "Protocols"
    )]
    pub(super) only_http3: bool,

    #[command(flatten)]
    pub(super) logging: LoggingArguments,
}

/// The network of IP tunnels.
#[derive(Args, Debug)]
pub(crate) struct IpArguments {
    /// Serve IP: CONNECT-IP (RFC 9484), with client addresses from this prefix, such as 10.89.0.0/16; repeatable
    ///
    /// Clients run 'courser tunnel'. Their packets pass through a new TUN device, which needs Linux and root or
    /// CAP_NET_ADMIN, and this machine has to forward them. --allow and --deny judge the destination of each packet, and
    /// pings as port 0. Combine it with --tcp and --udp to serve these too.
    #[arg(long, value_name = "POOL", value_parser = parse_prefix)]
    pub(super) ip: Vec<Prefix>,

    /// Name of the interface of --ip [default: the next free one, such as tun0]
    #[arg(long, value_name = "NAME", requires = "ip")]
    pub(super) tun: Option<String>,
}

/// Who may use the proxy.
#[derive(Args, Debug)]
#[command(next_help_heading = "Clients")]
pub(crate) struct ClientArguments {
    /// Serve the clients in this file only: one name:hash per line
    ///
    /// A hash is bcrypt, as 'htpasswd -nB NAME' prints it, for a password (Basic), or one of --make-token for a
    /// token (Bearer, or as a password). '#' begins a comment. Clients send Proxy-Authorization. The file is read again
    /// on SIGHUP.
    #[arg(long, value_name = "FILE")]
    pub(super) auth: Option<PathBuf>,

    /// Serve everybody who can connect, also from other machines
    ///
    /// Without --auth, the proxy otherwise listens on loopback addresses only: an open proxy on the internet is found
    /// and misused within hours.
    #[arg(long, conflicts_with = "auth")]
    pub(super) open: bool,

    /// Print a new token for a client and its line for the file of --auth, and exit
    #[arg(long, value_name = "NAME", conflicts_with_all = ["auth", "open", "listen"])]
    pub(super) make_token: Option<String>,
}

/// What clients may use.
#[derive(Args, Debug)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitArguments {
    /// Maximum number of tunnels of all protocols together
    ///
    /// At most nine tenths of the files that the process may still open when the first one begins.
    #[arg(long, value_name = "N", default_value = "65536", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) tunnels: u32,

    /// Maximum number of tunnels of a client
    ///
    /// A client is a name in the file of --auth, or else an address, or a network of 64 bits of IPv6.
    #[arg(long, value_name = "N", default_value = "256", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) tunnels_per_client: u32,

    /// Close tunnels over TCP that are idle for this long [default: 3600]
    #[arg(long, value_name = "SECONDS", value_parser = parse_duration)]
    pub(super) tcp_idle: Option<Duration>,

    /// Close tunnels over UDP that are idle for this long
    ///
    /// RFC 9298 §3.1 asks for at least two minutes. Those for IP may be idle for an hour.
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = parse_duration)]
    pub(super) udp_idle: Duration,

    /// Time limit for connecting to a target over TCP [default: 10]
    #[arg(long, value_name = "SECONDS", value_parser = parse_duration)]
    pub(super) connect_timeout: Option<Duration>,

    /// Time limit for tunnels that are open after SIGTERM or SIGINT
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = parse_duration)]
    pub(super) drain_timeout: Duration,
}

/// What the proxy reports.
#[derive(Args, Debug)]
#[command(next_help_heading = "Logging and monitoring")]
pub(crate) struct LoggingArguments {
    /// Log every request and tunnel at its end: common (text) or json [default format: common]
    ///
    /// A line has the time, the client, its name, the target, the status, the address that was reached, the bytes and
    /// dropped packets in both directions, and the reason of the end or of the refusal.
    #[arg(short, long, value_name = "FORMAT", num_args = 0..=1, require_equals = true,
          default_missing_value = "common", hide_possible_values = true)]
    pub(super) access_log: Option<LogFormat>,

    /// Write the access log to a file instead of standard output
    ///
    /// The file is reopened on SIGHUP, for log rotation.
    #[arg(long, value_name = "FILE", requires = "access_log")]
    pub(super) access_log_file: Option<PathBuf>,

    /// Serve a live page, metrics and health checks at this address
    #[arg(long, value_name = "ADDR", value_parser = parse_admin)]
    pub(super) admin: Option<SocketAddr>,

    /// Another host name of the --admin address; repeatable
    #[arg(long, value_name = "NAME", requires = "admin")]
    pub(super) admin_host: Vec<String>,

    /// Require the bearer token in this file for the data of --admin
    #[arg(long, value_name = "FILE", requires = "admin")]
    pub(super) admin_token_file: Option<PathBuf>,

    /// Write a qlog trace of every QUIC connection to this directory
    #[arg(long, value_name = "DIR", env = "QLOGDIR", hide_env_values = true)]
    pub(super) qlog: Option<PathBuf>,

    /// Print events as JSON, one object per line
    #[arg(long)]
    pub(super) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  courser proxy
      Proxy for programs of this machine: curl --proxy https://localhost:4433 --proxy-insecure URL
  courser proxy --make-token alice >> clients
      Add a client to a file, and print its token
  courser proxy --listen [::]:443 --cert cert.pem --key key.pem --auth clients
      Proxy for clients with a password or token
  courser proxy --plain 127.0.0.1:3128 --allow 10.0.0.0/8:443 --deny all
      Proxy without TLS that reaches one network only
  courser proxy --listen [::]:443 --cert cert.pem --key key.pem --auth clients --ip 10.89.0.0/16 --udp
      VPN for 'courser tunnel', and UDP for browsers and the like
  courser get --proxy masque://proxy.example --proxy-user alice:TOKEN --http3 URL
      Use it over HTTP/3, with HTTP/3 to the server inside";
