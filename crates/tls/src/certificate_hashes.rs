//! Trust in certificates by their hashes, as pages of WebTransport have it.

mod fields;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};

use self::fields::Fields;
use crate::cryptography::provider;
use crate::error::{TlsConfigError, credentials};

/// Accepts servers whose certificate has one of these SHA-256 hashes, with the rules of `serverCertificateHashes` in
/// browsers (W3C WebTransport §6.10): the certificate is valid now, for at most 14 days in all, and has a key for ECDSA on
/// P-256. Its names and its issuer are not checked.
///
/// The short validity limits the harm of a key that is stolen, because such a certificate cannot be revoked.
#[derive(Debug)]
pub struct CertificateHashVerifier {
    hashes: Vec<[u8; 32]>,
    provider: Arc<CryptoProvider>,
}

impl CertificateHashVerifier {
    /// Creates a verifier that accepts certificates with these hashes.
    ///
    /// # Errors
    /// Returns [`TlsConfigError::Credentials`] if there are none.
    pub fn new(hashes: impl IntoIterator<Item = [u8; 32]>) -> Result<Self, TlsConfigError> {
        let hashes: Vec<_> = hashes.into_iter().collect();
        if hashes.is_empty() {
            return Err(credentials("no hash of a certificate to accept"));
        }
        Ok(Self {
            hashes,
            provider: provider(&[]),
        })
    }

    fn check(&self, certificate: &[u8], now: UnixTime) -> Result<(), Error> {
        let hash = digest(&SHA256, certificate);
        if !self.hashes.iter().any(|known| known[..] == *hash.as_ref()) {
            let seen = hash.as_ref().try_into().unwrap_or_default();
            return Err(refused(Refused::OtherHash(seen)));
        }
        let fields = Fields::parse(certificate).ok_or(CertificateError::BadEncoding)?;
        let now = now.as_secs();
        if now < fields.not_before {
            return Err(CertificateError::NotValidYet.into());
        }
        if now > fields.not_after {
            return Err(CertificateError::Expired.into());
        }
        let period = Duration::from_secs(fields.not_after - fields.not_before);
        if period > LONGEST {
            return Err(refused(Refused::TooLong(period)));
        }
        if !fields.has_p256_key {
            return Err(refused(Refused::OtherKey));
        }
        Ok(())
    }
}

fn refused(reason: Refused) -> Error {
    CertificateError::Other(OtherError(Arc::new(reason))).into()
}

/// The reason why a certificate is refused that a verifier of chains would not have.
enum Refused {
    OtherHash([u8; 32]),
    TooLong(Duration),
    OtherKey,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherHash(hash) => {
                f.write_str("the certificate has the SHA-256 ")?;
                hash.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_str(", which is none of those that are trusted")
            }
            Self::TooLong(period) => {
                let hours = period.as_secs() / 3600;
                let (days, hours) = (hours / 24, hours % 24);
                write!(
                    f,
                    "the certificate is valid for {days} days and {hours} hours, and a hash is trusted for at most 14 days"
                )
            }
            Self::OtherKey => f.write_str(
                "the certificate has not a key for ECDSA on P-256, which trust by hash needs",
            ),
        }
    }
}

impl fmt::Debug for Refused {
    // rustls shows such reasons by their debug text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Refused {}

impl ServerCertVerifier for CertificateHashVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(end_entity, now)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}

/// Longest validity of a certificate that is trusted by its hash (limit K670).
const LONGEST: Duration = Duration::from_secs(14 * 24 * 3600);

#[cfg(test)]
mod tests;
