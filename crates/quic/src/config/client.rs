//! The configuration of a client.

use std::sync::Arc;

use courser_telemetry::SinkFactory;
use courser_tls::rustls::client::AlwaysResolvesClientRawPublicKeys;
use courser_tls::rustls::client::danger::ServerCertVerifier;
use courser_tls::rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer};
use courser_tls::rustls::{self, RootCertStore};
use courser_tls::{
    CertificateHashVerifier, ClientOptions, ClientParts, ClientTickets, Cryptography, Ech,
    RawKeyVerifier, TlsClient, Trust,
};
use courser_transport::{TokenStore, TransportConfig};
use courser_wire::{ConnectionId, Version};

use super::hooks::{ClientConfigHooks, IdentityHooks};
use super::identity::Identity;
use super::tls::TlsSettings;
use super::unfinished::{Unfinished, no_protocol_yet};
use crate::error::ConfigError;

/// The configuration of a client: the servers it trusts, its protocols.
///
/// ```
/// # extern crate courser_quic as courser;
/// # fn main() -> Result<(), courser::ConfigError> {
/// let identity = courser::Identity::dev()?;
/// let config = courser::ClientConfig::with_roots([identity.certificate()])?.alpn(["echo"]);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct ClientConfig {
    tls: TlsSettings<ClientParts>,
    /// Stores the rejection of a server.
    ech: Option<Ech>,
    early_data: bool,
    settings: courser_transport::ClientConfig,
    /// Tickets by server and version.
    tickets: ClientTickets,
    /// True if connections of version 1 alone keep their tickets in the store of `tls`, which may be the
    /// user's.
    has_own_store: bool,
}

impl ClientConfig {
    /// Creates a configuration that trusts the certificates that the operating system trusts.
    ///
    /// # Errors
    /// Returns an error if the system's certificates cannot be loaded.
    pub fn with_platform_verifier() -> Result<Self, ConfigError> {
        Self::from_trust(Trust::Platform)
    }

    /// Creates a configuration that trusts servers with certificates that chain to, or are, these.
    ///
    /// ```
    /// # extern crate courser_quic as courser;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = courser::Identity::dev()?;
    /// let config = courser::ClientConfig::with_roots([server.certificate()])?.alpn(["example"]);
    /// # let _ = config;
    /// # Ok(()) }
    /// ```
    pub fn with_roots(
        roots: impl IntoIterator<Item = CertificateDer<'static>>,
    ) -> Result<Self, ConfigError> {
        let mut store = RootCertStore::empty();
        for root in roots {
            store
                .add(root)
                .map_err(|error| ConfigError::Tls(error.to_string()))?;
        }
        Self::with_root_certificates(&Arc::new(store))
    }

    /// Creates a configuration that trusts the certificates of `roots`.
    ///
    /// # Errors
    /// Returns an error if there are none.
    pub fn with_root_certificates(roots: &Arc<RootCertStore>) -> Result<Self, ConfigError> {
        Self::from_trust(Trust::Roots(RootCertStore::clone(roots)))
    }

    /// Creates a configuration that trusts servers which hold the private key of one of these public keys,
    /// and present it without a certificate (RFC 7250). The name of the server is not checked.
    ///
    /// ```
    /// # extern crate courser_quic as courser;
    /// use courser::{ClientConfig, Identity, ServerConfig};
    ///
    /// # fn main() -> Result<(), courser::ConfigError> {
    /// let identity = Identity::dev()?;
    /// let server = ServerConfig::with_raw_public_key(&identity)?.alpn(["echo"]);
    /// let client = ClientConfig::with_raw_public_keys([identity.public_key()?])?.alpn(["echo"]);
    /// # let _ = (server, client);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error if there are no keys.
    pub fn with_raw_public_keys(
        keys: impl IntoIterator<Item = SubjectPublicKeyInfoDer<'static>>,
    ) -> Result<Self, ConfigError> {
        Self::from_trust(Trust::Verifier(Arc::new(RawKeyVerifier::new(keys)?)))
    }

    /// Creates a configuration that trusts servers whose certificate has one of these SHA-256 hashes, as
    /// `serverCertificateHashes` of browsers does: the certificate is valid for at most 14 days, and has a key for
    /// ECDSA on P-256. The name of the server is not checked.
    ///
    /// ```
    /// # extern crate courser_quic as courser;
    /// # fn main() -> Result<(), courser::ConfigError> {
    /// let printed_by_the_server = [0x5a; 32];
    /// let config = courser::ClientConfig::with_certificate_hashes([printed_by_the_server])?.alpn(["h3"]);
    /// # let _ = config;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error if there are no hashes.
    pub fn with_certificate_hashes(
        hashes: impl IntoIterator<Item = [u8; 32]>,
    ) -> Result<Self, ConfigError> {
        Self::from_trust(Trust::Verifier(Arc::new(CertificateHashVerifier::new(
            hashes,
        )?)))
    }

    /// Creates a configuration with a custom verifier of server certificates.
    ///
    /// # Errors
    /// Returns an error if TLS cannot be configured with it.
    pub fn with_verifier(verifier: Arc<dyn ServerCertVerifier>) -> Result<Self, ConfigError> {
        Self::from_trust(Trust::Verifier(verifier))
    }

    /// Creates a configuration that accepts any server certificate. **An attacker on the path can
    /// read and change everything.** For tests and for tools that warn about it.
    ///
    /// # Errors
    /// Returns an error if TLS cannot be configured.
    pub fn dangerous_insecure() -> Result<Self, ConfigError> {
        Self::from_trust(Trust::AnyServer)
    }

    fn from_trust(trust: Trust) -> Result<Self, ConfigError> {
        let parts = ClientParts::new(trust)?;
        let trust = Trust::Verifier(parts.verifier());
        let mut tls = courser_tls::client_config(ClientOptions::new(trust, no_protocol_yet()))?;
        Arc::make_mut(&mut tls).alpn_protocols.clear();
        Ok(Self::with_tls(TlsSettings::built_from(parts, tls)).tickets_by_port())
    }

    /// Creates a configuration around a custom TLS configuration, which must support TLS 1.3.
    ///
    /// Session tickets are kept in its store. Stores of rustls know servers by name only, so different
    /// ports of one host share tickets, which usually fail at the other port. A client of several such servers
    /// should have a configuration for each, with a store of its own.
    pub fn with_rustls(tls: Arc<rustls::ClientConfig>) -> Self {
        Self::with_tls(TlsSettings::custom(tls))
    }

    fn with_tls(tls: TlsSettings<ClientParts>) -> Self {
        Self {
            tls,
            ech: None,
            early_data: false,
            settings: courser_transport::ClientConfig::new(Arc::new(Unfinished)),
            tickets: ClientTickets::default(),
            has_own_store: true,
        }
    }

    /// Sets the application protocols, the preferred one first. At least one is needed.
    #[must_use]
    pub fn alpn(mut self, protocols: impl IntoIterator<Item = impl Into<Vec<u8>>>) -> Self {
        self.tls.set_alpn(protocols);
        self
    }

    /// Sets the certificate and key for servers that request client authentication. Does not change
    /// which servers are trusted.
    ///
    /// # Errors
    /// Returns an error if certificate and key do not match.
    pub fn identity(mut self, identity: &Identity) -> Result<Self, ConfigError> {
        let own = identity.clone().into_tls();
        let provider = self.tls.config.crypto_provider().clone();
        let key = rustls::sign::CertifiedKey::from_der(own.chain, own.key, &provider)
            .map_err(|error| ConfigError::Tls(error.to_string()))?;
        Arc::make_mut(&mut self.tls.config).client_auth_cert_resolver =
            Arc::new(rustls::sign::SingleCertAndKey::from(key));
        Ok(self)
    }

    /// Sets the public key of this identity for servers that request one instead of a certificate (RFC
    /// 7250).
    ///
    /// # Errors
    /// Returns an error if the key cannot be used to sign.
    pub fn raw_identity(mut self, identity: &Identity) -> Result<Self, ConfigError> {
        let key = courser_tls::raw_key(identity.clone().into_tls().key)?;
        Arc::make_mut(&mut self.tls.config).client_auth_cert_resolver =
            Arc::new(AlwaysResolvesClientRawPublicKeys::new(key));
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

    /// Encrypts the ClientHello (ECH, RFC 9849) for the servers of one ECHConfigList, or pretends to
    /// ([`Ech::grease`]). `None` does neither, which is the default.
    ///
    /// If a server rejects it, the connection ends with a TransportError whose code is CRYPTO_ERROR with
    /// the alert ech_required (0x179), and [`Ech::rejection`] has the list for another attempt.
    ///
    /// ```no_run
    /// # extern crate courser_quic as courser;
    /// use courser::{ClientConfig, Ech, EchRejection, Endpoint};
    ///
    /// # async fn connect(endpoint: Endpoint, address: std::net::SocketAddr, list: &[u8])
    /// # -> Result<(), Box<dyn std::error::Error>> {
    /// let config = ClientConfig::with_platform_verifier()?.alpn(["h3"]);
    /// let ech = Ech::from_config_list(list)?;
    /// let first = config.clone().ech(Some(ech.clone()))?;
    /// let connection = match endpoint.connect_with(first, address, "example.org")?.await {
    ///     Ok(connection) => connection,
    ///     Err(error) => match ech.rejection() {
    ///         Some(EchRejection::Retry(list)) => {
    ///             let again = config.ech(Some(Ech::from_config_list(&list)?))?;
    ///             endpoint.connect_with(again, address, "example.org")?.await?
    ///         }
    ///         _ => return Err(error.into()),
    ///     },
    /// };
    /// # let _ = connection;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error for a custom TLS configuration: use `with_ech` of the builder of rustls.
    pub fn ech(mut self, ech: Option<Ech>) -> Result<Self, ConfigError> {
        self.tls.rebuild("ECH", |parts| {
            parts.set_ech(ech.clone());
            Ok(())
        })?;
        self.ech = ech;
        Ok(self)
    }

    /// Accepts a configuration without application protocols (ALPN), like
    /// [`ServerConfig::alpn_optional`](crate::ServerConfig::alpn_optional).
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

    /// Records all connections from their first packet on, each in a sink that `sinks` makes, like
    /// [`ServerConfig::sinks`](crate::ServerConfig::sinks).
    #[must_use]
    pub fn sinks(mut self, sinks: Arc<dyn SinkFactory>) -> Self {
        Arc::make_mut(&mut self.settings.transport).sinks = Some(sinks);
        self
    }

    /// Offers early data (0-RTT) to servers whose sessions are resumed. The application sends it with
    /// [`Connecting::early`](crate::Connecting::early); nothing leaves early without that call. Off
    /// by default.
    ///
    /// Sessions are kept in memory by name and port of the server, shared by the clones of this
    /// configuration; those of [`with_rustls`](Self::with_rustls) in the store of the TLS configuration.
    #[must_use]
    pub fn early_data(mut self, offers: bool) -> Self {
        self.early_data = offers;
        self
    }

    /// Sets the versions of QUIC that the client supports, the preferred one first. Default
    /// `[QuicVersion::V1]`.
    ///
    /// The first flight is of the first version, or of that of [`first_version`](Self::first_version).
    /// The server may move the connection to another one of the list without a round trip
    /// (RFC 9368 §2.3), or ask for another one, which costs a round trip (§2.1). [`ConnectionStats::version`](crate::ConnectionStats::version) is the result.
    /// Attempts to force a worse version end the connection with VERSION_NEGOTIATION_ERROR.
    ///
    /// With any other list than the default, session tickets are kept in memory, shared by the clones
    /// of this configuration, and not in the store of a custom TLS configuration: tickets of one version
    /// are of no use in another (RFC 9369 §5). The same holds for tokens; see
    /// [`TokenStore`](crate::TokenStore).
    ///
    /// ```
    /// # extern crate courser_quic as courser;
    /// use courser::{ClientConfig, Identity, QuicVersion};
    ///
    /// # fn main() -> Result<(), courser::ConfigError> {
    /// let identity = Identity::dev()?;
    /// // Begins in version 1, which all servers support, and lets them move on to version 2.
    /// let config = ClientConfig::with_roots([identity.certificate()])?
    ///     .alpn(["echo"])
    ///     .versions([QuicVersion::V1, QuicVersion::V2]);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn versions(mut self, versions: impl IntoIterator<Item = Version>) -> Self {
        self.settings.versions = versions.into_iter().collect();
        self
    }

    /// Sets the version of the first flight, which is one of [`versions`](Self::versions). By default
    /// it is the preferred one.
    ///
    /// A client that begins in version 1 reaches every server at once; one that prefers version 2
    /// may be moved to it by servers that follow the client's order (RFC 9368 §2.3).
    /// [`Endpoint::connect`](crate::Endpoint::connect) returns an error for a version not in the list.
    #[must_use]
    pub fn first_version(mut self, version: Version) -> Self {
        self.settings.first_version = Some(version);
        self
    }

    /// Sets the store of tokens, which save a round trip with a known server; `None` stores none.
    /// By default they are kept in memory, shared by the clones of this configuration.
    #[must_use]
    pub fn token_store(mut self, tokens: Option<Arc<dyn TokenStore>>) -> Self {
        self.settings.tokens = tokens;
        self
    }

    /// Sets what makes the Destination Connection ID of the first packet of each connection, of at least 8 bytes that
    /// others cannot predict (RFC 9000 §7.2). [`Endpoint::connect`](crate::Endpoint::connect) returns an error for a
    /// shorter one. It is called under the lock of the endpoint, and must neither block nor use the endpoint. `None`,
    /// the default, are 8 random bytes.
    #[must_use]
    pub fn initial_destination(
        mut self,
        make: Option<Arc<dyn Fn() -> ConnectionId + Send + Sync>>,
    ) -> Self {
        self.settings.initial_destination = make;
        self
    }

    /// Moves to the address that a server prefers, if it answers there (RFC 9000 §9.6). Default on.
    ///
    /// At most three datagrams go to such an address before it has answered. One of a smaller scope
    /// than the server's is never used: a server on the Internet cannot have the client send to a
    /// private address.
    #[must_use]
    pub fn follow_preferred_address(mut self, follows: bool) -> Self {
        self.settings.follow_preferred_address = follows;
        self
    }

    /// Runs TLS work on threads that may block, as [`ServerConfig::offload_tls`](crate::ServerConfig::offload_tls) does, if a certificate
    /// verifier, a resolver of client certificates or a signer may take long. Default off. Tickets are
    /// an exception: `ClientSessionStore` is called as the connection starts, under the lock.
    #[must_use]
    pub fn offload_tls(mut self, offloads: bool) -> Self {
        self.settings.offload_tls = offloads;
        self
    }

    /// Checks all settings and converts them for the transport.
    pub(crate) fn build(self) -> Result<Arc<courser_transport::ClientConfig>, ConfigError> {
        self.settings.validate()?;
        let tls = match self.early_data {
            early_data if self.tls.is_alpn_optional => {
                TlsClient::with_optional_alpn(self.tls.config, early_data)?
            }
            true => TlsClient::with_early_data(self.tls.config)?,
            false => TlsClient::new(self.tls.config)?,
        };
        let tls = match self.has_own_store {
            true => tls.with_tickets(self.tickets),
            false => tls.with_all_tickets(self.tickets),
        };
        let tls = Arc::new(tls.with_ech_reports(self.ech));
        Ok(Arc::new(courser_transport::ClientConfig {
            tls,
            ..self.settings
        }))
    }
}

impl ClientConfigHooks for ClientConfig {
    fn check(self) -> Result<(), ConfigError> {
        self.build().map(drop)
    }

    fn reporting_ech(mut self, ech: Option<Ech>) -> Self {
        self.ech = ech;
        self
    }

    fn tickets_by_port(mut self) -> Self {
        self.has_own_store = false;
        self
    }
}
