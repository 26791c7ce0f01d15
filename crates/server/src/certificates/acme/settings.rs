//! Settings of an ACME client.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use courser_quic::ConfigError;
use courser_tls::rustls::RootCertStore;
use instant_acme::{Identifier, LetsEncrypt};

use super::hook::{DnsChange, DnsHook};
use super::order::Method;

/// The names for which to obtain a certificate, the ACME server to use, and how to prove control of the names.
///
/// ```no_run
/// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; }
/// # fn main() -> Result<(), courser::ConfigError> {
/// use courser::server::{Acme, Certificates};
/// let acme = Acme::new(["example.org"], "/var/lib/example/acme").contact("ops@example.org");
/// let certificates = Certificates::acme(acme)?;
/// # Ok(()) }
/// ```
///
/// The certificate is renewed when the server of the ACME account suggests it (RFC 9773), or after two thirds of
/// its lifetime. After a failed validation the pauses grow from a minute to six hours, and there are at most
/// four failed validations per hour, restarts included: Let's Encrypt allows five.
#[derive(Clone, Debug)]
pub struct Acme {
    pub(super) names: Vec<String>,
    pub(super) folder: PathBuf,
    pub(super) contacts: Vec<String>,
    pub(super) directory: String,
    pub(super) roots: Option<RootCertStore>,
    pub(super) method: Method,
    pub(super) external_account: Option<ExternalAccount>,
    pub(super) profile: Option<String>,
}

/// An account of the certificate authority to which the ACME account is bound (RFC 8555 §7.3.4).
#[derive(Clone)]
pub(super) struct ExternalAccount {
    pub(super) id: String,
    pub(super) key: Vec<u8>,
}

impl fmt::Debug for ExternalAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The key is omitted, so that it does not reach logs.
        f.debug_struct("ExternalAccount")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl Acme {
    /// Requests one certificate for these DNS names and IP addresses from Let's Encrypt. Account and certificate
    /// are stored in `folder`, which is created with access for its owner only. If it is lost at each restart,
    /// another certificate is requested each time, and requests are soon refused.
    ///
    /// Names are validated over TLS at TCP port 443 (TLS-ALPN-01, RFC 8737), unless
    /// [`http01`](Self::http01) or [`dns01`](Self::dns01) is called. A wildcard such as `*.example.org` requires
    /// the latter.
    pub fn new(
        names: impl IntoIterator<Item = impl Into<String>>,
        folder: impl AsRef<Path>,
    ) -> Self {
        Self {
            names: names.into_iter().map(Into::into).collect(),
            folder: folder.as_ref().to_owned(),
            contacts: Vec::new(),
            directory: LetsEncrypt::Production.url().to_owned(),
            roots: None,
            method: Method::TlsAlpn01,
            external_account: None,
            profile: None,
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
        self.directory(LetsEncrypt::Staging.url())
    }

    /// Trusts ACME servers whose certificates chain to these roots, instead of those of the system.
    #[must_use]
    pub fn roots(mut self, roots: RootCertStore) -> Self {
        self.roots = Some(roots);
        self
    }

    /// Validates names over plain HTTP (HTTP-01, RFC 8555 §8.3), for servers whose port 443 is reached through a
    /// proxy that ends TLS. Requires [`Server::redirect_http`](crate::Server::redirect_http) on an address that
    /// is reachable as TCP port 80.
    #[must_use]
    pub fn http01(mut self) -> Self {
        self.method = Method::Http01;
        self
    }

    /// Validates names by TXT records (DNS-01, RFC 8555 §8.4), which needs no reachable port and permits
    /// wildcards. `change` adds and removes the records. It should return once all servers of the zone answer
    /// with an added record. An error is a sentence for the log.
    ///
    /// # Cancel safety
    /// The future is dropped if the server ends, and after ten minutes. The record is then not removed.
    #[must_use]
    pub fn dns01<F, R>(mut self, change: F) -> Self
    where
        F: Fn(DnsChange) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), String>> + Send + 'static,
    {
        self.method = Method::Dns01(DnsHook::new(change));
        self
    }

    /// Binds the ACME account to an existing account of the certificate authority (RFC 8555 §7.3.4), which
    /// issues the ID and the key. Authorities write the key in base64url; pass its bytes.
    #[must_use]
    pub fn external_account(mut self, id: impl Into<String>, key: impl Into<Vec<u8>>) -> Self {
        self.external_account = Some(ExternalAccount {
            id: id.into(),
            key: key.into(),
        });
        self
    }

    /// Requests certificates of this profile, such as `shortlived`, if the authority offers several.
    #[must_use]
    pub fn profile(mut self, name: impl Into<String>) -> Self {
        self.profile = Some(name.into());
        self
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns an error if a name cannot be validated.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let refuse = |text: String| Err(ConfigError::Identity(text));
        if self.names.is_empty() {
            return refuse("ACME requires at least one DNS name".to_owned());
        }
        let is_dns = matches!(self.method, Method::Dns01(_));
        for name in &self.names {
            if name.starts_with("*.") && !is_dns {
                return refuse(format!(
                    "{name}: ACME servers validate wildcards by DNS records only: use DNS-01"
                ));
            }
            if name.parse::<IpAddr>().is_ok() && is_dns {
                return refuse(format!(
                    "{name}: ACME servers do not validate IP addresses by DNS records: use TLS-ALPN-01 or HTTP-01"
                ));
            }
        }
        Ok(())
    }

    pub(super) fn identifiers(&self) -> Vec<Identifier> {
        let names = self.names.iter();
        let identifiers = names.map(|name| match name.parse::<IpAddr>() {
            Ok(address) => Identifier::Ip(address),
            Err(_) => Identifier::Dns(name.to_ascii_lowercase()),
        });
        identifiers.collect()
    }
}
