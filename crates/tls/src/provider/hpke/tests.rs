use rustls::crypto::aws_lc_rs::hpke::ALL_SUPPORTED_SUITES;

use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    digits
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// RFC 9180 §A.2.1: base mode with X25519, HKDF-SHA256 and ChaCha20-Poly1305, first message.
#[test]
fn messages_are_those_of_the_rfc() {
    let suite = Suite(Kem::X25519, Aead::ChaCha20Poly1305);
    let ephemeral = bytes("f4ec9b33b792c372c1d2c2063507b684ef925b8c75a42dbcbf57d63ccd381600");
    let ephemeral = PrivateKey::from_private_key(&agreement::X25519, &ephemeral).unwrap();
    let public = bytes("4310ee97d88cc1f088a5576c77ab0cf5c3ac797f3d95139c6c84b5429c59662a");
    let private = bytes("8057991eef8f1f1af18f4a9491d16a1ce333f695d4db8e38da75975c4478e0fb");
    let encapsulated = bytes("1afa08d3dec047a643885163f1180476fa7ddb54c6a8029ea33f95796bf2ac4a");
    let info = bytes("4f6465206f6e2061204772656369616e2055726e");
    let aad = bytes("436f756e742d30");
    let plaintext = bytes("4265617574792069732074727574682c20747275746820626561757479");
    let ciphertext = bytes(concat!(
        "1c5250d8034ec2b784ba2cfd69dbdb8af406cfe3ff938e131f0def8c8b60b4db",
        "21993c62ce81883d2dd1b51a28"
    ));
    let receiver = HpkePublicKey(public);
    let (sent, mut sealer) = suite.sealer(&ephemeral, &info, &receiver).unwrap();
    assert_eq!(sent.0, encapsulated);
    assert_eq!(sealer.seal(&aad, &plaintext).unwrap(), ciphertext);
    let opened = suite.open(&sent, &info, &aad, &ciphertext, &private.into());
    assert_eq!(opened.unwrap(), plaintext);
}

#[test]
fn all_suites_work_with_those_of_rustls_in_both_directions() {
    assert_eq!(ALL_SUPPORTED_SUITES.len(), SUITES.len());
    for theirs in ALL_SUPPORTED_SUITES {
        let case = theirs.suite();
        let ours = SUITES.iter().find(|ours| ours.suite() == case).unwrap();
        let ours: &dyn Hpke = ours;
        for (sender, receiver) in [(ours, *theirs), (*theirs, ours)] {
            let (public, private) = receiver.generate_key_pair().unwrap();
            let (encapsulated, mut sealer) = sender.setup_sealer(b"info", &public).unwrap();
            let opener = receiver.setup_opener(&encapsulated, b"info", &private);
            let mut opener = opener.unwrap();
            for message in [&b"first"[..], b"", b"third"] {
                let sealed = sealer.seal(b"aad", message).unwrap();
                assert_eq!(opener.open(b"aad", &sealed).unwrap(), message, "{case:?}");
            }
        }
    }
}

#[test]
fn changed_messages_and_invalid_keys_are_refused() {
    let suite = Suite(Kem::P256, Aead::Aes128Gcm);
    let (public, private) = suite.generate_key_pair().unwrap();
    let (encapsulated, sealed) = suite.seal(b"info", b"aad", b"text", &public).unwrap();
    let opened = suite.open(&encapsulated, b"info", b"aad", &sealed, &private);
    assert_eq!(opened.unwrap(), b"text");
    for (info, aad) in [(b"other", &b"aad"[..]), (b"info ", b"aad"), (b"info ", b"")] {
        assert!(
            suite
                .open(&encapsulated, info, aad, &sealed, &private)
                .is_err()
        );
    }
    let point = HpkePublicKey(vec![4; 65]);
    assert!(
        suite.seal(b"info", b"aad", b"text", &point).is_err(),
        "not on the curve"
    );
    let short = HpkePrivateKey::from(vec![1; 31]);
    assert!(
        suite
            .open(&encapsulated, b"info", b"aad", &sealed, &short)
            .is_err()
    );
}

#[test]
fn nonces_are_not_repeated() {
    let suite = Suite(Kem::X25519, Aead::Aes128Gcm);
    let mut context = suite.context(&Zeroizing::new(vec![7; 32]), b"info");
    let first = context.seal(b"", b"text").unwrap();
    assert_ne!(context.seal(b"", b"text").unwrap(), first);
    context.sequence = u64::MAX;
    assert!(context.seal(b"", b"text").is_err());
}
