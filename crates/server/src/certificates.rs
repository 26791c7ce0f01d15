//! The certificates of a server: their sources, and their replacement while the server runs.

#[cfg(feature = "acme")]
pub(super) mod acme;
mod choice;
pub(super) mod chosen;
mod dev;
mod expiry;
mod facts;
pub(super) mod fields;
mod file_stamp;
mod files;
mod names;
pub(super) mod ocsp;
pub(super) mod reset;
mod resolver;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use courser_base::Mutex;
use courser_quic::{ConfigError, Identity};
use courser_tls::rustls::server::ResolvesServerCert;
use courser_tls::rustls::sign::CertifiedKey;

#[cfg(feature = "acme")]
pub use self::acme::{Acme, DnsChange, DnsRecord};
pub(super) use self::choice::Choice;
pub use self::facts::CertificateFacts;
pub(super) use self::resolver::Resolver;

use self::dev::DevCertificate;
use self::expiry::ExpiryWatch;
use self::files::Files;
use self::reset::ResetSecret;
use crate::events::{Event, Events};

/// The certificates of a server, shared by all its protocols.
///
/// They come from an [`Identity`], from files that may change while the server runs, from a folder with a
/// development certificate, or from ACME. A new certificate applies to all protocols at the same time; open
/// connections keep the old one.
///
/// A server for several names can have a certificate for each ([`with_pem_files`](Self::with_pem_files)).
/// Clients get the certificate for the name that they request (SNI, RFC 6066 §3), or the first one if none
/// matches.
#[derive(Debug)]
pub struct Certificates {
    pub(super) resolver: Arc<Resolver>,
    pub(super) sources: Sources,
    /// The secret of stateless resets, if they must survive a restart.
    pub(super) reset: Option<ResetSecret>,
}

/// The sources of the certificates, in the order of the certificates in the resolver.
#[derive(Debug)]
pub(super) struct Sources {
    first: Source,
    others: Vec<Files>,
}

/// The source of a certificate.
#[derive(Debug)]
pub(super) enum Source {
    /// The certificate never changes.
    Fixed,
    Files(Files),
    Dev(DevCertificate),
    #[cfg(feature = "acme")]
    Acme(Box<acme::Agent>),
}

impl Certificates {
    /// Uses PEM files with the chain and the key. The server checks every second whether they have changed, and
    /// uses the new ones if they match and have not expired. Otherwise it keeps the old certificate and reports
    /// [`Event::CertificateKept`].
    ///
    /// On Linux the keys of stateless resets are derived from the private key, so that a server resets former
    /// connections at once after a crash; see [`Server::reset_secret`](super::Server::reset_secret).
    ///
    /// ```no_run
    /// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; pub use courser_http3_tokio as h3; }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use courser::server::Certificates;
    ///
    /// let certificates = Certificates::pem_files("cert.pem", "key.pem")?;
    /// let server = courser::serve("[::]:443", certificates);
    /// # drop(server);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error if a file cannot be read, or certificate and key do not match.
    pub fn pem_files(chain: impl AsRef<Path>, key: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let (files, identity) = Files::open(chain.as_ref(), key.as_ref())?;
        Ok(Self {
            resolver: Resolver::holding(&identity)?,
            sources: Source::Files(files).into_sources(),
            reset: ResetSecret::from_identity(&identity),
        })
    }

    /// Adds PEM files with a chain and its key, for clients that request one of the names in the certificate.
    /// `*.example.org` matches one more label. The server checks these files for changes like those of
    /// [`pem_files`](Self::pem_files).
    ///
    /// ```no_run
    /// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; }
    /// # fn main() -> Result<(), courser::ConfigError> {
    /// use courser::server::Certificates;
    /// let certificates = Certificates::pem_files("a.pem", "a.key")?
    ///     .with_pem_files("b.pem", "b.key")?
    ///     .with_pem_files("wildcard.pem", "wildcard.key")?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error if a file cannot be read, certificate and key do not match, the certificate
    /// has no name, or the first certificates come from ACME or a custom resolver.
    pub fn with_pem_files(
        mut self,
        chain: impl AsRef<Path>,
        key: impl AsRef<Path>,
    ) -> Result<Self, ConfigError> {
        let chain = chain.as_ref();
        #[cfg(feature = "acme")]
        if let Source::Acme(_) = self.sources.first {
            return Err(ConfigError::Identity(
                "certificates cannot be added to those of ACME: use PEM files only".to_owned(),
            ));
        }
        let (files, identity) = Files::open(chain, key.as_ref())?;
        self.resolver.add(&identity)?;
        if self.all_facts().last().is_none_or(|it| it.names.is_empty()) {
            return Err(ConfigError::Identity(format!(
                "{}: the certificate has no DNS name, so no client would receive it: add a certificate with a DNS name",
                chain.display()
            )));
        }
        self.sources.others.push(files);
        Ok(self)
    }

    /// Staples the DER-encoded OCSP response in this file to the certificate that was added last (RFC 6066 §8),
    /// so that clients need not ask the authority whether it is revoked. The server checks every second whether
    /// the file has changed.
    ///
    /// A response that is missing, malformed, expired, for another certificate or not "good" is not stapled, and
    /// the server reports [`Event::OcspIgnored`]. Its signature is not verified.
    ///
    /// # Errors
    /// Returns an error if the last certificate does not come from PEM files.
    pub fn with_ocsp_file(mut self, path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let index = self.sources.others.len();
        let files = match (self.sources.others.last_mut(), &mut self.sources.first) {
            (Some(files), _) | (None, Source::Files(files)) => files,
            _ => {
                return Err(ConfigError::Identity(
                    "an OCSP response requires a certificate from PEM files: add them first"
                        .to_owned(),
                ));
            }
        };
        files.staple(path.as_ref());
        if let Some(identity) = files.read()? {
            self.resolver.replace(index, &identity)?;
        }
        Ok(self)
    }

    /// Uses a development certificate in memory: self-signed with P-256, for these names, `localhost`, `127.0.0.1` and
    /// `::1`. It is valid for 13 days, because browsers that verify by hash accept at most 14, and is replaced in its
    /// last two days by one with the same key.
    ///
    /// ```
    /// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; }
    /// # fn main() -> Result<(), courser::ConfigError> {
    /// use courser::server::Certificates;
    /// let certificates = Certificates::dev(["box.example"])?;
    /// let facts = certificates.facts().expect("one certificate");
    /// println!("serverCertificateHashes of WebTransport: {:x?}", facts.sha256);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error if a name is not allowed in a certificate.
    pub fn dev(names: impl IntoIterator<Item = impl Into<String>>) -> Result<Self, ConfigError> {
        let (dev, identity) = DevCertificate::open(None, names)?;
        Ok(Self {
            resolver: Resolver::holding(&identity)?,
            sources: Source::Dev(dev).into_sources(),
            reset: ResetSecret::from_identity(&identity),
        })
    }

    /// Uses a development certificate that is stored in `folder` as `cert.pem` and `key.pem`, so that its hash
    /// stays the same across restarts. It is self-signed with P-256 for these names, `localhost`, `127.0.0.1`
    /// and `::1`. It is valid for 13 days, because browsers that verify by hash accept at most 14. It is
    /// replaced in its last two days, or for another list of names.
    ///
    /// The secret of stateless resets is stored in the same folder as `reset.key`; see
    /// [`Server::reset_secret`](super::Server::reset_secret).
    ///
    /// # Errors
    /// Returns an error if the folder cannot be written, or contains an invalid `reset.key`.
    pub fn dev_in(
        folder: impl AsRef<Path>,
        names: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, ConfigError> {
        let (dev, identity) = DevCertificate::open(Some(folder.as_ref()), names)?;
        Ok(Self {
            resolver: Resolver::holding(&identity)?,
            sources: Source::Dev(dev).into_sources(),
            reset: Some(ResetSecret::in_folder(folder.as_ref())?),
        })
    }

    /// Uses a certificate signed by an ACME server such as Let's Encrypt. The TCP port of the server must be
    /// reachable as port 443, where the names are validated (RFC 8737), unless [`Acme`] says otherwise.
    ///
    /// Until the first certificate is obtained, the server refuses all clients and is not
    /// [ready](super::ServerHandle::is_ready). [`Event::CertificateNotObtained`] reports each failure, and
    /// [`ServerStats::acme`](super::ServerStats::acme) counts them.
    ///
    /// The secret of stateless resets is stored in the folder of the account as `reset.key`; see
    /// [`Server::reset_secret`](super::Server::reset_secret).
    ///
    /// # Errors
    /// Returns an error if there are no names, if a name cannot be validated by the chosen method, or if the
    /// folder of the account cannot be created or contains an invalid `reset.key`.
    #[cfg(feature = "acme")]
    pub fn acme(acme: Acme) -> Result<Self, ConfigError> {
        let folder = acme.folder().to_owned();
        let (agent, resolver) = self::acme::start(acme)?;
        Ok(Self {
            resolver,
            sources: Source::Acme(Box::new(agent)).into_sources(),
            reset: Some(ResetSecret::in_folder(&folder)?),
        })
    }

    /// Calls an async function to choose the certificate of each connection by the name that the client requests
    /// (SNI). `None` refuses the client with the alert access_denied.
    ///
    /// Neither a slow choice nor a slow key, such as one in another process, delays other connections:
    /// handshakes run on threads that may block (`spawn_blocking`), at most 128 at a time over TCP, and 128 on
    /// each address over QUIC. A choice may take
    /// [`Limits::handshake_timeout`](super::Limits::handshake_timeout), and over QUIC at most
    /// [`TransportConfig::handshake_timeout`](courser_quic::TransportConfig::handshake_timeout). Over TCP it
    /// occupies no thread. The function is called for each connection, including those that resume a session.
    ///
    /// Over QUIC each choice occupies a thread. So that forged packets cannot occupy all of them, clients
    /// without a token first validate their address, which takes another round trip (Retry). An explicit
    /// [`Server::retry`](super::Server::retry) replaces this policy.
    ///
    /// The server does not have the names of the certificates, so
    /// [`Server::only_names`](super::Server::only_names) and
    /// [`Server::announce_names`](super::Server::announce_names) have no effect.
    ///
    /// ```
    /// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; }
    /// use std::sync::Arc;
    /// use courser::rustls::sign::CertifiedKey;
    /// use courser::server::Certificates;
    ///
    /// async fn look_up(name: Option<String>) -> Option<Arc<CertifiedKey>> {
    ///     // Ask a database, a key store or another server.
    /// #   let _ = name;
    ///     None
    /// }
    ///
    /// let server = courser::serve("[::]:4433", Certificates::asynchronous(look_up));
    /// # drop(server);
    /// ```
    ///
    /// # Cancel safety
    /// The future is dropped at its time limit, and may be dropped when the server ends.
    pub fn asynchronous<F, R>(choose: F) -> Self
    where
        F: Fn(Option<String>) -> R + Send + Sync + 'static,
        R: Future<Output = Option<Arc<CertifiedKey>>> + Send + 'static,
    {
        Self {
            resolver: Resolver::choosing(Choice::new(choose)),
            sources: Source::Fixed.into_sources(),
            reset: None,
        }
    }

    /// Uses a custom resolver, which is called for each connection. It must not block, except over QUIC with
    /// [`Server::offload_tls`](super::Server::offload_tls). Use [`asynchronous`](Self::asynchronous) for choices
    /// that take long over all protocols.
    pub fn resolver(resolver: Arc<dyn ResolvesServerCert>) -> Self {
        Self {
            resolver: Resolver::custom(resolver),
            sources: Source::Fixed.into_sources(),
            reset: None,
        }
    }

    /// Returns public facts about the first certificate in use, or `None` with custom resolvers and while ACME has
    /// none yet.
    pub fn facts(&self) -> Option<CertificateFacts> {
        self.resolver.facts().into_iter().next()
    }

    /// Returns public facts about all certificates in use, the default one first; none with custom resolvers.
    pub fn all_facts(&self) -> Vec<CertificateFacts> {
        self.resolver.facts()
    }
}

impl TryFrom<Identity> for Certificates {
    type Error = ConfigError;

    fn try_from(identity: Identity) -> Result<Self, ConfigError> {
        Self::try_from(&identity)
    }
}

impl TryFrom<&Identity> for Certificates {
    type Error = ConfigError;

    fn try_from(identity: &Identity) -> Result<Self, ConfigError> {
        Ok(Self {
            resolver: Resolver::holding(identity)?,
            sources: Source::Fixed.into_sources(),
            reset: ResetSecret::from_identity(identity),
        })
    }
}

impl Sources {
    /// Reads all sources again. Returns true if a certificate was replaced. An error of one source does not
    /// prevent the others from being read.
    pub(super) fn reload(&mut self, resolver: &Resolver) -> Result<bool, ConfigError> {
        self.reload_if(resolver, false)
    }

    /// Reads the sources for which a cheap check detects a change.
    pub(super) fn reload_changed(&mut self, resolver: &Resolver) -> Result<bool, ConfigError> {
        self.reload_if(resolver, true)
    }

    fn reload_if(&mut self, resolver: &Resolver, if_changed: bool) -> Result<bool, ConfigError> {
        let mut result = Ok(false);
        let mut add = |index, identity: Result<Option<Identity>, ConfigError>| {
            let replaced = identity.and_then(|identity| match identity {
                Some(identity) => resolver.replace(index, &identity),
                None => Ok(false),
            });
            result = match (&result, replaced) {
                (Ok(before), Ok(now)) => Ok(*before || now),
                (Ok(_), Err(error)) => Err(error),
                (Err(first), _) => Err(first.clone()),
            };
        };
        if !if_changed || self.first.may_have_changed() {
            add(0, self.first.read());
        }
        for (index, files) in self.others.iter_mut().enumerate() {
            if !if_changed || files.have_changed() {
                add(index + 1, files.read());
            }
        }
        result
    }

    /// Returns the reasons for which OCSP responses are not stapled, and clears them.
    pub(super) fn take_ocsp_problems(&mut self) -> Vec<String> {
        let first = match &mut self.first {
            Source::Files(files) => files.take_problem(),
            _ => None,
        };
        let others = self.others.iter_mut().filter_map(Files::take_problem);
        first.into_iter().chain(others).collect()
    }

    /// Takes the ACME client out, because it drives itself.
    #[cfg(feature = "acme")]
    pub(super) fn take_acme(&mut self) -> Option<Box<acme::Agent>> {
        match std::mem::replace(&mut self.first, Source::Fixed) {
            Source::Acme(acme) => Some(acme),
            other => {
                self.first = other;
                None
            }
        }
    }

    /// Returns the ACME client, if it is used.
    #[cfg(feature = "acme")]
    pub(super) const fn acme(&self) -> Option<&acme::Agent> {
        match &self.first {
            Source::Acme(acme) => Some(acme),
            _ => None,
        }
    }
}

impl Source {
    const fn into_sources(self) -> Sources {
        Sources {
            first: self,
            others: Vec::new(),
        }
    }

    /// Reads the source again. Returns `None` if it has no new certificate.
    fn read(&mut self) -> Result<Option<Identity>, ConfigError> {
        match self {
            Self::Files(files) => files.read(),
            Self::Dev(dev) => dev.renew_if_old(),
            _ => Ok(None),
        }
    }

    /// Returns true if a cheap check of the source detects a change.
    fn may_have_changed(&self) -> bool {
        match self {
            Self::Files(files) => files.have_changed(),
            Self::Dev(dev) => dev.is_old(),
            _ => false,
        }
    }
}

/// Replaces changed certificates for as long as the server runs.
pub(super) async fn watch(sources: Arc<Mutex<Sources>>, resolver: Arc<Resolver>, events: Events) {
    let mut interval = tokio::time::interval(CHECK_INTERVAL);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut expiry = ExpiryWatch::default();
    loop {
        interval.tick().await;
        let (reloaded, problems) = {
            let mut sources = sources.lock();
            let reloaded = sources.reload_changed(&resolver);
            (reloaded, sources.take_ocsp_problems())
        };
        for problem in problems {
            events.report(Event::OcspIgnored(problem));
        }
        match reloaded {
            Ok(false) => {}
            Ok(true) => events.report(Event::CertificateReplaced),
            Err(error) => events.report(Event::CertificateKept(error)),
        }
        let now = SystemTime::now();
        if expiry.is_due(now) {
            for CertificateFacts {
                names, not_after, ..
            } in expiry.check(resolver.facts(), now)
            {
                events.report(Event::CertificateExpires { names, not_after });
            }
        }
    }
}

/// Interval between checks of the sources: short for users, and cheap.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
