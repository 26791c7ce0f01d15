use super::*;

#[test]
fn failures_up_to_the_limit_are_tolerated() {
    let mut counter = ForgeryCounter::with_limit(3);
    assert_eq!(
        [(); 5].map(|()| counter.on_failure()),
        [false, false, false, true, true]
    );
    assert_eq!(counter.failures(), 5);
}

#[test]
fn limits_match_rfc_9001() {
    assert_eq!(CipherSuite::Aes128Gcm.integrity_limit(), 1 << 52);
    assert_eq!(CipherSuite::Aes256Gcm.integrity_limit(), 1 << 52);
    assert_eq!(CipherSuite::ChaCha20Poly1305.integrity_limit(), 1 << 36);
    assert_eq!(CipherSuite::Aes128Gcm.confidentiality_limit(), 1 << 23);
    assert_eq!(CipherSuite::Aes256Gcm.confidentiality_limit(), 1 << 23);
    assert!(CipherSuite::ChaCha20Poly1305.confidentiality_limit() >= 1 << 62);
}

#[test]
fn count_survives_the_negotiation_of_a_suite() {
    let mut counter = ForgeryCounter::default();
    assert!(!counter.on_failure());
    counter.on_suite(CipherSuite::ChaCha20Poly1305);
    assert_eq!(counter.failures(), 1);
    assert_eq!(counter.limit, 1 << 36);
    counter.on_suite(CipherSuite::Aes128Gcm);
    assert_eq!(counter.limit, 1 << 36);
}
