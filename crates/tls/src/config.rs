//! rustls configurations with defaults for QUIC.

use std::sync::Arc;

use courser_crypto::CipherSuite;
use rustls::client::Resumption;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::ResolvesServerCert;
use rustls::version::TLS13;
use rustls::{ClientConfig, KeyLog, NoKeyLog, ServerConfig};

use crate::compression::{self, certificate_decompressors, keep_compressed};
use crate::cryptography::provider;
use crate::error::{TlsConfigError, credentials, unusable};
use crate::key_log::QueuedKeyLog;
use crate::pem;
use crate::provider::ticketer;
use crate::trust::{ClientAuthentication, Trust, client_verifier, server_verifier};

/// The options of a client's configuration.
#[derive(Debug)]
pub struct ClientOptions {
    /// The servers that the client trusts.
    pub trust: Trust,
    /// Application protocols, the preferred one first. At least one.
    pub alpn: Vec<Vec<u8>>,
    /// The certificate that the client presents if a server requests one.
    pub identity: Option<Identity>,
    /// The store of session tickets. By default it holds 256 tickets in memory.
    pub resumption: Resumption,
    /// Cipher suites, the preferred one first. An empty list means all suites, AES-128-GCM first.
    pub suites: Vec<CipherSuite>,
    /// The destination of secrets for the analysis of packet captures.
    pub key_log: KeyLogging,
}

impl ClientOptions {
    /// Returns options without an identity, with tickets in memory, all suites and no key log.
    pub fn new(trust: Trust, alpn: Vec<Vec<u8>>) -> Self {
        Self {
            trust,
            alpn,
            identity: None,
            resumption: Resumption::default(),
            suites: Vec::new(),
            key_log: KeyLogging::Off,
        }
    }
}

/// The options of a server's configuration.
#[derive(Debug)]
pub struct ServerOptions {
    /// The certificate that the server presents to its clients.
    pub identity: Identity,
    /// Application protocols, the preferred one first. At least one.
    pub alpn: Vec<Vec<u8>>,
    /// The policy for client certificates.
    pub client_authentication: ClientAuthentication,
    /// Cipher suites, the preferred one first. An empty list means all suites, and the client's
    /// preference decides: a device without AES instructions prefers ChaCha20.
    pub suites: Vec<CipherSuite>,
    /// The destination of secrets for the analysis of packet captures.
    pub key_log: KeyLogging,
}

impl ServerOptions {
    /// Returns options without client authentication, with all suites and no key log.
    pub fn new(identity: Identity, alpn: Vec<Vec<u8>>) -> Self {
        Self {
            identity,
            alpn,
            client_authentication: ClientAuthentication::Off,
            suites: Vec::new(),
            key_log: KeyLogging::Off,
        }
    }
}

/// The destination of secrets, in the format that packet analysers read.
#[derive(Clone, Debug)]
pub enum KeyLogging {
    /// Writes no secrets. The default.
    Off,
    /// Writes to the file that the environment variable `SSLKEYLOGFILE` names, if it is set; see
    /// [`QueuedKeyLog::environment`].
    Environment,
    /// Writes to a log of the application. rustls calls it during the handshake, so it must not
    /// block.
    To(Arc<dyn KeyLog>),
}

impl KeyLogging {
    fn into_key_log(self) -> Arc<dyn KeyLog> {
        match self {
            Self::Off => Arc::new(NoKeyLog),
            Self::Environment => QueuedKeyLog::environment(),
            Self::To(log) => log,
        }
    }
}

/// A certificate chain and its private key.
#[derive(Debug)]
pub struct Identity {
    /// The end-entity certificate first, followed by the certificate of each issuer.
    pub chain: Vec<CertificateDer<'static>>,
    /// The private key of the first certificate.
    pub key: PrivateKeyDer<'static>,
}

impl Identity {
    /// Parses the contents of two PEM files: one with all certificates of the chain, one with the
    /// key.
    ///
    /// # Errors
    /// Returns [`TlsConfigError::Credentials`] if there is no certificate or no key, or if the PEM
    /// text is invalid.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, TlsConfigError> {
        let chain = pem::certificates(chain).map_err(TlsConfigError::Credentials)?;
        let key = pem::key(key).map_err(TlsConfigError::Credentials)?;
        Ok(Self { chain, key })
    }
}

/// Builds a client's configuration with TLS 1.3 only and X25519MLKEM768 preferred.
///
/// # Errors
/// Returns [`TlsConfigError`] if the protocols are missing or invalid, if there are no roots, or if
/// certificate and key do not match.
pub fn client_config(options: ClientOptions) -> Result<Arc<ClientConfig>, TlsConfigError> {
    check_alpn(&options.alpn)?;
    let provider = provider(&options.suites);
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&TLS13])
        .map_err(unusable)?
        .dangerous()
        .with_custom_certificate_verifier(server_verifier(options.trust, provider)?);
    let mut config = match options.identity {
        None => builder.with_no_client_auth(),
        Some(Identity { chain, key }) => builder
            .with_client_auth_cert(chain, key)
            .map_err(credentials)?,
    };
    config.cert_decompressors = certificate_decompressors();
    config.alpn_protocols = options.alpn;
    config.resumption = options.resumption;
    config.key_log = options.key_log.into_key_log();
    Ok(Arc::new(config))
}

/// Builds a server's configuration with TLS 1.3 only, X25519MLKEM768 preferred, and stateless
/// tickets whose keys rotate.
///
/// # Errors
/// Returns [`TlsConfigError`] if the protocols are missing or invalid, or if certificate and key do
/// not match.
pub fn server_config(options: ServerOptions) -> Result<Arc<ServerConfig>, TlsConfigError> {
    check_alpn(&options.alpn)?;
    let provider = provider(&options.suites);
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&TLS13])
        .map_err(unusable)?;
    let has_preference = !options.suites.is_empty();
    let verifier = client_verifier(options.client_authentication, provider)?;
    let Identity { chain, key } = options.identity;
    let chain_bytes = chain.iter().map(|certificate| certificate.len()).sum();
    let mut config = builder
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .map_err(credentials)?;
    config.alpn_protocols = options.alpn;
    compression::configure(&mut config, chain_bytes);
    config.ignore_client_order = has_preference;
    config.ticketer = ticketer().map_err(unusable)?;
    config.key_log = options.key_log.into_key_log();
    Ok(Arc::new(config))
}

/// Builds a server's configuration like [`server_config`], but with certificates from `resolver`,
/// without client authentication and without protocols.
///
/// # Errors
/// Returns [`TlsConfigError`] if the ticket keys cannot be generated.
pub fn server_config_with_resolver(
    resolver: Arc<dyn ResolvesServerCert>,
) -> Result<Arc<ServerConfig>, TlsConfigError> {
    let mut config = ServerConfig::builder_with_provider(provider(&[]))
        .with_protocol_versions(&[&TLS13])
        .map_err(unusable)?
        .with_no_client_auth()
        .with_cert_resolver(resolver);
    keep_compressed(&mut config, CERTIFICATES_OF_A_RESOLVER);
    config.ticketer = ticketer().map_err(unusable)?;
    Ok(Arc::new(config))
}

/// Checks that there are application protocols with valid names. ALPN is mandatory: without it,
/// each end may interpret the other's bytes as a different protocol (RFC 9001 §8.1).
pub(crate) fn check_alpn(protocols: &[Vec<u8>]) -> Result<(), TlsConfigError> {
    if protocols.is_empty() {
        return Err(TlsConfigError::NoApplicationProtocol);
    }
    check_names(protocols)
}

/// Checks that application protocols have valid names.
pub(crate) fn check_names(protocols: &[Vec<u8>]) -> Result<(), TlsConfigError> {
    if protocols
        .iter()
        .any(|name| name.is_empty() || name.len() > 255)
    {
        return Err(TlsConfigError::InvalidApplicationProtocol);
    }
    Ok(())
}

/// Number of certificates for which a server with a custom resolver keeps compressed chains.
const CERTIFICATES_OF_A_RESOLVER: usize = 64;

#[cfg(test)]
mod tests;
