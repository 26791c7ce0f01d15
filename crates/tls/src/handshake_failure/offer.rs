//! The offer of a client, on which the kind of a failure depends.

use rustls::ClientConfig;

/// The offer of a client in its handshakes with one server.
#[derive(Clone, Debug)]
pub struct HandshakeOffer {
    versions: &'static str,
    groups: String,
    protocols: String,
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
    /// `CertificateRequests::watch`. A server with TLS 1.2 does not report otherwise why it refuses
    /// a client without a certificate.
    #[must_use]
    pub fn certificate_requested(mut self, was_requested: bool) -> Self {
        self.was_requested = was_requested;
        self
    }

    /// Returns the names of the TLS versions, for messages.
    pub fn versions(&self) -> &'static str {
        self.versions
    }

    /// Returns the names of the key exchange groups in order of preference, separated by commas.
    pub fn groups(&self) -> &str {
        &self.groups
    }

    /// Returns the names of the application protocols in order of preference, separated by commas.
    pub fn protocols(&self) -> &str {
        &self.protocols
    }

    /// Returns true if the server requested a certificate and the client has none.
    pub fn lacks_certificate(&self) -> bool {
        self.was_requested && !self.has_certificate
    }
}
