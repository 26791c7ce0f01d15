//! A verifier that calls another one and may change its result.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

/// Calls another verifier of servers, and passes its result to a function, which may change it.
///
/// The function also receives the name of the server and the OCSP response that the server has
/// stapled to its certificate (RFC 6066 §8), which is empty if there is none. The other verifier
/// checks signatures.
///
/// ```
/// use std::sync::Arc;
///
/// use courser_tls::rustls::client::danger::ServerCertVerified;
/// use courser_tls::{AnyServer, ReviewedVerifier, provider};
///
/// let any = Arc::new(AnyServer::new(provider(&[])));
/// let verifier = ReviewedVerifier::new(any, |name, _ocsp_response, verdict| {
///     println!("{name:?}: {verdict:?}");
///     verdict
/// });
/// # let _ = verifier;
/// ```
pub struct ReviewedVerifier<F> {
    verifier: Arc<dyn ServerCertVerifier>,
    review: F,
}

/// The result of a verification.
type Verdict = Result<ServerCertVerified, Error>;

impl<F> ReviewedVerifier<F>
where
    F: Fn(&ServerName<'_>, &[u8], Verdict) -> Verdict + Send + Sync,
{
    /// Creates a verifier that passes the results of `verifier` to `review`.
    pub fn new(verifier: Arc<dyn ServerCertVerifier>, review: F) -> Self {
        Self { verifier, review }
    }
}

impl<F> fmt::Debug for ReviewedVerifier<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReviewedVerifier")
            .field("verifier", &self.verifier)
            .finish_non_exhaustive()
    }
}

impl<F> ServerCertVerifier for ReviewedVerifier<F>
where
    F: Fn(&ServerName<'_>, &[u8], Verdict) -> Verdict + Send + Sync,
{
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Verdict {
        let verdict = self.verifier.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        (self.review)(server_name, ocsp_response, verdict)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        self.verifier.requires_raw_public_keys()
    }

    fn root_hint_subjects(&self) -> Option<&[DistinguishedName]> {
        self.verifier.root_hint_subjects()
    }
}
