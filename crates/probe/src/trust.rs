//! A verifier that notes its verdict and goes on, because an untrusted server can be examined too.

use std::sync::{Arc, Mutex, PoisonError};

use courser_measure::{Failure, tls};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};

/// Verifies certificates, and notes the outcome instead of ending the handshake. Signatures of the
/// handshake must be right.
#[derive(Debug)]
pub(crate) struct Witness {
    inner: Arc<dyn ServerCertVerifier>,
    verdict: Mutex<Option<Result<(), String>>>,
}

impl Witness {
    /// Trusts the system, or the certificates of a file.
    pub(crate) fn new(ca: Option<&std::path::Path>) -> Result<Self, Failure> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let inner: Arc<dyn ServerCertVerifier> = match ca {
            Some(path) => of_file(path, provider)?,
            None => {
                let made = rustls_platform_verifier::Verifier::new(provider);
                Arc::new(made.map_err(|error| {
                    Failure::new(format!("cannot verify certificates: {error}"))
                })?)
            }
        };
        Ok(Self {
            inner,
            verdict: Mutex::default(),
        })
    }

    /// Returns the verdict on the last certificate.
    pub(crate) fn verdict(&self) -> Option<Result<(), String>> {
        self.verdict
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

fn of_file(
    path: &std::path::Path,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, Failure> {
    let roots = tls::roots(tls::certificates(path)?, path)?;
    let made = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
    Ok(made.map_err(|error| Failure::new(format!("cannot use {}: {error}", path.display())))?)
}

impl ServerCertVerifier for Witness {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let outcome = self.inner.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        let verdict = outcome.map(drop).map_err(|error| error.to_string());
        *self.verdict.lock().unwrap_or_else(PoisonError::into_inner) = Some(verdict);
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
