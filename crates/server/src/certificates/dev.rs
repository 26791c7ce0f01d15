//! A development certificate that is kept across restarts.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use courser_quic::{ConfigError, Identity};
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256};

use super::facts::CertificateFacts;

/// A folder with a development certificate and its key.
#[derive(Debug)]
pub(crate) struct DevCertificate {
    folder: PathBuf,
    names: Vec<String>,
    not_after: SystemTime,
}

impl DevCertificate {
    pub(super) fn open(
        folder: &Path,
        names: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<(Self, Identity), ConfigError> {
        let mut all: Vec<String> = LOCAL_NAMES.map(str::to_owned).to_vec();
        for name in names.into_iter().map(Into::into) {
            if !all.contains(&name) {
                all.push(name);
            }
        }
        let mut kept = Self {
            folder: folder.to_owned(),
            names: all,
            not_after: SystemTime::UNIX_EPOCH,
        };
        let identity = match kept.read() {
            Some(identity) => identity,
            None => kept.create()?,
        };
        Ok((kept, identity))
    }

    pub(super) fn is_old(&self) -> bool {
        SystemTime::now() + RENEW_BEFORE >= self.not_after
    }

    pub(super) fn renew_if_old(&mut self) -> Result<Option<Identity>, ConfigError> {
        if !self.is_old() {
            return Ok(None);
        }
        // Another process that uses the folder may have renewed it already.
        match self.read() {
            Some(identity) => Ok(Some(identity)),
            None => self.create().map(Some),
        }
    }

    /// Reads the certificate if it can still be used.
    fn read(&mut self) -> Option<Identity> {
        let (chain, key) = self.paths();
        let identity = Identity::from_pem_files(chain, key).ok()?;
        let facts = CertificateFacts::of_certificate(&identity.certificate())?;
        self.not_after = facts.not_after;
        let is_valid = facts.not_before <= SystemTime::now() && !self.is_old();
        (is_valid && facts.names == self.names).then_some(identity)
    }

    fn create(&mut self) -> Result<Identity, ConfigError> {
        let unusable = |error: &dyn std::fmt::Display| ConfigError::Identity(error.to_string());
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(|e| unusable(&e))?;
        let mut params = CertificateParams::new(self.names.clone()).map_err(|e| unusable(&e))?;
        let now = SystemTime::now();
        // Clocks of clients may be slightly behind.
        params.not_before = (now - CLOCK_SKEW).into();
        params.not_after = (now + VALID_FOR).into();
        let certificate = params.self_signed(&key).map_err(|e| unusable(&e))?;
        self.not_after = now + VALID_FOR;
        let (chain_text, key_text) = (certificate.pem(), key.serialize_pem());
        let (chain_path, key_path) = self.paths();
        let written = make_folder(&self.folder)
            .and_then(|()| write_private(&key_path, key_text.as_bytes()))
            .and_then(|()| write_private(&chain_path, chain_text.as_bytes()));
        written.map_err(|error| {
            ConfigError::Identity(format!(
                "cannot keep the certificate in {}: {error}",
                self.folder.display()
            ))
        })?;
        Identity::from_pem(chain_text.as_bytes(), key_text.as_bytes())
    }

    fn paths(&self) -> (PathBuf, PathBuf) {
        (self.folder.join("cert.pem"), self.folder.join("key.pem"))
    }
}

/// Creates a folder that only its owner can access.
pub(crate) fn make_folder(path: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)
}

/// Writes a file atomically, with access for its owner only. If that fails, for example because the disk is full,
/// the old file stays as it is.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let new = path.with_extension(format!("new-{}", std::process::id()));
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&new).and_then(|mut file| {
        file.write_all(bytes)?;
        // Before it is renamed, so that a power failure leaves the old file or the new one.
        file.sync_all()
    });
    let replaced = written.and_then(|()| std::fs::rename(&new, path));
    if replaced.is_err() {
        let _ = std::fs::remove_file(&new);
    }
    replaced
}

const LOCAL_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// With the hour before, less than the 14 days that browsers accept by hash.
const VALID_FOR: Duration = Duration::from_secs(13 * 24 * 60 * 60);
const RENEW_BEFORE: Duration = Duration::from_secs(2 * DAY.as_secs());
const CLOCK_SKEW: Duration = Duration::from_secs(60 * 60);
