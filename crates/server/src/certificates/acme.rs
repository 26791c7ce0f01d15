//! Certificates signed by an ACME server (RFC 8555), validated by TLS-ALPN-01 (RFC 8737).

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use courser_quic::ConfigError;
use courser_tls::rustls::server::ResolvesServerCert;
use courser_tls::rustls::{self, RootCertStore};
use courser_tls::{ClientOptions, Trust};
use futures_util::StreamExt as _;
use rustls_acme::caches::DirCache;
use rustls_acme::{AcmeConfig, AcmeState, EventOk};

use super::dev::make_folder;
use crate::events::{Event, Events};

/// The names for which to obtain a certificate, and the ACME server to use.
///
/// ```no_run
/// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; }
/// # fn main() -> Result<(), courser::ConfigError> {
/// use courser::server::{Acme, Certificates};
/// let acme = Acme::new(["example.org"], "/var/lib/example/acme").contact("ops@example.org");
/// let certificates = Certificates::acme(acme)?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Acme {
    names: Vec<String>,
    folder: PathBuf,
    contacts: Vec<String>,
    directory: String,
    roots: Option<RootCertStore>,
}

impl Acme {
    /// Requests a certificate for these DNS names from Let's Encrypt. Account and certificate are stored in
    /// `folder`, which is created with access for its owner only. If it is lost at each restart, another
    /// certificate is requested each time, and requests are soon refused.
    pub fn new(
        names: impl IntoIterator<Item = impl Into<String>>,
        folder: impl AsRef<Path>,
    ) -> Self {
        Self {
            names: names.into_iter().map(Into::into).collect(),
            folder: folder.as_ref().to_owned(),
            contacts: Vec::new(),
            directory: rustls_acme::acme::LETS_ENCRYPT_PRODUCTION_DIRECTORY.to_owned(),
            roots: None,
        }
    }

    /// Adds an e-mail address for messages about the account.
    #[must_use]
    pub fn contact(mut self, address: impl Into<String>) -> Self {
        let address = address.into();
        let is_uri = address.starts_with("mailto:");
        self.contacts.push(if is_uri {
            address
        } else {
            format!("mailto:{address}")
        });
        self
    }

    /// Uses the ACME server with this directory URL.
    #[must_use]
    pub fn directory(mut self, url: impl Into<String>) -> Self {
        self.directory = url.into();
        self
    }

    /// Uses Let's Encrypt's staging server, whose certificates are not trusted by clients.
    #[must_use]
    pub fn staging(self) -> Self {
        self.directory(rustls_acme::acme::LETS_ENCRYPT_STAGING_DIRECTORY)
    }

    /// Trusts ACME servers whose certificates chain to these roots, instead of those of the system.
    #[must_use]
    pub fn roots(mut self, roots: RootCertStore) -> Self {
        self.roots = Some(roots);
        self
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn start(self) -> Result<Running, ConfigError> {
        if self.names.is_empty() {
            return Err(ConfigError::Identity(
                "ACME requires at least one DNS name".to_owned(),
            ));
        }
        make_folder(&self.folder).map_err(|error| {
            ConfigError::Identity(format!("{}: {error}", self.folder.display()))
        })?;
        let trust = self.roots.map_or(Trust::Platform, Trust::Roots);
        let mut client =
            courser_tls::client_config(ClientOptions::new(trust, vec![b"http/1.1".to_vec()]))?;
        Arc::make_mut(&mut client).alpn_protocols.clear();
        let state = AcmeConfig::new_with_client_config(&self.names, client)
            .directory(&self.directory)
            .contact(&self.contacts)
            .cache(DirCache::new(self.folder))
            .state();
        Ok(Running(state))
    }
}

/// Requests certificates and renews them while it is polled.
pub(crate) struct Running(AcmeState<io::Error>);

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Running")
    }
}

impl Running {
    pub(super) fn resolver(&self) -> Arc<dyn ResolvesServerCert> {
        self.0.resolver()
    }

    /// Returns the configuration for connections that only validate a name.
    pub(crate) fn challenge(
        &self,
        provider: Arc<rustls::crypto::CryptoProvider>,
    ) -> Arc<rustls::ServerConfig> {
        self.0.challenge_rustls_config_with_provider(provider)
    }

    /// Drives the ACME client. Never completes.
    pub(crate) async fn run(&mut self, events: Events) {
        while let Some(event) = self.0.next().await {
            match event {
                Ok(EventOk::DeployedCachedCert | EventOk::DeployedNewCert) => {
                    events.report(Event::CertificateReplaced);
                }
                Ok(EventOk::CertCacheStore | EventOk::AccountCacheStore) => {}
                Err(error) => {
                    let text = format!("ACME: {error}");
                    events.report(Event::CertificateKept(ConfigError::Identity(text)));
                }
            }
        }
    }
}
