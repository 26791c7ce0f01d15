//! The trust of the system for proxies, of clients that trust any server.

use std::sync::{Arc, OnceLock};

use courser_tls::Trust;
use courser_tls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use courser_tls::rustls::crypto::CryptoProvider;
use courser_tls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use courser_tls::rustls::{DigitallySignedStruct, Error, SignatureScheme};

/// Verifies certificates as the system does. The roots are loaded when the first certificate arrives, because most clients
/// that trust any server have no proxy, and some systems have no roots.
#[derive(Debug)]
pub(super) struct LazyPlatform {
    provider: Arc<CryptoProvider>,
    loaded: OnceLock<Result<Arc<dyn ServerCertVerifier>, Error>>,
}

impl LazyPlatform {
    pub(super) fn new() -> Self {
        Self {
            provider: courser_tls::provider(&[]),
            loaded: OnceLock::new(),
        }
    }

    fn loaded(&self) -> Result<&Arc<dyn ServerCertVerifier>, Error> {
        let load = || {
            courser_tls::server_verifier(Trust::Platform, self.provider.clone()).map_err(|error| {
                let text = format!("the certificate of the proxy cannot be verified: {error}");
                Error::General(text)
            })
        };
        self.loaded.get_or_init(load).as_ref().map_err(Clone::clone)
    }
}

impl ServerCertVerifier for LazyPlatform {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.loaded()?.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        )
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.loaded()?.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.loaded()?.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}
