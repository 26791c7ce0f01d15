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

/// Selects the certificate of each handshake.
#[derive(Debug)]
pub(crate) enum Resolver {
    /// Certificates of the server, chosen by name.
    Held(ArcSwap<ByName>),
    /// A resolver that the user has set.
    Custom(Arc<dyn ResolvesServerCert>),
    /// An async function, which QUIC and TCP call in different ways.
    Async(Choice),
}

impl Resolver {
    pub(super) fn holding(identity: &Identity) -> Result<Arc<Self>, ConfigError> {
        let key = Arc::new(certified(identity)?);
        let held = ByName::new(vec![key]);
        Ok(Arc::new(Self::Held(ArcSwap::from_pointee(held))))
    }

    /// Returns a resolver that has no certificate yet.
    #[cfg(feature = "acme")]
    pub(super) fn empty() -> Arc<Self> {
        Arc::new(Self::Held(ArcSwap::from_pointee(ByName::new(Vec::new()))))
    }

    pub(super) fn custom(resolver: Arc<dyn ResolvesServerCert>) -> Arc<Self> {
        Arc::new(Self::Custom(resolver))
    }

    pub(super) fn choosing(choice: Choice) -> Arc<Self> {
        Arc::new(Self::Async(choice))
    }

    /// Returns the async function that chooses the certificates, if there is one.
    pub(crate) fn choice(&self) -> Option<&Choice> {
        match self {
            Self::Async(choice) => Some(choice),
            Self::Held(_) | Self::Custom(_) => None,
        }
    }

    /// Adds a certificate for clients that request one of its names.
    ///
    /// # Errors
    ///
    /// Returns an error if key and certificate do not match, or if a custom resolver selects the certificates.
    pub(super) fn add(&self, identity: &Identity) -> Result<(), ConfigError> {
        let Self::Held(held) = self else {
            return Err(ConfigError::Identity(
                "certificates cannot be added to a custom resolver or an asynchronous choice: use PEM files".to_owned(),
            ));
        };
        let key = certified(identity)?;
        held.store(Arc::new(held.load().with_added(key)));
        Ok(())
    }

    /// Replaces the certificate at `index`. Returns false if the certificate is the same, even if its OCSP
    /// response has changed.
    ///
    /// # Errors
    ///
    /// Returns an error if key and certificate do not match, or if the certificate has expired.
    pub(super) fn replace(&self, index: usize, identity: &Identity) -> Result<bool, ConfigError> {
        let Self::Held(held) = self else {
            return Ok(false);
        };
        let key = certified(identity)?;
        let all = held.load();
        if let Some(old) = all.all().get(index)
            && key.cert == old.cert
        {
            if key.ocsp != old.ocsp {
                held.store(Arc::new(all.with_replaced(index, key)));
            }
            return Ok(false);
        }
        refuse_expired(&key, SystemTime::now())?;
        held.store(Arc::new(all.with_replaced(index, key)));
        Ok(true)
    }

    /// Returns the names of the certificate for clients that request `name`; none if a custom resolver selects
    /// it.
    pub(crate) fn names_for(&self, name: Option<&str>) -> Vec<String> {
        match self {
            Self::Held(held) => {
                let held = held.load();
                let facts = held.choose(name).and_then(|key| CertificateFacts::of(key));
                facts.map(|facts| facts.names).unwrap_or_default()
            }
            Self::Custom(_) | Self::Async(_) => Vec::new(),
        }
    }

    /// Returns false if all clients are refused because there is no certificate yet.
    pub(crate) fn has_certificate(&self) -> bool {
        match self {
            Self::Held(held) => !held.load().all().is_empty(),
            Self::Custom(_) | Self::Async(_) => true,
        }
    }

    /// Returns the number of certificates, or `None` for custom resolvers.
    pub(crate) fn count(&self) -> Option<usize> {
        match self {
            Self::Held(held) => Some(held.load().all().len()),
            Self::Custom(_) | Self::Async(_) => None,
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
            Self::Custom(_) | Self::Async(_) => Vec::new(),
        }
    }
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        match self {
            Self::Held(held) => held.load().choose(hello.server_name()).cloned(),
            Self::Custom(resolver) => resolver.resolve(hello),
            // TLS calls `Choice::blocking` or `Chooser` instead.
            Self::Async(_) => None,
        }
    }
}

/// Refuses an expired certificate, so that the server keeps its old one. Certificates that cannot be parsed are
/// left to the clients.
fn refuse_expired(key: &CertifiedKey, now: SystemTime) -> Result<(), ConfigError> {
    let Some(facts) = CertificateFacts::of(key) else {
        return Ok(());
    };
    let Ok(past) = now.duration_since(facts.not_after) else {
        return Ok(());
    };
    let (hours, names) = (past.as_secs().div_ceil(3600), facts.names.join(", "));
    Err(ConfigError::Identity(format!(
        "the new certificate for {names} expired {hours} h ago: replace it by one that is still valid"
    )))
}

/// Checks that certificate and key match.
pub(super) fn certified(identity: &Identity) -> Result<CertifiedKey, ConfigError> {
    identity.certified_key()
}
