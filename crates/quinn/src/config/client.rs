//! Settings of clients.

use std::fmt;
use std::sync::Arc;

use courser_quic as quic;
use rustls::RootCertStore;
use rustls::client::{VerifierBuilderError, WebPkiServerVerifier};

use super::{TransportConfig, known_versions};
use crate::crypto::rustls::QuicClientConfig;
use crate::token::{self, TokenMemoryCache, TokenStore};
use crate::unsupported::note;
use crate::{ConnectError, ConnectionId, crypto};

/// Settings of a client.
#[derive(Clone)]
pub struct ClientConfig {
    transport: Arc<TransportConfig>,
    crypto: Arc<dyn crypto::ClientConfig>,
    tokens: Arc<dyn TokenStore>,
    version: u32,
}

impl ClientConfig {
    /// Creates settings from those of TLS.
    pub fn new(crypto: Arc<dyn crypto::ClientConfig>) -> Self {
        Self {
            transport: Arc::default(),
            crypto,
            tokens: Arc::new(TokenMemoryCache::default()),
            version: 1,
        }
    }

    /// Creates settings that trust the certificates which the system trusts.
    ///
    /// # Panics
    /// Panics where [`ClientConfig::try_with_platform_verifier`] returns an error.
    #[deprecated(note = "panics: use try_with_platform_verifier")]
    pub fn with_platform_verifier() -> Self {
        Self::try_with_platform_verifier().expect("the system's certificates can be loaded")
    }

    /// Creates settings that trust the certificates which the system trusts.
    ///
    /// # Errors
    /// Returns an error if the system's certificates cannot be loaded.
    pub fn try_with_platform_verifier() -> Result<Self, rustls::Error> {
        let crypto = QuicClientConfig::with_platform_verifier()?;
        Ok(Self::new(Arc::new(crypto)))
    }

    /// Creates settings that trust these certificates.
    ///
    /// # Errors
    /// Returns an error if there are none.
    pub fn with_root_certificates(roots: Arc<RootCertStore>) -> Result<Self, VerifierBuilderError> {
        let verifier =
            WebPkiServerVerifier::builder_with_provider(roots, courser_tls::crypto_provider())
                .build()?;
        let crypto = QuicClientConfig::with_verifier(verifier);
        Ok(Self::new(Arc::new(crypto)))
    }

    /// Has no effect: the first destination of a connection is random.
    pub fn initial_dst_cid_provider(
        &mut self,
        _initial_dst_cid_provider: Arc<dyn Fn() -> ConnectionId + Send + Sync>,
    ) -> &mut Self {
        note("ClientConfig::initial_dst_cid_provider");
        self
    }

    /// Sets the settings of the connections.
    pub fn transport_config(&mut self, transport: Arc<TransportConfig>) -> &mut Self {
        self.transport = transport;
        self
    }

    /// Sets the store of tokens, with which servers validate the client's address at once.
    pub fn token_store(&mut self, store: Arc<dyn TokenStore>) -> &mut Self {
        self.tokens = store;
        self
    }

    /// Sets the version of QUIC: 1, the default, or 2 (0x6b3343cf). With another one
    /// [`Endpoint::connect`](crate::Endpoint::connect) fails.
    pub fn version(&mut self, version: u32) -> &mut Self {
        self.version = version;
        self
    }

    /// Returns true if batches may be split by the system.
    pub(crate) fn has_segmentation_offload(&self) -> bool {
        self.transport.has_segmentation_offload()
    }

    /// Returns the settings for courser.
    pub(crate) fn build(&self) -> Result<quic::ClientConfig, ConnectError> {
        let versions = known_versions(&[self.version]);
        if versions.is_empty() {
            return Err(ConnectError::UnsupportedVersion);
        }
        let tls = self.crypto.tls();
        let early_data = tls.enable_early_data;
        Ok(quic::ClientConfig::with_rustls(tls)
            .alpn_optional(true)
            .early_data(early_data)
            .versions(versions)
            .token_store(Some(token::adapted(self.tokens.clone())))
            .transport_config(self.transport.build()))
    }
}

impl fmt::Debug for ClientConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientConfig")
            .field("transport", &self.transport)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}
