//! The decisions of a proxy that do not depend on the protocol of a tunnel: clients, numbers of tunnels, targets.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use courser_masque::request::Refusal;
use courser_masque::{Host, Limits, Policy, ProxyError, Target};
use http::request::Parts;
use http::{StatusCode, Version};

use crate::candidates::Candidates;
use crate::clients::{Client, Denied, Full, Permit, Table};
use crate::resolve::{Lookups, Resolver, Resolving, system};
use crate::silent::{SilentTargets, Unanswered};

/// The decisions of a proxy that all of its protocols share: who its clients are, how many tunnels each may have, and
/// which addresses they may reach.
///
/// [`UdpProxy::gate`](crate::UdpProxy::gate) returns the one of a UDP proxy, so that a proxy for TCP beside it has the
/// same policy and counts its tunnels together with those for UDP. Clones share their tunnels.
#[derive(Clone)]
pub struct Gate {
    policy: Arc<Policy>,
    limits: Limits,
    name: Arc<str>,
    authentication: Authentication,
    resolver: Resolver,
    table: Arc<Table>,
    lookups: Lookups,
    silent: Arc<SilentTargets>,
}

/// Returns the client of a request.
type Authenticate = dyn Fn(&Parts) -> Result<Client, Denied> + Send + Sync;

#[derive(Clone)]
enum Authentication {
    /// The program has not decided.
    Missing,
    None,
    By(Arc<Authenticate>),
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("policy", &self.policy)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Gate {
    /// Creates a gate without clients, with the default limits. See [`UdpProxy`](crate::UdpProxy) for its settings.
    pub fn new(policy: Policy) -> Self {
        Self {
            policy: Arc::new(policy),
            limits: Limits::default(),
            name: "courser".into(),
            authentication: Authentication::Missing,
            resolver: system(),
            table: Arc::default(),
            lookups: Lookups::default(),
            silent: Arc::default(),
        }
    }

    /// Sets the check of clients. See [`UdpProxy::authenticate`](crate::UdpProxy::authenticate).
    #[must_use]
    pub fn authenticate(
        mut self,
        check: impl Fn(&Parts) -> Result<Client, Denied> + Send + Sync + 'static,
    ) -> Self {
        self.authentication = Authentication::By(Arc::new(check));
        self
    }

    /// Admits everybody who can send a request. See [`UdpProxy::open_to_all`](crate::UdpProxy::open_to_all).
    #[must_use]
    pub fn open_to_all(mut self) -> Self {
        self.authentication = Authentication::None;
        self
    }

    /// Sets what clients may use.
    #[must_use]
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the name of the proxy in the field Proxy-Status (RFC 9209). Default `courser`.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the resolver of names. See [`UdpProxy::resolver`](crate::UdpProxy::resolver).
    #[must_use]
    pub fn resolver(
        mut self,
        resolve: impl Fn(String, u16) -> Resolving + Send + Sync + 'static,
    ) -> Self {
        self.resolver = Arc::new(resolve);
        self
    }

    /// Returns the number of open tunnels of all protocols.
    pub fn open(&self) -> usize {
        self.table.open()
    }

    /// Ends the tunnels for UDP and IP packets whose clients have sent none for this long, now and later: those of clients that
    /// have vanished would keep the end of the proxy waiting. Further tunnels are opened; the server in front decides about them.
    pub fn drain(&self, idle: Duration) {
        self.table.drain(idle);
    }

    /// Ends all tunnels for UDP and IP packets, whose [records](crate::OnEnd) are made at once, and refuses further tunnels of
    /// all protocols.
    pub fn close(&self) {
        self.table.close();
    }

    /// Returns what a client may send to a host that has never answered.
    pub(crate) fn unanswered(&self, client: Option<&Client>, host: std::net::IpAddr) -> Unanswered {
        self.silent.of(client, host, &self.limits)
    }

    pub(crate) fn policy(&self) -> Arc<Policy> {
        self.policy.clone()
    }

    pub(crate) const fn current_limits(&self) -> &Limits {
        &self.limits
    }

    /// Authenticates the client of a request, and counts a tunnel of it until the permit is dropped.
    ///
    /// # Errors
    /// Returns the refusal for the client: 407 without credentials, 403 for a client that may not use the proxy, 429 and
    /// 503 without room for another tunnel.
    pub fn admit(&self, parts: &Parts) -> Result<Permit, Refusal> {
        let client = self.client_of(parts)?;
        self.admit_client(client, parts.version)
    }

    /// Returns the client of a request, or `None` for one without a name.
    pub(crate) fn client_of(&self, parts: &Parts) -> Result<Option<Client>, Refusal> {
        match &self.authentication {
            Authentication::Missing => Err(Denied::challenge("Bearer").into_refusal()),
            Authentication::None => Ok(peer_of(parts)),
            Authentication::By(check) => check(parts).map(Some).map_err(Denied::into_refusal),
        }
    }

    /// Counts a tunnel of a client over a version of HTTP, until the permit is dropped.
    pub(crate) fn admit_client(
        &self,
        client: Option<Client>,
        version: Version,
    ) -> Result<Permit, Refusal> {
        // Over HTTP/1.1 the connection to the client is part of the tunnel.
        let descriptors = match version {
            Version::HTTP_2 | Version::HTTP_3 => 1,
            _ => 2,
        };
        let admitted = self.table.admit(client, descriptors, &self.limits);
        admitted.map_err(|full| match full {
            Full::Proxy => self.refuse(ProxyError::ConnectionLimitReached, "the proxy has no room"),
            Full::Closed => self.refuse(ProxyError::ConnectionLimitReached, "the proxy is ending"),
            Full::Client => {
                let text = "the client has as many tunnels as it may have";
                let mut refusal = self.refuse(ProxyError::HttpRequestDenied, text);
                refusal.status = StatusCode::TOO_MANY_REQUESTS;
                refusal
            }
        })
    }

    /// Counts another socket of the client of a permit, until the permit that it returns is dropped. `None` if there is no
    /// room for it.
    pub fn another(&self, permit: &Permit) -> Option<Permit> {
        let client = permit.client().cloned();
        self.table.admit(client, 1, &self.limits).ok()
    }

    /// Resolves the name of a target, and returns its addresses, which are judged one by one. A socket must be connected to
    /// one of these, so that no name is looked up a second time. Lookups of different clients are counted apart, so that
    /// names that are not answered do not delay those of others; `None` is a client without a name.
    ///
    /// # Errors
    /// Returns the refusal for the client: 403 for a name that a rule denies, 502 and 504 for one that is not resolved.
    ///
    /// # Cancel safety
    /// Safe: dropping the future has no effect.
    pub async fn candidates(
        &self,
        client: Option<&Client>,
        target: &Target,
    ) -> Result<Candidates, Refusal> {
        let port = target.port().get();
        let (name, mut addresses) = match target.host() {
            Host::Ip(ip) => (None, vec![SocketAddr::from((*ip, port))]),
            Host::Name(name) => (Some(name.clone()), self.resolve(client, name, port).await?),
        };
        // A resolver of the user may return other ports, which nobody has asked for.
        addresses
            .iter_mut()
            .for_each(|address| address.set_port(port));
        let (policy, proxy) = (self.policy.clone(), self.name.clone());
        Ok(Candidates::new(policy, proxy, name, addresses))
    }

    /// Resolves a name that the policy does not prohibit. Its addresses are not judged.
    pub(crate) async fn resolve(
        &self,
        client: Option<&Client>,
        name: &str,
        port: u16,
    ) -> Result<Vec<SocketAddr>, Refusal> {
        self.policy.judge_name(name, port).map_err(|denied| {
            self.refuse(ProxyError::DestinationIpProhibited, &denied.to_string())
        })?;
        let (resolver, time) = (&self.resolver, self.limits.resolution);
        let resolved = self
            .lookups
            .resolve(client, resolver, (name, port), time)
            .await;
        let mut addresses = resolved.map_err(|(error, reason)| self.refuse(error, &reason))?;
        addresses.truncate(self.limits.answers);
        Ok(addresses)
    }

    /// Returns a refusal with the name of the proxy.
    pub fn refuse(&self, error: ProxyError, reason: &str) -> Refusal {
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
