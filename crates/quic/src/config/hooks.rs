//! Operations on configurations for the server and the client of courser. `courser_quic::hooks` has them.

use crate::error::ConfigError;

/// Operations on an `Identity`.
#[doc(hidden)]
pub trait IdentityHooks {
    /// Returns the certificate chain and the key.
    fn into_tls(self) -> courser_tls::Identity;

    /// Checks that certificate and key match, and adds the OCSP response.
    ///
    /// # Errors
    /// Returns an error if they do not match.
    fn certified_key(&self) -> Result<courser_tls::rustls::sign::CertifiedKey, ConfigError>;
}

/// Operations on a `ClientConfig`.
#[doc(hidden)]
pub trait ClientConfigHooks {
    /// Checks the settings, as a connection with this configuration would.
    ///
    /// # Errors
    /// Returns an error for the first setting that cannot be used.
    fn check(self) -> Result<(), ConfigError>;

    /// Reports rejections of ECH to `ech`, which is part of a custom TLS configuration.
    #[must_use]
    fn reporting_ech(self, ech: Option<courser_tls::Ech>) -> Self;

    /// Keeps session tickets in memory by name and port, and not in the store of a custom TLS
    /// configuration.
    #[must_use]
    fn tickets_by_port(self) -> Self;
}
