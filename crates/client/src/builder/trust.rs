//! Settings of TLS: what a client trusts, and how it identifies itself.

use std::path::Path;
use std::sync::Arc;

use courser_quic::rustls::client::danger::ServerCertVerifier;
use courser_quic::rustls::pki_types::CertificateDer;
use courser_quic::{Cryptography, Ech, Identity};

use super::super::error::{Error, ErrorKind};
use super::super::tls::Trust;
use super::super::version::TlsVersions;
use super::ClientBuilder;

impl ClientBuilder {
    /// Sets cipher suites and key exchange groups for all versions of HTTP. See [`Cryptography`] for the
    /// default.
    pub fn cryptography(mut self, cryptography: Cryptography) -> Self {
        self.tls.cryptography = cryptography;
        self
    }

    /// Sends an encrypted ClientHello (ECH, RFC 9849) or a GREASE extension ([`Ech::grease`]) with all versions
    /// of HTTP, which then require TLS 1.3. `None` sends neither and is the default.
    ///
    /// An ECHConfigList belongs to one server, so the client should be used only for that server. If the server
    /// rejects ECH, the error has the kind [`HandshakeFailureKind::EchRejected`], and [`Ech::rejection`] returns
    /// the list for another attempt. Requests are never repeated without ECH.
    ///
    /// [`HandshakeFailureKind::EchRejected`]: courser_quic::HandshakeFailureKind::EchRejected
    pub fn ech(mut self, ech: Option<Ech>) -> Self {
        self.tls.ech = ech;
        self
    }

    /// Trusts the root certificates of the system. On by default. If it is off, only
    /// [added](ClientBuilder::root) certificates are trusted.
    pub fn platform_roots(mut self, trusts: bool) -> Self {
        self.tls.trust = match (self.tls.trust, trusts) {
            (Trust::PlatformAnd(roots), false) => Trust::Only(roots),
            (Trust::Platform, false) => Trust::Only(Vec::new()),
            (Trust::Only(roots), true) => Trust::PlatformAnd(roots),
            (trust, _) => trust,
        };
        self
    }

    /// Trusts servers whose certificate is this one or chains to it.
    ///
    /// ```
    /// # mod courser { pub use courser_quic::*; pub use courser_client::{self as client, Client}; }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = courser::Identity::dev()?;
    /// let client = courser::Client::builder().root(server.certificate()).build()?;
    /// # drop(client);
    /// # Ok(()) }
    /// ```
    pub fn root(mut self, certificate: CertificateDer<'static>) -> Self {
        self.tls.trust = match self.tls.trust {
            Trust::PlatformAnd(mut roots) => {
                roots.push(certificate);
                Trust::PlatformAnd(roots)
            }
            Trust::Only(mut roots) => {
                roots.push(certificate);
                Trust::Only(roots)
            }
            Trust::Platform => Trust::PlatformAnd(vec![certificate]),
            trust => trust,
        };
        self
    }

    /// Trusts servers whose certificates chain to one of the certificates in a PEM text, such as the bundle of a
    /// company. Keys and other blocks in it are ignored.
    ///
    /// ```no_run
    /// # mod courser { pub use courser_quic::*; pub use courser_client::{self as client, Client}; }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pem = std::fs::read("company.pem")?;
    /// let client = courser::Client::builder().root_pem(&pem)?.build()?;
    /// # drop(client);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the text has no certificate, or one that cannot be read.
    pub fn root_pem(self, pem: &[u8]) -> Result<Self, Error> {
        self.root_pem_of(pem, "the PEM text")
    }

    /// Trusts servers like [`root_pem`](Self::root_pem), with the text of a file.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the file cannot be read, has no certificate, or one that cannot be read.
    pub fn root_pem_file(self, path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let pem = std::fs::read(path).map_err(|error| {
            let text = format!(
                "cannot read the root certificates {}: {error}",
                path.display()
            );
            Error::new(ErrorKind::Config, text)
        })?;
        self.root_pem_of(&pem, &path.display().to_string())
    }

    fn root_pem_of(mut self, pem: &[u8], place: &str) -> Result<Self, Error> {
        let certificates = courser_tls::pem_certificates(pem);
        let certificates = certificates
            .map_err(|error| Error::new(ErrorKind::Config, format!("{place}: {error}")))?;
        for certificate in certificates {
            self = self.root(certificate);
        }
        Ok(self)
    }

    /// Replaces the verification of server certificates with a custom verifier.
    ///
    /// In QUIC handshakes it runs on a thread that may block, so that it does not delay other connections; see
    /// [`ClientConfig::offload_tls`](courser_quic::ClientConfig::offload_tls). Over TCP, and for further origins
    /// of a connection, it runs in a task: it occupies a thread of the runtime, and
    /// [`runtime::block_on`](courser_quic::runtime::block_on) panics there.
    pub fn verifier(mut self, verifier: Arc<dyn ServerCertVerifier>) -> Self {
        self.tls.trust = Trust::Verifier(verifier);
        self
    }

    /// Requires servers to have one of these public keys, in addition to a trusted certificate: SHA-256 hashes of
    /// their SubjectPublicKeyInfo (RFC 7469 §2.4). Proxies are excepted.
    pub fn public_key_pins(mut self, hashes: impl IntoIterator<Item = [u8; 32]>) -> Self {
        self.tls.pins = hashes.into_iter().collect();
        self
    }

    /// Sets the versions of TLS over TCP. Default [`TlsVersions::All`].
    pub fn tls_versions(mut self, versions: TlsVersions) -> Self {
        self.tls.versions = versions;
        self.settings.allows_tls13 = versions != TlsVersions::Only12;
        self
    }

    /// Accepts any server certificate. **An attacker on the path can read and change all traffic.** Intended for
    /// tests and for tools that warn about it. Proxies are verified by the roots of the system, unless
    /// [`proxy_root`](Self::proxy_root) or [`dangerous_insecure_proxy`](Self::dangerous_insecure_proxy) says otherwise.
    pub fn dangerous_insecure(mut self) -> Self {
        self.tls.trust = Trust::Any;
        self
    }

    /// Verifies `https` and MASQUE proxies by these roots only, instead of those of servers. Can be called several
    /// times.
    pub fn proxy_root(mut self, certificate: CertificateDer<'static>) -> Self {
        let mut roots = match self.tls.proxy_trust.take() {
            Some(Trust::Only(roots)) => roots,
            _ => Vec::new(),
        };
        roots.push(certificate);
        self.tls.proxy_trust = Some(Trust::Only(roots));
        self
    }

    /// Accepts any certificate of `https` and MASQUE proxies. **An attacker on the path to the proxy can read the names
    /// of servers and the credentials for the proxy.** The certificates of servers are verified all the same.
    pub fn dangerous_insecure_proxy(mut self) -> Self {
        self.tls.proxy_trust = Some(Trust::Any);
        self
    }

    /// Sets the certificate and key for `https` and MASQUE proxies that request a client certificate. That of
    /// [`identity`](Self::identity) is for servers alone.
    pub fn proxy_identity(mut self, identity: Identity) -> Self {
        self.tls.proxy_identity = Some(identity);
        self
    }

    /// Sets the certificate and key for servers that request a client certificate.
    pub fn identity(mut self, identity: Identity) -> Self {
        self.tls.identity = Some(identity);
        self
    }

    /// Writes TLS secrets to the file named by `SSLKEYLOGFILE` (RFC 9850), for the analysis of captures. Off by
    /// default. A thread writes them: call [`QueuedKeyLog::flush`](courser_quic::QueuedKeyLog::flush) of
    /// [`QueuedKeyLog::environment`](courser_quic::QueuedKeyLog::environment) before the process ends.
    pub fn key_log(mut self, logs_keys: bool) -> Self {
        self.tls.logs_keys = logs_keys;
        self
    }
}
