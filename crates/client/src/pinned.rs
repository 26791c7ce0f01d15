//! Public keys of which a server must have one (RFC 7469 §2.4).

use std::fmt;
use std::sync::Arc;

use courser_tls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use courser_tls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use courser_tls::rustls::server::ParsedCertificate;
use courser_tls::rustls::{
    CertificateError, CipherSuite, DigitallySignedStruct, Error, OtherError, SignatureScheme,
    SupportedCipherSuite,
};

/// A verifier that also requires one of several public keys.
#[derive(Debug)]
pub(super) struct Pinned {
    inner: Arc<dyn ServerCertVerifier>,
    /// The SHA-256 hashes of the keys, in their SubjectPublicKeyInfo form.
    hashes: Vec<[u8; 32]>,
}

/// The certificate of a server has none of the required public keys.
#[derive(Debug)]
pub(super) struct OtherKey;

impl fmt::Display for OtherKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MISMATCH)
    }
}

impl std::error::Error for OtherKey {}

impl Pinned {
    pub(super) fn new(inner: Arc<dyn ServerCertVerifier>, hashes: Vec<[u8; 32]>) -> Self {
        Self { inner, hashes }
    }
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.inner.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        )?;
        let key = ParsedCertificate::try_from(end_entity)?.subject_public_key_info();
        let is_pinned = hash_of(&key).is_some_and(|hash| self.hashes.contains(&hash));
        match is_pinned {
            true => Ok(verified),
            false => Err(CertificateError::Other(OtherError(Arc::new(OtherKey))).into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// Returns true for an error of a TLS handshake over TCP that is caused by another key.
pub(super) fn is_mismatch(error: &(dyn std::error::Error + 'static)) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    let inner = io.and_then(std::io::Error::get_ref);
    let tls = match inner {
        Some(inner) => inner.downcast_ref::<Error>(),
        None => error.downcast_ref::<Error>(),
    };
    matches!(
        tls,
        Some(Error::InvalidCertificate(CertificateError::Other(OtherError(cause))))
            if cause.is::<OtherKey>()
    )
}

/// Returns true for the text of such an error over QUIC, whose handshake errors are text.
pub(super) fn is_text_of_mismatch(text: &str) -> bool {
    text.contains(MISMATCH) || text.contains("OtherKey")
}

const MISMATCH: &str = "the public key of the server is none of the pinned ones";

/// Returns the SHA-256 hash of a key, with the hash function of TLS.
fn hash_of(key: &[u8]) -> Option<[u8; 32]> {
    let provider = courser_tls::provider(&[]);
    let suite = provider
        .cipher_suites
        .iter()
        .find_map(|suite| match suite {
            SupportedCipherSuite::Tls13(suite)
                if suite.common.suite == CipherSuite::TLS13_AES_128_GCM_SHA256 =>
            {
                Some(suite)
            }
            _ => None,
        })?;
    let hash = suite.common.hash_provider.hash(key);
    hash.as_ref().try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_is_that_of_the_standard() {
        let hash = hash_of(b"abc").expect("a hash function");
        assert_eq!(hash[..4], [0xba, 0x78, 0x16, 0xbf]);
        assert_eq!(hash[28..], [0xf2, 0x00, 0x15, 0xad]);
    }
}
