//! What a client can be told.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;

use super::Client;
use super::core::{ConnectTo, Core, Settings};
use super::error::{Error, ErrorKind};
use super::pool::Limits;
use super::proxy::Proxies;
use super::race;
use super::resolve::{Resolve, SystemResolver};
use super::tls::{HTTPS_PORT, Tls, TlsSettings, Trust};
use super::version::HttpVersion;
use crate::rustls::client::danger::ServerCertVerifier;
use crate::rustls::pki_types::CertificateDer;
use crate::telemetry::SinkFactory;
use crate::{Identity, TransportConfig};

/// A family of addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    pub(super) const fn has(self, address: IpAddr) -> bool {
        address.is_ipv6() == matches!(self, Self::V6)
    }
}

/// Which proxies are used. QUIC is not, where there is one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Proxy {
    /// What the environment names: `http_proxy`, `HTTPS_PROXY`, `ALL_PROXY`, and not for what
    /// `NO_PROXY` lists. One that cannot be used is an error of the requests that it is for.
    #[default]
    Environment,
    /// None.
    Direct,
    /// This one for everything but what the list names, which is written like `NO_PROXY`.
    Url {
        /// `http://user:password@host:port`, or with one of
        ///
        /// - `https`: the proxy is reached over TLS,
        /// - `socks5h`: SOCKS5 (RFC 1928), and the proxy resolves names,
        /// - `socks5`: SOCKS5, names are resolved here,
        /// - `socks4a`, `socks4`: SOCKS4 with and without names, IPv4 only; a password is not used.
        ///
        /// SOCKS proxies listen on port 1080 unless it says otherwise.
        url: String,
        /// Hosts, domains and networks separated by commas.
        except: String,
    },
}

/// Makes a [`Client`]. Everything has a default.
#[must_use = "call build"]
pub struct ClientBuilder {
    settings: Settings,
    tls: TlsSettings,
    transport: TransportConfig,
    sinks: Option<Arc<dyn SinkFactory>>,
    resolver: Option<Arc<dyn Resolve>>,
}

impl Default for ClientBuilder {
    fn default() -> Self {
        let settings = Settings {
            version: HttpVersion::default(),
            connect_timeout: CONNECT_TIMEOUT,
            total_timeout: None,
            read_timeout: None,
            attempt_delay: race::DEFAULT_DELAY,
            redirects: MAX_REDIRECTS,
            decompresses: true,
            user_agent: None,
            overrides: std::collections::HashMap::new(),
            connect_to: Vec::new(),
            family: None,
            local_address: None,
            interface: None,
            proxy: Proxy::default(),
            proxies: None,
            limits: Limits::default(),
            alt_svc_file: None,
        };
        Self {
            settings,
            tls: TlsSettings::default(),
            transport: TransportConfig::default(),
            sinks: None,
            resolver: None,
        }
    }
}

impl ClientBuilder {
    /// Which versions of HTTP are spoken. Default [`HttpVersion::Auto`].
    pub fn version(mut self, version: HttpVersion) -> Self {
        self.settings.version = version;
        self
    }

    /// How long a connection may take, name lookup and handshakes included. Default 30 s.
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.settings.connect_timeout = limit;
        self
    }

    /// How long a request may take, redirects and the body of the response included. No limit by
    /// default.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.settings.total_timeout = Some(limit);
        self
    }

    /// How long the body of a response may say nothing. No limit by default.
    pub fn read_timeout(mut self, limit: Duration) -> Self {
        self.settings.read_timeout = Some(limit);
        self
    }

    /// How far apart connection attempts begin, 10 ms to 2 s, and the head start of HTTP/3 over
    /// TCP. Default 250 ms (draft-ietf-happy-happyeyeballs-v3 §9).
    pub fn attempt_delay(mut self, delay: Duration) -> Self {
        self.settings.attempt_delay = delay;
        self
    }

    /// How many redirects are followed; with 0 they are responses like others. Default 10.
    pub fn redirects(mut self, limit: usize) -> Self {
        self.settings.redirects = limit;
        self
    }

    /// Whether gzip and deflate, and with the features of these names brotli and zstd, are asked for
    /// and undone. Default on.
    pub fn decompress(mut self, decompresses: bool) -> Self {
        self.settings.decompresses = decompresses;
        self
    }

    /// The `user-agent` of requests that have none. None by default.
    pub fn user_agent(mut self, name: HeaderValue) -> Self {
        self.settings.user_agent = Some(name);
        self
    }

    /// Whether whom the system trusts is trusted. Default on; without, only the roots that were
    /// [added](ClientBuilder::root) are.
    pub fn platform_roots(mut self, trusts: bool) -> Self {
        self.tls.trust = match (self.tls.trust, trusts) {
            (Trust::PlatformAnd(roots), false) => Trust::Only(roots),
            (Trust::Platform, false) => Trust::Only(Vec::new()),
            (Trust::Only(roots), true) => Trust::PlatformAnd(roots),
            (trust, _) => trust,
        };
        self
    }

    /// Trusts servers whose certificates lead to this one, or are this one.
    pub fn root(mut self, certificate: CertificateDer<'static>) -> Self {
        self.tls.trust = match self.tls.trust {
            Trust::PlatformAnd(mut roots) => {
                roots.push(certificate);
                Trust::PlatformAnd(roots)
            }
            Trust::Only(mut roots) => {
                roots.push(certificate);
                Trust::Only(roots)
            }
            Trust::Platform => Trust::PlatformAnd(vec![certificate]),
            trust => trust,
        };
        self
    }

    /// Leaves the judgement of servers to a verifier of the user's own.
    pub fn verifier(mut self, verifier: Arc<dyn ServerCertVerifier>) -> Self {
        self.tls.trust = Trust::Verifier(verifier);
        self
    }

    /// Believes any server. **Whoever sits in the path can read and change everything**: for tests
    /// and tools that say so.
    pub fn dangerous_insecure(mut self) -> Self {
        self.tls.trust = Trust::Anybody;
        self
    }

    /// What the client shows to servers that ask who it is.
    pub fn identity(mut self, identity: Identity) -> Self {
        self.tls.identity = Some(identity);
        self
    }

    /// Whether secrets are written into the file that `SSLKEYLOGFILE` names (RFC 9850), for those
    /// who analyse captures. Default off. A thread writes them: call
    /// [`QueuedKeyLog::flush`](crate::QueuedKeyLog::flush) of
    /// [`QueuedKeyLog::environment`](crate::QueuedKeyLog::environment) before the process ends.
    pub fn key_log(mut self, logs_keys: bool) -> Self {
        self.tls.logs_keys = logs_keys;
        self
    }

    /// Settings of QUIC connections.
    pub fn transport_config(mut self, transport: TransportConfig) -> Self {
        self.transport = transport;
        self
    }

    /// Has all QUIC connections recorded, as [`ClientConfig::sinks`](crate::ClientConfig::sinks).
    pub fn sinks(mut self, sinks: Arc<dyn SinkFactory>) -> Self {
        self.sinks = Some(sinks);
        self
    }

    /// Finds addresses in another way than [`SystemResolver`].
    pub fn resolver(mut self, resolver: impl Resolve) -> Self {
        self.resolver = Some(Arc::new(resolver));
        self
    }

    /// Uses these addresses for a host at a port. The host `*` is any, port 0 is any.
    pub fn resolve(
        mut self,
        host: &str,
        port: u16,
        addresses: impl IntoIterator<Item = IpAddr>,
    ) -> Self {
        let key = (host.to_ascii_lowercase(), port);
        let addresses = addresses.into_iter().collect();
        self.settings.overrides.insert(key, addresses);
        self
    }

    /// Connects to another place than the URL says; the certificate has to be for what the URL
    /// says. `None` is any in `from`, the same in `to`. The first rule that fits counts.
    pub fn connect_to(
        mut self,
        from: (Option<&str>, Option<u16>),
        to: (Option<&str>, Option<u16>),
    ) -> Self {
        let owned = |(host, port): (Option<&str>, _)| (host.map(str::to_ascii_lowercase), port);
        let rule = ConnectTo {
            from: owned(from),
            to: owned(to),
        };
        self.settings.connect_to.push(rule);
        self
    }

    /// Uses addresses of one family only.
    pub fn family(mut self, family: Family) -> Self {
        self.settings.family = Some(family);
        self
    }

    /// Connects from this address.
    pub fn local_address(mut self, address: IpAddr) -> Self {
        self.settings.local_address = Some(address);
        self
    }

    /// Connects through this interface, such as `eth0`. On Linux only.
    pub fn interface(mut self, name: impl Into<String>) -> Self {
        self.settings.interface = Some(name.into());
        self
    }

    /// Which proxies are used. Default [`Proxy::Environment`].
    pub fn proxy(mut self, proxy: Proxy) -> Self {
        self.settings.proxy = proxy;
        self
    }

    /// How long connections are kept that nobody uses. Default 90 s.
    pub fn idle_timeout(mut self, limit: Duration) -> Self {
        self.settings.limits.idle_timeout = limit;
        self
    }

    /// How many unused connections of HTTP/1.1 are kept for each origin. Default 32.
    pub fn idle_per_origin(mut self, connections: usize) -> Self {
        self.settings.limits.idle_per_origin = connections;
        self
    }

    /// Reads alternatives (RFC 7838) from this file if it exists, and writes them there in the
    /// end, in curl's format.
    pub fn alt_svc_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.alt_svc_file = Some(path.into());
        self
    }

    /// Makes the client. It can be used on any tokio runtime; its UDP sockets belong to the one that
    /// first needs them.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] when the system's certificates cannot be had, certificate and key do
    /// not fit together, or a file or setting is unusable; [`ErrorKind::Unsupported`] when the
    /// proxy is of another kind.
    pub fn build(mut self) -> Result<Client, Error> {
        self.settings.proxies = match &self.settings.proxy {
            Proxy::Environment => Some(Proxies::of_environment(|name| std::env::var(name).ok())),
            Proxy::Direct => None,
            Proxy::Url { url, except } => Some(Proxies::of_url(url, except)?),
        };
        if self.settings.interface.is_some() && !cfg!(target_os = "linux") {
            let text = "connections can be bound to an interface on Linux only: use an address";
            return Err(Error::new(ErrorKind::Config, text));
        }
        let mut tls = Tls::new(&self.tls, self.settings.version)?;
        tls.quic = tls.quic.map(|config| {
            let config = config.transport_config(self.transport);
            match self.sinks {
                Some(sinks) => config.sinks(sinks),
                None => config,
            }
        });
        // What is wrong with it is told now and not with each connection.
        let checked = tls.quic.at(HTTPS_PORT).build();
        checked.map_err(|error| Error::new(ErrorKind::Config, error.to_string()))?;
        let resolver = self
            .resolver
            .unwrap_or_else(|| Arc::new(SystemResolver::new()));
        let core = Core::new(self.settings, tls, resolver)?;
        Ok(Client(Arc::new(core)))
    }
}

impl std::fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("version", &self.settings.version)
            .finish_non_exhaustive()
    }
}

/// Three repetitions of a lost first packet.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// As many as most clients follow.
const MAX_REDIRECTS: usize = 10;
