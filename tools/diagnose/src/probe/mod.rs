//! Examines a QUIC server with a few handshakes, and grades it with reasons.
//!
//! [`run`] contacts only the specified host, with at most [`MAX_HANDSHAKES`] handshakes (including TLS over
//! TCP), datagrams of an unknown version, and a few requests with the user agent [`USER_AGENT`]. Each step
//! has a time limit. The result is a [`Report`] of [`Facts`], and of [`Finding`]s that are derived from them.

mod arguments;
mod connector;
mod facts;
mod judge;
mod page;
mod recording_socket;
mod recording_verifier;
mod records;
mod report;
mod requests;
mod steps;
mod wire;

use std::net::SocketAddr;
use std::sync::Arc;

use courser_measure::{Failure, target};

use crate::HTTPS;
use crate::probe::connector::{Connector, ProbeConnection};
use crate::probe::recording_verifier::RecordingVerifier;
use crate::probe::requests::RequestTemplate;
use crate::probe::steps::outside::Place;
use crate::probe::steps::{first, further, outside, versions};

pub use crate::finding::{Finding, Verdict};
pub use crate::probe::arguments::Arguments;
pub use crate::probe::connector::MAX_HANDSHAKES;
pub use crate::probe::facts::{
    AddressChange, Announced, AnnouncedOutcome, Chain, Exchange, Facts, FirstConnection,
    Parameters, Priorities, Refusal, ResumedConnection, Settings, SmallFirstFlight,
};
pub use crate::probe::report::{Grade, Report};
pub use crate::probe::requests::USER_AGENT;

/// Examines a server. Calls `on_step` with the name of each step before it begins.
///
/// If the server does not answer, the report contains the reason and the grade F. If a later step fails, its
/// part of the report contains the reason or is missing.
///
/// # Errors
/// Returns an error if the host cannot be resolved, or the flags cannot be used.
pub async fn run(arguments: &Arguments, mut on_step: impl FnMut(&str)) -> Result<Report, Failure> {
    let (host, port) = target::split_target(&arguments.host, HTTPS)?;
    let addresses = target::resolve(host, port)?;
    let name = arguments.server_name.as_deref();
    let name = name.unwrap_or_else(|| target::without_zone(host));
    let verifier = Arc::new(RecordingVerifier::new(arguments.ca.as_deref())?);
    let mut template = template(arguments, authority(name, port));
    let mut connector = Connector {
        address: addresses[0],
        name: name.to_owned(),
        limit: arguments.timeout,
        used: 0,
        verifier: verifier.clone(),
    };
    let config = connector.config(&arguments.alpn)?;
    on_step("handshake");
    let probe = first_connection(&mut connector, &addresses, &config).await?;
    let mut facts = empty(&arguments.host, connector.address);
    let probe = match probe {
        Ok(probe) => probe,
        Err(error) => {
            on_step("announcements");
            announcements(&mut connector, arguments, &template, &mut facts).await;
            let probe = at_announced_port(&mut connector, &config, &mut facts).await?;
            let Some(probe) = probe else {
                facts.handshakes = connector.used;
                facts.first = Err(with_announcement(error, &facts));
                return Ok(Report::new(facts));
            };
            facts.address = connector.address;
            probe
        }
    };
    on_step("requests and a change of port");
    let (seen, settings) = first::examine(&probe, &verifier, &mut template).await;
    let protocol = seen.protocol.clone();
    probe.close().await;
    let may_migrate = seen
        .parameters
        .as_ref()
        .is_some_and(|it| !it.disable_active_migration);
    facts.first = Ok(seen);
    on_step("an unknown version");
    let limit = arguments.timeout.min(VERSIONS_TIMEOUT);
    let versions = versions::negotiate(connector.address, limit);
    facts.versions = versions.await.ok().flatten();
    on_step("resumption and migration");
    let resumed = further::resume(
        &mut connector,
        config.clone(),
        (&protocol, settings),
        &template,
        may_migrate,
    );
    facts.resumed = part(resumed.await);
    more_handshakes(&mut connector, &arguments.alpn, &mut facts, &mut on_step).await;
    let is_http3 = protocol == courser::h3::ALPN;
    if is_http3 && facts.tcp.is_none() && facts.announced.is_none() {
        on_step("announcements");
        announcements(&mut connector, arguments, &template, &mut facts).await;
        try_announced_port(&mut connector, &config, &mut facts).await?;
    }
    facts.handshakes = connector.used;
    Ok(Report::new(facts))
}

/// Looks for the place that the server announces for HTTP/3, over TCP and in HTTPS records. `announced` of the
/// facts is not set if that is the port of the user.
async fn announcements(
    connector: &mut Connector,
    arguments: &Arguments,
    template: &RequestTemplate,
    facts: &mut Facts,
) {
    let (address, limit) = (connector.address, arguments.timeout);
    let name = connector.name.clone();
    let mut place = None;
    if !arguments.no_tcp && connector.take() {
        let url = format!("https://{}{}", template.authority, template.path);
        let found = outside::alt_svc(address, &url, &name, &connector.verifier, limit).await;
        let field = found.as_ref().ok().and_then(Option::as_deref);
        place = field.and_then(Place::of_field);
        facts.tcp = Some(found);
    }
    #[cfg(feature = "dns")]
    if has_records(&name) {
        let found = outside::https_record(&name, address.port(), limit).await;
        if let (None, Ok(records)) = (&place, &found) {
            place = records.port.map(|port| Place {
                host: String::new(),
                port,
            });
        }
        facts.https_record = Some(found.map(|records| records.protocols));
    }
    facts.announced = place
        .filter(|place| place.port != address.port() || !is_same_host(place, &name))
        .map(|place| Announced {
            outcome: match is_same_host(&place, &name) {
                true => AnnouncedOutcome::Failed("not tried".to_owned()),
                false => AnnouncedOutcome::NotContacted,
            },
            place: place.to_string(),
        });
}

fn is_same_host(place: &Place, name: &str) -> bool {
    place.host.is_empty() || place.host.eq_ignore_ascii_case(name)
}

/// Connects to the announced port once, if there is one.
async fn try_announced_port(
    connector: &mut Connector,
    config: &courser::ClientConfig,
    facts: &mut Facts,
) -> Result<(), Failure> {
    let probe = at_announced_port(connector, config, facts).await?;
    if let (Some(probe), Some(announced)) = (probe, &mut facts.announced) {
        announced.outcome = AnnouncedOutcome::Answers;
        probe.close().await;
    }
    Ok(())
}

/// Connects to the announced port of the same host. Stores the outcome if that fails, and examines the port from
/// then on otherwise.
async fn at_announced_port(
    connector: &mut Connector,
    config: &courser::ClientConfig,
    facts: &mut Facts,
) -> Result<Option<ProbeConnection>, Failure> {
    let Some(announced) = &mut facts.announced else {
        return Ok(None);
    };
    let port = announced.place.rsplit(':').next();
    let port = port.and_then(|port| port.parse().ok());
    let (Some(port), AnnouncedOutcome::Failed(_)) = (port, &announced.outcome) else {
        return Ok(None);
    };
    let own = connector.address;
    connector.address.set_port(port);
    match connector.first(config.clone()).await? {
        Ok(probe) => {
            announced.outcome = AnnouncedOutcome::Examined;
            Ok(Some(probe))
        }
        Err(error) => {
            announced.outcome = AnnouncedOutcome::Failed(error);
            connector.address = own;
            Ok(None)
        }
    }
}

/// Returns the failure of the first handshake with the failure of the announced port.
fn with_announcement(error: String, facts: &Facts) -> String {
    match &facts.announced {
        None => error,
        Some(Announced { place, outcome }) => match outcome {
            AnnouncedOutcome::Failed(other) => {
                format!("{error}; the server announces {place} for HTTP/3: {other}")
            }
            _ => format!("{error}; the server announces {place} for HTTP/3"),
        },
    }
}

fn template(arguments: &Arguments, authority: String) -> RequestTemplate {
    RequestTemplate {
        authority,
        path: arguments.path.clone(),
        limit: arguments.timeout,
        method: http::Method::HEAD,
        padding: 0,
    }
}

/// Performs the handshakes without requests.
async fn more_handshakes(
    connector: &mut Connector,
    protocols: &[String],
    facts: &mut Facts,
    on_step: &mut impl FnMut(&str),
) {
    on_step("a small first flight");
    facts.small = part(further::small(connector, protocols).await);
    on_step("version 2");
    facts.version2 = part(further::version2(connector, protocols).await);
    on_step("an unknown protocol");
    facts.unknown_alpn = further::unknown_alpn(connector).await.unwrap_or_default();
}

/// Returns a part of the report. If the step failed, the part is the reason, and the other steps continue.
fn part<T>(step: Result<Option<Result<T, String>>, Failure>) -> Option<Result<T, String>> {
    step.unwrap_or_else(|failure| Some(Err(failure.to_string())))
}

/// Opens the first connection, to the first address or to one of the other family, because names such as
/// localhost have both.
async fn first_connection(
    connector: &mut Connector,
    addresses: &[SocketAddr],
    config: &courser::ClientConfig,
) -> Result<Result<ProbeConnection, String>, Failure> {
    let probe = connector.first(config.clone()).await?;
    let first = connector.address;
    let other = addresses.iter().find(|it| it.is_ipv4() != first.is_ipv4());
    let (Err(error), Some(other)) = (&probe, other) else {
        return Ok(probe);
    };
    connector.address = *other;
    let second = connector.first(config.clone()).await?;
    if second.is_err() {
        connector.address = first;
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
        announced: None,
    }
}

/// Returns true for names that may have DNS records: not addresses, and not localhost (RFC 6761 §6.3).
#[cfg(feature = "dns")]
fn has_records(name: &str) -> bool {
    let is_local = name == "localhost" || name.ends_with(".localhost");
    !is_local && name.parse::<std::net::IpAddr>().is_err()
}

/// Returns the authority of a URL, with brackets around IPv6 addresses and without the default port.
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

/// The time limit for Version Negotiation, because some servers do not answer.
const VERSIONS_TIMEOUT: std::time::Duration = std::time::Duration::from_millis(1500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_step_is_reported_with_its_reason() {
        let failed = Err(Failure::new("no socket"));
        assert_eq!(part::<u32>(failed), Some(Err("no socket".to_owned())));
        assert_eq!(part::<u32>(Ok(None)), None);
        assert_eq!(part(Ok(Some(Ok(1)))), Some(Ok(1)));
    }
}
