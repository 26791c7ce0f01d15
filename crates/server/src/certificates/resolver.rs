//! The certificate in use, shared by QUIC and TCP.

use std::sync::Arc;
use std::time::SystemTime;

use arc_swap::ArcSwap;
use courser_quic::hooks::IdentityHooks;
use courser_quic::{ConfigError, Identity};
use courser_tls::rustls::crypto::aws_lc_rs;
use courser_tls::rustls::server::{ClientHello, ResolvesServerCert};
use courser_tls::rustls::sign::CertifiedKey;

use super::facts::CertificateFacts;

/// Selects the certificate of every handshake.
#[derive(Debug)]
pub(crate) enum Resolver {
    /// This certificate for all names.
    Held(ArcSwap<CertifiedKey>),
    /// A custom resolver.
    OfUser(Arc<dyn ResolvesServerCert>),
}

impl Resolver {
    pub(super) fn holding(identity: &Identity) -> Result<Arc<Self>, ConfigError> {
        let key = certified(identity)?;
        Ok(Arc::new(Self::Held(ArcSwap::from_pointee(key))))
    }

    pub(super) fn of_user(resolver: Arc<dyn ResolvesServerCert>) -> Arc<Self> {
        Arc::new(Self::OfUser(resolver))
    }

    /// Uses another identity from now on. Returns false if it is the same.
    ///
    /// # Errors
    ///
    /// Returns an error if key and certificate do not match, or the certificate has expired.
    pub(super) fn replace(&self, identity: &Identity) -> Result<bool, ConfigError> {
        let Self::Held(held) = self else {
            return Ok(false);
        };
        let key = certified(identity)?;
        if key.cert == held.load().cert {
            return Ok(false);
        }
        refuse_expired(&key, SystemTime::now())?;
        held.store(Arc::new(key));
        Ok(true)
    }

    pub(crate) fn facts(&self) -> Option<CertificateFacts> {
        match self {
            Self::Held(held) => CertificateFacts::of(&held.load()),
            Self::OfUser(_) => None,
        }
    }
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        match self {
            Self::Held(held) => Some(held.load_full()),
            Self::OfUser(resolver) => resolver.resolve(hello),
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
    let hours = past.as_secs().div_ceil(3600);
    Err(ConfigError::Identity(format!(
        "the new certificate expired {hours} h ago, allowed is one that is still valid"
    )))
}

/// Checks that certificate and key match.
fn certified(identity: &Identity) -> Result<CertifiedKey, ConfigError> {
    let parts = identity.clone().into_tls();
    CertifiedKey::from_der(parts.chain, parts.key, &aws_lc_rs::default_provider())
        .map_err(|error| ConfigError::Identity(error.to_string()))
}
