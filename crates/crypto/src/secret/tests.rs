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
fn chacha20_keys_match_rfc_9369_a5() {
    let secret = chacha_secret().of_version(VERSION_2);
    let labels = secret.labels;
    for (label, len, expected) in [
        (
            labels.key(),
            32,
            "3bfcddd72bcf02541d7fa0dd1f5f9eeea817e09a6963a0e6c7df0f9a1bab90f2",
        ),
        (labels.iv(), 12, "a6b5bc6ab7dafce30ffff5dd"),
        (
            labels.header(),
            32,
            "d659760d2ba434a226fd37b35c69e2da8211d10c4f12538787d65645d5d1b8e2",
        ),
    ] {
        assert_eq!(expanded(&secret, label, len), expected);
    }
    assert_eq!(
        hex_of(secret.next().as_bytes()),
        "c69374c49e3d2a9466fa689e49d476db5d0dfbc87d32ceeaa6343fd0ae4c7d88"
    );
}

#[test]
fn short_header_packet_matches_rfc_9369_a5() {
    let keys = chacha_secret().of_version(VERSION_2).keys();
    let mut packet = [&hex("4200bff4")[..], &[1], &[0; crate::TAG_LEN]].concat();
    keys.packet.seal_packet(654_360_564, &mut packet, 4);
    crate::header_protection::protect(&keys.header, &mut packet, 1, 3);
    assert_eq!(
        hex_of(&packet),
        "5558b1c60ae7b6b932bc27d786f4bc2bb20f2162ba"
    );
}

#[test]
fn updated_secrets_keep_the_labels_of_the_version() {
    let update = |version| chacha_secret().of_version(version).next().next();
    assert_eq!(update(VERSION_2).labels, Labels::V2);
    assert_ne!(
        update(VERSION_2).as_bytes(),
        update(courser_wire::VERSION_1).as_bytes()
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
