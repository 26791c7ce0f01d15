//! Settings of clients.

use std::fmt;
use std::sync::Arc;

use courser_quic as quic;
use rustls::RootCertStore;
use rustls::client::{VerifierBuilderError, WebPkiServerVerifier};

use super::{TransportConfig, known_versions};
use crate::crypto::rustls::QuicClientConfig;
use crate::token::{self, TokenMemoryCache, TokenStore};
use crate::{ConnectError, ConnectionId, crypto};

/// Settings of a client.
#[derive(Clone)]
pub struct ClientConfig {
    transport: Arc<TransportConfig>,
    crypto: Arc<dyn crypto::ClientConfig>,
    tokens: Arc<dyn TokenStore>,
    version: u32,
    initial_destination: Option<Arc<dyn Fn() -> ConnectionId + Send + Sync>>,
}

impl ClientConfig {
    /// Creates settings from those of TLS.
    pub fn new(crypto: Arc<dyn crypto::ClientConfig>) -> Self {
        Self {
            transport: Arc::default(),
            crypto,
            tokens: Arc::new(TokenMemoryCache::default()),
            version: 1,
            initial_destination: None,
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

    /// Sets what makes the Destination Connection ID of the first packet of each connection, of at least 8 bytes that
    /// others cannot predict (RFC 9000 §7.2). With a shorter one [`Endpoint::connect`](crate::Endpoint::connect)
    /// fails, and the log says why. It is called under the lock of the endpoint, and must neither block nor use the
    /// endpoint. By default they are 8 random bytes.
    pub fn initial_dst_cid_provider(
        &mut self,
        initial_dst_cid_provider: Arc<dyn Fn() -> ConnectionId + Send + Sync>,
    ) -> &mut Self {
        self.initial_destination = Some(initial_dst_cid_provider);
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
            .initial_destination(self.initial_destination.clone().map(adapted))
            .transport_config(self.transport.build()))
    }
}

/// Returns a source of IDs for courser.
fn adapted(
    make: Arc<dyn Fn() -> ConnectionId + Send + Sync>,
) -> Arc<dyn Fn() -> quic::ConnectionId + Send + Sync> {
    // IDs of both have at most 20 bytes.
    Arc::new(move || quic::ConnectionId::new(&make()).unwrap_or(quic::ConnectionId::EMPTY))
}

impl fmt::Debug for ClientConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientConfig")
            .field("transport", &self.transport)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}
