//! Servers that may offer an origin over HTTP/3.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

use tokio::task::JoinSet;

use super::super::alt_svc::reach;
use super::super::core::Core;
use super::super::origin::{Origin, authority};
use super::super::resolve::ServiceRecord;

/// The addresses of one or several equivalent servers.
#[derive(Debug)]
pub(super) struct ServerAddresses {
    pub(super) at: At,
    /// The `host:port` of an alternative that differs from the origin (RFC 7838 §5).
    pub(super) alternative: Option<Box<str>>,
    pub(super) source: Source,
}

/// The source from which a server is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Source {
    /// The origin announced it (RFC 7838), and can withdraw that.
    Announcement,
    /// An HTTPS record (RFC 9460).
    Record,
}

#[derive(Debug)]
pub(super) enum At {
    /// The addresses of the origin with this port.
    Port(u16),
    /// Addresses that were resolved for an HTTPS record or alternative.
    Addresses(Vec<SocketAddr>),
}

/// Starts the search for servers in announced alternatives and HTTPS records.
pub(super) fn begin(
    core: &Arc<Core>,
    origin: &Origin,
    destination: (&str, u16),
    searches: &mut JoinSet<Vec<ServerAddresses>>,
) {
    let (host, port) = destination;
    let own_port = port;
    for alternative in core.alt_svc().alternatives(SystemTime::now(), origin) {
        let (core, host) = (core.clone(), host.to_owned());
        let (other, port) = (alternative.host(origin).to_owned(), alternative.port);
        let is_here = other == origin.host();
        let is_other = !alternative.is_same_authority(origin);
        let name = is_other.then(|| authority(&other, port).into());
        searches.spawn(async move {
            let found = if is_here || other == host {
                Some(At::Port(port))
            } else {
                resolve_other_host(&core, (&other, port), (&host, own_port)).await
            };
            let server = |at| ServerAddresses {
                at,
                alternative: name,
                source: Source::Announcement,
            };
            found.map(server).into_iter().collect()
        });
    }
    // If the user has chosen the destination, HTTPS records are ignored.
    let is_chosen = core.settings.is_overridden(host, port) || host != origin.host();
    if is_chosen || origin.ip().is_some() {
        return;
    }
    let (core, host) = (core.clone(), host.to_owned());
    searches.spawn(async move {
        // An error is ignored, because the addresses of the origin are looked up independently.
        let services = core
            .resolver
            .services(&host, port)
            .await
            .unwrap_or_default();
        let mut found = Vec::new();
        for service in services.iter().filter(|service| service.offers_http3()) {
            let server = |at| ServerAddresses {
                at,
                alternative: None,
                source: Source::Record,
            };
            found.extend(of_service(&core, service, (&host, port)).await.map(server));
        }
        found
    });
}

async fn of_service(
    core: &Arc<Core>,
    service: &ServiceRecord,
    (host, port): (&str, u16),
) -> Option<At> {
    let port = service.port.unwrap_or(port);
    let target = service.target.as_deref().filter(|target| *target != host);
    if !service.hints.is_empty() {
        let hints = service.hints.iter().map(|ip| SocketAddr::from((*ip, port)));
        return Some(At::Addresses(core.settings.of_family(hints).collect()));
    }
    match target {
        None => Some(At::Port(port)),
        Some(target) => at(core, target, port).await,
    }
}

/// Resolves an alternative on a host other than that of the origin.
async fn resolve_other_host(
    core: &Arc<Core>,
    other: (&str, u16),
    origin: (&str, u16),
) -> Option<At> {
    let mut others = core.lookup(other.0, other.1).await.ok()?;
    if others.iter().any(reach::is_internal) {
        let origin = core.lookup(origin.0, origin.1).await.unwrap_or_default();
        others = reach::allowed(others, &origin);
    }
    (!others.is_empty()).then_some(At::Addresses(others))
}

async fn at(core: &Arc<Core>, host: &str, port: u16) -> Option<At> {
    core.lookup(host, port).await.ok().map(At::Addresses)
}
