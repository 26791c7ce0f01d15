//! Warnings about certificates that expire or are replaced while the server runs.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{CertificateParams, KeyPair};

use super::running::admin;
use super::serving::Serving;
use crate::common::Folder;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Writes a certificate for these names, which began 80 days ago and is valid for this many days more, and its key.
fn write(folder: &Folder, names: &[&str], days: u32) -> (String, String) {
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).expect("names");
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = rcgen::date_time_ymd(1970, 1, 1) + now.expect("after 1970");
    (params.not_before, params.not_after) = (now - 80 * DAY, now + days * DAY);
    let key = KeyPair::generate().expect("random numbers");
    let certificate = params.self_signed(&key).expect("signed");
    let key = folder.file("key.pem", &key.serialize_pem());
    (folder.file("cert.pem", &certificate.pem()), key)
}

/// Reads events until one of this kind has this text.
fn wait_for(serving: &mut Serving, kind: &str, text: &str) {
    loop {
        let event = serving.next_of_all_events();
        let has_text = event["text"].as_str().is_some_and(|it| it.contains(text));
        if event["event"] == kind && has_text {
            return;
        }
    }
}

/// Fault F135.
#[test]
fn certificates_that_expire_soon_and_replaced_ones_are_reported() {
    let folder = Folder::new();
    let (cert, key) = write(&folder, &["localhost"], 10);
    let path = folder.path().to_str().expect("UTF-8").to_owned();
    let arguments = [
        "serve",
        &path,
        "--listen",
        "127.0.0.1:0",
        "--json",
        "--admin",
        "127.0.0.1:0",
        "--cert",
        &cert,
        "--key",
        &key,
    ];
    let mut serving = Serving::run(&arguments, Folder::new());
    wait_for(
        &mut serving,
        "certificate_expires",
        "for localhost expires in 10 days",
    );
    let (_, metrics) = admin(&serving, "/metrics");
    assert!(
        metrics.contains("\ncourser_certificates_expiring 1"),
        "{metrics}"
    );
    write(&folder, &[], 300);
    wait_for(&mut serving, "warning", "has no subject alternative name");
    let (_, metrics) = admin(&serving, "/metrics");
    assert!(
        metrics.contains("\ncourser_certificates_expiring 0"),
        "{metrics}"
    );
}
