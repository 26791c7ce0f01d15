//! The certificate that is in use, shared by QUIC and TCP.

use std::sync::Arc;
use std::time::SystemTime;

use arc_swap::ArcSwap;
use courser_tls::rustls::crypto::aws_lc_rs;
use courser_tls::rustls::server::{ClientHello, ResolvesServerCert};
use courser_tls::rustls::sign::CertifiedKey;

use super::facts::CertificateFacts;
use crate::{ConfigError, Identity};

/// Answers every handshake.
#[derive(Debug)]
pub(in crate::server) enum Resolver {
    /// With this one, whatever name was asked for.
    Held(ArcSwap<CertifiedKey>),
    /// As somebody else says.
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

    /// Takes another identity from now on. False when it is the same.
    ///
    /// # Errors
    ///
    /// When key and certificate do not fit together, or the certificate has expired.
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

    pub(in crate::server) fn facts(&self) -> Option<CertificateFacts> {
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

/// A server that has a certificate keeps it rather than one that every client refuses. Certificates
/// that cannot be read are left to the clients.
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

/// Checks that certificate and key belong together.
fn certified(identity: &Identity) -> Result<CertifiedKey, ConfigError> {
    let parts = identity.clone().into_tls();
    CertifiedKey::from_der(parts.chain, parts.key, &aws_lc_rs::default_provider())
        .map_err(|error| ConfigError::Identity(error.to_string()))
}
