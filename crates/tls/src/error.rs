//! Errors of configurations.

use std::fmt;

/// The reason why a configuration cannot be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TlsConfigError {
    /// The configuration names no application protocol.
    NoApplicationProtocol,
    /// An application protocol has an empty name, or one longer than 255 bytes.
    InvalidApplicationProtocol,
    /// Certificates or keys are missing, damaged or do not match.
    Credentials(String),
    /// The ECHConfigList is malformed or not supported (RFC 9849 §4).
    Ech(String),
    /// QUIC cannot use the configuration, for example because it lacks TLS 1.3.
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
            Self::Ech(reason) => write!(f, "cannot use Encrypted Client Hello: {reason}"),
            Self::Unusable(reason) => write!(
                f,
                "cannot use TLS configuration: {reason}; QUIC needs TLS 1.3 and one of its suites \
                 with AES-GCM or ChaCha20"
            ),
        }
    }
}

impl std::error::Error for TlsConfigError {}

pub(crate) fn credentials(error: impl fmt::Display) -> TlsConfigError {
    TlsConfigError::Credentials(error.to_string())
}

pub(crate) fn unusable(error: rustls::Error) -> TlsConfigError {
    TlsConfigError::Unusable(error.to_string())
}
