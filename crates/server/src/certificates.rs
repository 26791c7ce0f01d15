//! Certificates of servers: their sources, and replacement while a server runs.

#[cfg(feature = "acme")]
mod acme;
mod facts;
mod files;
mod kept;
mod resolver;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use courser_base::Mutex;
use courser_quic::{ConfigError, Identity};
use courser_tls::rustls::server::ResolvesServerCert;

#[cfg(feature = "acme")]
pub use self::acme::Acme;
pub use self::facts::CertificateFacts;
pub(super) use self::resolver::Resolver;

use self::files::Files;
use self::kept::Kept;
pub(super) use self::kept::{make_folder, write_private};
use super::events::{Event, Events};
use super::reset::ResetSecret;

/// The certificate of a server, one for all its protocols.
///
/// It comes from an [`Identity`], from files that may change while the server runs, from a folder
/// with a certificate for development, or from ACME. A new certificate applies to all protocols at
/// the same time; open connections keep the old one.
#[derive(Debug)]
pub struct Certificates {
    pub(super) resolver: Arc<Resolver>,
    pub(super) source: Source,
    /// The source of the keys of stateless resets, if they are to survive a restart.
    pub(super) reset: Option<ResetSecret>,
}

/// The source of new certificates.
#[derive(Debug)]
pub(super) enum Source {
    /// There are none.
    Fixed,
    Files(Files),
    Kept(Kept),
    #[cfg(feature = "acme")]
    Acme(Box<acme::Running>),
}

impl Certificates {
    /// Uses PEM files with the chain and the key. The server checks every second whether they have
    /// changed, and uses new ones if they match and have not expired. Otherwise it keeps the old
    /// certificate and reports [`Event::CertificateKept`].
    ///
    /// On Linux the keys of stateless resets are derived from the private key, so that a server
    /// that is back after a crash resets former connections at once; see
    /// [`Server::reset_secret`](super::Server::reset_secret).
    ///
    /// # Errors
    /// Returns an error if a file cannot be read, or certificate and key do not match.
    pub fn pem_files(chain: impl AsRef<Path>, key: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let (files, identity) = Files::open(chain.as_ref(), key.as_ref())?;
        Ok(Self {
            resolver: Resolver::holding(&identity)?,
            source: Source::Files(files),
            reset: ResetSecret::of_identity(&identity),
        })
    }

    /// Uses a certificate for development that is kept in `folder` as `cert.pem` and `key.pem`, so
    /// that its hash stays the same across restarts. It is self-signed, P-256, for these names,
    /// `localhost`, `127.0.0.1` and `::1`. It is valid for 13 days, because browsers that verify by
    /// hash accept at most 14. It is replaced in the last two days, or for another list of names.
    ///
    /// The secret of stateless resets is kept beside it, as `reset.key`; see
    /// [`Server::reset_secret`](super::Server::reset_secret).
    ///
    /// # Errors
    /// Returns an error if the folder cannot be written, or contains a foreign `reset.key`.
    pub fn dev_in(
        folder: impl AsRef<Path>,
        names: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, ConfigError> {
        let (kept, identity) = Kept::open(folder.as_ref(), names)?;
        Ok(Self {
            resolver: Resolver::holding(&identity)?,
            source: Source::Kept(kept),
            reset: Some(ResetSecret::kept_in(folder.as_ref())?),
        })
    }

    /// Uses certificates signed by an ACME server such as Let's Encrypt. The TCP part of the server
    /// must be reachable on port 443, where the names are validated (RFC 8737).
    ///
    /// The secret of stateless resets is kept in the folder for the account, as `reset.key`; see
    /// [`Server::reset_secret`](super::Server::reset_secret).
    ///
    /// # Errors
    /// Returns an error if there are no names, or the folder for the account cannot be created or
    /// contains a foreign `reset.key`.
    #[cfg(feature = "acme")]
    pub fn acme(acme: Acme) -> Result<Self, ConfigError> {
        let folder = acme.folder().to_owned();
        let running = acme.start()?;
        Ok(Self {
            resolver: Resolver::of_user(running.resolver()),
            source: Source::Acme(Box::new(running)),
            reset: Some(ResetSecret::kept_in(&folder)?),
        })
    }

    /// Uses a custom resolver, which is called for each connection.
    pub fn resolver(resolver: Arc<dyn ResolvesServerCert>) -> Self {
        Self {
            resolver: Resolver::of_user(resolver),
            source: Source::Fixed,
            reset: None,
        }
    }

    /// Returns the public facts about the certificate in use; `None` with ACME and custom
    /// resolvers.
    pub fn facts(&self) -> Option<CertificateFacts> {
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
            source: Source::Fixed,
            reset: ResetSecret::of_identity(identity),
        })
    }
}

impl Source {
    /// Reads the source again if it may have changed. Returns true if there is another certificate.
    pub(super) fn reload(&mut self, resolver: &Resolver) -> Result<bool, ConfigError> {
        let identity = match self {
            Self::Files(files) => files.read()?,
            Self::Kept(kept) => kept.renew_if_old()?,
            _ => None,
        };
        match identity {
            Some(identity) => resolver.replace(&identity),
            None => Ok(false),
        }
    }

    /// Returns true if a cheap check of the source shows a change.
    fn may_have_changed(&self) -> bool {
        match self {
            Self::Files(files) => files.have_changed(),
            Self::Kept(kept) => kept.is_old(),
            _ => false,
        }
    }
}

/// Replaces certificates as long as the server runs.
pub(super) async fn watch(source: Arc<Mutex<Source>>, resolver: Arc<Resolver>, events: Events) {
    let mut interval = tokio::time::interval(LOOK_EVERY);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        let reloaded = {
            let mut source = source.lock();
            source.may_have_changed().then(|| source.reload(&resolver))
        };
        match reloaded.unwrap_or(Ok(false)) {
            Ok(false) => {}
            Ok(true) => events.tell(Event::CertificateReplaced),
            Err(error) => events.tell(Event::CertificateKept(error)),
        }
    }
}

/// Short enough for users, long enough to cost nothing.
const LOOK_EVERY: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
