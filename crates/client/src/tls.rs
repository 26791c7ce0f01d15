//! TLS configurations for QUIC and TCP, derived from the same settings.

use std::collections::HashMap;
use std::error::Error as _;
use std::fmt;
use std::sync::Arc;

use courser_base::Mutex;
use courser_http3_tokio as h3;
use courser_quic::hooks::{ClientConfigHooks, IdentityHooks};
use courser_quic::{CertificateRequests, ClientConfig, HandshakeOffer, Identity};
use courser_tls::rustls::client::danger::ServerCertVerifier;
use courser_tls::rustls::client::{ClientSessionMemoryCache, Resumption};
use courser_tls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use courser_tls::rustls::version::{TLS12, TLS13};
use courser_tls::rustls::{self, RootCertStore};
use courser_tls::{Cryptography, Ech, QueuedKeyLog, Trust as Judge};

use super::error::{Error, ErrorKind};
use super::lazy_platform::LazyPlatform;
use super::pinned::Pinned;
use super::version::{HttpVersion, TlsVersions};

/// The servers that a client trusts.
#[derive(Clone, Default)]
pub(super) enum Trust {
    #[default]
    Platform,
    PlatformAnd(Vec<CertificateDer<'static>>),
    Only(Vec<CertificateDer<'static>>),
    Verifier(Arc<dyn ServerCertVerifier>),
    Any,
}

/// The TLS settings of a client.
#[derive(Clone, Default)]
pub(super) struct TlsSettings {
    pub(super) trust: Trust,
    /// What proxies are verified with, instead of `trust`, or of the system's roots if that is [`Trust::Any`].
    pub(super) proxy_trust: Option<Trust>,
    pub(super) identity: Option<Identity>,
    /// What is shown to proxies that ask, which need not learn who the client is to servers.
    pub(super) proxy_identity: Option<Identity>,
    pub(super) cryptography: Cryptography,
    /// Encrypted ClientHello, which requires TLS 1.3.
    pub(super) ech: Option<Ech>,
    pub(super) logs_keys: bool,
    pub(super) versions: TlsVersions,
    /// The hashes of the public keys of which a server must have one, if there are any.
    pub(super) pins: Vec<[u8; 32]>,
}

/// The TLS configurations. Each stores the tickets of its connections.
#[derive(Clone)]
pub(super) struct Tls {
    pub(super) quic: ClientConfig,
    pub(super) tcp: PerPort,
    /// The configuration for proxies, which always use HTTP/1.1.
    pub(super) proxy: Arc<rustls::ClientConfig>,
    /// The configuration for MASQUE proxies over QUIC.
    #[cfg(feature = "masque")]
    pub(super) proxy_quic: ClientConfig,
    /// Verifies certificates for further names. `None` if all servers are trusted.
    verifier: Option<Arc<dyn ServerCertVerifier>>,
    /// Receives the errors of TCP handshakes, which may contain a rejection of ECH.
    pub(super) ech: Option<Ech>,
    /// The offer of QUIC handshakes, for error messages.
    pub(super) quic_offer: HandshakeOffer,
}

impl Tls {
    pub(super) fn new(settings: &TlsSettings, version: HttpVersion) -> Result<Self, Error> {
        let is_strict = !matches!(settings.trust, Trust::Any);
        // A custom verifier may block, which must not delay other connections.
        let is_custom = matches!(settings.trust, Trust::Verifier(_));
        let plain = settings.trust.clone().into_verifier()?;
        let verifier: Arc<dyn ServerCertVerifier> = match settings.pins.as_slice() {
            [] => plain.clone(),
            pins => Arc::new(Pinned::new(plain.clone(), pins.to_vec())),
        };
        let mut quic = settings.config(&verifier, &[&TLS13])?;
        quic.alpn_protocols = vec![h3::ALPN.into()];
        let versions: &[_] = match settings.versions {
            TlsVersions::All => &[&TLS13, &TLS12],
            TlsVersions::Only12 => &[&TLS12],
            TlsVersions::Only13 => &[&TLS13],
        };
        let mut tcp = settings.config(&verifier, versions)?;
        CertificateRequests::install(&mut tcp);
        // ECH and the certificate for the origin do not apply to a proxy.
        let for_proxy = TlsSettings {
            ech: None,
            identity: settings.proxy_identity.clone(),
            ..settings.clone()
        };
        let for_proxies = match settings.proxy_trust.clone() {
            Some(trust) => trust.into_verifier()?,
            // Who accepts any server does not send the credentials for a proxy to anybody.
            None if !is_strict => Arc::new(LazyPlatform::new()),
            None => plain,
        };
        #[cfg(feature = "masque")]
        let proxy_quic = {
            let mut quic = for_proxy.config(&for_proxies, &[&TLS13])?;
            quic.alpn_protocols = vec![h3::ALPN.into()];
            let base = courser_quic::TransportConfig::default();
            let transport = courser_masque_tokio::transport_config(base);
            ClientConfig::with_rustls(Arc::new(quic))
                .tickets_by_port()
                .offload_tls(is_custom)
                .transport_config(transport)
        };
        let mut proxy = for_proxy.config(&for_proxies, &[&TLS13, &TLS12])?;
        CertificateRequests::install(&mut proxy);
        proxy.resumption = Resumption::store(Arc::new(sessions()));
        proxy.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            quic_offer: HandshakeOffer::of_tls13(&quic),
            quic: ClientConfig::with_rustls(Arc::new(quic))
                .tickets_by_port()
                .reporting_ech(settings.ech.clone())
                .offload_tls(is_custom),
            ech: settings.ech.clone(),
            tcp: PerPort::new(tcp, version.tcp_protocols()),
            proxy: Arc::new(proxy),
            #[cfg(feature = "masque")]
            proxy_quic,
            verifier: Some(verifier).filter(|_| is_strict),
        })
    }

    /// Returns true if a certificate chain is currently valid for `host`. Returns false if all certificates are
    /// trusted, because the claims of a server prove nothing then.
    pub(super) fn covers(&self, chain: &[CertificateDer<'_>], host: &str) -> bool {
        let (Some(verifier), Some((end, others))) = (&self.verifier, chain.split_first()) else {
            return false;
        };
        let Ok(name) = ServerName::try_from(host) else {
            return false;
        };
        let checked = verifier.verify_server_cert(end, others, &name, &[], UnixTime::now());
        checked.is_ok()
    }

    /// Reports an error of a TCP handshake to ECH, because it may be a rejection.
    pub(super) fn report(&self, error: &Error) {
        let Some(ech) = &self.ech else { return };
        let source = error.source().and_then(|source| {
            let io = source.downcast_ref::<std::io::Error>()?;
            io.get_ref()?.downcast_ref::<rustls::Error>()
        });
        if let Some(error) = source {
            ech.on_error(error);
        }
    }
}

/// The names of versions of HTTP that a handshake offers.
type Protocols = &'static [&'static str];

/// Configurations by TCP port and list of versions.
type Others = Mutex<HashMap<(u16, Protocols), Arc<rustls::ClientConfig>>>;

/// One configuration for each TCP port and list of versions, so that tickets are stored separately. The session store of QUIC
/// distinguishes ports itself.
///
/// rustls's stores identify servers by name only, but different ports of a host may be different servers. A
/// ticket of one is useless to another and can be harmful: if it makes the client change its offer after a
/// HelloRetryRequest, the handshake fails (RFC 9846 §4.2.2).
#[derive(Clone)]
pub(super) struct PerPort {
    /// The configuration for port 443, which most servers use.
    https: Arc<rustls::ClientConfig>,
    /// The versions of HTTP of the client, which `https` offers.
    protocols: Protocols,
    others: Arc<Others>,
}

impl PerPort {
    fn new(mut https: rustls::ClientConfig, protocols: Protocols) -> Self {
        https.alpn_protocols = names(protocols);
        Self {
            https: Arc::new(https),
            protocols,
            others: Arc::default(),
        }
    }

    /// Returns the configuration for servers at this port that offers these versions.
    pub(super) fn at(&self, port: u16, version: HttpVersion) -> Arc<rustls::ClientConfig> {
        let protocols = version.tcp_protocols();
        if port == HTTPS_PORT && protocols == self.protocols {
            return self.https.clone();
        }
        let mut others = self.others.lock();
        if others.len() >= REMEMBERED_PORTS && !others.contains_key(&(port, protocols)) {
            // Only tickets are lost.
            others.clear();
        }
        let create = || {
            let mut config = rustls::ClientConfig::clone(&self.https);
            config.resumption = Resumption::store(Arc::new(sessions()));
            config.alpn_protocols = names(protocols);
            Arc::new(config)
        };
        others
            .entry((port, protocols))
            .or_insert_with(create)
            .clone()
    }
}

fn names(protocols: Protocols) -> Vec<Vec<u8>> {
    let names = protocols.iter().map(|name| name.as_bytes().to_vec());
    names.collect()
}

impl Trust {
    fn into_verifier(self) -> Result<Arc<dyn ServerCertVerifier>, Error> {
        let verifier = match self {
            Self::Platform => Judge::Platform,
            Self::PlatformAnd(roots) => Judge::PlatformAnd(roots),
            Self::Only(roots) => {
                let mut store = RootCertStore::empty();
                for root in roots {
                    store.add(root).map_err(unusable)?;
                }
                Judge::Roots(store)
            }
            Self::Verifier(verifier) => Judge::Verifier(verifier),
            Self::Any => Judge::AnyServer,
        };
        courser_tls::server_verifier(verifier, courser_tls::provider(&[])).map_err(unusable)
    }
}

impl TlsSettings {
    fn config(
        &self,
        verifier: &Arc<dyn ServerCertVerifier>,
        versions: &[&'static rustls::SupportedProtocolVersion],
    ) -> Result<rustls::ClientConfig, Error> {
        // AES-128-GCM is first, as in all of courser, because it is the cheapest.
        let provider = self.cryptography.provider_with_tls12();
        let builder = rustls::ClientConfig::builder_with_provider(provider);
        let builder = match self.ech.as_ref().map(Ech::mode) {
            Some(mode) => builder.with_ech(mode),
            None => builder.with_protocol_versions(versions),
        };
        let builder = builder
            .map_err(unusable)?
            .dangerous()
            .with_custom_certificate_verifier(verifier.clone());
        let mut config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let shown = identity.clone().into_tls();
                builder
                    .with_client_auth_cert(shown.chain, shown.key)
                    .map_err(unusable)?
            }
        };
        config.cert_decompressors = courser_tls::certificate_decompressors();
        config.resumption = Resumption::store(Arc::new(sessions()));
        if self.logs_keys {
            config.key_log = QueuedKeyLog::environment();
        }
        Ok(config)
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

fn unusable(error: impl fmt::Display) -> Error {
    Error::new(ErrorKind::Config, format!("cannot set up TLS: {error}"))
}

/// Returns an empty session cache for [`REMEMBERED_SERVERS`] servers.
fn sessions() -> ClientSessionMemoryCache {
    ClientSessionMemoryCache::new(REMEMBERED_SERVERS * TICKETS_PER_SERVER)
}

/// Largest number of servers whose sessions can be resumed (limit K67).
const REMEMBERED_SERVERS: usize = 256;
/// Number of tickets that rustls stores for each server. The size of its cache is given in tickets.
const TICKETS_PER_SERVER: usize = 8;
/// Largest number of ports with a configuration; only port scanners use more.
const REMEMBERED_PORTS: usize = 64;
const HTTPS_PORT: u16 = 443;

#[cfg(test)]
mod tests {
    use courser_tls::rustls::NamedGroup;
    use courser_tls::rustls::client::ClientSessionStore as _;

    use super::*;

    /// Sets a key exchange group, which is easier to create than a ticket and uses the same entry of a server.
    #[test]
    fn sessions_of_at_most_256_servers_are_remembered() {
        let sessions = sessions();
        let name = |number: usize| {
            ServerName::try_from(format!("{number}.test")).expect("a name of a host")
        };
        let remembered = |numbers: std::ops::Range<usize>| {
            numbers
                .filter(|&number| sessions.kx_hint(&name(number)).is_some())
                .count()
        };
        for number in 0..REMEMBERED_SERVERS {
            sessions.set_kx_hint(name(number), NamedGroup::X25519);
        }
        assert_eq!(remembered(0..REMEMBERED_SERVERS), REMEMBERED_SERVERS);
        for number in REMEMBERED_SERVERS..4 * REMEMBERED_SERVERS {
            sessions.set_kx_hint(name(number), NamedGroup::X25519);
        }
        let left = remembered(0..4 * REMEMBERED_SERVERS);
        assert!(left < 2 * REMEMBERED_SERVERS, "{left} servers");
        assert_eq!(remembered(0..1), 0, "the oldest is forgotten first");
    }

    /// A server can cause connections to any port through redirects and alternatives.
    #[test]
    fn remembered_ports_are_limited() {
        let settings = TlsSettings {
            trust: Trust::Any,
            ..TlsSettings::default()
        };
        let tls = Tls::new(&settings, HttpVersion::default());
        let configs = tls.expect("valid settings").tcp;
        let remembered = || configs.others.lock().len();
        for port in 1..=REMEMBERED_PORTS as u16 {
            configs.at(port, HttpVersion::Auto);
        }
        assert_eq!(remembered(), REMEMBERED_PORTS);
        configs.at(1, HttpVersion::Auto);
        assert_eq!(remembered(), REMEMBERED_PORTS);
        configs.at(REMEMBERED_PORTS as u16 + 1, HttpVersion::Auto);
        assert_eq!(remembered(), 1);
    }
}
