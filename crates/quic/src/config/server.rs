//! The configuration of a server.

use std::fmt;
use std::net::{SocketAddrV4, SocketAddrV6};
use std::sync::Arc;

use courser_telemetry::SinkFactory;
use courser_tls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use courser_tls::rustls::server::{
    AlwaysResolvesServerRawPublicKeys, ClientHello, ResolvesServerCert,
};
use courser_tls::rustls::sign::{CertifiedKey, SingleCertAndKey};
use courser_tls::rustls::{self, RootCertStore};
use courser_tls::{
    ClientAuthentication, Cryptography, EarlyDataOptions, ServerOptions, ServerParts, TlsServer,
};
use courser_transport::{ConnectionIdGenerator, ReplyLimits, RetryPolicy, TransportConfig};
use courser_wire::Version;

use super::hooks::IdentityHooks;
use super::identity::Identity;
use super::tls::TlsSettings;
use super::unfinished::{Unfinished, no_protocol_yet};
use crate::error::ConfigError;

/// The configuration of a server: its certificate, its protocols, its limits.
///
/// ```
/// # extern crate courser_quic as courser;
/// # fn main() -> Result<(), courser::ConfigError> {
/// let config = courser::ServerConfig::dev()?.alpn(["echo"]).max_incoming(100);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct ServerConfig {
    pub(super) tls: TlsSettings<ServerParts>,
    early_data: Option<EarlyDataOptions>,
    pub(super) settings: courser_transport::ServerConfig,
    pub(crate) reset_key: Option<ResetKey>,
    pub(crate) connection_ids: Option<Arc<dyn ConnectionIdGenerator>>,
    pub(crate) memory_budget: Option<u64>,
    pub(crate) reply_limits: Option<ReplyLimits>,
    pub(crate) reset_limits: Option<ReplyLimits>,
}

impl ServerConfig {
    /// Creates a configuration with a development certificate, see [`Identity::dev`].
    pub fn dev() -> Result<Self, ConfigError> {
        Self::with_identity(&Identity::dev()?)
    }

    /// Creates a configuration with this certificate chain, the server's own first, and key.
    pub fn with_single_cert(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, ConfigError> {
        Self::with_identity(&Identity::new(chain, key))
    }

    /// Creates a configuration with this identity.
    ///
    /// # Errors
    /// Returns an error if certificate and key do not match.
    pub fn with_identity(identity: &Identity) -> Result<Self, ConfigError> {
        Self::from_identity(identity, ClientAuthentication::Off)
    }

    /// Creates a configuration that requires client certificates which chain to one of `clients`.
    ///
    /// # Errors
    /// Returns an error if certificate and key do not match, or there are no roots.
    pub fn with_client_auth(
        identity: &Identity,
        clients: RootCertStore,
    ) -> Result<Self, ConfigError> {
        Self::from_identity(identity, ClientAuthentication::Required(clients))
    }

    fn from_identity(
        identity: &Identity,
        clients: ClientAuthentication,
    ) -> Result<Self, ConfigError> {
        let options = ServerOptions::new(identity.clone().into_tls(), no_protocol_yet());
        let mut tls = courser_tls::server_config(options)?;
        let changed = Arc::make_mut(&mut tls);
        changed.alpn_protocols.clear();
        if identity.ocsp().is_some() {
            let key = SingleCertAndKey::from(identity.certified_key()?);
            changed.cert_resolver = Arc::new(key);
        }
        Self::from_parts(ServerParts::new(clients)?, &tls)
    }

    fn from_parts(parts: ServerParts, tls: &rustls::ServerConfig) -> Result<Self, ConfigError> {
        let config = parts.build(tls)?;
        Ok(Self::with_tls(TlsSettings::built_from(parts, config)))
    }

    /// Creates a configuration that calls an async function to choose the certificate for each
    /// client, by the name that the client requests (SNI). `None` refuses the client. Sets
    /// [`offload_tls`](ServerConfig::offload_tls), and requires tokio.
    ///
    /// ```
    /// # extern crate courser_quic as courser;
    /// use std::sync::Arc;
    /// use courser::rustls::sign::CertifiedKey;
    ///
    /// async fn look_up(name: Option<String>) -> Option<Arc<CertifiedKey>> {
    ///     // Ask a database, a key store or another server.
    /// #   let _ = name;
    ///     None
    /// }
    ///
    /// # fn main() -> Result<(), courser::ConfigError> {
    /// let config = courser::ServerConfig::with_async_certificates(look_up)?.alpn(["h3"]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error if the system has no random numbers.
    pub fn with_async_certificates<F, R>(choose: F) -> Result<Self, ConfigError>
    where
        F: Fn(Option<String>) -> R + Send + Sync + 'static,
        R: Future<Output = Option<Arc<CertifiedKey>>>,
    {
        let resolver = AsyncCertificates(choose);
        let tls = courser_tls::server_config_with_resolver(Arc::new(resolver))?;
        let parts = ServerParts::new(ClientAuthentication::Off)?;
        Ok(Self::from_parts(parts, &tls)?.offload_tls(true))
    }

    /// Creates a configuration with the public key of this identity in the place of its certificate (RFC
    /// 7250), for clients that know the key: see [`ClientConfig::with_raw_public_keys`](crate::ClientConfig::with_raw_public_keys). Clients that
    /// support certificates only are refused.
    ///
    /// # Errors
    /// Returns an error if the key cannot be used to sign.
    pub fn with_raw_public_key(identity: &Identity) -> Result<Self, ConfigError> {
        let key = courser_tls::raw_key(identity.clone().into_tls().key)?;
        let resolver = Arc::new(AlwaysResolvesServerRawPublicKeys::new(key));
        let tls = courser_tls::server_config_with_resolver(resolver)?;
        Self::from_parts(ServerParts::new(ClientAuthentication::Off)?, &tls)
    }

    /// Creates a configuration around a custom TLS configuration, which must support TLS 1.3.
    pub fn with_rustls(tls: Arc<rustls::ServerConfig>) -> Self {
        Self::with_tls(TlsSettings::custom(tls))
    }

    fn with_tls(tls: TlsSettings<ServerParts>) -> Self {
        Self {
            tls,
            early_data: None,
            settings: courser_transport::ServerConfig::new(Arc::new(Unfinished)),
            reset_key: None,
            connection_ids: None,
            memory_budget: None,
            reply_limits: None,
            reset_limits: None,
        }
    }

    /// Sets the application protocols, the preferred one first. At least one is needed.
    #[must_use]
    pub fn alpn(mut self, protocols: impl IntoIterator<Item = impl Into<Vec<u8>>>) -> Self {
        self.tls.set_alpn(protocols);
        self
    }

    /// Sets the policy for client certificates, or raw public keys of clients. By default none are
    /// requested.
    ///
    /// [`Connection::peer_identity`](crate::Connection::peer_identity) returns what a client has
    /// presented. A client without a certificate that is required is refused with the alert
    /// certificate_required (CRYPTO_ERROR 0x174).
    ///
    /// ```
    /// # extern crate courser_quic as courser;
    /// use courser::{ClientAuthentication, Identity, ServerConfig};
    /// use courser::rustls::RootCertStore;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let root = Identity::dev()?.certificate();
    /// let mut roots = RootCertStore::empty();
    /// roots.add(root)?;
    /// let config = ServerConfig::dev()?
    ///     .alpn(["echo"])
    ///     .client_authentication(ClientAuthentication::Optional(roots))?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error if the policy has no roots, and for a custom TLS configuration: set
    /// its verifier where it is built.
    pub fn client_authentication(
        mut self,
        policy: ClientAuthentication,
    ) -> Result<Self, ConfigError> {
        self.tls
            .rebuild("client authentication", |parts| parts.set_clients(policy))?;
        Ok(self)
    }

    /// Sets cipher suites and key exchange groups. See [`Cryptography`] for the default.
    ///
    /// # Errors
    /// Returns an error for a custom TLS configuration: set its provider where it is built.
    pub fn cryptography(mut self, cryptography: Cryptography) -> Result<Self, ConfigError> {
        self.tls.rebuild("cryptography", |parts| {
            parts.set_cryptography(cryptography);
            Ok(())
        })?;
        Ok(self)
    }

    /// Accepts a configuration without application protocols (ALPN). Both ends must then agree on the
    /// protocol by another mechanism, such as a dedicated port (RFC 9001 §8.1). By default a protocol is
    /// required: without one, each end may take the bytes of the other for those of a different protocol.
    ///
    /// A server without protocols refuses clients that offer some.
    #[must_use]
    pub fn alpn_optional(mut self, is_optional: bool) -> Self {
        self.tls.is_alpn_optional = is_optional;
        self
    }

    /// Sets the transport settings of the connections.
    #[must_use]
    pub fn transport_config(mut self, transport: impl Into<Arc<TransportConfig>>) -> Self {
        self.settings.transport = transport.into();
        self
    }

    /// Records all connections from their first packet on, each in a sink that `sinks` makes.
    /// `courser_qlog::QlogDirectory`, for example, writes a trace of each to a file, on its own
    /// thread. The sinks are called under the lock of the endpoint and must not block: see
    /// [`Sink`](crate::telemetry::Sink), and
    /// [`BackgroundWriter`](crate::telemetry::BackgroundWriter) for sinks that write.
    #[must_use]
    pub fn sinks(mut self, sinks: Arc<dyn SinkFactory>) -> Self {
        Arc::make_mut(&mut self.settings.transport).sinks = Some(sinks);
        self
    }

    /// Sets when clients must validate their address first. By default, under pressure: while
    /// clients wait for 200 ms, or their handshakes hold half of the memory budget.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.settings.retry = policy;
        self
    }

    /// Sets how many connections may wait for [`Endpoint::accept`](crate::Endpoint::accept); others
    /// get a Retry or are dropped. Default 16 384.
    #[must_use]
    pub fn max_incoming(mut self, connections: usize) -> Self {
        self.settings.max_incoming = connections;
        self
    }

    /// Sets how many bytes the connections that wait for [`Endpoint::accept`](crate::Endpoint::accept) may hold
    /// in total, at least 1200. Default 32 MiB.
    #[must_use]
    pub fn max_incoming_bytes(mut self, bytes: usize) -> Self {
        self.settings.max_incoming_bytes = bytes;
        self
    }

    /// Sets how many bytes one connection that waits for [`Endpoint::accept`](crate::Endpoint::accept) may hold, at
    /// least 1200: early data of clients whose handshake begins late. `None`, the default, keeps eight datagrams.
    #[must_use]
    pub fn incoming_bytes_per_client(mut self, bytes: Option<usize>) -> Self {
        self.settings.incoming_bytes_per_client = bytes;
        self
    }

    /// Sets the number of tokens sent to each client, with which it validates its address on a
    /// later connection without a round trip. Default 2.
    #[must_use]
    pub fn new_tokens(mut self, count: u32) -> Self {
        self.settings.new_tokens = count;
        self
    }

    /// Sets the secret from which stateless reset tokens are derived, for [`Endpoint::server`].
    /// With the same secret after a restart, the server resets former connections at once (RFC 9000
    /// §10.3.2). The default is random.
    ///
    /// Endpoints that run at the same time must have different keys, or
    /// [`connection_ids`](Self::connection_ids) that tell them apart; otherwise resets of one end
    /// connections of the other (RFC 9000 §21.11). Endpoints made with [`Endpoint::bind`] and
    /// [`Endpoint::new`] use the key of their [`EndpointConfig`](crate::EndpointConfig) instead.
    ///
    /// [`Endpoint::server`]: crate::Endpoint::server
    /// [`Endpoint::bind`]: crate::Endpoint::bind
    /// [`Endpoint::new`]: crate::Endpoint::new
    #[must_use]
    pub fn reset_key(mut self, key: [u8; 32]) -> Self {
        self.reset_key = Some(ResetKey(key));
        self
    }

    /// Sets the generator of the server's connection IDs, for
    /// [`Endpoint::server`](crate::Endpoint::server). By default they are 8 random bytes. See
    /// [`ConnectionIdGenerator`], which has an example of a custom generator.
    #[must_use]
    pub fn connection_ids(mut self, generator: Arc<dyn ConnectionIdGenerator>) -> Self {
        self.connection_ids = Some(generator);
        self
    }

    /// Sets the bytes that all connections together may hold for their clients, at least 1 MiB, for
    /// [`Endpoint::server`](crate::Endpoint::server). The default is a quarter of the memory of the
    /// machine, or of the control group, and at least 16 MiB. See
    /// [`EndpointConfig::memory_budget`](crate::EndpointConfig::memory_budget).
    #[must_use]
    pub fn memory_budget(mut self, bytes: u64) -> Self {
        self.memory_budget = Some(bytes);
        self
    }

    /// Sets the rates of Retry, Version Negotiation and refusals, for
    /// [`Endpoint::server`](crate::Endpoint::server). Default 10 000 a second for one network and
    /// 40 000 for all.
    #[must_use]
    pub fn reply_limits(mut self, limits: ReplyLimits) -> Self {
        self.reply_limits = Some(limits);
        self
    }

    /// Sets the rates of stateless resets, for [`Endpoint::server`](crate::Endpoint::server).
    /// Default 200 a second for one network and 2000 for all.
    #[must_use]
    pub fn reset_limits(mut self, limits: ReplyLimits) -> Self {
        self.reset_limits = Some(limits);
        self
    }

    /// Sets the connections per second that one address (IPv4, /64 of IPv6, or a link-local or unique
    /// local IPv6 address) may open; one network (/24, or /56) may open four times as many. Clients beyond
    /// the limit receive a Retry if they have no token, and are refused if they have one. No limit by
    /// default.
    #[must_use]
    pub fn connection_rate(mut self, per_second: impl Into<Option<u32>>) -> Self {
        self.settings.connection_rate = per_second.into();
        self
    }

    /// Like [`connection_rate`](Self::connection_rate), but applied only under pressure, as defined
    /// by [`RetryPolicy::Auto`]. No limit by default: then networks take turns, so that a flood
    /// from one of them delays no other.
    #[must_use]
    pub fn loaded_connection_rate(mut self, per_second: impl Into<Option<u32>>) -> Self {
        self.settings.loaded_connection_rate = per_second.into();
        self
    }

    /// Accepts early data (0-RTT) of clients that resume a session, from sessions and with a filter of
    /// replays that `options` choose; see [`EarlyDataOptions`]. Off by default.
    ///
    /// The application gets early data before the handshake is complete if it calls
    /// [`Connecting::early`](crate::Connecting::early), and with the end of the handshake otherwise.
    /// Early data of a client whose session was issued with higher limits is refused. Tickets are
    /// references to stored sessions: another process resumes no session unless it shares them.
    ///
    /// ```
    /// # extern crate courser_quic as courser;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let options = courser::EarlyDataOptions::default();
    /// let config = courser::ServerConfig::dev()?.alpn(["example"]).early_data(options);
    /// # let _ = config;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn early_data(mut self, options: EarlyDataOptions) -> Self {
        self.early_data = Some(options);
        self
    }

    /// Sets the bytes of early data that each connection takes before its handshake is complete.
    /// Clients send again what exceeds them. Default 64 KiB.
    #[must_use]
    pub fn max_early_data(mut self, bytes: u64) -> Self {
        self.settings.max_early_data = bytes;
        self
    }

    /// Sets the versions of QUIC that the server accepts, the preferred one first, and moves clients
    /// to the first one that they support, without a round trip (RFC 9368 §2.3). Clients of other
    /// versions receive the list in a Version Negotiation packet.
    ///
    /// By default all versions are accepted, and a connection stays in the version in which the
    /// client began. With `[QuicVersion::V2, QuicVersion::V1]` clients that support version 2
    /// continue in it.
    ///
    /// [`Endpoint::server`](crate::Endpoint::server) and the other constructors return an error for
    /// an empty list.
    #[must_use]
    pub fn versions(mut self, versions: impl IntoIterator<Item = Version>) -> Self {
        self.settings.versions = versions.into_iter().collect();
        self.settings.moves_clients = true;
        self
    }

    /// Allows clients to change their address. Default on.
    ///
    /// Otherwise clients are asked not to (disable_active_migration, RFC 9000 §18.2), and packets from
    /// another IP address are dropped. Another port of the same address is followed, because NATs
    /// rebind.
    #[must_use]
    pub fn migration(mut self, allowed: bool) -> Self {
        self.settings.migration = allowed;
        self
    }

    /// Asks clients to move to another address once the handshake is confirmed: to `v4` over IPv4, and
    /// to `v6` over IPv6 (RFC 9000 §9.6). None by default.
    ///
    /// This suits servers behind a shared address, such as anycast, that have an address of their own.
    /// The socket must receive datagrams to the preferred addresses: bind it to a wildcard address.
    /// Clients that get no answer there stay, and so do those that do not support it. It also works
    /// with [`migration(false)`](Self::migration), which then holds for the first address only.
    #[must_use]
    pub fn preferred_address(
        mut self,
        v4: impl Into<Option<SocketAddrV4>>,
        v6: impl Into<Option<SocketAddrV6>>,
    ) -> Self {
        self.settings.preferred_address_v4 = v4.into();
        self.settings.preferred_address_v6 = v6.into();
        self
    }

    /// Runs TLS work on threads that may block, by the runtime's `spawn_blocking`, instead of under
    /// the lock that all connections of the endpoint share. Default off.
    ///
    /// Enable it if a certificate resolver, a verifier of client certificates or a signer may take
    /// long, because it uses a network, a key store, a disk or a database. Otherwise no connection
    /// of the endpoint sends or receives until it returns. It is not the default because each
    /// handshake takes two to three round trips to another thread. At most 128 tasks run at a time
    /// on an endpoint. Wait for async code with [`runtime::block_on`](crate::runtime::block_on).
    ///
    /// See [`Incoming::accept_with`](crate::Incoming::accept_with) for a choice before the
    /// handshake, without information from TLS.
    #[must_use]
    pub fn offload_tls(mut self, offloads: bool) -> Self {
        self.settings.offload_tls = offloads;
        self
    }

    /// Checks all settings and converts them for the transport.
    pub(crate) fn build(self) -> Result<Arc<courser_transport::ServerConfig>, ConfigError> {
        self.settings.validate()?;
        let tls = Arc::new(match self.early_data {
            early_data if self.tls.is_alpn_optional => {
                TlsServer::with_optional_alpn(self.tls.config, early_data)?
            }
            Some(options) => TlsServer::with_early_data(self.tls.config, options)?,
            None => TlsServer::new(self.tls.config)?,
        });
        Ok(Arc::new(courser_transport::ServerConfig {
            tls,
            ..self.settings
        }))
    }
}

/// Waits for an async function during a handshake.
struct AsyncCertificates<F>(F);

impl<F> fmt::Debug for AsyncCertificates<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AsyncCertificates")
    }
}

impl<F, R> ResolvesServerCert for AsyncCertificates<F>
where
    F: Fn(Option<String>) -> R + Send + Sync,
    R: Future<Output = Option<Arc<CertifiedKey>>>,
{
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().map(str::to_owned);
        crate::runtime::block_on((self.0)(name))
    }
}

/// A secret that stays out of logs.
#[derive(Clone)]
pub(crate) struct ResetKey(pub(crate) [u8; 32]);

impl fmt::Debug for ResetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResetKey")
    }
}
