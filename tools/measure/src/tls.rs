//! TLS configurations, the same for QUIC and for TCP so that the two can be compared.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use courser::QueuedKeyLog;
use courser_tls::AnyServer;
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::version::{TLS12, TLS13};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig, SupportedCipherSuite, SupportedProtocolVersion,
};

use crate::failure::Failure;

/// A server's certificate chain and private key.
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    /// Makes a self-signed certificate for this machine's own names, in memory.
    ///
    /// # Errors
    /// Returns an error if no certificate can be made.
    pub fn in_memory() -> Result<Self, Failure> {
        let names = ["localhost", "127.0.0.1", "::1"]
            .map(str::to_owned)
            .to_vec();
        let made = rcgen::generate_simple_self_signed(names)
            .map_err(|error| Failure::new(format!("cannot make a certificate: {error}")))?;
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        Ok(Self {
            chain: vec![made.cert.into()],
            key: key.into(),
        })
    }

    /// Reads a certificate chain and its key from PEM files.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or has no certificate or key in it.
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

    /// Returns the server's own certificate, for clients that trust exactly this one.
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
    /// Servers that the operating system trusts.
    System,
    /// Servers whose certificates lead to one in this file.
    File(PathBuf),
    /// Servers with this certificate.
    Exactly(CertificateDer<'static>),
    /// Any server.
    Anybody,
}

/// Versions of TLS that a client offers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Versions {
    /// TLS 1.3 only, which QUIC requires (RFC 9001 §4.2), and so do comparisons with it.
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

/// Makes the configuration of a server for one protocol.
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
    config.ticketer = aws_lc_rs::Ticketer::new().map_err(unusable)?;
    config.key_log = QueuedKeyLog::environment();
    // Chains have their length on the wire in every build, as cases of the interop runner expect.
    config.cert_compressors.clear();
    Ok(Arc::new(config))
}

/// Makes the configuration of a client for one protocol over TLS 1.3.
///
/// # Errors
/// Returns an error if the trusted certificates cannot be read or used.
pub fn client(trust: &Trust, protocol: &[u8]) -> Result<ClientConfig, Failure> {
    client_of(trust, Versions::Tls13, vec![protocol.to_vec()])
}

/// Makes the configuration of a client that offers these versions of TLS and these protocols, the
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

/// Makes the configuration of a client for one protocol over TLS 1.3 that offers one cipher suite
/// only, TLS_CHACHA20_POLY1305_SHA256.
///
/// # Errors
/// Returns an error if the trusted certificates cannot be read or used.
pub fn client_with_chacha20(trust: &Trust, protocol: &[u8]) -> Result<ClientConfig, Failure> {
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites = vec![aws_lc_rs::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256];
    let protocols = vec![protocol.to_vec()];
    client_with_provider(trust, Arc::new(provider), Versions::Tls13, protocols)
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
        Trust::Anybody => {
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

/// Returns the algorithms, AES-128-GCM first: the cheapest, and what other tools measure with.
fn provider(versions: Versions) -> Arc<CryptoProvider> {
    use aws_lc_rs::cipher_suite as suite;
    const TLS13_SUITES: [SupportedCipherSuite; 3] = [
        suite::TLS13_AES_128_GCM_SHA256,
        suite::TLS13_AES_256_GCM_SHA384,
        suite::TLS13_CHACHA20_POLY1305_SHA256,
    ];
    const TLS12_SUITES: [SupportedCipherSuite; 6] = [
        suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    ];
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites = TLS13_SUITES.to_vec();
    if versions == Versions::Tls13And12 {
        provider.cipher_suites.extend(TLS12_SUITES);
    }
    Arc::new(provider)
}

fn read(what: &str, path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path)
        .map_err(|error| Failure::new(format!("cannot read {what} {}: {error}", path.display())))
}

/// Reads the certificates in a PEM file; at least one.
///
/// # Errors
/// Returns an error if the file cannot be read or has no certificate in it.
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
            "no certificate in {}: PEM is needed",
            path.display()
        )));
    }
    Ok(chain)
}

/// Makes a store of certificates that are trusted; `path` is where they come from, for the error.
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
                "cannot trust a certificate of {}: {error}",
                path.display()
            ))
        })?;
    }
    Ok(store)
}

fn unusable(error: rustls::Error) -> Failure {
    Failure::new(format!("cannot set TLS up: {error}"))
}
