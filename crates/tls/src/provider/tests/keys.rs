//! Private keys: how they are loaded, what they sign, and the keys of packets.

use ::aws_lc_rs::encoding::AsDer as _;
use ::aws_lc_rs::signature::{
    ML_DSA_44_SIGNING, ML_DSA_65_SIGNING, ML_DSA_87_SIGNING, PqdsaKeyPair,
};
use rcgen::{KeyPair, RsaKeySize};
use rustls::Side;
use rustls::pki_types::{PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer};
use rustls::quic::{Keys, Version};

use super::*;

/// Keys of all kinds that rcgen makes, in PKCS#8.
pub(super) fn key_pairs() -> Vec<KeyPair> {
    let mut keys: Vec<_> = [
        &rcgen::PKCS_ECDSA_P256_SHA256,
        &rcgen::PKCS_ECDSA_P384_SHA384,
        &rcgen::PKCS_ECDSA_P521_SHA512,
        &rcgen::PKCS_ED25519,
    ]
    .map(|algorithm| KeyPair::generate_for(algorithm).unwrap())
    .into();
    keys.push(KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_2048).unwrap());
    keys
}

fn pkcs8(der: Vec<u8>) -> PrivateKeyDer<'static> {
    PrivatePkcs8KeyDer::from(der).into()
}

/// Returns the keys that our provider and that of rustls load.
fn load(key: &PrivateKeyDer<'_>) -> [Result<Arc<dyn SigningKey>, Error>; 2] {
    [default_provider(), reference::default_provider()]
        .map(|provider| provider.key_provider.load_private_key(key.clone_key()))
}

/// Checks that a key signs with the same schemes as with rustls, and that its signatures are valid.
fn check(key: &PrivateKeyDer<'_>) {
    let [ours, theirs] = load(key).map(Result::unwrap);
    let schemes = schemes_of(&*ours);
    assert!(
        !schemes.is_empty() && schemes == schemes_of(&*theirs),
        "{schemes:?}"
    );
    assert_eq!(ours.algorithm(), theirs.algorithm());
    assert_eq!(ours.public_key(), theirs.public_key());
    let chosen = |key: &dyn SigningKey| key.choose_scheme(&schemes).unwrap().scheme();
    assert_eq!(chosen(&*ours), chosen(&*theirs), "the preferred one");
    assert!(ours.choose_scheme(&[]).is_none());
    let public = ours.public_key().unwrap();
    for scheme in schemes {
        let signer = ours.choose_scheme(&[scheme]).unwrap();
        let signature = signer.sign(b"message").unwrap();
        let mapping = verification::ALGORITHMS.mapping;
        let (_, algorithms) = mapping.iter().find(|it| it.0 == scheme).unwrap();
        let raw = webpki::RawPublicKeyEntity::try_from(&public).unwrap();
        let verify = |message| raw.verify_signature(algorithms[0], message, &signature);
        assert!(verify(b"message").is_ok(), "{scheme:?}");
        assert!(verify(b"massage").is_err(), "{scheme:?}");
    }
}

#[test]
fn keys_sign_as_with_rustls() {
    for key in key_pairs() {
        check(&pkcs8(key.serialize_der()));
    }
}

#[test]
fn post_quantum_keys_sign_as_with_rustls() {
    for algorithm in [&ML_DSA_44_SIGNING, &ML_DSA_65_SIGNING, &ML_DSA_87_SIGNING] {
        let key = PqdsaKeyPair::generate(algorithm).unwrap();
        check(&pkcs8(key.to_pkcs8v1().unwrap().as_ref().to_vec()));
    }
}

#[test]
fn keys_are_loaded_from_their_own_formats_too() {
    let ecdsa = ::aws_lc_rs::signature::EcdsaKeyPair::generate(
        &::aws_lc_rs::signature::ECDSA_P256_SHA256_ASN1_SIGNING,
    );
    let sec1: ::aws_lc_rs::encoding::EcPrivateKeyRfc5915Der<'_> =
        ecdsa.unwrap().private_key().as_der().unwrap();
    let sec1 = PrivateSec1KeyDer::from(sec1.as_ref().to_vec());
    check(&sec1.into());
    let rsa = KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_2048).unwrap();
    // A PKCS#8 structure of RSA ends with the PKCS#1 structure; its header has 26 bytes (RFC 8017 §A.1).
    let pkcs1 = rsa.serialize_der()[26..].to_vec();
    check(&PrivatePkcs1KeyDer::from(pkcs1).into());
}

#[test]
fn other_bytes_are_no_key() {
    let key = key_pairs().remove(0).serialize_der();
    let cases = [
        pkcs8(Vec::new()),
        pkcs8(key[1..].to_vec()),
        PrivateSec1KeyDer::from(key[1..].to_vec()).into(),
        PrivatePkcs1KeyDer::from(key).into(),
    ];
    for case in cases {
        let [ours, theirs] = load(&case);
        assert!(theirs.is_err());
        let error = ours.unwrap_err().to_string();
        assert!(error.contains("cannot use the private key"), "{error}");
    }
}

#[test]
fn packets_of_quic_are_those_of_rustls() {
    for (ours, theirs) in suites() {
        let (Some(ours), Some(theirs)) = (ours.tls13(), theirs.tls13()) else {
            continue;
        };
        let keys = |suite: &'static rustls::Tls13CipherSuite, side| {
            Keys::initial(Version::V1, suite, suite.quic.unwrap(), b"connection", side)
        };
        let (sender, reference) = (keys(ours, Side::Client), keys(theirs, Side::Client));
        let receiver = keys(ours, Side::Server);
        let header = [0xc3, 0, 0, 0, 1];
        let mut payload = b"a packet with a payload of some bytes".to_vec();
        let mut expected = payload.clone();
        let tag = sender
            .local
            .packet
            .encrypt_in_place(7, &header, &mut payload);
        let other = reference
            .local
            .packet
            .encrypt_in_place(7, &header, &mut expected);
        payload.extend_from_slice(tag.unwrap().as_ref());
        expected.extend_from_slice(other.unwrap().as_ref());
        assert_eq!(payload, expected);
        let opener = &receiver.remote.packet;
        assert_eq!(opener.tag_len(), 16);
        let limits = |keys: &Keys| {
            let key = &keys.local.packet;
            (
                key.confidentiality_limit().min(1 << 62),
                key.integrity_limit(),
            )
        };
        assert_eq!(limits(&sender), limits(&reference));
        assert!(
            opener
                .decrypt_in_place(8, &header, &mut payload.clone())
                .is_err()
        );
        let opened = opener.decrypt_in_place(7, &header, &mut payload).unwrap();
        assert_eq!(opened, b"a packet with a payload of some bytes");
        check_headers(&sender, &reference, &receiver);
        check_paths(&sender, &reference, &receiver);
    }
}

fn check_headers(sender: &Keys, reference: &Keys, receiver: &Keys) {
    let sample = [0x5a; 16];
    assert_eq!(sender.local.header.sample_len(), sample.len());
    for first in [0xc0, 0xc3, 0x40, 0x43, 0x5d] {
        let (mut byte, mut number) = (first, [1, 2, 3, 4]);
        let (mut expected, mut expected_number) = (byte, number);
        let key = &sender.local.header;
        key.encrypt_in_place(&sample, &mut byte, &mut number)
            .unwrap();
        let key = &reference.local.header;
        key.encrypt_in_place(&sample, &mut expected, &mut expected_number)
            .unwrap();
        assert_eq!((byte, number), (expected, expected_number), "{first:x}");
        let key = &receiver.remote.header;
        key.decrypt_in_place(&sample, &mut byte, &mut number)
            .unwrap();
        assert_eq!((byte, number), (first, [1, 2, 3, 4]), "{first:x}");
        assert!(
            key.decrypt_in_place(&sample[1..], &mut byte, &mut number)
                .is_err()
        );
        assert!(
            key.decrypt_in_place(&sample, &mut byte, &mut [0; 5])
                .is_err()
        );
    }
}

fn check_paths(sender: &Keys, reference: &Keys, receiver: &Keys) {
    let mut payload = *b"multipath";
    let mut expected = payload;
    let key = &sender.local.packet;
    let tag = key.encrypt_in_place_for_path(3, 9, b"header", &mut payload);
    let key = &reference.local.packet;
    let other = key.encrypt_in_place_for_path(3, 9, b"header", &mut expected);
    let mut packet = [&payload[..], tag.unwrap().as_ref()].concat();
    assert_eq!(packet, [&expected[..], other.unwrap().as_ref()].concat());
    let key = &receiver.remote.packet;
    let opened = key.decrypt_in_place_for_path(3, 9, b"header", &mut packet);
    assert_eq!(opened.unwrap(), b"multipath");
}
