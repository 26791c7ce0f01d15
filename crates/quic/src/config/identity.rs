//! Certificates and their keys.

use std::fmt;
use std::path::Path;

use courser_tls::rustls;
use courser_tls::rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer,
};
use courser_tls::rustls::sign::CertifiedKey;

use rcgen::{CertificateParams, KeyPair};

use super::hooks::IdentityHooks;
use crate::error::ConfigError;
use crate::runtime::Current;

/// A certificate chain with its private key, the identity of an endpoint.
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    ocsp: Option<Vec<u8>>,
}

impl Identity {
    /// Creates an identity from a chain, whose first certificate is its own, and the key of that.
    pub fn new(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Self {
        Self {
            chain,
            key,
            ocsp: None,
        }
    }

    /// Staples this OCSP response, in DER, to the certificate: clients that ask for it need not ask the
    /// authority whether the certificate is revoked (RFC 6066 §8). `None` staples nothing.
    ///
    /// The response is sent as it is. It should be of the certificate's authority and up to date.
    #[must_use]
    pub fn with_ocsp(mut self, response: impl Into<Option<Vec<u8>>>) -> Self {
        self.ocsp = response.into().filter(|bytes| !bytes.is_empty());
        self
    }

    /// Returns the OCSP response, if there is one.
    pub fn ocsp(&self) -> Option<&[u8]> {
        self.ocsp.as_deref()
    }

    /// Returns the public key, for peers that trust exactly this one (RFC 7250): see
    /// [`ClientConfig::with_raw_public_keys`](crate::ClientConfig::with_raw_public_keys).
    ///
    /// # Errors
    /// Returns an error if the private key cannot be used to sign.
    pub fn public_key(&self) -> Result<SubjectPublicKeyInfoDer<'static>, ConfigError> {
        let key = courser_tls::raw_key(self.key.clone_key())?;
        let public = key.end_entity_cert().map_err(unusable)?;
        Ok(SubjectPublicKeyInfoDer::from(public.to_vec()))
    }

    /// Creates a certificate for development in memory: self-signed, P-256, for `localhost`,
    /// `127.0.0.1` and `::1`. Peers must be configured to trust it.
    ///
    /// In a repeatable [runtime](crate::runtime) the key is derived from its seed, and is an
    /// Ed25519 key: P-256 signatures vary in length, so runs would differ.
    ///
    /// ```
    /// # extern crate courser_quic as courser;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use courser::{ClientConfig, Identity, ServerConfig};
    ///
    /// let identity = Identity::dev()?;
    /// let server = ServerConfig::with_identity(&identity)?.alpn(["example"]);
    /// let client = ClientConfig::with_roots([identity.certificate()])?.alpn(["example"]);
    /// # let _ = (server, client);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error if the system has no random numbers.
    pub fn dev() -> Result<Self, ConfigError> {
        Self::self_signed(["localhost", "127.0.0.1", "::1"])
    }

    /// Creates a self-signed certificate for these DNS names and IP addresses.
    ///
    /// ```
    /// # extern crate courser_quic as courser;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let identity = courser::Identity::self_signed(["example.org", "192.0.2.1"])?;
    /// # let _ = identity;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error if a name is not allowed in a certificate.
    pub fn self_signed(
        names: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, ConfigError> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        let mut params = CertificateParams::new(names).map_err(unusable)?;
        let runtime = Current::get();
        let key = if runtime.is_repeatable() {
            // By default the number is derived from the key, and so is its length.
            params.serial_number = Some(1u64.into());
            ed25519(runtime.random_seed().map_err(unusable)?)
        } else {
            KeyPair::generate()
        };
        let key = key.map_err(unusable)?;
        let certificate = params.self_signed(&key).map_err(unusable)?;
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        Ok(Self::new(vec![certificate.into()], key.into()))
    }

    /// Parses PEM text: the certificates of the chain, and the key.
    ///
    /// # Errors
    /// Returns an error if either is missing or invalid, or the key is not that of the first certificate.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, ConfigError> {
        let read = courser_tls::Identity::from_pem(chain, key).map_err(unusable)?;
        let identity = Self::new(read.chain, read.key);
        identity.certified_key()?;
        Ok(identity)
    }

    /// Reads PEM files: the certificates of the chain, and the key.
    ///
    /// ```no_run
    /// # extern crate courser_quic as courser;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let identity = courser::Identity::from_pem_files("cert.pem", "key.pem")?;
    /// let config = courser::ServerConfig::with_identity(&identity)?.alpn(["example"]);
    /// # let _ = config;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error that names the files if one cannot be read, and the errors of
    /// [`Identity::from_pem`].
    pub fn from_pem_files(
        chain: impl AsRef<Path>,
        key: impl AsRef<Path>,
    ) -> Result<Self, ConfigError> {
        let read = |path: &Path| {
            std::fs::read(path).map_err(|error| unusable(format!("{}: {error}", path.display())))
        };
        let (chain, key) = (chain.as_ref(), key.as_ref());
        Self::from_pem(&read(chain)?, &read(key)?).map_err(|error| match error {
            ConfigError::Identity(reason) => {
                let (chain, key) = (chain.display(), key.display());
                unusable(format!(
                    "{reason} (certificates from {chain}, key from {key})"
                ))
            }
            error => error,
        })
    }

    /// Returns the identity's own certificate, for a peer that trusts exactly this one.
    pub fn certificate(&self) -> CertificateDer<'static> {
        self.chain
            .first()
            .cloned()
            .unwrap_or_else(|| CertificateDer::from(Vec::new()))
    }
}

impl IdentityHooks for Identity {
    fn certified_key(&self) -> Result<CertifiedKey, ConfigError> {
        let provider = courser_tls::provider(&[]);
        let (chain, key) = (self.chain.clone(), self.key.clone_key());
        let key = CertifiedKey::from_der(chain, key, &provider).map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => unusable(
                "the private key is not that of the first certificate: use the key that the \
                 certificate was made for",
            ),
            error => unusable(error),
        })?;
        Ok(CertifiedKey {
            ocsp: self.ocsp.clone(),
            ..key
        })
    }

    fn into_tls(self) -> courser_tls::Identity {
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
            ocsp: self.ocsp.clone(),
        }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The key is left out, so that it does not reach logs.
        f.debug_struct("Identity")
            .field("certificates", &self.chain.len())
            .finish_non_exhaustive()
    }
}

/// Returns the key with this secret, in the encoding of RFC 8410 §7.
fn ed25519(secret: [u8; 32]) -> Result<KeyPair, rcgen::Error> {
    const PREFIX: [u8; 16] = [
        0x30, 0x2e, // PrivateKeyInfo
        0x02, 0x01, 0x00, // version 0
        0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, // 1.3.101.112, Ed25519
        0x04, 0x22, 0x04, 0x20, // the secret, an octet string in an octet string
    ];
    let der = PrivatePkcs8KeyDer::from([&PREFIX[..], &secret].concat());
    KeyPair::from_pkcs8_der_and_sign_algo(&der, &rcgen::PKCS_ED25519)
}

fn unusable(error: impl fmt::Display) -> ConfigError {
    ConfigError::Identity(error.to_string())
}
