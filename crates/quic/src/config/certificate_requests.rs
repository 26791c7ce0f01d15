//! Requests of servers for the certificate of a client.

use std::cell::Cell;
use std::sync::Arc;

use courser_tls::rustls::client::ResolvesClientCert;
use courser_tls::rustls::sign::CertifiedKey;
use courser_tls::rustls::{ClientConfig, SignatureScheme};

/// Records whether a server requests a client certificate, and answers like the inner resolver.
///
/// Share one between all connections of a configuration: rustls resumes sessions only under the
/// resolver that they were made with.
#[derive(Debug)]
pub struct CertificateRequests {
    resolver: Arc<dyn ResolvesClientCert>,
}

impl CertificateRequests {
    /// Replaces the configuration's resolver with one that wraps it.
    pub fn install(config: &mut ClientConfig) {
        let resolver = config.client_auth_cert_resolver.clone();
        config.client_auth_cert_resolver = Arc::new(Self { resolver });
    }

    /// Runs a handshake, and also returns whether the server requested a certificate.
    ///
    /// # Cancel safety
    /// The same as for the handshake.
    pub async fn watch<F: Future>(handshake: F) -> (F::Output, bool) {
        let watched = async {
            let result = handshake.await;
            (result, WAS_REQUESTED.with(Cell::get))
        };
        WAS_REQUESTED.scope(Cell::new(false), watched).await
    }
}

tokio::task_local! {
    /// True if the handshake that the task polls has received a request for a certificate.
    static WAS_REQUESTED: Cell<bool>;
}

impl ResolvesClientCert for CertificateRequests {
    fn resolve(
        &self,
        root_hint_subjects: &[&[u8]],
        schemes: &[SignatureScheme],
    ) -> Option<Arc<CertifiedKey>> {
        // Other handshakes are not watched.
        let _ = WAS_REQUESTED.try_with(|was_requested| was_requested.set(true));
        self.resolver.resolve(root_hint_subjects, schemes)
    }

    fn has_certs(&self) -> bool {
        self.resolver.has_certs()
    }
}
