//! The part of a proxy that all protocols share: who may have a tunnel, and how requests are refused.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use courser_http3_tokio::{self as h3, EarlyData};
use courser_masque::request::Refusal;
use courser_masque::{Limits, ProxyError};
use http::request::Parts;
use http::{Request, Response, StatusCode};

use crate::clients::{Client, Denied, Full, Permit, Table};
use crate::offer::Offer;
use crate::resolve::{Lookups, Resolver, system};

/// Admits clients, resolves names and refuses requests. Clones share the tunnels that are open.
#[derive(Clone)]
pub(crate) struct Front {
    pub(crate) name: Arc<str>,
    pub(crate) authentication: Authentication,
    pub(crate) resolver: Resolver,
    state: Arc<State>,
}

/// Returns the client of a request.
type Authenticate = dyn Fn(&Parts) -> Result<Client, Denied> + Send + Sync;

#[derive(Clone)]
pub(crate) enum Authentication {
    /// The program has not decided.
    Missing,
    None,
    By(Arc<Authenticate>),
}

/// What clones share.
#[derive(Debug, Default)]
struct State {
    table: Arc<Table>,
    lookups: Lookups,
    refused: AtomicU64,
}

impl Default for Front {
    fn default() -> Self {
        Self {
            name: "courser".into(),
            authentication: Authentication::Missing,
            resolver: system(),
            state: Arc::default(),
        }
    }
}

impl Front {
    pub(crate) fn open_tunnels(&self) -> u64 {
        self.state.table.open() as u64
    }

    pub(crate) fn refused(&self) -> u64 {
        self.state.refused.load(Relaxed)
    }

    /// Returns the response of an answer, and counts refusals.
    pub(crate) fn respond<R: Default>(&self, answer: Result<Response<()>, Refusal>) -> Response<R> {
        match answer {
            Ok(response) => response.map(|()| R::default()),
            Err(refusal) => {
                self.state.refused.fetch_add(1, Relaxed);
                refusal.into_response()
            }
        }
    }

    /// Checks a request against templates with the check of its protocol.
    pub(crate) fn check<T, V>(
        &self,
        request: &Request<()>,
        templates: &[T],
        check: impl Fn(&Request<()>, Option<&str>, &T) -> Result<V, Refusal>,
    ) -> Result<V, Refusal> {
        let extensions = request.extensions();
        if extensions.get::<EarlyData>().is_some() {
            // An attacker may replay it (RFC 8470 §5.2).
            return Err(Refusal::new(
                StatusCode::TOO_EARLY,
                "a tunnel in early data",
            ));
        }
        let http3 = extensions.get::<h3::Protocol>().map(h3::Protocol::as_str);
        let http2 = extensions
            .get::<hyper::ext::Protocol>()
            .map(hyper::ext::Protocol::as_str);
        let mut found = Err(Refusal::new(StatusCode::NOT_FOUND, "no path of the proxy"));
        for template in templates {
            found = check(request, http3.or(http2), template);
            match &found {
                Err(refusal) if refusal.status == StatusCode::NOT_FOUND => {}
                _ => break,
            }
        }
        found
    }

    /// Returns the client of a request, or `None` for one without a name.
    pub(crate) fn client_of(&self, request: &mut Request<()>) -> Result<Option<Client>, Refusal> {
        let (parts, ()) = std::mem::take(request).into_parts();
        let client = match &self.authentication {
            Authentication::Missing => Err(Denied::challenge("Bearer").into_refusal()),
            Authentication::None => Ok(peer_of(&parts)),
            Authentication::By(check) => check(&parts).map(Some).map_err(Denied::into_refusal),
        };
        *request = Request::from_parts(parts, ());
        client
    }

    pub(crate) fn admit(&self, client: Option<Client>, limits: &Limits) -> Result<Permit, Refusal> {
        let admitted = self.state.table.admit(client, limits);
        admitted.map_err(|full| match full {
            Full::Proxy => self.refuse(ProxyError::ConnectionLimitReached, "the proxy has no room"),
            Full::Client => {
                let text = "the client has as many tunnels as it may have";
                let mut refusal = self.refuse(ProxyError::HttpRequestDenied, text);
                refusal.status = StatusCode::TOO_MANY_REQUESTS;
                refusal
            }
        })
    }

    /// Takes the stream of a request that is accepted. Up to `early` datagrams, and their bytes, wait for its tunnel.
    pub(crate) fn offer(
        &self,
        request: &mut Request<()>,
        early: (usize, usize),
    ) -> Result<Offer, Refusal> {
        let text = "the server has no upgrades";
        Offer::of(request, early).ok_or_else(|| self.refuse(ProxyError::ProxyInternalError, text))
    }

    /// Resolves a name to addresses with a port.
    pub(crate) async fn resolve(
        &self,
        name: &str,
        port: u16,
        limits: &Limits,
    ) -> Result<Vec<SocketAddr>, Refusal> {
        let lookups = &self.state.lookups;
        let resolved = lookups
            .resolve(&self.resolver, name, port, limits.resolution)
            .await;
        let mut addresses =
            resolved.map_err(|error| self.refuse(error, &format!("{name} is not resolved")))?;
        addresses.truncate(limits.answers);
        // A resolver of the user may return other ports, which nobody has asked for.
        addresses
            .iter_mut()
            .for_each(|address| address.set_port(port));
        Ok(addresses)
    }

    pub(crate) fn refuse(&self, error: ProxyError, reason: &str) -> Refusal {
        error.refusal(&self.name, reason)
    }
}

/// Returns the client at the address of a connection of `courser::serve`.
fn peer_of(parts: &Parts) -> Option<Client> {
    #[cfg(feature = "server")]
    return parts
        .extensions
        .get::<courser_server::Peer>()
        .map(|peer| Client::at(peer.address().ip()));
    #[cfg(not(feature = "server"))]
    {
        let _ = parts;
        None
    }
}
