//! Converts the flags to the plan of a run.

use bytes::Bytes;
use courser_load::{Amount, Pattern, Plan, Protocols, RequestParts, Requests, Resume};
use courser_measure::tls::Trust;
use http::Uri;

use super::args::{Arguments, Flags, Style, Version};
use super::target;
use crate::error::Failure;
use crate::process::RECORDS;

/// Returns the plan of a run.
pub(super) fn plan(arguments: &Arguments) -> Result<Plan, Failure> {
    let flags = &arguments.flags;
    let pattern = pattern(flags)?;
    let (target, urls) = target::read(flags, pattern.as_ref())?;
    let is_secure = urls.iter().all(|url| url.scheme_str() == Some("https"));
    let protocols = protocols(arguments.style, flags, is_secure)?;
    if flags.rebind_every.is_some() && protocols != Protocols::Quic {
        return Err(Failure::new(
            "--rebind-every moves QUIC connections: use it with --h3",
        ));
    }
    let requests = requests(flags, &urls, pattern)?;
    let resume = Resume::of(
        flags.resume,
        flags.early_data,
        &protocols,
        requests.method(),
    )?;
    let (clients, count, threads) = defaults(arguments.style);
    let connections = flags.clients.unwrap_or(clients);
    let amount = match flags.duration {
        Some(measured) => Amount::Time {
            warm_up: flags.warm_up_time.unwrap_or_default(),
            measured,
            waits: flags.wait_ongoing_requests_after_deadline,
        },
        None => Amount::Requests(flags.requests.unwrap_or(count.max(connections))),
    };
    #[expect(clippy::cast_precision_loss, reason = "at most some thousands")]
    let rate = flags
        .qps
        .or(flags.rps.map(|rate| rate * connections as f64));
    let closes = flags.disable_keepalive || requests.closes();
    Ok(Plan {
        requests,
        amount,
        connections,
        threads: flags.threads.unwrap_or(threads).min(connections),
        streams: flags.max_concurrent_streams,
        rate,
        is_corrected: rate.is_some() && !flags.no_latency_correction,
        closes,
        resume,
        connection_rate: flags
            .rate
            .map(|rate| crate::output::to_f64(rate) / flags.rate_period.as_secs_f64()),
        timeout: flags.timeout,
        connect_timeout: flags.connect_timeout,
        inactivity_timeout: flags.connection_inactivity_timeout,
        stream_window: flags.window_bits.map(window),
        connection_window: flags.connection_window_bits.map(window),
        versions: crate::values::quic_versions(&flags.quic_version),
        mtu: flags.max_udp_payload_size,
        segmentation_offload: !flags.no_udp_gso,
        tls: protocols.tls_config(&trust(flags))?,
        sinks: RECORDS.sinks(flags.qlog_file_base.as_deref(), "courser load")?,
        rebind_every: flags.rebind_every,
        log_file: flags.log_file.clone(),
        target,
        protocols,
    })
}

/// Parses the pattern of --rand-regex-url.
pub(super) fn pattern(flags: &Flags) -> Result<Option<Pattern>, Failure> {
    match flags.urls.as_slice() {
        _ if !flags.rand_regex_url => Ok(None),
        [_] if !cfg!(feature = "rand-regex") => Err(Failure::new(crate::features::missing(
            "--rand-regex-url",
            "rand-regex",
        ))),
        [url] => Pattern::read(url, flags.max_repeat).map(Some),
        urls => Err(Failure::new(format!(
            "--rand-regex-url takes one URL, not {}: write alternatives as (a|b)",
            urls.len()
        ))),
    }
}

/// Returns the default numbers of connections, requests and threads.
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
    let version = flags
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
    let is_quic = version == Some(Version::Three) || list.first().is_some_and(|name| name == b"h3");
    match (is_secure, version) {
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

fn trust(flags: &Flags) -> Trust {
    match &flags.ca {
        Some(path) => Trust::File(path.clone()),
        None if flags.insecure => Trust::AnyServer,
        None => Trust::System,
    }
}

/// Returns the requests for `urls`, or for URLs that are generated from the pattern.
fn requests(flags: &Flags, urls: &[Uri], pattern: Option<Pattern>) -> Result<Requests, Failure> {
    let parts = RequestParts {
        method: flags.method.clone(),
        headers: flags.header.clone(),
        body: body(flags)?,
    };
    Requests::new(urls, parts, pattern)
}

fn body(flags: &Flags) -> Result<Option<Bytes>, Failure> {
    match (&flags.data, &flags.body) {
        (Some(path), _) => match std::fs::read(path) {
            Ok(body) => Ok(Some(body.into())),
            Err(error) => Err(Failure::new(format!(
                "cannot read the body from {}: {error}",
                path.display()
            ))),
        },
        (None, Some(text)) => Ok(Some(text.clone().into())),
        (None, None) => Ok(None),
    }
}
