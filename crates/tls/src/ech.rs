//! Encrypted Client Hello of a client. RFC 9849.

use std::fmt;
use std::sync::Arc;

use courser_base::Mutex;
use rustls::client::{EchConfig, EchGreaseConfig, EchMode};
use rustls::internal::msgs::codec::Codec as _;
use rustls::pki_types::EchConfigListBytes;
use rustls::{Error, PeerIncompatible};

use crate::error::TlsConfigError;
use crate::provider;

/// Encrypts the ClientHello, so that only the server can read the requested name.
///
/// It applies to servers of one ECHConfigList, which is in the `ech` parameter of their HTTPS
/// record in the DNS (RFC 9848). Others on the path see the public name of the list instead.
///
/// A server that cannot decrypt the ClientHello authenticates itself with a certificate for the
/// public name, and the handshake fails with the alert ech_required. [`Ech::rejection`] then
/// returns the list for another attempt.
///
/// ```
/// # extern crate courser_tls as courser;
/// let grease = courser::Ech::grease()?;
/// assert!(courser::Ech::from_config_list(b"not a list").is_err());
/// # drop(grease);
/// # Ok::<(), courser::TlsConfigError>(())
/// ```
#[derive(Clone)]
pub struct Ech(Arc<Inner>);

/// The parts that clones share.
struct Inner {
    mode: EchMode,
    /// The last rejection by a server, of any connection that shares this value.
    rejection: Mutex<Option<EchRejection>>,
}

/// The answer of a server that did not decrypt the ClientHello. The server was authenticated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EchRejection {
    /// The server has other keys. The next attempt should use this ECHConfigList.
    Retry(Vec<u8>),
    /// The server no longer supports ECH. The next attempt may be made without ECH (RFC 9849
    /// §6.1.6).
    Disabled,
}

impl Ech {
    /// Encrypts with the first configuration of an encoded ECHConfigList whose version and algorithms
    /// are supported (RFC 9849 §4).
    ///
    /// # Errors
    /// Returns [`TlsConfigError::Ech`] if the list is malformed or has no such configuration.
    pub fn from_config_list(list: &[u8]) -> Result<Self, TlsConfigError> {
        let list = EchConfigListBytes::from(list);
        let config = EchConfig::new(list, &provider::hpke_suites());
        let config = config.map_err(|error| TlsConfigError::Ech(error.to_string()))?;
        Ok(Self::with_mode(config.into()))
    }

    /// Sends an extension that looks like ECH but encrypts nothing, so that connections with and
    /// without ECH cannot be distinguished (RFC 9849 §6.2).
    ///
    /// # Errors
    /// Returns [`TlsConfigError::Ech`] if no key can be generated.
    pub fn grease() -> Result<Self, TlsConfigError> {
        let suite = provider::hpke_grease_suite();
        let keys = suite.generate_key_pair();
        let (key, _) = keys.map_err(|error| TlsConfigError::Ech(error.to_string()))?;
        Ok(Self::with_mode(EchGreaseConfig::new(suite, key).into()))
    }

    fn with_mode(mode: EchMode) -> Self {
        Self(Arc::new(Inner {
            mode,
            rejection: Mutex::default(),
        }))
    }

    /// Returns true if nothing is encrypted.
    pub fn is_grease(&self) -> bool {
        matches!(self.0.mode, EchMode::Grease(_))
    }

    /// Returns the last rejection by a server in a connection that used this value or a clone of it.
    pub fn rejection(&self) -> Option<EchRejection> {
        self.0.rejection.lock().clone()
    }

    /// Records the rejection that an error of rustls reports, if it reports one.
    pub fn on_error(&self, error: &Error) {
        let Error::PeerIncompatible(PeerIncompatible::ServerRejectedEncryptedClientHello(configs)) =
            error
        else {
            return;
        };
        let rejection = match configs {
            // An empty list cannot be used.
            Some(configs) if !configs.is_empty() => EchRejection::Retry(configs.get_encoding()),
            _ => EchRejection::Disabled,
        };
        *self.0.rejection.lock() = Some(rejection);
    }

    /// Returns the mode for the builder of a rustls configuration. The caller must report errors to
    /// [`Ech::on_error`].
    pub fn mode(&self) -> EchMode {
        self.0.mode.clone()
    }
}

impl fmt::Debug for Ech {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ech")
            .field("is_grease", &self.is_grease())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
