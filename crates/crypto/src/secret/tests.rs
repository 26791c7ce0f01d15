use super::*;
use crate::testing::{SUITES, hex, hex_of, secret};

/// Expands a label like the key derivation and returns the bytes, which keys do not expose, to
/// compare them with RFC 9001.
fn expanded(secret: &Secret, label: &[u8], len: usize) -> String {
    let mut out = vec![0; len];
    secret.expand(label, &mut out);
    hex_of(&out)
}

fn chacha_secret() -> Secret {
    let bytes = hex("9ac312a7f877468ebe69422748ad00a15443f18203a07d6060f688f30f21632b");
    Secret::new(CipherSuite::ChaCha20Poly1305, &bytes)
}

#[test]
fn chacha20_keys_match_rfc_9001_a5() {
    let secret = chacha_secret();
    assert_eq!(
        expanded(&secret, b"quic key", 32),
        "c6d98ff3441c3fe1b2182094f69caa2ed4b716b65488960a7a984979fb23e1c8"
    );
    assert_eq!(
        expanded(&secret, b"quic iv", 12),
        "e0459b3474bdd0e44a41c144"
    );
    assert_eq!(
        expanded(&secret, b"quic hp", 32),
        "25a282b9e82f06f21f488917a4fc8f1b73573685608597d0efcb076b0ab7a7a4"
    );
}

#[test]
fn key_update_secret_matches_rfc_9001_a5() {
    assert_eq!(
        hex_of(chacha_secret().next().as_bytes()),
        "1223504755036d556342ee9361d253421a826c9ecdf3c7148684b36b714881f9"
    );
}

#[test]
fn every_suite_derives_keys_of_its_own_length() {
    for suite in SUITES {
        let secret = secret(suite, 7);
        let keys = secret.keys();
        assert_eq!(keys.packet.suite(), suite, "{suite}");
        assert_eq!(
            secret.next().as_bytes().len(),
            suite.hash().output_len(),
            "{suite}"
        );
    }
}

#[test]
#[should_panic(expected = "as long as the hash")]
fn secret_of_wrong_length_is_refused() {
    Secret::new(CipherSuite::Aes256Gcm, &[0; 32]);
}

#[test]
fn debug_output_shows_no_secret_byte() {
    let secret = secret(CipherSuite::Aes128Gcm, 0xab);
    let shown = format!("{secret:?} {:?}", secret.keys());
    assert!(!shown.contains("ab, ") && !shown.contains("171"), "{shown}");
}
