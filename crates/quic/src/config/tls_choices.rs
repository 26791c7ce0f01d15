//! Choices of TLS: client certificates, raw public keys, algorithms, Encrypted Client Hello.
//!
//! They change parts that rustls fixes in its builder, so the configuration is built again
//! (`docs/design/0022`).

use std::sync::Arc;

use courser_tls::rustls::client::AlwaysResolvesClientRawPublicKeys;
use courser_tls::rustls::pki_types::SubjectPublicKeyInfoDer;
use courser_tls::rustls::server::AlwaysResolvesServerRawPublicKeys;
use courser_tls::{
    ClientAuthentication, ClientParts, Cryptography, Ech, RawKeyVerifier, ServerParts,
    TlsConfigError, Trust,
};

use crate::config::identity::Identity;
use crate::config::{ClientConfig, ServerConfig};
use crate::error::ConfigError;

impl ServerConfig {
    /// Creates a configuration with the public key of this identity in the place of its certificate (RFC
    /// 7250), for clients that know the key: see [`ClientConfig::with_raw_public_keys`]. Clients that
    /// support certificates only are refused.
    ///
    /// # Errors
    /// Returns an error if the key cannot be used to sign.
    pub fn with_raw_public_key(identity: &Identity) -> Result<Self, ConfigError> {
        let key = courser_tls::raw_key(identity.clone().into_tls().key)?;
        let resolver = Arc::new(AlwaysResolvesServerRawPublicKeys::new(key));
        let tls = courser_tls::server_config_with_resolver(resolver)?;
        Self::of_parts(ServerParts::new(ClientAuthentication::Off)?, &tls)
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
    pub fn client_authentication(self, policy: ClientAuthentication) -> Result<Self, ConfigError> {
        self.rebuild("client authentication", |parts| parts.set_clients(policy))
    }

    /// Sets cipher suites and key exchange groups. See [`Cryptography`] for the default.
    ///
    /// # Errors
    /// Returns an error for a custom TLS configuration: set its provider where it is built.
    pub fn cryptography(self, cryptography: Cryptography) -> Result<Self, ConfigError> {
        self.rebuild("cryptography", |parts| {
            parts.set_cryptography(cryptography);
            Ok(())
        })
    }

    /// Accepts a configuration without application protocols (ALPN): both ends agree on the protocol by
    /// another mechanism, such as a port of its own (RFC 9001 §8.1). A server without protocols refuses
    /// clients that offer some. By default a protocol is required, because without one each end may take the
    /// bytes of the other for those of a different protocol.
    #[must_use]
    pub fn alpn_optional(mut self, is_optional: bool) -> Self {
        self.alpn_optional = is_optional;
        self
    }

    /// Changes a part of the TLS configuration, and builds it again.
    fn rebuild(
        mut self,
        what: &str,
        change: impl FnOnce(&mut ServerParts) -> Result<(), TlsConfigError>,
    ) -> Result<Self, ConfigError> {
        let parts = self.parts.as_mut().ok_or_else(|| custom(what))?;
        change(parts)?;
        self.tls = parts.build(&self.tls)?;
        Ok(self)
    }
}

impl ClientConfig {
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
        Self::made_of(Trust::Verifier(Arc::new(RawKeyVerifier::new(keys)?)))
    }

    /// Sets the public key of this identity for servers that request one instead of a certificate (RFC
    /// 7250).
    ///
    /// # Errors
    /// Returns an error if the key cannot be used to sign.
    pub fn raw_identity(mut self, identity: &Identity) -> Result<Self, ConfigError> {
        let key = courser_tls::raw_key(identity.clone().into_tls().key)?;
        Arc::make_mut(&mut self.tls).client_auth_cert_resolver =
            Arc::new(AlwaysResolvesClientRawPublicKeys::new(key));
        Ok(self)
    }

    /// Sets cipher suites and key exchange groups. See [`Cryptography`] for the default.
    ///
    /// # Errors
    /// Returns an error for a custom TLS configuration: set its provider where it is built.
    pub fn cryptography(self, cryptography: Cryptography) -> Result<Self, ConfigError> {
        self.rebuild("cryptography", |parts| parts.set_cryptography(cryptography))
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
    pub fn ech(self, ech: Option<Ech>) -> Result<Self, ConfigError> {
        let mut config = self.rebuild("ECH", |parts| parts.set_ech(ech.clone()))?;
        config.ech = ech;
        Ok(config)
    }

    /// Reports rejections of ECH to `ech`, which is part of a custom TLS configuration.
    pub(crate) fn reporting_ech(mut self, ech: Option<Ech>) -> Self {
        self.ech = ech;
        self
    }

    /// Accepts a configuration without application protocols (ALPN): both ends agree on the protocol by
    /// another mechanism, such as a port of its own (RFC 9001 §8.1). By default a protocol is required,
    /// because without one each end may take the bytes of the other for those of a different protocol.
    #[must_use]
    pub fn alpn_optional(mut self, is_optional: bool) -> Self {
        self.alpn_optional = is_optional;
        self
    }

    /// Changes a part of the TLS configuration, and builds it again.
    fn rebuild(
        mut self,
        what: &str,
        change: impl FnOnce(&mut ClientParts),
    ) -> Result<Self, ConfigError> {
        let parts = self.parts.as_mut().ok_or_else(|| custom(what))?;
        change(parts);
        self.tls = parts.build(&self.tls)?;
        Ok(self)
    }
}

/// Returns the error of a setter that cannot change a custom TLS configuration.
fn custom(what: &str) -> ConfigError {
    ConfigError::Tls(format!(
        "{what} of a custom TLS configuration cannot be changed: set it with the builder of rustls"
    ))
}
