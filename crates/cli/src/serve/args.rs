//! What `courser serve` may be told.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use courser::Algorithm;

use super::proxy::Backend;
use crate::args::{parse_controller, parse_listen};
use crate::quantity::{parse_duration, parse_quantity};

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The folder to serve. [default: the current one]
    #[arg(value_name = "DIR", conflicts_with_all = ["root", "proxy"])]
    pub(crate) folder: Option<PathBuf>,

    /// The same as DIR.
    #[arg(short, long, value_name = "DIR", conflicts_with = "proxy")]
    pub(crate) root: Option<PathBuf>,

    /// Address to listen on, UDP and TCP; may be given several times. Port 0 lets the system choose
    /// one. [default: 127.0.0.1:4433 and [::1]:4433, with a certificate [::]:4433, with --acme
    /// [::]:443]
    #[arg(short, long, value_name = "ADDR", value_parser = parse_listen)]
    pub(crate) listen: Vec<SocketAddr>,

    /// A name that the server is for; may be given several times. For --acme, and for certificates
    /// that are made here.
    #[arg(short, long, value_name = "NAME")]
    pub(crate) domain: Vec<String>,

    #[command(flatten)]
    pub(crate) files: FileArguments,

    /// Passes requests on to this server instead: http://HOST[:PORT], or h2c:// for HTTP/2.
    #[arg(long, value_name = "URL", value_parser = Backend::parse)]
    pub(crate) proxy: Option<Backend>,

    /// How long the server behind --proxy may take to begin its answer, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = parse_duration,
          requires = "proxy")]
    pub(crate) proxy_timeout: Duration,

    #[command(flatten)]
    pub(crate) certificate: CertificateArguments,

    /// Compresses nothing on the fly.
    #[arg(long)]
    pub(crate) no_compress: bool,

    /// Writes a line for each request: common, combined or json.
    #[arg(short, long, value_name = "FORMAT", num_args = 0..=1, require_equals = true,
          default_missing_value = "common")]
    pub(crate) access_log: Option<LogFormat>,

    /// Writes them there instead of to standard output. Opened anew at SIGHUP.
    #[arg(long, value_name = "FILE", requires = "access_log")]
    pub(crate) access_log_file: Option<PathBuf>,

    /// Serves health, metrics and a live page over plain HTTP there. Nobody is asked for a
    /// password: keep it to this machine.
    #[arg(long, value_name = "ADDR", value_parser = parse_admin)]
    pub(crate) admin: Option<SocketAddr>,

    /// Slowest rate at which bodies of requests have to come, in bytes a second. 0 waits for ever.
    /// Not for CONNECT and gRPC, whose streams may be silent.
    #[arg(long, value_name = "N", default_value = "240")]
    pub(crate) body_rate: u32,

    /// How long a body may be waited for before --body-rate counts, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = parse_duration)]
    pub(crate) body_grace: Duration,

    /// How long requests may take after SIGTERM or SIGINT, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = parse_duration)]
    pub(crate) drain_timeout: Duration,

    /// How long the server goes on after that signal, but not ready, in seconds: time for load
    /// balancers to notice.
    #[arg(long, value_name = "SECONDS", value_parser = parse_duration)]
    pub(crate) drain_delay: Option<Duration>,

    /// Serves HTTP/3 alone.
    #[arg(long, conflicts_with = "no_quic")]
    pub(crate) no_tcp: bool,

    /// Serves HTTP/2 and HTTP/1.1 alone.
    #[arg(long)]
    pub(crate) no_quic: bool,

    /// Does not tell clients over TCP about HTTP/3.
    #[arg(long)]
    pub(crate) no_alt_svc: bool,

    /// Congestion controller: newreno, cubic, bbr or prague.
    #[arg(long, value_name = "NAME", default_value = "cubic", value_parser = parse_controller)]
    pub(crate) cc: Algorithm,

    /// Writes a trace of each QUIC connection into this directory (qlog, JSON-SEQ).
    #[arg(long, value_name = "DIR", env = "QLOGDIR")]
    pub(crate) qlog: Option<PathBuf>,

    /// Writes what happens to standard output as JSON, one object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How files are served.
#[derive(Args, Clone, Debug)]
pub(crate) struct FileArguments {
    /// Lists folders that have no index.html.
    #[arg(short, long, conflicts_with = "proxy")]
    pub(crate) browse: bool,

    /// Serves FILE.zst, FILE.br or FILE.gz instead of FILE to those who take it.
    #[arg(long, conflicts_with = "proxy")]
    pub(crate) precompressed: bool,

    /// Serves names that begin with a dot too. Without it only /.well-known is.
    #[arg(long, conflicts_with = "proxy")]
    pub(crate) dotfiles: bool,

    /// Follows symbolic links out of the folder too. Without it only those that stay within.
    #[arg(long, conflicts_with = "proxy")]
    pub(crate) follow_symlinks: bool,

    /// Memory for small files and their compressed forms, in bytes or with a suffix such as 64MiB.
    /// 0 reads every file anew.
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = parse_quantity,
          conflicts_with = "proxy")]
    pub(crate) cache_size: u64,
}

/// Where the certificate comes from. Without any of these one is made in memory.
#[derive(Args, Debug)]
pub(crate) struct CertificateArguments {
    /// Certificate chain, PEM. Read anew when it changes, and at SIGHUP.
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) cert: Option<PathBuf>,

    /// Private key of the certificate, PEM. On Linux the keys of stateless resets come from it.
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,

    /// Keeps a certificate for development there, so that its hash stays the same, and the secret of
    /// stateless resets, so that clients of a server that crashed learn of it when it is back.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["cert", "acme"])]
    pub(crate) tls_dev_dir: Option<PathBuf>,

    /// Gets a certificate for --domain from Let's Encrypt. The server has to be reached on TCP port
    /// 443.
    #[cfg_attr(
        not(feature = "acme"),
        doc = "Not in this build: needs --features acme."
    )]
    #[arg(long, requires = "domain", conflicts_with_all = ["cert", "no_tcp"])]
    pub(crate) acme: bool,

    /// Address for mails about the ACME account.
    #[arg(long, value_name = "ADDRESS", requires = "acme")]
    pub(crate) email: Option<String>,

    /// Where the ACME account and certificate are kept, and the secret of stateless resets.
    #[arg(
        long,
        value_name = "DIR",
        requires = "acme",
        default_value = "courser-acme"
    )]
    pub(crate) acme_dir: PathBuf,

    /// Another ACME server, by the URL of its directory.
    #[arg(long, value_name = "URL", requires = "acme")]
    pub(crate) acme_server: Option<String>,

    /// Trusts ACME servers with certificates from this PEM file instead of the system's.
    #[arg(long, value_name = "FILE", requires = "acme")]
    pub(crate) acme_ca: Option<PathBuf>,
}

/// What a line of the access log looks like.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LogFormat {
    /// The Common Log Format, with the protocol as HTTP says it.
    Common,
    /// The same, with Referer and User-Agent.
    Combined,
    /// One object a line.
    Json,
}

fn parse_admin(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        format!("'{text}' is not an address with a port: use one such as 127.0.0.1:9443")
    })
}
