//! The certificates in use, shared by QUIC and TCP.

use std::sync::Arc;
use std::time::SystemTime;

use arc_swap::ArcSwap;
use courser_quic::hooks::IdentityHooks;
use courser_quic::{ConfigError, Identity};
use courser_tls::rustls::server::{ClientHello, ResolvesServerCert};
use courser_tls::rustls::sign::CertifiedKey;

use super::choice::Choice;
use super::facts::CertificateFacts;
use super::names::ByName;

/// Selects the certificate of every handshake.
#[derive(Debug)]
pub(crate) enum Resolver {
    /// Several certificates, chosen by name.
    Held(ArcSwap<ByName>),
    /// A custom resolver.
    OfUser(Arc<dyn ResolvesServerCert>),
    /// An async function, which each transport calls in its own way.
    Choosing(Choice),
}

impl Resolver {
    pub(super) fn holding(identity: &Identity) -> Result<Arc<Self>, ConfigError> {
        let key = Arc::new(certified(identity)?);
        let held = ByName::new(vec![key]);
        Ok(Arc::new(Self::Held(ArcSwap::from_pointee(held))))
    }

    pub(super) fn of_user(resolver: Arc<dyn ResolvesServerCert>) -> Arc<Self> {
        Arc::new(Self::OfUser(resolver))
    }

    pub(super) fn choosing(choice: Choice) -> Arc<Self> {
        Arc::new(Self::Choosing(choice))
    }

    /// Returns the async function that selects the certificates, if there is one.
    pub(crate) fn choice(&self) -> Option<&Choice> {
        match self {
            Self::Choosing(choice) => Some(choice),
            Self::Held(_) | Self::OfUser(_) => None,
        }
    }

    /// Adds a certificate for clients that ask for one of its names.
    ///
    /// # Errors
    ///
    /// Returns an error if key and certificate do not match, or a custom resolver selects the
    /// certificates.
    pub(super) fn add(&self, identity: &Identity) -> Result<(), ConfigError> {
        let Self::Held(held) = self else {
            return Err(ConfigError::Identity(
                "certificates cannot be added to ACME or to a custom resolver".to_owned(),
            ));
        };
        let key = certified(identity)?;
        held.store(Arc::new(held.load().and(key)));
        Ok(())
    }

    /// Uses another identity from now on in the place of the certificate at `index`. Returns false
    /// if it is the same certificate, perhaps with another OCSP response.
    ///
    /// # Errors
    ///
    /// Returns an error if key and certificate do not match, or the certificate has expired.
    pub(super) fn replace(&self, index: usize, identity: &Identity) -> Result<bool, ConfigError> {
        let Self::Held(held) = self else {
            return Ok(false);
        };
        let key = certified(identity)?;
        let all = held.load();
        let old = &all.all()[index];
        if key.cert == old.cert {
            if key.ocsp != old.ocsp {
                held.store(Arc::new(all.with(index, key)));
            }
            return Ok(false);
        }
        refuse_expired(&key, SystemTime::now())?;
        held.store(Arc::new(all.with(index, key)));
        Ok(true)
    }

    /// Returns the names of the certificate for clients that ask for `name`. None if a custom resolver
    /// selects it.
    pub(crate) fn names_for(&self, name: Option<&str>) -> Vec<String> {
        match self {
            Self::Held(held) => {
                let facts = CertificateFacts::of(held.load().choose(name));
                facts.map(|facts| facts.names).unwrap_or_default()
            }
            Self::OfUser(_) | Self::Choosing(_) => Vec::new(),
        }
    }

    /// Returns the number of certificates; that of a custom resolver is unknown.
    pub(crate) fn count(&self) -> Option<usize> {
        match self {
            Self::Held(held) => Some(held.load().all().len()),
            Self::OfUser(_) | Self::Choosing(_) => None,
        }
    }

    /// Returns the facts about all certificates that can be parsed, the default one first.
    pub(crate) fn facts(&self) -> Vec<CertificateFacts> {
        match self {
            Self::Held(held) => {
                let held = held.load();
                let facts = held.all().iter().filter_map(|key| {
                    CertificateFacts::of(key).map(|facts| facts.with_compression(key))
                });
                facts.collect()
            }
            Self::OfUser(_) | Self::Choosing(_) => Vec::new(),
        }
    }
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        match self {
            Self::Held(held) => Some(held.load().choose(hello.server_name()).clone()),
            Self::OfUser(resolver) => resolver.resolve(hello),
            // TLS calls `Choice::waiting` or `Chooser` instead.
            Self::Choosing(_) => None,
        }
    }
}

/// Refuses an expired certificate: the server keeps its old one rather than use one that every
/// client refuses. Certificates that cannot be parsed are left to the clients.
fn refuse_expired(key: &CertifiedKey, now: SystemTime) -> Result<(), ConfigError> {
    let Some(facts) = CertificateFacts::of(key) else {
        return Ok(());
    };
    let Ok(past) = now.duration_since(facts.not_after) else {
        return Ok(());
    };
    let (hours, names) = (past.as_secs().div_ceil(3600), facts.names.join(", "));
    Err(ConfigError::Identity(format!(
        "the new certificate for {names} expired {hours} h ago, allowed is one that is still valid"
    )))
}

/// Checks that certificate and key match.
pub(super) fn certified(identity: &Identity) -> Result<CertifiedKey, ConfigError> {
    identity.certified_key()
}
