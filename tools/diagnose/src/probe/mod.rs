//! Examines a QUIC server in a handful of handshakes, and grades it with reasons.
//!
//! [`run`] contacts only the host that is named: at most [`MOST_HANDSHAKES`] handshakes (TLS over TCP
//! included), one datagram of an unknown version, and a few requests with the user agent [`USER_AGENT`].
//! Each step has a time limit. The result is a [`Report`]: [`Facts`], and [`Finding`]s that are
//! derived from them.

mod arguments;
mod dial;
mod facts;
mod judge;
mod page;
mod records;
mod report;
mod steps;
mod talk;
mod tap;
mod trust;
mod wire;

use std::net::SocketAddr;
use std::sync::Arc;

use courser_measure::{Failure, target};

use crate::HTTPS;
use crate::probe::dial::{Dialler, Line};
use crate::probe::steps::{first, further, outside, versions};
use crate::probe::talk::Asker;
use crate::probe::trust::Witness;

pub use crate::finding::{Finding, Verdict};
pub use crate::probe::arguments::Arguments;
pub use crate::probe::dial::MOST_HANDSHAKES;
pub use crate::probe::facts::{
    Chain, Exchange, Facts, First, Move, Parameters, Priorities, Refusal, Resumed, Settings, Small,
};
pub use crate::probe::report::{Grade, Report};
pub use crate::probe::talk::USER_AGENT;

/// Examines a server. Calls `on_step` with the name of each step before it begins.
///
/// A server that does not answer is a report with the reason and the grade F. Later steps that fail leave their
/// part of the report out.
///
/// # Errors
/// When the host cannot be resolved, or the flags cannot be used.
pub async fn run(arguments: &Arguments, mut on_step: impl FnMut(&str)) -> Result<Report, Failure> {
    let (host, port) = target::split_target(&arguments.host, HTTPS)?;
    let addresses = target::resolve(host, port)?;
    let name = arguments.server_name.as_deref();
    let name = name.unwrap_or_else(|| target::without_zone(host));
    let witness = Arc::new(Witness::new(arguments.ca.as_deref())?);
    let mut asker = Asker {
        authority: authority(name, port),
        path: arguments.path.clone(),
        limit: arguments.timeout,
        method: http::Method::HEAD,
        padding: 0,
    };
    let mut dialler = Dialler {
        address: addresses[0],
        name: name.to_owned(),
        limit: arguments.timeout,
        used: 0,
        witness: witness.clone(),
    };
    let config = dialler.config(&arguments.alpn)?;
    on_step("handshake");
    let line = first_line(&mut dialler, &addresses, &config).await?;
    let mut facts = empty(&arguments.host, dialler.address);
    let line = match line {
        Ok(line) => line,
        Err(error) => {
            facts.handshakes = dialler.used;
            facts.first = Err(error);
            return Ok(Report::new(facts));
        }
    };
    on_step("requests and a change of port");
    let (seen, settings) = first::examine(&line, &witness, &mut asker).await;
    let protocol = seen.protocol.clone();
    line.close().await;
    let may_migrate = seen
        .parameters
        .as_ref()
        .is_some_and(|it| !it.disable_active_migration);
    facts.first = Ok(seen);
    on_step("an unknown version");
    let patience = arguments.timeout.min(FOR_SILENCE);
    let versions = versions::negotiate(dialler.address, patience).await;
    facts.versions = versions.ok().flatten();
    on_step("resumption and migration");
    let resumed = further::resume(
        &mut dialler,
        config,
        (&protocol, settings),
        &asker,
        may_migrate,
    );
    facts.resumed = part(resumed.await);
    more_handshakes(&mut dialler, &arguments.alpn, &mut facts, &mut on_step).await;
    let is_http3 = protocol == courser::h3::ALPN;
    if is_http3 && !arguments.no_tcp && dialler.take() {
        on_step("TCP");
        let url = format!("https://{}{}", asker.authority, asker.path);
        let found =
            outside::alt_svc(dialler.address, &url, name, &witness, arguments.timeout).await;
        facts.tcp = Some(found);
    }
    #[cfg(feature = "dns")]
    if is_http3 && has_records(name) {
        facts.https_record = Some(outside::https_record(name, port, arguments.timeout).await);
    }
    facts.handshakes = dialler.used;
    Ok(Report::new(facts))
}

/// Makes the handshakes that need no exchange.
async fn more_handshakes(
    dialler: &mut Dialler,
    protocols: &[String],
    facts: &mut Facts,
    on_step: &mut impl FnMut(&str),
) {
    on_step("a small first flight");
    facts.small = part(further::small(dialler, protocols).await);
    on_step("version 2");
    facts.version2 = part(further::version2(dialler, protocols).await);
    on_step("an unknown protocol");
    facts.unknown_alpn = further::unknown_alpn(dialler).await.unwrap_or_default();
}

/// Returns a part of the report. A step that fails leaves the reason there, and the other steps continue.
fn part<T>(step: Result<Option<Result<T, String>>, Failure>) -> Option<Result<T, String>> {
    step.unwrap_or_else(|failure| Some(Err(failure.to_string())))
}

/// Makes the first handshake, with the first address or with one of the other family: a name may have both,
/// as localhost has.
async fn first_line(
    dialler: &mut Dialler,
    addresses: &[SocketAddr],
    config: &courser::ClientConfig,
) -> Result<Result<Line, String>, Failure> {
    let line = dialler.first(config.clone()).await?;
    let first = dialler.address;
    let other = addresses.iter().find(|it| it.is_ipv4() != first.is_ipv4());
    let (Err(error), Some(other)) = (&line, other) else {
        return Ok(line);
    };
    dialler.address = *other;
    let second = dialler.first(config.clone()).await?;
    if second.is_err() {
        dialler.address = first;
        return Ok(Err(error.clone()));
    }
    Ok(second)
}

fn empty(host: &str, address: SocketAddr) -> Facts {
    Facts {
        host: host.to_owned(),
        address,
        handshakes: 0,
        first: Err("not tried".to_owned()),
        versions: None,
        version2: None,
        resumed: None,
        small: None,
        unknown_alpn: None,
        tcp: None,
        https_record: None,
    }
}

/// Returns true for names that may have records: neither addresses nor names of this machine (RFC 6761 §6.3).
#[cfg(feature = "dns")]
fn has_records(name: &str) -> bool {
    let is_local = name == "localhost" || name.ends_with(".localhost");
    !is_local && name.parse::<std::net::IpAddr>().is_err()
}

/// Returns the authority of a URL: IPv6 addresses have brackets, and the usual port is left out.
fn authority(name: &str, port: u16) -> String {
    let host = match name.contains(':') {
        true => format!("[{name}]"),
        false => name.to_owned(),
    };
    match port {
        HTTPS => host,
        _ => format!("{host}:{port}"),
    }
}

/// A server that does not negotiate versions is silent.
const FOR_SILENCE: std::time::Duration = std::time::Duration::from_millis(1500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_cannot_be_made_is_a_part_with_its_reason() {
        let failed = Err(Failure::new("no socket"));
        assert_eq!(part::<u32>(failed), Some(Err("no socket".to_owned())));
        assert_eq!(part::<u32>(Ok(None)), None);
        assert_eq!(part(Ok(Some(Ok(1)))), Some(Ok(1)));
    }
}
