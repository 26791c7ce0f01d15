//! The offer of a client, and requests for its certificate.

use std::cell::Cell;
use std::sync::Arc;

use courser_tls::rustls::client::ResolvesClientCert;
use courser_tls::rustls::sign::CertifiedKey;
use courser_tls::rustls::{ClientConfig, SignatureScheme};

/// The offer of a client in its handshakes with one server.
#[derive(Clone, Debug)]
pub struct HandshakeOffer {
    pub(super) versions: &'static str,
    pub(super) groups: String,
    pub(super) protocols: String,
    pub(super) has_certificate: bool,
    was_requested: bool,
}

impl HandshakeOffer {
    /// Returns the offer over TCP of a client that supports TLS 1.3 and TLS 1.2.
    pub fn over_tcp(config: &ClientConfig) -> Self {
        Self::of(config, "TLS 1.3 and TLS 1.2")
    }

    /// Returns the offer over QUIC, or over TCP of a client that supports only TLS 1.3.
    pub fn of_tls13(config: &ClientConfig) -> Self {
        Self::of(config, "TLS 1.3")
    }

    fn of(config: &ClientConfig, versions: &'static str) -> Self {
        let groups = config.crypto_provider().kx_groups.iter();
        let groups: Vec<_> = groups.map(|group| format!("{:?}", group.name())).collect();
        let protocols = config.alpn_protocols.iter();
        let protocols: Vec<_> = protocols
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect();
        Self {
            versions,
            groups: groups.join(", "),
            protocols: protocols.join(", "),
            has_certificate: config.client_auth_cert_resolver.has_certs(),
            was_requested: false,
        }
    }

    /// Records whether the server requested a client certificate, as reported by
    /// [`CertificateRequests::watch`]. A server with TLS 1.2 gives no other reason for refusing a
    /// client without one.
    #[must_use]
    pub fn certificate_requested(mut self, was_requested: bool) -> Self {
        self.was_requested = was_requested;
        self
    }

    /// Returns true if the server requested a certificate and there is none to send.
    pub(super) fn lacks_certificate(&self) -> bool {
        self.was_requested && !self.has_certificate
    }
}

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
