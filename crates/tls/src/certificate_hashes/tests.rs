use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::pki_types::UnixTime;

use super::*;

/// Returns a certificate that is valid from the first day of a month to another day.
fn certificate(last_day: u8, key: &KeyPair) -> CertificateDer<'static> {
    let mut params = CertificateParams::new(["a.test".to_owned()]).expect("a name");
    params.not_before = date_time_ymd(2026, 12, 1);
    params.not_after = date_time_ymd(2026, 12, last_day);
    params
        .self_signed(key)
        .expect("a certificate")
        .der()
        .clone()
}

fn hash(certificate: &[u8]) -> [u8; 32] {
    let hash = digest(&SHA256, certificate);
    hash.as_ref().try_into().expect("32 bytes")
}

fn verify(certificate: &CertificateDer<'_>, hashes: &[[u8; 32]], now: u64) -> Result<(), String> {
    let verifier = CertificateHashVerifier::new(hashes.iter().copied()).expect("hashes");
    let name = ServerName::try_from("other.test").expect("a name");
    let now = UnixTime::since_unix_epoch(Duration::from_secs(now));
    let verified = verifier.verify_server_cert(certificate, &[], &name, &[], now);
    verified.map(drop).map_err(|error| error.to_string())
}

/// The 2nd of December 2026.
const SECOND: u64 = 1_796_169_600;

/// W3C WebTransport §6.10, K670.
#[test]
fn only_short_certificates_with_a_known_hash_are_trusted() {
    let key = KeyPair::generate().expect("a key");
    let short = certificate(15, &key);
    let known = hash(&short);
    assert_eq!(verify(&short, &[[0; 32], known], SECOND), Ok(()));
    let other = verify(&short, &[[0; 32]], SECOND).expect_err("another hash");
    assert!(other.contains("none of those that are trusted"), "{other}");
    let hex: String = known.iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(other.contains(&hex), "{other}");
    let early = verify(&short, &[known], SECOND - 2 * 86_400);
    assert!(early.expect_err("early").contains("NotValidYet"));
    let late = verify(&short, &[known], SECOND + 20 * 86_400);
    assert!(late.expect_err("late").contains("Expired"));
    let long = certificate(16, &key);
    let error = verify(&long, &[hash(&long)], SECOND).expect_err("too long");
    assert!(error.contains("15 days and 0 hours"), "{error}");
}

#[test]
fn other_keys_are_refused() {
    for algorithm in [&rcgen::PKCS_ECDSA_P384_SHA384, &rcgen::PKCS_ED25519] {
        let key = KeyPair::generate_for(algorithm).expect("a key");
        let certificate = certificate(10, &key);
        let error = verify(&certificate, &[hash(&certificate)], SECOND);
        let error = error.expect_err("another key");
        assert!(error.contains("ECDSA on P-256"), "{error}");
    }
    assert!(CertificateHashVerifier::new([]).is_err());
}
