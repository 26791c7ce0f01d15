//! Raw public keys instead of certificates. RFC 7250.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{
    CertificateDer, PrivateKeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, PeerIncompatible,
    SignatureScheme,
};

use crate::cryptography::provider;
use crate::error::{TlsConfigError, credentials};

/// Returns a key whose public part is presented instead of a certificate chain, for
/// `AlwaysResolvesServerRawPublicKeys` and `AlwaysResolvesClientRawPublicKeys` of rustls.
///
/// The only element of the chain is the public key, a SubjectPublicKeyInfo (RFC 5280 §4.1.2.7).
///
/// # Errors
/// Returns [`TlsConfigError::Credentials`] if the key cannot be used to sign.
pub fn raw_key(key: PrivateKeyDer<'static>) -> Result<Arc<CertifiedKey>, TlsConfigError> {
    let key = provider(&[])
        .key_provider
        .load_private_key(key)
        .map_err(credentials)?;
    let public = key.public_key();
    let public = public.ok_or_else(|| credentials("the key has no public part"))?;
    let chain = vec![CertificateDer::from(public.to_vec())];
    Ok(Arc::new(CertifiedKey::new(chain, key)))
}

/// Accepts peers that hold the private key of one of these public keys. Names are not checked.
///
/// As a verifier of clients it makes a key mandatory, because rustls refuses clients that offer
/// none.
#[derive(Debug)]
pub struct RawKeyVerifier {
    keys: Vec<SubjectPublicKeyInfoDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl RawKeyVerifier {
    /// Creates a verifier that accepts these keys. Peers must present one of them.
    ///
    /// # Errors
    /// Returns [`TlsConfigError::Credentials`] if there are no keys.
    pub fn new(
        keys: impl IntoIterator<Item = SubjectPublicKeyInfoDer<'static>>,
    ) -> Result<Self, TlsConfigError> {
        let keys: Vec<_> = keys.into_iter().collect();
        if keys.is_empty() {
            return Err(credentials("no public key to accept"));
        }
        Ok(Self {
            keys,
            provider: provider(&[]),
        })
    }

    fn verify(&self, presented: &CertificateDer<'_>) -> Result<(), Error> {
        let is_known = self.keys.iter().any(|key| **key == **presented);
        is_known
            .then_some(())
            .ok_or_else(|| CertificateError::UnknownIssuer.into())
    }

    fn verify_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        let key = SubjectPublicKeyInfoDer::from(&key[..]);
        verify_tls13_signature_with_raw_key(message, &key, signature, algorithms)
    }

    fn schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}

impl ServerCertVerifier for RawKeyVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verify(end_entity)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        // RFC 7250 permits raw keys in TLS 1.2, but rustls does not.
        Err(PeerIncompatible::Tls12NotOfferedOrEnabled.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for RawKeyVerifier {
    fn client_auth_mandatory(&self) -> bool {
        true
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.verify(end_entity)?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(PeerIncompatible::Tls12NotOfferedOrEnabled.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
