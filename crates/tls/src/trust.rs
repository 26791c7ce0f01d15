//! Trust in servers and clients, and the verifiers of their certificates.

use std::sync::Arc;

use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls_platform_verifier::Verifier;

pub use any_server::AnyServer;
pub use reviewed::ReviewedVerifier;

use crate::error::{TlsConfigError, credentials, unusable};
use crate::secrets;

mod any_server;
mod reviewed;

/// The servers that a client trusts.
#[derive(Debug)]
pub enum Trust {
    /// Servers whose certificates chain to one of these roots.
    Roots(RootCertStore),
    /// Servers that the operating system trusts.
    Platform,
    /// Servers that the operating system trusts, and servers whose certificates chain to one of
    /// these certificates.
    PlatformAnd(Vec<CertificateDer<'static>>),
    /// Servers that a verifier of the application accepts, such as one that pins a key.
    Verifier(Arc<dyn ServerCertVerifier>),
    /// Any server that holds the key of the certificate it presents, without checking the
    /// certificate. An attacker on the path can impersonate the server: for tests and tools only.
    AnyServer,
}

/// The policy of a server for client certificates.
#[derive(Debug)]
pub enum ClientAuthentication {
    /// Requests no certificate from clients.
    Off,
    /// Requests a certificate and also accepts clients without one. A certificate must chain to one
    /// of these roots.
    Optional(RootCertStore),
    /// Accepts only clients whose certificates chain to one of these roots.
    Required(RootCertStore),
    /// Calls a verifier of the application, such as a [`RawKeyVerifier`](crate::RawKeyVerifier).
    Verifier(Arc<dyn ClientCertVerifier>),
}

/// Returns the verifier of server certificates, for configurations built elsewhere, such as for TLS
/// over TCP.
///
/// # Errors
/// Returns [`TlsConfigError`] if there are no roots, or if those of the system are unavailable.
pub fn server_verifier(
    trust: Trust,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, TlsConfigError> {
    let verifier: Arc<dyn ServerCertVerifier> = match trust {
        Trust::Roots(roots) => {
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
                .build()
                .map_err(credentials)?
        }
        Trust::Platform => Arc::new(Verifier::new(provider).map_err(unusable)?),
        Trust::PlatformAnd(roots) => {
            Arc::new(Verifier::new_with_extra_roots(roots, provider).map_err(unusable)?)
        }
        Trust::Verifier(verifier) => verifier,
        Trust::AnyServer => Arc::new(AnyServer::new(provider)),
    };
    Ok(observed(verifier))
}

/// Returns a verifier that passes the OCSP responses of accepted servers to the session that is
/// being processed, because rustls does not keep them. RFC 6066 §8.
fn observed(verifier: Arc<dyn ServerCertVerifier>) -> Arc<dyn ServerCertVerifier> {
    Arc::new(ReviewedVerifier::new(
        verifier,
        |_, ocsp_response, verdict| {
            if verdict.is_ok() && !ocsp_response.is_empty() {
                secrets::on_ocsp_response(ocsp_response);
            }
            verdict
        },
    ))
}

/// Returns the verifier of client certificates, for configurations built elsewhere, such as for TLS over
/// TCP.
///
/// # Errors
/// Returns [`TlsConfigError`] if the policy has no roots.
pub fn client_verifier(
    clients: ClientAuthentication,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, TlsConfigError> {
    let builder = |roots| WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    let verifier = match clients {
        ClientAuthentication::Off => Ok(WebPkiClientVerifier::no_client_auth()),
        ClientAuthentication::Optional(roots) => builder(roots).allow_unauthenticated().build(),
        ClientAuthentication::Required(roots) => builder(roots).build(),
        ClientAuthentication::Verifier(verifier) => Ok(verifier),
    };
    verifier.map_err(credentials)
}
