//! TLS for both transports, with the same provider, certificates and client policy.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use courser_http3_tokio as h3;
use courser_quic::ConfigError;
use courser_tls::rustls::server::ResolvesServerCert;
use courser_tls::rustls::server::danger::ClientCertVerifier;
use courser_tls::rustls::version::{TLS12, TLS13};
use courser_tls::rustls::{ServerConfig, SupportedProtocolVersion};
use courser_tls::{ClientAuthentication, Cryptography};

use crate::certificates::Resolver;

/// Modifies a TLS configuration before it is used.
pub(super) type Hook = Box<dyn Fn(&mut ServerConfig) + Send>;

/// The TLS settings of a [`Server`](crate::Server).
pub(super) struct Settings {
    pub(super) hook: Option<Hook>,
    pub(super) clients: ClientAuthentication,
    pub(super) cryptography: Cryptography,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            hook: None,
            clients: ClientAuthentication::Off,
            cryptography: Cryptography::default(),
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Settings")
    }
}

/// Builds the TLS configurations of both transports.
pub(super) struct Tls {
    resolver: Arc<Resolver>,
    hook: Option<Hook>,
    clients: Arc<dyn ClientCertVerifier>,
    cryptography: Cryptography,
    /// The time limit for the choice of a certificate over QUIC.
    choice_limit: Duration,
}

impl Tls {
    pub(super) fn new(
        settings: Settings,
        resolver: Arc<Resolver>,
        choice_limit: Duration,
    ) -> Result<Self, ConfigError> {
        let Settings {
            hook,
            clients,
            cryptography,
        } = settings;
        let clients = courser_tls::client_verifier(clients, cryptography.provider_with_tls12())?;
        Ok(Self {
            resolver,
            hook,
            clients,
            cryptography,
            choice_limit,
        })
    }

    /// Returns true if client certificates are requested.
    pub(super) fn requests_certificates(&self) -> bool {
        self.clients.offer_client_auth()
    }

    /// Returns the configuration for QUIC, which supports only TLS 1.3.
    pub(super) fn quic(&self) -> Result<Arc<ServerConfig>, ConfigError> {
        let resolver: Arc<dyn ResolvesServerCert> = match self.resolver.choice() {
            Some(choice) => choice.clone().blocking(self.choice_limit),
            None => self.resolver.clone(),
        };
        self.build(&[&TLS13], &[h3::ALPN], resolver)
    }

    /// Returns the configuration for TCP.
    pub(super) fn tcp(&self) -> Result<Arc<ServerConfig>, ConfigError> {
        let resolver = self.resolver.clone();
        self.build(&[&TLS13, &TLS12], &["h2", "http/1.1"], resolver)
    }

    fn build(
        &self,
        versions: &[&'static SupportedProtocolVersion],
        protocols: &[&str],
        resolver: Arc<dyn ResolvesServerCert>,
    ) -> Result<Arc<ServerConfig>, ConfigError> {
        let unusable = |error: courser_tls::rustls::Error| ConfigError::Tls(error.to_string());
        let has_order = self.cryptography.has_suites();
        let provider = self.cryptography.provider_with_tls12();
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .map_err(unusable)?
            .with_client_cert_verifier(self.clients.clone())
            .with_cert_resolver(resolver);
        config.ignore_client_order = has_order;
        // Separate ticketers, because a session of one transport is useless to the other.
        config.ticketer = courser_tls::ticketer().map_err(unusable)?;
        let certificates = self.resolver.count().unwrap_or(CERTIFICATES_OF_A_RESOLVER);
        courser_tls::keep_compressed(&mut config, certificates);
        if let Some(hook) = &self.hook {
            hook(&mut config);
        }
        config.alpn_protocols = protocols
            .iter()
            .map(|name| name.as_bytes().to_vec())
            .collect();
        Ok(Arc::new(config))
    }
}

/// Number of certificates for which a server with ACME or a custom resolver caches compressed chains.
const CERTIFICATES_OF_A_RESOLVER: usize = 64;
