//! TLS by rustls.

use std::fmt;
use std::sync::Arc;

use ::rustls as tls;
use courser_quic::{self as quic, EarlyDataOptions};
use courser_tls::{ClientParts, Trust, crypto_provider};
use tls::client::danger::ServerCertVerifier;
use tls::crypto::CryptoProvider;
use tls::pki_types::{CertificateDer, PrivateKeyDer};
use tls::quic::Suite;
use tls::version::TLS13;
use tls::{CipherSuite, SupportedCipherSuite};

use super::{ClientConfig, ServerConfig, ServerParts};

pub use tls::Error;

/// The results of a handshake, which
/// [`Connection::handshake_data`](crate::Connection::handshake_data) returns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HandshakeData {
    /// The application protocol (ALPN), if one was negotiated.
    pub protocol: Option<Vec<u8>>,
    /// The name that a client has requested; always `None` on a client.
    pub server_name: Option<String>,
}

impl HandshakeData {
    /// Converts the results of courser, which knows the name at both ends.
    pub(crate) fn new(data: quic::HandshakeData, side: quic::Side) -> Self {
        Self {
            protocol: data.protocol,
            server_name: data.server_name.filter(|_| side.is_server()),
        }
    }
}

/// The settings of TLS of a client.
///
/// Made of a [`rustls::ClientConfig`] with TLS 1.3. Early data (0-RTT) is offered if its
/// `enable_early_data` is set.
#[derive(Clone)]
pub struct QuicClientConfig(Arc<tls::ClientConfig>);

impl QuicClientConfig {
    pub(crate) fn with_verifier(verifier: Arc<dyn ServerCertVerifier>) -> Self {
        let mut config = tls::ClientConfig::builder_with_provider(crypto_provider())
            .with_protocol_versions(&[&TLS13])
            .expect("the provider supports TLS 1.3")
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        config.enable_early_data = true;
        Self(Arc::new(config))
    }

    pub(crate) fn with_platform_verifier() -> Result<Self, Error> {
        let parts = ClientParts::new(Trust::Platform);
        let parts = parts.map_err(|error| Error::General(error.to_string()))?;
        Ok(Self::with_verifier(parts.verifier()))
    }

    /// Creates settings with a cipher suite for Initial packets, whose keys courser derives itself.
    ///
    /// # Errors
    /// Returns [`NoInitialCipherSuite`] for another suite than AES-128-GCM with SHA-256.
    pub fn with_initial(
        inner: Arc<tls::ClientConfig>,
        initial: Suite,
    ) -> Result<Self, NoInitialCipherSuite> {
        check_initial(initial)?;
        Ok(Self(inner))
    }
}

impl ClientConfig for QuicClientConfig {
    fn tls(&self) -> Arc<tls::ClientConfig> {
        self.0.clone()
    }
}

impl TryFrom<tls::ClientConfig> for QuicClientConfig {
    type Error = NoInitialCipherSuite;
    fn try_from(config: tls::ClientConfig) -> Result<Self, NoInitialCipherSuite> {
        Arc::new(config).try_into()
    }
}

impl TryFrom<Arc<tls::ClientConfig>> for QuicClientConfig {
    type Error = NoInitialCipherSuite;
    fn try_from(config: Arc<tls::ClientConfig>) -> Result<Self, NoInitialCipherSuite> {
        check_provider(config.crypto_provider())?;
        Ok(Self(config))
    }
}

/// The settings of TLS of a server.
///
/// Made of a [`rustls::ServerConfig`] with TLS 1.3. Early data (0-RTT) is accepted if its
/// `max_early_data_size` is `u32::MAX`. Tickets are then references to sessions that the server stores, so that
/// each is used once and early data cannot be replayed.
#[derive(Clone)]
pub struct QuicServerConfig {
    tls: Arc<tls::ServerConfig>,
    /// Clones share the sessions.
    early_data: Option<EarlyDataOptions>,
}

impl QuicServerConfig {
    pub(crate) fn with_single_cert(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, Error> {
        let mut config = tls::ServerConfig::builder_with_provider(crypto_provider())
            .with_protocol_versions(&[&TLS13])
            .expect("the provider supports TLS 1.3")
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.max_early_data_size = u32::MAX;
        Ok(Self::new(Arc::new(config)))
    }

    fn new(tls: Arc<tls::ServerConfig>) -> Self {
        let accepts_early_data = tls.max_early_data_size == u32::MAX;
        Self {
            tls,
            early_data: accepts_early_data.then(EarlyDataOptions::default),
        }
    }

    /// Creates settings with a cipher suite for Initial packets, whose keys courser derives itself.
    ///
    /// # Errors
    /// Returns [`NoInitialCipherSuite`] for another suite than AES-128-GCM with SHA-256.
    pub fn with_initial(
        inner: Arc<tls::ServerConfig>,
        initial: Suite,
    ) -> Result<Self, NoInitialCipherSuite> {
        check_initial(initial)?;
        Ok(Self::new(inner))
    }
}

impl ServerConfig for QuicServerConfig {
    fn parts(&self) -> ServerParts {
        ServerParts {
            tls: self.tls.clone(),
            early_data: self.early_data.clone(),
        }
    }
}

impl TryFrom<tls::ServerConfig> for QuicServerConfig {
    type Error = NoInitialCipherSuite;
    fn try_from(config: tls::ServerConfig) -> Result<Self, NoInitialCipherSuite> {
        Arc::new(config).try_into()
    }
}

impl TryFrom<Arc<tls::ServerConfig>> for QuicServerConfig {
    type Error = NoInitialCipherSuite;
    fn try_from(config: Arc<tls::ServerConfig>) -> Result<Self, NoInitialCipherSuite> {
        check_provider(config.crypto_provider())?;
        Ok(Self::new(config))
    }
}

macro_rules! debug {
    ($($name:ident)*) => {
        $(
            impl fmt::Debug for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.debug_struct(stringify!($name)).finish_non_exhaustive()
                }
            }
        )*
    };
}

debug!(QuicClientConfig QuicServerConfig);

/// An error for settings without AES-128-GCM with SHA-256 of TLS 1.3, which every end must support (RFC 9001
/// §5.3).
#[derive(Clone, Debug)]
pub struct NoInitialCipherSuite(());

impl fmt::Display for NoInitialCipherSuite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AES-128-GCM with SHA-256 of TLS 1.3 is required for QUIC")
    }
}

impl std::error::Error for NoInitialCipherSuite {}

fn check_initial(initial: Suite) -> Result<(), NoInitialCipherSuite> {
    match initial.suite.common.suite {
        CipherSuite::TLS13_AES_128_GCM_SHA256 => Ok(()),
        _ => Err(NoInitialCipherSuite(())),
    }
}

fn check_provider(provider: &CryptoProvider) -> Result<(), NoInitialCipherSuite> {
    let is_initial = |suite: &SupportedCipherSuite| {
        suite.suite() == CipherSuite::TLS13_AES_128_GCM_SHA256
            && suite.tls13().is_some_and(|suite| suite.quic.is_some())
    };
    match provider.cipher_suites.iter().any(is_initial) {
        true => Ok(()),
        false => Err(NoInitialCipherSuite(())),
    }
}
