//! The files of an ACME account and its certificate.
//!
//! Each file is written beside the old one, synced and renamed, so that a full disk or a power failure leaves
//! the old one. A file that cannot be read is set aside, and the server obtains another account or certificate.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use aws_lc_rs::digest::{Context, SHA256};
use courser_quic::Identity;
use instant_acme::AccountCredentials;

use super::order::Issued;
use super::settings::Acme;
use crate::certificates::dev::write_private;
use crate::certificates::facts::CertificateFacts;
use crate::certificates::resolver::certified;

/// The folder of an account.
#[derive(Debug)]
pub(super) struct Store {
    account: PathBuf,
    certificate: PathBuf,
    refusals: PathBuf,
    names: Vec<String>,
}

/// A file that could not be read and was set aside.
#[derive(Debug)]
pub(super) struct SetAside {
    path: PathBuf,
    reason: String,
}

impl Store {
    pub(super) fn new(settings: &Acme) -> Self {
        let external = settings.external_account.as_ref();
        let account = tag([&*settings.directory, external.map_or("", |it| &*it.id)]);
        let mut names: Vec<String> = settings
            .names
            .iter()
            .map(|it| it.to_ascii_lowercase())
            .collect();
        names.sort_unstable();
        names.dedup();
        let profile = settings.profile.as_deref().unwrap_or_default();
        let fixed = [&*settings.directory, profile].into_iter();
        let certificate = tag(fixed.chain(names.iter().map(String::as_str)));
        let folder = &settings.folder;
        Self {
            account: folder.join(format!("account-{account}.json")),
            certificate: folder.join(format!("certificate-{certificate}.pem")),
            refusals: folder.join(format!("refusals-{certificate}.txt")),
            names,
        }
    }

    /// Returns the path of the certificate and its key.
    pub(super) fn certificate(&self) -> &Path {
        &self.certificate
    }

    /// Reads the account, if there is one.
    pub(super) fn read_account(&self) -> Result<Option<AccountCredentials>, SetAside> {
        self.read(&self.account, |bytes| {
            serde_json::from_slice(bytes).map_err(|error| error.to_string())
        })
    }

    pub(super) fn write_account(&self, account: &AccountCredentials) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(account).map_err(io::Error::other)?;
        write_private(&self.account, &text)
    }

    /// Moves the account away, so that another one is created.
    pub(super) fn drop_account(&self, reason: &str) -> SetAside {
        set_aside(&self.account, reason.to_owned())
    }

    /// Reads the certificate, if there is one for the names that is still valid.
    pub(super) fn read_certificate(&self) -> Result<Option<Identity>, SetAside> {
        let identity = self.read(&self.certificate, |bytes| {
            let identity = Identity::from_pem(bytes, bytes).map_err(|error| error.to_string())?;
            let facts = CertificateFacts::of_certificate(&identity.certificate());
            let facts = facts.ok_or("the certificate is malformed")?;
            certified(&identity).map_err(|error| error.to_string())?;
            let mut names: Vec<_> = facts
                .names
                .iter()
                .map(|it| it.to_ascii_lowercase())
                .collect();
            names.sort_unstable();
            if names != self.names {
                return Err(format!("it is for {}", names.join(", ")));
            }
            let is_valid = facts.not_after > SystemTime::now();
            Ok(is_valid.then_some(identity))
        })?;
        Ok(identity.flatten())
    }

    pub(super) fn write_certificate(&self, issued: &Issued) -> io::Result<()> {
        let Issued { chain, key } = issued;
        write_private(&self.certificate, format!("{key}{chain}").as_bytes())
    }

    /// Returns the times of refused orders. A missing or damaged file has none.
    pub(super) fn refusals(&self) -> Vec<SystemTime> {
        let text = fs::read_to_string(&self.refusals).unwrap_or_default();
        let seconds = text.lines().filter_map(|line| line.parse::<u32>().ok());
        seconds
            .map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.into()))
            .collect()
    }

    pub(super) fn write_refusals(&self, times: impl Iterator<Item = SystemTime>) -> io::Result<()> {
        let seconds = times.filter_map(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
        let lines: String = seconds.map(|it| format!("{}\n", it.as_secs())).collect();
        if lines.is_empty() {
            return match fs::remove_file(&self.refusals) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        write_private(&self.refusals, lines.as_bytes())
    }

    fn read<T>(
        &self,
        path: &Path,
        parse: impl FnOnce(&[u8]) -> Result<T, String>,
    ) -> Result<Option<T>, SetAside> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(set_aside(path, error.to_string())),
        };
        if bytes.is_empty() {
            return Err(set_aside(path, "it is empty".to_owned()));
        }
        match parse(&bytes) {
            Ok(parsed) => Ok(Some(parsed)),
            Err(reason) => Err(set_aside(path, reason)),
        }
    }
}

/// Renames a file, so that it is neither read again nor lost.
fn set_aside(path: &Path, reason: String) -> SetAside {
    let mut kept = path.as_os_str().to_owned();
    kept.push(".unusable");
    // If this fails, the new file replaces it.
    let _ = fs::rename(path, kept);
    SetAside {
        path: path.to_owned(),
        reason,
    }
}

impl fmt::Display for SetAside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cannot use {}: {}: it is set aside as {0}.unusable and replaced",
            self.path.display(),
            self.reason
        )
    }
}

/// Returns a part of a file name that distinguishes these texts.
fn tag<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(part.as_bytes());
        context.update(b"\n");
    }
    let hash = context.finish();
    hash.as_ref()[..6]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    fn store(name: &str) -> (Store, PathBuf) {
        let folder =
            std::env::temp_dir().join(format!("courser-acme-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        (
            Store::new(&Acme::new(["A.test", "b.test"], &folder)),
            folder,
        )
    }

    fn write(store: &Store, names: &[&str], days: i64) {
        let names: Vec<String> = names.iter().map(|&it| it.to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names");
        let now = SystemTime::now();
        params.not_before = (now - Duration::from_secs(86_400 * 100)).into();
        let day = Duration::from_secs(86_400);
        params.not_after = match days < 0 {
            true => (now - day).into(),
            false => (now + day).into(),
        };
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        let issued = Issued {
            chain: certificate.pem(),
            key: key.serialize_pem(),
        };
        store.write_certificate(&issued).expect("written");
    }

    #[test]
    fn certificate_is_found_again_for_the_same_names_only() {
        let (store, folder) = store("names");
        assert!(store.read_certificate().expect("no file").is_none());
        write(&store, &["b.test", "a.test"], 1);
        assert!(store.read_certificate().expect("a file").is_some());
        let other = Store::new(&Acme::new(["a.test"], &folder));
        assert!(other.read_certificate().expect("no file").is_none());
        let staging = Store::new(&Acme::new(["a.test", "b.test"], &folder).staging());
        assert!(staging.read_certificate().expect("no file").is_none());
        write(&store, &["a.test"], 1);
        let set_aside = store.read_certificate().expect_err("another name");
        assert!(
            set_aside.to_string().contains("it is for a.test"),
            "{set_aside}"
        );
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn expired_certificate_is_not_used() {
        let (store, folder) = store("expired");
        write(&store, &["a.test", "b.test"], -1);
        assert!(store.read_certificate().expect("a file").is_none());
        fs::remove_dir_all(folder).expect("removed");
    }

    /// A full disk leaves empty files if they are written in place.
    #[test]
    fn empty_and_damaged_files_are_set_aside() {
        let (store, folder) = store("empty");
        for content in ["", "{", "-----BEGIN CERTIFICATE-----"] {
            fs::write(&store.account, content).expect("written");
            let set_aside = store.read_account().err().expect("unusable");
            assert!(set_aside.to_string().contains(".unusable"), "{set_aside}");
            assert!(store.read_account().expect("no file any more").is_none());
            fs::write(&store.certificate, content).expect("written");
            store.read_certificate().expect_err("unusable");
            assert!(store.read_certificate().expect("no file").is_none());
        }
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn refusals_are_kept_and_removed() {
        let (store, folder) = store("refusals");
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        store.write_refusals([at].into_iter()).expect("written");
        assert_eq!(store.refusals(), [at]);
        for _twice in 0..2 {
            store.write_refusals(std::iter::empty()).expect("removed");
        }
        assert!(store.refusals().is_empty());
        fs::remove_dir_all(folder).expect("removed");
    }
}
