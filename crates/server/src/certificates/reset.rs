//! Keys of stateless resets that are kept across restarts.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};
use courser_quic::hooks::IdentityHooks;
use courser_quic::{ConfigError, Identity};

use super::dev::{make_folder, write_private};

/// The secret from which the keys of stateless resets are derived for each address.
///
/// After a crash, a server with the same key can reset its former connections at once (RFC 9000 §10.3.2).
/// Servers that run at the same time must have different keys: a reset that one sends for an unknown ID would
/// end a connection of the other (RFC 9000 §21.11). Servers with the same certificate are distinguished by
/// address and machine.
#[derive(Clone)]
pub(crate) struct ResetSecret {
    secret: [u8; 32],
    machine: Vec<u8>,
}

impl ResetSecret {
    /// Uses a secret of the user, who must ensure that no other server has it.
    pub(crate) const fn from_user(secret: [u8; 32]) -> Self {
        Self {
            secret,
            machine: Vec::new(),
        }
    }

    /// Derives the secret from the private key of a certificate. Returns `None` if the machine cannot be
    /// identified, because several machines may have this key.
    pub(crate) fn from_identity(identity: &Identity) -> Option<Self> {
        let key = identity.clone().into_tls().key;
        Some(Self {
            secret: derive(b"courser stateless reset", key.secret_der(), &[]),
            machine: machine()?,
        })
    }

    /// Reads the secret from the file `reset.key` of 32 bytes in this folder. Creates the file if it is missing.
    pub(crate) fn in_folder(folder: &Path) -> Result<Self, ConfigError> {
        let secret = read_or_create(&folder.join("reset.key")).map_err(|error| {
            let folder = folder.display();
            ConfigError::Identity(format!(
                "cannot read_or_create a reset key in {folder}: {error}"
            ))
        })?;
        Ok(Self {
            secret,
            machine: machine().unwrap_or_default(),
        })
    }

    /// Returns the key for an address of the server, or `None` if the system chooses the port, which differs
    /// after a restart.
    pub(crate) fn key_for(&self, address: SocketAddr) -> Option<[u8; 32]> {
        let address = (address.port() != 0).then(|| address.to_string())?;
        let info = [self.machine.as_slice(), b"\n", address.as_bytes()];
        Some(derive(b"courser stateless reset key", &self.secret, &info))
    }
}

impl fmt::Debug for ResetSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The secret is omitted, so that it does not reach logs.
        f.debug_struct("ResetSecret").finish_non_exhaustive()
    }
}

/// Derives a key with HKDF and SHA-256 (RFC 5869).
fn derive(label: &[u8], secret: &[u8], info: &[&[u8]]) -> [u8; 32] {
    let mut key = [0; 32];
    Salt::new(HKDF_SHA256, label)
        .extract(secret)
        .expand(info, HKDF_SHA256)
        .and_then(|material| material.fill(&mut key))
        .expect("32 bytes are one block of SHA-256");
    key
}

fn read_or_create(path: &Path) -> io::Result<[u8; 32]> {
    if !path.exists() {
        let mut new = [0; 32];
        aws_lc_rs::rand::fill(&mut new).map_err(io::Error::other)?;
        if let Some(folder) = path.parent() {
            make_folder(folder)?;
        }
        write_private(path, &new)?;
    }
    // Read even if it was just created, because another process may have replaced it.
    let kept = std::fs::read(path)?;
    let len = kept.len();
    kept.try_into().map_err(|_| {
        let name = path.display();
        io::Error::other(format!(
            "{name} has {len} bytes instead of 32: remove it, and another one is created"
        ))
    })
}

/// Returns the systemd machine ID and the host name, which is unique for each container. They distinguish
/// machines with the same certificate.
fn machine() -> Option<Vec<u8>> {
    let parts = ["/etc/machine-id", "/proc/sys/kernel/hostname"]
        .map(|path| std::fs::read(path).unwrap_or_default());
    let known = parts.concat();
    (!known.trim_ascii().is_empty()).then_some(known)
}

#[cfg(test)]
mod tests;
