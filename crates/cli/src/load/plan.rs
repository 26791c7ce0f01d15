//! What a run does, whatever the style of its flags.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use courser::CertificateRequests;
use courser_measure::tls::{self, Trust, Versions};
use courser_qlog::QlogDirectory;

use super::args::{Arguments, Flags, Style, Version};
use super::pattern::Pattern;
use super::request::Requests;
use super::target::Target;
use crate::error::Failure;

/// What a run does.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) target: Target,
    pub(super) requests: Requests,
    pub(super) protocols: Protocols,
    pub(super) amount: Amount,
    pub(super) connections: u64,
    pub(super) threads: u64,
    /// Requests at once on each connection.
    pub(super) streams: u64,
    /// Requests a second over all connections.
    pub(super) rate: Option<f64>,
    /// Latency counts from when a request was due.
    pub(super) is_corrected: bool,
    /// Connections begun a second.
    pub(super) connection_rate: Option<f64>,
    pub(super) timeout: Option<Duration>,
    pub(super) connect_timeout: Duration,
    pub(super) inactivity_timeout: Duration,
    pub(super) stream_window: Option<u32>,
    pub(super) connection_window: Option<u32>,
    pub(super) mtu: Option<u16>,
    /// Many UDP datagrams leave in one system call, where the system can.
    pub(super) segmentation_offload: bool,
    pub(super) tls: Arc<rustls::ClientConfig>,
    pub(super) qlog: Option<Arc<QlogDirectory>>,
    pub(super) log_file: Option<PathBuf>,
}

/// When a run is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Amount {
    /// After so many requests.
    Requests(u64),
    /// After a time.
    Time {
        warm_up: Duration,
        measured: Duration,
        /// What is under way then is waited for.
        waits: bool,
    },
}

/// What is spoken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Protocols {
    /// HTTP/3 over QUIC.
    Quic,
    /// What TLS on TCP agrees on, of these.
    Tls(Vec<Vec<u8>>),
    /// HTTP/1.1 on bare TCP.
    Clear1,
    /// HTTP/2 on bare TCP, by prior knowledge (RFC 9113 §3.3).
    Clear2,
}

impl Plan {
    pub(super) fn new(arguments: &Arguments) -> Result<Self, Failure> {
        let flags = &arguments.flags;
        let pattern = pattern(flags)?;
        let (target, urls) = Target::read(flags, pattern.as_ref())?;
        let protocols = protocols(arguments.style, flags, target.is_secure)?;
        let (clients, requests, threads) = defaults(arguments.style);
        let connections = flags.clients.unwrap_or(clients);
        let amount = match flags.duration {
            Some(measured) => Amount::Time {
                warm_up: flags.warm_up_time.unwrap_or_default(),
                measured,
                waits: flags.wait_ongoing_requests_after_deadline,
            },
            None => Amount::Requests(flags.requests.unwrap_or(requests.max(connections))),
        };
        #[expect(clippy::cast_precision_loss, reason = "at most some thousands")]
        let rate = flags
            .qps
            .or(flags.rps.map(|rate| rate * connections as f64));
        Ok(Self {
            requests: Requests::new(flags, urls, pattern)?,
            amount,
            connections,
            threads: flags.threads.unwrap_or(threads).min(connections),
            streams: flags.max_concurrent_streams,
            rate,
            is_corrected: rate.is_some() && !flags.no_latency_correction,
            connection_rate: flags
                .rate
                .map(|rate| crate::output::to_f64(rate) / flags.rate_period.as_secs_f64()),
            timeout: flags.timeout,
            connect_timeout: flags.connect_timeout,
            inactivity_timeout: flags.connection_inactivity_timeout,
            stream_window: flags.window_bits.map(window),
            connection_window: flags.connection_window_bits.map(window),
            mtu: flags.max_udp_payload_size,
            segmentation_offload: !flags.no_udp_gso,
            tls: tls(flags, &protocols)?,
            qlog: traces(flags)?,
            log_file: flags.log_file.clone(),
            target,
            protocols,
        })
    }
}

/// What URLs are drawn from, if they are.
pub(super) fn pattern(flags: &Flags) -> Result<Option<Pattern>, Failure> {
    match flags.urls.as_slice() {
        _ if !flags.rand_regex_url => Ok(None),
        [url] => Pattern::read(url, flags.max_repeat).map(Some),
        urls => Err(Failure::new(format!(
            "--rand-regex-url takes one URL, not {}: write alternatives as (a|b)",
            urls.len()
        ))),
    }
}

/// Connections, requests and threads of a run that was told none.
fn defaults(style: Style) -> (u64, u64, u64) {
    match style {
        Style::H2load => (1, 1, 1),
        Style::Oha => {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            (50, 200, cores as u64)
        }
    }
}

fn window(bits: u8) -> u32 {
    (1 << bits) - 1
}

fn protocols(style: Style, flags: &Flags, is_secure: bool) -> Result<Protocols, Failure> {
    let (h1, h2) = (|| b"http/1.1".to_vec(), || b"h2".to_vec());
    let asked = flags
        .http_version
        .or(flags.h1.then_some(Version::One))
        .or(flags.h2.then_some(Version::Two))
        .or(flags.h3.then_some(Version::Three));
    let list: Vec<Vec<u8>> = flags
        .alpn_list
        .iter()
        .map(|name| name.trim().as_bytes().to_vec())
        .collect();
    if list.iter().any(|name| name == b"h3") && list.len() > 1 {
        return Err(Failure::new(
            "h3 runs over QUIC, the others over TCP: use either h3 or the others",
        ));
    }
    let known: [&[u8]; 3] = [b"h3", b"h2", b"http/1.1"];
    if let Some(other) = list.iter().find(|name| !known.contains(&name.as_slice())) {
        return Err(Failure::new(format!(
            "unknown protocol '{}': use h3, h2 or http/1.1",
            String::from_utf8_lossy(other)
        )));
    }
    let is_quic = asked == Some(Version::Three) || list.first().is_some_and(|name| name == b"h3");
    match (is_secure, asked) {
        _ if is_quic && !is_secure => Err(Failure::new(
            "HTTP/3 is always encrypted: use an https:// URL",
        )),
        _ if is_quic => Ok(Protocols::Quic),
        (false, Some(Version::Two)) => Ok(Protocols::Clear2),
        (false, _) => Ok(Protocols::Clear1),
        (true, _) if !list.is_empty() => Ok(Protocols::Tls(list)),
        (true, Some(Version::One)) => Ok(Protocols::Tls(vec![h1()])),
        (true, Some(_)) => Ok(Protocols::Tls(vec![h2()])),
        (true, None) if style == Style::Oha => Ok(Protocols::Tls(vec![h1()])),
        (true, None) => Ok(Protocols::Tls(vec![h2(), h1()])),
    }
}

fn tls(flags: &Flags, protocols: &Protocols) -> Result<Arc<rustls::ClientConfig>, Failure> {
    let trust = match &flags.ca {
        Some(path) => Trust::File(path.clone()),
        None if flags.insecure => Trust::Anybody,
        None => Trust::System,
    };
    let (versions, offered) = match protocols {
        Protocols::Quic => (Versions::Tls13, vec![b"h3".to_vec()]),
        Protocols::Tls(list) => (Versions::Tls13And12, list.clone()),
        Protocols::Clear1 | Protocols::Clear2 => (Versions::Tls13And12, Vec::new()),
    };
    let mut config = tls::client_of(&trust, versions, offered)?;
    CertificateRequests::install(&mut config);
    Ok(Arc::new(config))
}

fn traces(flags: &Flags) -> Result<Option<Arc<QlogDirectory>>, Failure> {
    let Some(path) = &flags.qlog_file_base else {
        return Ok(None);
    };
    crate::records::traces(path, Some("courser load")).map(Some)
}
