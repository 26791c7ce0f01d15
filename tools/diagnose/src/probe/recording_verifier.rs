//! A certificate verifier that records its verdict and continues, because untrusted servers are examined too.

use std::sync::{Arc, Mutex, PoisonError};

use courser_measure::{Failure, tls};
use courser_tls::ReviewedVerifier;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;

/// Verifies certificates, and records the outcome instead of aborting the handshake. Invalid handshake
/// signatures still abort it.
#[derive(Debug)]
pub(crate) struct RecordingVerifier {
    verifier: Arc<dyn ServerCertVerifier>,
    verdict: Arc<Mutex<Option<Result<(), String>>>>,
}

impl RecordingVerifier {
    /// Trusts the authorities of the system, or the certificates in a file.
    pub(crate) fn new(ca: Option<&std::path::Path>) -> Result<Self, Failure> {
        let provider = courser_tls::crypto_provider();
        let inner: Arc<dyn ServerCertVerifier> = match ca {
            Some(path) => of_file(path, provider)?,
            None => {
                let verifier = rustls_platform_verifier::Verifier::new(provider);
                Arc::new(verifier.map_err(|error| {
                    Failure::new(format!("cannot verify certificates: {error}"))
                })?)
            }
        };
        let verdict = Arc::<Mutex<_>>::default();
        let recorded = verdict.clone();
        let verifier = ReviewedVerifier::new(inner, move |_, _, outcome| {
            let outcome = outcome.map(drop).map_err(|error| error.to_string());
            *recorded.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
            Ok(ServerCertVerified::assertion())
        });
        Ok(Self {
            verifier: Arc::new(verifier),
            verdict,
        })
    }

    /// Returns the verifier for rustls, which accepts all servers.
    pub(crate) fn verifier(&self) -> Arc<dyn ServerCertVerifier> {
        self.verifier.clone()
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
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
    Ok(
        verifier
            .map_err(|error| Failure::new(format!("cannot use {}: {error}", path.display())))?,
    )
}
