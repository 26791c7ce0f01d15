//! What the TLS configurations of clients and servers have in common.

use courser_tls::TlsConfigError;

use crate::error::ConfigError;

/// Returns the error of a setter that cannot change a custom TLS configuration.
pub(super) fn custom(what: &str) -> ConfigError {
    ConfigError::Tls(format!(
        "{what} of a custom TLS configuration cannot be changed: set it with the builder of rustls"
    ))
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
