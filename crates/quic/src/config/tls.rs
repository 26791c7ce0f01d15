//! The TLS configuration within the configuration of a client or a server.
//!
//! rustls fixes verifiers, cryptography and ECH in its builder. Setters of these change the parts that the
//! configuration was built of, and build it again (`docs/design/0022`).

use std::fmt;
use std::sync::Arc;

use courser_tls::{ClientParts, ServerParts, TlsConfigError, rustls};

use crate::error::ConfigError;

/// The TLS configuration of one side, with the settings that both sides have.
#[derive(Clone, Debug)]
pub(super) struct TlsSettings<P: TlsParts> {
    pub(super) config: Arc<P::Config>,
    /// The parts of `config`, or `None` if the user built it.
    parts: Option<Box<P>>,
    /// A configuration without application protocols is accepted.
    pub(super) is_alpn_optional: bool,
}

/// The parts of a TLS configuration that rustls does not change afterwards.
pub(super) trait TlsParts {
    type Config: Clone + fmt::Debug;

    /// Builds a configuration of these parts, and of those of `config` that can be changed in place.
    fn build(&self, config: &Self::Config) -> Result<Arc<Self::Config>, TlsConfigError>;

    /// Returns the application protocols of a configuration.
    fn protocols(config: &mut Self::Config) -> &mut Vec<Vec<u8>>;
}

impl<P: TlsParts> TlsSettings<P> {
    /// Wraps a configuration that the user built.
    pub(super) fn custom(config: Arc<P::Config>) -> Self {
        Self {
            config,
            parts: None,
            is_alpn_optional: false,
        }
    }

    /// Wraps a configuration that was built from `parts`.
    pub(super) fn built_from(parts: P, config: Arc<P::Config>) -> Self {
        Self {
            parts: Some(Box::new(parts)),
            ..Self::custom(config)
        }
    }

    /// Sets the application protocols, the preferred one first.
    pub(super) fn set_alpn(&mut self, protocols: impl IntoIterator<Item = impl Into<Vec<u8>>>) {
        let protocols = protocols.into_iter().map(Into::into).collect();
        *P::protocols(Arc::make_mut(&mut self.config)) = protocols;
    }

    /// Changes a part of the configuration, and builds it again.
    ///
    /// # Errors
    /// Returns an error that names `setting` if the user built the configuration, and the error of `change`.
    pub(super) fn rebuild(
        &mut self,
        setting: &str,
        change: impl FnOnce(&mut P) -> Result<(), TlsConfigError>,
    ) -> Result<(), ConfigError> {
        let parts = self.parts.as_mut().ok_or_else(|| {
            ConfigError::Tls(format!(
                "{setting} of a custom TLS configuration cannot be changed: set it with the builder \
                 of rustls"
            ))
        })?;
        change(parts)?;
        self.config = parts.build(&self.config)?;
        Ok(())
    }
}

impl TlsParts for ClientParts {
    type Config = rustls::ClientConfig;

    fn build(&self, config: &Self::Config) -> Result<Arc<Self::Config>, TlsConfigError> {
        self.build(config)
    }

    fn protocols(config: &mut Self::Config) -> &mut Vec<Vec<u8>> {
        &mut config.alpn_protocols
    }
}

impl TlsParts for ServerParts {
    type Config = rustls::ServerConfig;

    fn build(&self, config: &Self::Config) -> Result<Arc<Self::Config>, TlsConfigError> {
        self.build(config)
    }

    fn protocols(config: &mut Self::Config) -> &mut Vec<Vec<u8>> {
        &mut config.alpn_protocols
    }
}

impl From<TlsConfigError> for ConfigError {
    fn from(error: TlsConfigError) -> Self {
        Self::Tls(match error {
            TlsConfigError::NoApplicationProtocol => {
                "no application protocol, QUIC requires one: call .alpn([\"h3\"]) or the like"
                    .to_owned()
            }
            error => error.to_string(),
        })
    }
}
