//! Certificates and their keys.

use std::fmt;
use std::path::Path;

use courser_tls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::error::ConfigError;

/// A certificate chain with its private key: who an endpoint is.
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    /// Takes a chain, the own certificate first, and the key of that.
    pub fn new(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Self {
        Self { chain, key }
    }

    /// Makes a certificate for development in memory: self-signed, P-256, for `localhost`,
    /// `127.0.0.1` and `::1`. Nobody trusts it who is not told to.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn dev() -> Result<Self, ConfigError> {
        Self::self_signed(["localhost", "127.0.0.1", "::1"])
    }

    /// Makes a self-signed certificate for these DNS names and IP addresses.
    ///
    /// # Errors
    /// When a name cannot stand in a certificate.
    pub fn self_signed(
        names: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, ConfigError> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        let made = rcgen::generate_simple_self_signed(names).map_err(unusable)?;
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        Ok(Self {
            chain: vec![made.cert.into()],
            key: key.into(),
        })
    }

    /// Reads PEM text: the certificates of the chain, and the key.
    ///
    /// # Errors
    /// When either is missing or damaged.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, ConfigError> {
        let read = courser_tls::Identity::from_pem(chain, key).map_err(unusable)?;
        Ok(Self {
            chain: read.chain,
            key: read.key,
        })
    }

    /// Reads PEM files: the certificates of the chain, and the key.
    ///
    /// # Errors
    /// When a file cannot be read, or as [`Identity::from_pem`].
    pub fn from_pem_files(
        chain: impl AsRef<Path>,
        key: impl AsRef<Path>,
    ) -> Result<Self, ConfigError> {
        let read = |path: &Path| {
            std::fs::read(path).map_err(|error| unusable(format!("{}: {error}", path.display())))
        };
        Self::from_pem(&read(chain.as_ref())?, &read(key.as_ref())?)
    }

    /// The own certificate, for a peer that is to trust exactly this one.
    pub fn certificate(&self) -> CertificateDer<'static> {
        self.chain
            .first()
            .cloned()
            .unwrap_or_else(|| CertificateDer::from(Vec::new()))
    }

    pub(crate) fn into_tls(self) -> courser_tls::Identity {
        courser_tls::Identity {
            chain: self.chain,
            key: self.key,
        }
    }
}

impl Clone for Identity {
    fn clone(&self) -> Self {
        Self {
            chain: self.chain.clone(),
            key: self.key.clone_key(),
        }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The key stays out of logs.
        f.debug_struct("Identity")
            .field("certificates", &self.chain.len())
            .finish_non_exhaustive()
    }
}

fn unusable(error: impl fmt::Display) -> ConfigError {
    ConfigError::Identity(error.to_string())
}
