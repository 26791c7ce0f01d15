//! TLS configurations that are the same for QUIC and TCP, so that the two can be compared.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use courser::{CipherSuite, QueuedKeyLog};
use courser_tls::AnyServer;
use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion};

use crate::failure::Failure;

/// A server's certificate chain and private key.
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    /// Creates a self-signed certificate for `localhost` and the loopback addresses, in memory.
    ///
    /// # Errors
    /// Returns an error if the certificate cannot be created.
    pub fn in_memory() -> Result<Self, Failure> {
        let names = ["localhost", "127.0.0.1", "::1"]
            .map(str::to_owned)
            .to_vec();
        let created = rcgen::generate_simple_self_signed(names)
            .map_err(|error| Failure::new(format!("cannot create a certificate: {error}")))?;
        let key = PrivatePkcs8KeyDer::from(created.signing_key.serialize_der());
        Ok(Self {
            chain: vec![created.cert.into()],
            key: key.into(),
        })
    }

    /// Reads a certificate chain and its key from PEM files.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or contains no certificate or key.
    pub fn from_files(chain: &Path, key: &Path) -> Result<Self, Failure> {
        let chain = certificates(chain)?;
        let text = read("private key", key)?;
        let key = PrivateKeyDer::from_pem_slice(&text).map_err(|error| {
            Failure::new(format!(
                "no usable private key in {}: {error}",
                key.display()
            ))
        })?;
        Ok(Self { chain, key })
    }

    /// Returns the server's own certificate, for clients that trust only this one.
    pub fn certificate(&self) -> Option<CertificateDer<'static>> {
        self.chain.first().cloned()
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The key must not appear in logs.
        f.debug_struct("Identity")
            .field("certificates", &self.chain.len())
            .finish_non_exhaustive()
    }
}

/// The servers that a client trusts.
#[derive(Clone, Debug)]
pub enum Trust {
    /// Servers whose certificates lead to an authority that the operating system trusts.
    System,
    /// Servers whose certificates lead to one in this PEM file.
    File(PathBuf),
    /// Servers that present this certificate.
    Exactly(CertificateDer<'static>),
    /// Any server, without checking its certificate.
    AnyServer,
}

/// Versions of TLS that a client offers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Versions {
    /// TLS 1.3 only, which QUIC requires (RFC 9001 §4.2). Also used over TCP for comparisons.
    Tls13,
    /// TLS 1.3, and TLS 1.2 for servers that do not support it.
    Tls13And12,
}

impl Versions {
    fn supported(self) -> &'static [&'static SupportedProtocolVersion] {
        static NEWEST: [&SupportedProtocolVersion; 1] = [&TLS13];
        static BOTH: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];
        match self {
            Self::Tls13 => &NEWEST,
            Self::Tls13And12 => &BOTH,
        }
    }
}

/// Creates the configuration of a server for one protocol.
///
/// # Errors
/// Returns an error if certificate and key cannot be used.
pub fn server(identity: Identity, protocol: &[u8]) -> Result<Arc<ServerConfig>, Failure> {
    let mut config = ServerConfig::builder_with_provider(provider(Versions::Tls13))
        .with_protocol_versions(&[&TLS13])
        .map_err(unusable)?
        .with_no_client_auth()
        .with_single_cert(identity.chain, identity.key)
        .map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => Failure::new(
                "cannot use certificate and key: the key is not that of the certificate",
            ),
            error => Failure::new(format!("cannot use certificate and key: {error}")),
        })?;
    config.alpn_protocols = vec![protocol.to_vec()];
    config.ticketer = courser_tls::ticketer().map_err(unusable)?;
    config.key_log = QueuedKeyLog::environment();
    // Certificates are never compressed, because cases of the interop runner depend on the length of chains.
    config.cert_compressors.clear();
    Ok(Arc::new(config))
}

/// Creates the configuration of a client for one protocol over TLS 1.3.
///
/// # Errors
/// Returns an error if the trusted certificates cannot be read or used.
pub fn client(trust: &Trust, protocol: &[u8]) -> Result<ClientConfig, Failure> {
    client_of(trust, Versions::Tls13, vec![protocol.to_vec()])
}

/// Creates the configuration of a client that offers these versions of TLS and these protocols, the
/// preferred one first.
///
/// # Errors
/// Returns an error if the trusted certificates cannot be read or used.
pub fn client_of(
    trust: &Trust,
    versions: Versions,
    protocols: Vec<Vec<u8>>,
) -> Result<ClientConfig, Failure> {
    client_with_provider(trust, provider(versions), versions, protocols)
}

/// Creates the configuration of a client for one protocol over TLS 1.3 that offers only the cipher suite
/// TLS_CHACHA20_POLY1305_SHA256.
///
/// # Errors
/// Returns an error if the trusted certificates cannot be read or used.
pub fn client_with_chacha20(trust: &Trust, protocol: &[u8]) -> Result<ClientConfig, Failure> {
    let provider = courser_tls::provider(&[CipherSuite::ChaCha20Poly1305]);
    let protocols = vec![protocol.to_vec()];
    client_with_provider(trust, provider, Versions::Tls13, protocols)
}

fn client_with_provider(
    trust: &Trust,
    provider: Arc<CryptoProvider>,
    versions: Versions,
    protocols: Vec<Vec<u8>>,
) -> Result<ClientConfig, Failure> {
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(versions.supported())
        .map_err(unusable)?;
    let builder = match trust {
        Trust::System => {
            let verifier = rustls_platform_verifier::Verifier::new(provider).map_err(unusable)?;
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(verifier))
        }
        Trust::File(path) => builder.with_root_certificates(roots(certificates(path)?, path)?),
        Trust::Exactly(certificate) => {
            let here = Path::new("memory");
            builder.with_root_certificates(roots(vec![certificate.clone()], here)?)
        }
        Trust::AnyServer => {
            let verifier = Arc::new(AnyServer::new(provider));
            builder
                .dangerous()
                .with_custom_certificate_verifier(verifier)
        }
    };
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = protocols;
    config.resumption = Resumption::disabled();
    config.key_log = QueuedKeyLog::environment();
    Ok(config)
}

/// Returns the algorithms, with AES-128-GCM first: it is the cheapest one, and other tools use it too.
fn provider(versions: Versions) -> Arc<CryptoProvider> {
    use rustls::CipherSuite as Name;
    const PREFERRED: [Name; 9] = [
        Name::TLS13_AES_128_GCM_SHA256,
        Name::TLS13_AES_256_GCM_SHA384,
        Name::TLS13_CHACHA20_POLY1305_SHA256,
        Name::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        Name::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        Name::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        Name::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        Name::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        Name::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    ];
    let mut provider = CryptoProvider::clone(&courser_tls::crypto_provider());
    let suites = &mut provider.cipher_suites;
    suites.retain(|suite| versions == Versions::Tls13And12 || suite.tls13().is_some());
    suites.sort_by_key(|suite| PREFERRED.iter().position(|&name| name == suite.suite()));
    Arc::new(provider)
}

fn read(what: &str, path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path)
        .map_err(|error| Failure::new(format!("cannot read {what} {}: {error}", path.display())))
}

/// Reads the certificates in a PEM file, which must contain at least one.
///
/// # Errors
/// Returns an error if the file cannot be read or contains no certificate.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let text = read("certificate", path)?;
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<_, _>>()
        .map_err(|error| {
            Failure::new(format!(
                "damaged certificate in {}: {error}",
                path.display()
            ))
        })?;
    if chain.is_empty() {
        return Err(Failure::new(format!(
            "no certificate in {}: the file must be in PEM format",
            path.display()
        )));
    }
    Ok(chain)
}

/// Creates a store of trusted certificates. `path` is the file they come from, for the error.
///
/// # Errors
/// Returns an error if a certificate cannot be used.
pub fn roots(
    certificates: Vec<CertificateDer<'static>>,
    path: &Path,
) -> Result<RootCertStore, Failure> {
    let mut store = RootCertStore::empty();
    for certificate in certificates {
        store.add(certificate).map_err(|error| {
            Failure::new(format!(
                "cannot trust a certificate in {}: {error}",
                path.display()
            ))
        })?;
    }
    Ok(store)
}

fn unusable(error: rustls::Error) -> Failure {
    Failure::new(format!("cannot set TLS up: {error}"))
}
