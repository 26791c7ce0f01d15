use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use super::*;

/// A temporary folder, removed when dropped.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("courser-certificates-{}-{number}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn dev_certificates(folder: &Folder, names: &[&str]) -> Certificates {
    Certificates::dev_in(&folder.0, names.iter().copied()).expect("a certificate")
}

#[test]
fn kept_certificate_is_the_same_after_a_restart() {
    let folder = Folder::new();
    let first = dev_certificates(&folder, &[]).facts().expect("readable");
    let second = dev_certificates(&folder, &[]).facts().expect("readable");
    assert_eq!(first, second);
    assert_eq!(first.names, ["localhost", "127.0.0.1", "::1"]);
}

#[test]
fn kept_certificate_is_short_enough_for_browsers() {
    let folder = Folder::new();
    let facts = dev_certificates(&folder, &[]).facts().expect("readable");
    let validity = facts.not_after.duration_since(facts.not_before);
    let validity = validity.expect("not_after is later");
    assert!(validity <= Duration::from_secs(14 * 86_400), "{validity:?}");
    assert!(facts.not_before < SystemTime::now());
}

#[test]
fn other_names_need_another_certificate() {
    let folder = Folder::new();
    let first = dev_certificates(&folder, &[]).facts().expect("readable");
    let second = dev_certificates(&folder, &["box.example"])
        .facts()
        .expect("readable");
    assert_ne!(first.spki_sha256, second.spki_sha256);
    assert!(second.names.contains(&"box.example".to_owned()));
}

#[cfg(unix)]
#[test]
fn kept_key_is_readable_only_by_its_owner() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    drop(dev_certificates(&folder, &[]));
    let mode = |path: &std::path::Path| {
        let metadata = std::fs::metadata(path).expect("the file exists");
        metadata.permissions().mode() & 0o777
    };
    assert_eq!(mode(&folder.0), 0o700);
    assert_eq!(mode(&folder.0.join("key.pem")), 0o600);
}

#[test]
fn damaged_kept_certificate_is_replaced() {
    let folder = Folder::new();
    let first = dev_certificates(&folder, &[]).facts().expect("readable");
    std::fs::write(folder.0.join("cert.pem"), "no certificate")
        .expect("write access to the test folder");
    let second = dev_certificates(&folder, &[]).facts().expect("readable");
    assert_ne!(first.spki_sha256, second.spki_sha256);
}

#[test]
fn folder_that_cannot_be_created_is_reported() {
    let error = Certificates::dev_in("/proc/missing", [""; 0]).expect_err("not writable");
    assert!(error.to_string().contains("/proc/missing"), "{error}");
}

#[test]
fn key_of_another_certificate_is_refused() {
    let (one, other) = (Folder::new(), Folder::new());
    drop((dev_certificates(&one, &[]), dev_certificates(&other, &[])));
    let mixed = Certificates::pem_files(one.0.join("cert.pem"), other.0.join("key.pem"));
    assert!(mixed.is_err());
}

#[test]
fn files_are_read_again_only_when_they_have_changed() {
    let (one, other) = (Folder::new(), Folder::new());
    drop((dev_certificates(&one, &[]), dev_certificates(&other, &[])));
    let path = |folder: &Folder, name: &str| folder.0.join(name);
    let mut certificates = Certificates::pem_files(path(&one, "cert.pem"), path(&one, "key.pem"))
        .expect("certificate and key match");
    let before = certificates.facts().expect("readable");
    assert!(!certificates.sources.first.may_have_changed());
    for name in ["cert.pem", "key.pem"] {
        std::fs::rename(path(&other, name), path(&one, name))
            .expect("write access to the test folder");
    }
    assert!(certificates.sources.first.may_have_changed());
    let resolver = certificates.resolver.clone();
    assert_eq!(certificates.sources.reload(&resolver), Ok(true));
    assert_ne!(certificates.facts().expect("readable"), before);
    assert!(!certificates.sources.first.may_have_changed());
    assert_eq!(certificates.sources.reload(&resolver), Ok(false));
}

/// Writes a certificate that is valid in these years.
fn write(folder: &Folder, years: std::ops::Range<i32>) {
    let key = rcgen::KeyPair::generate().expect("random numbers");
    let mut params = rcgen::CertificateParams::new(["localhost".to_owned()]).expect("a name");
    params.not_before = rcgen::date_time_ymd(years.start, 1, 1);
    params.not_after = rcgen::date_time_ymd(years.end, 1, 1);
    let certificate = params.self_signed(&key).expect("signed");
    std::fs::create_dir_all(&folder.0).expect("temporary files");
    std::fs::write(folder.0.join("cert.pem"), certificate.pem())
        .expect("write access to the test folder");
    std::fs::write(folder.0.join("key.pem"), key.serialize_pem())
        .expect("write access to the test folder");
}

#[test]
fn expired_certificate_does_not_replace_the_current_one() {
    let folder = Folder::new();
    write(&folder, 2020..4000);
    let (chain, key) = (folder.0.join("cert.pem"), folder.0.join("key.pem"));
    let mut certificates = Certificates::pem_files(chain, key).expect("certificate and key match");
    let resolver = certificates.resolver.clone();
    let before = certificates.facts().expect("readable");

    write(&folder, 2019..2020);
    let error = certificates.sources.reload(&resolver);
    let error = error.expect_err("it has expired").to_string();
    assert!(
        error.contains("expired") && error.contains("still valid"),
        "{error}"
    );
    assert_eq!(certificates.facts().expect("readable"), before);

    write(&folder, 2021..4000);
    assert_eq!(certificates.sources.reload(&resolver), Ok(true));
    assert_ne!(certificates.facts().expect("readable"), before);
}

/// It remains in use, because an error would not help.
#[test]
fn certificate_that_expires_in_use_is_no_error() {
    let folder = Folder::new();
    write(&folder, 2019..2020);
    let (chain, key) = (folder.0.join("cert.pem"), folder.0.join("key.pem"));
    let mut certificates = Certificates::pem_files(chain, key).expect("certificate and key match");
    let resolver = certificates.resolver.clone();
    assert_eq!(certificates.sources.reload(&resolver), Ok(false));
}
