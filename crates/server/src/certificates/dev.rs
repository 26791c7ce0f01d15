//! A development certificate that browsers accept by its hash, in memory or kept across restarts.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use courser_quic::{ConfigError, Identity};
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256};

use super::facts::CertificateFacts;

/// A development certificate, which is renewed before it expires.
#[derive(Debug)]
pub(crate) struct DevCertificate {
    /// The folder with the certificate and its key; `None` in memory.
    folder: Option<PathBuf>,
    names: Vec<String>,
    /// The key of the last certificate that was created here. Later ones have it too, so that the hash of the public
    /// key stays the same.
    key: Option<KeyPair>,
    not_after: SystemTime,
}

impl DevCertificate {
    /// Reads the certificate in a folder, or creates one there. Without a folder it is only in memory.
    pub(super) fn open(
        folder: Option<&Path>,
        names: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<(Self, Identity), ConfigError> {
        let mut all: Vec<String> = LOCAL_NAMES.map(str::to_owned).to_vec();
        for name in names.into_iter().map(Into::into) {
            if !all.contains(&name) {
                all.push(name);
            }
        }
        let mut dev = Self {
            folder: folder.map(Path::to_owned),
            names: all,
            key: None,
            not_after: SystemTime::UNIX_EPOCH,
        };
        let identity = match dev.read() {
            Some(identity) => identity,
            None => dev.create(SystemTime::now())?,
        };
        Ok((dev, identity))
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
            None => self.create(SystemTime::now()).map(Some),
        }
    }

    /// Reads the certificate of the folder if it can still be used.
    fn read(&mut self) -> Option<Identity> {
        let (chain, key) = paths(self.folder.as_deref()?);
        let identity = Identity::from_pem_files(chain, key).ok()?;
        let facts = CertificateFacts::of_certificate(&identity.certificate())?;
        self.not_after = facts.not_after;
        let is_valid = facts.not_before <= SystemTime::now() && !self.is_old();
        (is_valid && facts.names == self.names).then_some(identity)
    }

    fn create(&mut self, now: SystemTime) -> Result<Identity, ConfigError> {
        let unusable = |error: &dyn std::fmt::Display| ConfigError::Identity(error.to_string());
        let key = match self.key.take() {
            Some(key) => key,
            None => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(|e| unusable(&e))?,
        };
        let mut params = CertificateParams::new(self.names.clone()).map_err(|e| unusable(&e))?;
        // By default the number is derived from the key, which later certificates have too. Whole seconds would be equal
        // for servers that start together, and browsers refuse two certificates with one issuer and one number.
        let nanos = now.duration_since(SystemTime::UNIX_EPOCH);
        let nanos = u64::try_from(nanos.unwrap_or_default().as_nanos());
        params.serial_number = Some(nanos.unwrap_or(u64::MAX).into());
        // Clocks of clients may be slightly behind.
        params.not_before = (now - CLOCK_SKEW).into();
        params.not_after = (now + VALID_FOR).into();
        let certificate = params.self_signed(&key).map_err(|e| unusable(&e))?;
        self.not_after = now + VALID_FOR;
        let (chain_text, key_text) = (certificate.pem(), key.serialize_pem());
        if let Some(folder) = &self.folder {
            keep(folder, &chain_text, &key_text).map_err(|error| {
                let folder = folder.display();
                ConfigError::Identity(format!("cannot keep the certificate in {folder}: {error}"))
            })?;
        }
        self.key = Some(key);
        Identity::from_pem(chain_text.as_bytes(), key_text.as_bytes())
    }
}

fn keep(folder: &Path, chain: &str, key: &str) -> std::io::Result<()> {
    let (chain_path, key_path) = paths(folder);
    make_folder(folder)?;
    write_private(&key_path, key.as_bytes())?;
    write_private(&chain_path, chain.as_bytes())
}

fn paths(folder: &Path) -> (PathBuf, PathBuf) {
    (folder.join("cert.pem"), folder.join("key.pem"))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the serial number of a certificate, which follows its version.
    fn serial(identity: &Identity) -> Vec<u8> {
        let der = identity.certificate();
        let after_version = [0xa0, 3, 2, 1, 2, 2];
        let at = der.windows(6).position(|it| it == after_version);
        let (len, rest) = der[at.expect("version 3") + 6..].split_at(1);
        rest[..usize::from(len[0])].to_vec()
    }

    #[test]
    fn certificates_of_servers_that_start_together_have_different_serial_numbers() {
        let create = || DevCertificate::open(None, ["box.test"]).expect("a certificate");
        let serials: Vec<_> = (0..4).map(|_| serial(&create().1)).collect();
        for (index, serial) in serials.iter().enumerate() {
            assert!(!serials[..index].contains(serial), "{serials:x?}");
        }
    }

    #[test]
    fn certificate_in_memory_is_renewed_with_its_key() {
        let (mut dev, first) = DevCertificate::open(None, ["box.test"]).expect("a certificate");
        assert!(!dev.is_old());
        assert!(dev.renew_if_old().expect("no change").is_none());
        let facts = |identity: &Identity| {
            CertificateFacts::of_certificate(&identity.certificate()).expect("readable")
        };
        let first = facts(&first);
        assert_eq!(first.names, ["localhost", "127.0.0.1", "::1", "box.test"]);
        let later = SystemTime::now() - VALID_FOR;
        let old = facts(&dev.create(later).expect("a certificate"));
        assert!(dev.is_old());
        let renewed = dev.renew_if_old().expect("a certificate").expect("renewed");
        let renewed = facts(&renewed);
        assert!(!dev.is_old());
        assert_eq!(old.spki_sha256, renewed.spki_sha256);
        assert_ne!(old.sha256, renewed.sha256);
        assert_eq!(first.spki_sha256, renewed.spki_sha256);
        let validity = renewed.not_after.duration_since(renewed.not_before);
        assert!(validity.expect("in order") < 14 * DAY);
    }
}
