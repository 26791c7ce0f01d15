//! Keys of stateless resets that survive a restart.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};

use super::certificates::{make_folder, write_private};
use crate::{ConfigError, Identity};

/// What the keys of stateless resets are derived from, one for each address listened on.
///
/// With the same key after a crash a server can tell its former clients at once that it has
/// forgotten them (RFC 9000 §10.3.2). No two servers that run at the same time may have the same
/// one: the reset that one sends for an ID it does not know would end a connection of the other
/// (RFC 9000 §21.11). The address and the machine stand between servers with one certificate.
#[derive(Clone)]
pub(super) struct ResetSecret {
    secret: [u8; 32],
    machine: Vec<u8>,
}

impl ResetSecret {
    /// One of the user's own, who knows that no other server has it.
    pub(super) const fn of_user(secret: [u8; 32]) -> Self {
        Self {
            secret,
            machine: Vec::new(),
        }
    }

    /// From the private key of a certificate; `None` where machines cannot be told apart, since
    /// several may have this key.
    pub(super) fn of_identity(identity: &Identity) -> Option<Self> {
        let key = identity.clone().into_tls().key;
        Some(Self {
            secret: derive(b"courser stateless reset", key.secret_der(), &[]),
            machine: machine()?,
        })
    }

    /// Kept in this folder as `reset.key`, 32 bytes; made when there is none.
    pub(super) fn kept_in(folder: &Path) -> Result<Self, ConfigError> {
        let secret = keep(&folder.join("reset.key")).map_err(|error| {
            let folder = folder.display();
            ConfigError::Identity(format!("cannot keep a reset key in {folder}: {error}"))
        })?;
        Ok(Self {
            secret,
            machine: machine().unwrap_or_default(),
        })
    }

    /// The key for an address that is listened on; `None` when the system is to choose the port,
    /// which will be another one next time.
    pub(super) fn key_for(&self, address: SocketAddr) -> Option<[u8; 32]> {
        let address = (address.port() != 0).then(|| address.to_string())?;
        let info = [self.machine.as_slice(), b"\n", address.as_bytes()];
        Some(derive(b"courser stateless reset key", &self.secret, &info))
    }
}

impl fmt::Debug for ResetSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The secret stays out of logs.
        f.debug_struct("ResetSecret").finish_non_exhaustive()
    }
}

/// HKDF with SHA-256 (RFC 5869).
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
    // Read even when just made: another process may have been at it too, and last.
    let kept = std::fs::read(path)?;
    let len = kept.len();
    kept.try_into().map_err(|_| {
        let name = path.display();
        io::Error::other(format!(
            "{name} has {len} bytes instead of 32: remove it to have another one made"
        ))
    })
}

/// What tells this machine from others that may have the same certificate: the identity that
/// systemd gives it, and its name, which containers have of their own.
fn machine() -> Option<Vec<u8>> {
    let parts = ["/etc/machine-id", "/proc/sys/kernel/hostname"]
        .map(|path| std::fs::read(path).unwrap_or_default());
    let known = parts.concat();
    (!known.trim_ascii().is_empty()).then_some(known)
}

#[cfg(test)]
mod tests;
