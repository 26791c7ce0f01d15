//! Keys of stateless resets that survive a restart.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};
use courser_quic::hooks::IdentityHooks;
use courser_quic::{ConfigError, Identity};

use super::kept::{make_folder, write_private};

/// The secret from which the keys of stateless resets are derived, one for each address.
///
/// After a crash, a server with the same key can reset its former connections at once (RFC 9000
/// §10.3.2). Servers that run at the same time must have different keys: a reset that one sends for
/// an unknown ID would end a connection of the other (RFC 9000 §21.11). The address and the machine
/// distinguish servers with one certificate.
#[derive(Clone)]
pub(crate) struct ResetSecret {
    secret: [u8; 32],
    machine: Vec<u8>,
}

impl ResetSecret {
    /// Uses a secret of the user, who ensures that no other server has it.
    pub(crate) const fn of_user(secret: [u8; 32]) -> Self {
        Self {
            secret,
            machine: Vec::new(),
        }
    }

    /// Derives it from the private key of a certificate. Returns `None` where machines cannot be
    /// distinguished, because several may have this key.
    pub(crate) fn of_identity(identity: &Identity) -> Option<Self> {
        let key = identity.clone().into_tls().key;
        Some(Self {
            secret: derive(b"courser stateless reset", key.secret_der(), &[]),
            machine: machine()?,
        })
    }

    /// Reads it from `reset.key` in this folder, 32 bytes, which is created if missing.
    pub(crate) fn kept_in(folder: &Path) -> Result<Self, ConfigError> {
        let secret = keep(&folder.join("reset.key")).map_err(|error| {
            let folder = folder.display();
            ConfigError::Identity(format!("cannot keep a reset key in {folder}: {error}"))
        })?;
        Ok(Self {
            secret,
            machine: machine().unwrap_or_default(),
        })
    }

    /// Returns the key for an address of the server; `None` if the system chooses the port, which
    /// will differ next time.
    pub(crate) fn key_for(&self, address: SocketAddr) -> Option<[u8; 32]> {
        let address = (address.port() != 0).then(|| address.to_string())?;
        let info = [self.machine.as_slice(), b"\n", address.as_bytes()];
        Some(derive(b"courser stateless reset key", &self.secret, &info))
    }
}

impl fmt::Debug for ResetSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The secret is left out, so that it does not reach logs.
        f.debug_struct("ResetSecret").finish_non_exhaustive()
    }
}

/// Derives a key by HKDF with SHA-256 (RFC 5869).
fn derive(label: &[u8], secret: &[u8], info: &[&[u8]]) -> [u8; 32] {
    let mut key = [0; 32];
    Salt::new(HKDF_SHA256, label)
        .extract(secret)
        .expand(info, HKDF_SHA256)
        .and_then(|material| material.fill(&mut key))
        .expect("32 bytes are one block of SHA-256");
    key
}

fn keep(path: &Path) -> io::Result<[u8; 32]> {
    if !path.exists() {
        let mut made = [0; 32];
        aws_lc_rs::rand::fill(&mut made).map_err(io::Error::other)?;
        if let Some(folder) = path.parent() {
            make_folder(folder)?;
        }
        write_private(path, &made)?;
    }
    // Read even when just created, because another process may have written it last.
    let kept = std::fs::read(path)?;
    let len = kept.len();
    kept.try_into().map_err(|_| {
        let name = path.display();
        io::Error::other(format!(
            "{name} has {len} bytes instead of 32: remove it to have another one made"
        ))
    })
}

/// Returns what distinguishes this machine from others with the same certificate: its systemd
/// machine ID and its host name, which is unique for each container.
fn machine() -> Option<Vec<u8>> {
    let parts = ["/etc/machine-id", "/proc/sys/kernel/hostname"]
        .map(|path| std::fs::read(path).unwrap_or_default());
    let known = parts.concat();
    (!known.trim_ascii().is_empty()).then_some(known)
}

#[cfg(test)]
mod tests;
