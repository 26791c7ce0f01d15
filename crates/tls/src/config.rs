//! rustls configurations with the defaults that QUIC wants.

use std::fmt;
use std::sync::Arc;

use courser_crypto::CipherSuite;
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ResolvesServerCert, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{ClientConfig, KeyLog, NoKeyLog, RootCertStore, ServerConfig};
use rustls_platform_verifier::Verifier;

use any_server::AnyServer;

use crate::key_log::QueuedKeyLog;

mod any_server;

/// What a client's configuration is made from.
#[derive(Debug)]
pub struct ClientOptions {
    /// Which servers are believed.
    pub trust: Trust,
    /// Application protocols, the preferred one first. At least one.
    pub alpn: Vec<Vec<u8>>,
    /// What the client shows to a server that asks who it is.
    pub identity: Option<Identity>,
    /// Where tickets are kept; by default 256 of them in memory.
    pub resumption: Resumption,
    /// Cipher suites, the preferred one first; none means all, AES-128-GCM first.
    pub suites: Vec<CipherSuite>,
    /// Where secrets are written for those who analyse captures.
    pub key_log: KeyLogging,
}

impl ClientOptions {
    /// No identity, tickets in memory, all suites, no key log.
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

/// What a server's configuration is made from.
#[derive(Debug)]
pub struct ServerOptions {
    /// What the server shows to its clients.
    pub identity: Identity,
    /// Application protocols, the preferred one first. At least one.
    pub alpn: Vec<Vec<u8>>,
    /// Whether clients have to say who they are.
    pub client_authentication: ClientAuthentication,
    /// Cipher suites, the preferred one first. None means all, and the client chooses: a device
    /// without AES instructions asks for ChaCha20.
    pub suites: Vec<CipherSuite>,
    /// Where secrets are written for those who analyse captures.
    pub key_log: KeyLogging,
}

impl ServerOptions {
    /// No client authentication, all suites, no key log.
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

/// Which servers a client believes.
#[derive(Debug)]
pub enum Trust {
    /// Those whose certificates lead to one of these roots.
    Roots(RootCertStore),
    /// Those that the operating system believes.
    Platform,
    /// Those that the operating system believes, and those whose certificates lead to one of these.
    PlatformAnd(Vec<CertificateDer<'static>>),
    /// Those that the user's own verifier accepts, such as one that pins a key.
    Verifier(Arc<dyn ServerCertVerifier>),
    /// Any server that holds the key of the certificate it shows, whatever the certificate says.
    /// Whoever sits in the path can pose as the server: for tests and tools only.
    AnyServer,
}

/// Whether a server asks its clients for certificates.
#[derive(Debug)]
pub enum ClientAuthentication {
    /// It does not ask.
    Off,
    /// It asks; a client without a certificate is let in as well.
    Optional(RootCertStore),
    /// Only clients whose certificates lead to one of these roots are let in.
    Required(RootCertStore),
}

/// Where secrets are written, in the format that packet analysers read.
#[derive(Clone, Debug)]
pub enum KeyLogging {
    /// Nowhere.
    Off,
    /// To the file that the environment variable `SSLKEYLOGFILE` names, if it does; see
    /// [`QueuedKeyLog::environment`].
    Environment,
    /// To the user's own log. It is called inside the handshake and must not block.
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
    /// The own certificate first, then each one's issuer.
    pub chain: Vec<CertificateDer<'static>>,
    /// The private key of the first certificate.
    pub key: PrivateKeyDer<'static>,
}

impl Identity {
    /// Reads PEM files: one with all certificates of the chain, one with the key.
    ///
    /// # Errors
    /// [`TlsConfigError::Credentials`] when there is no certificate, no key, or neither is PEM.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, TlsConfigError> {
        let chain: Vec<_> = CertificateDer::pem_slice_iter(chain)
            .collect::<Result<_, _>>()
            .map_err(|error| TlsConfigError::Credentials(format!("certificate: {error}")))?;
        if chain.is_empty() {
            return Err(TlsConfigError::Credentials(
                "no certificate in the PEM text".into(),
            ));
        }
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|error| TlsConfigError::Credentials(format!("private key: {error}")))?;
        Ok(Self { chain, key })
    }
}

/// Makes a client's configuration: TLS 1.3 only, X25519MLKEM768 preferred.
///
/// # Errors
/// [`TlsConfigError`] when protocols are missing or the identity does not fit together.
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
    config.alpn_protocols = options.alpn;
    config.resumption = options.resumption;
    config.key_log = options.key_log.into_key_log();
    Ok(Arc::new(config))
}

/// Makes a server's configuration: TLS 1.3 only, X25519MLKEM768 preferred, stateless tickets
/// whose keys rotate.
///
/// # Errors
/// [`TlsConfigError`] when protocols are missing or the identity does not fit together.
pub fn server_config(options: ServerOptions) -> Result<Arc<ServerConfig>, TlsConfigError> {
    check_alpn(&options.alpn)?;
    let provider = provider(&options.suites);
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&TLS13])
        .map_err(unusable)?;
    let has_preference = !options.suites.is_empty();
    let verifier = |roots| WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    let verifier = match options.client_authentication {
        ClientAuthentication::Off => Ok(WebPkiClientVerifier::no_client_auth()),
        ClientAuthentication::Optional(roots) => verifier(roots).allow_unauthenticated().build(),
        ClientAuthentication::Required(roots) => verifier(roots).build(),
    };
    let Identity { chain, key } = options.identity;
    let mut config = builder
        .with_client_cert_verifier(verifier.map_err(credentials)?)
        .with_single_cert(chain, key)
        .map_err(credentials)?;
    config.alpn_protocols = options.alpn;
    config.ignore_client_order = has_preference;
    config.ticketer = aws_lc_rs::Ticketer::new().map_err(unusable)?;
    config.key_log = options.key_log.into_key_log();
    Ok(Arc::new(config))
}

/// Makes a server's configuration like [`server_config`], with certificates of the user's resolver,
/// without client authentication and without protocols.
///
/// # Errors
/// [`TlsConfigError`] when there are no random numbers for the keys of tickets.
pub fn server_config_with_resolver(
    resolver: Arc<dyn ResolvesServerCert>,
) -> Result<Arc<ServerConfig>, TlsConfigError> {
    let mut config = ServerConfig::builder_with_provider(provider(&[]))
        .with_protocol_versions(&[&TLS13])
        .map_err(unusable)?
        .with_no_client_auth()
        .with_cert_resolver(resolver);
    config.ticketer = aws_lc_rs::Ticketer::new().map_err(unusable)?;
    Ok(Arc::new(config))
}

/// A configuration cannot be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TlsConfigError {
    /// No application protocol is named.
    NoApplicationProtocol,
    /// An application protocol has no name, or one longer than 255 bytes.
    InvalidApplicationProtocol,
    /// Certificates or keys are missing, damaged or do not fit.
    Credentials(String),
    /// QUIC has no use for the configuration.
    Unusable(String),
}

impl fmt::Display for TlsConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoApplicationProtocol => f.write_str(
                "no application protocol: QUIC requires ALPN, set alpn_protocols (b\"h3\" for HTTP/3)",
            ),
            Self::InvalidApplicationProtocol => {
                f.write_str("the name of an application protocol has 1 to 255 bytes")
            }
            Self::Credentials(reason) => write!(f, "cannot use credentials: {reason}"),
            Self::Unusable(reason) => write!(
                f,
                "cannot use TLS configuration: {reason}; QUIC needs TLS 1.3 and one of its suites \
                 with AES-GCM or ChaCha20"
            ),
        }
    }
}

impl std::error::Error for TlsConfigError {}

/// ALPN is not optional: without it two ends may take each other's bytes for something else
/// (RFC 9001 §8.1).
pub(crate) fn check_alpn(protocols: &[Vec<u8>]) -> Result<(), TlsConfigError> {
    if protocols.is_empty() {
        return Err(TlsConfigError::NoApplicationProtocol);
    }
    if protocols
        .iter()
        .any(|name| name.is_empty() || name.len() > 255)
    {
        return Err(TlsConfigError::InvalidApplicationProtocol);
    }
    Ok(())
}

/// The cryptography of configurations here, with these cipher suites of TLS 1.3 in this order; none
/// means all.
pub fn provider(suites: &[CipherSuite]) -> Arc<CryptoProvider> {
    let suites = if suites.is_empty() {
        &DEFAULT_SUITES
    } else {
        suites
    };
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites = suites.iter().copied().map(rustls_suite).collect();
    Arc::new(provider)
}

fn rustls_suite(suite: CipherSuite) -> rustls::SupportedCipherSuite {
    use aws_lc_rs::cipher_suite;
    match suite {
        CipherSuite::Aes128Gcm => cipher_suite::TLS13_AES_128_GCM_SHA256,
        CipherSuite::Aes256Gcm => cipher_suite::TLS13_AES_256_GCM_SHA384,
        CipherSuite::ChaCha20Poly1305 => cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
    }
}

/// What judges servers, for configurations that are made elsewhere: TLS over TCP, say.
///
/// # Errors
/// [`TlsConfigError`] when there are no roots, or the system's cannot be had.
pub fn server_verifier(
    trust: Trust,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, TlsConfigError> {
    Ok(match trust {
        Trust::Roots(roots) => {
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
                .build()
                .map_err(credentials)?
        }
        Trust::Platform => Arc::new(Verifier::new(provider).map_err(unusable)?),
        Trust::PlatformAnd(roots) => {
            Arc::new(Verifier::new_with_extra_roots(roots, provider).map_err(unusable)?)
        }
        Trust::Verifier(verifier) => verifier,
        Trust::AnyServer => Arc::new(AnyServer::new(provider)),
    })
}

fn credentials(error: impl fmt::Display) -> TlsConfigError {
    TlsConfigError::Credentials(error.to_string())
}

fn unusable(error: rustls::Error) -> TlsConfigError {
    TlsConfigError::Unusable(error.to_string())
}

/// The cheapest first where there are AES instructions; all of them are strong enough.
const DEFAULT_SUITES: [CipherSuite; 3] = [
    CipherSuite::Aes128Gcm,
    CipherSuite::Aes256Gcm,
    CipherSuite::ChaCha20Poly1305,
];

#[cfg(test)]
mod tests;
