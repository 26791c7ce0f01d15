#[cfg(not(feature = "fips"))]
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::crypto::aws_lc_rs::{self as reference, ALL_KX_GROUPS};
use rustls::crypto::tls13::OkmBlock;
use rustls::{SignatureScheme, SupportedCipherSuite};

use super::*;

mod handshakes;
mod keys;

/// All groups, with those that are not default.
const ALL_GROUPS: [&dyn SupportedKxGroup; 7] = [
    X25519_ML_KEM_768,
    P256_ML_KEM_768,
    X25519,
    P256,
    P384,
    ML_KEM_768,
    ML_KEM_1024,
];

/// Returns each suite of ours with that of rustls.
fn suites() -> Vec<(SupportedCipherSuite, SupportedCipherSuite)> {
    let theirs = reference::default_provider().cipher_suites;
    let pair = |ours: SupportedCipherSuite| {
        let is_same = |it: &&SupportedCipherSuite| it.suite() == ours.suite();
        (ours, *theirs.iter().find(is_same).unwrap())
    };
    default_provider()
        .cipher_suites
        .into_iter()
        .map(pair)
        .collect()
}

// A FIPS build has fewer.
#[cfg(not(feature = "fips"))]
#[test]
fn algorithms_are_those_of_rustls_in_the_same_order() {
    let (ours, theirs) = (default_provider(), reference::default_provider());
    let suites = |provider: &CryptoProvider| -> Vec<_> {
        let suites = provider.cipher_suites.iter();
        suites.map(|suite| suite.suite()).collect()
    };
    let groups = |provider: &CryptoProvider| -> Vec<_> {
        provider
            .kx_groups
            .iter()
            .map(|group| group.name())
            .collect()
    };
    assert_eq!(suites(&ours), suites(&theirs));
    assert_eq!(groups(&ours), groups(&theirs));
    let schemes = |provider: &CryptoProvider| {
        let algorithms = provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    };
    assert_eq!(schemes(&ours), schemes(&theirs));
    let (ours, theirs) = (
        ours.signature_verification_algorithms,
        theirs.signature_verification_algorithms,
    );
    let ids = |algorithms: &WebPkiSupportedAlgorithms| -> Vec<_> {
        let all = algorithms.all.iter();
        all.map(|it| (it.public_key_alg_id(), it.signature_alg_id()))
            .collect()
    };
    assert_eq!(ids(&ours), ids(&theirs));
    for (ours, theirs) in ours.mapping.iter().zip(theirs.mapping) {
        let keys =
            |algorithms: &[&'static dyn rustls::pki_types::SignatureVerificationAlgorithm]| {
                let all = algorithms.iter();
                all.map(|it| it.public_key_alg_id()).collect::<Vec<_>>()
            };
        assert_eq!(keys(ours.1), keys(theirs.1), "{:?}", ours.0);
    }
}

#[test]
fn limits_of_suites_are_those_of_rustls() {
    for (ours, theirs) in suites() {
        match (ours, theirs) {
            (SupportedCipherSuite::Tls13(ours), SupportedCipherSuite::Tls13(theirs)) => {
                assert_eq!(common(&ours.common), common(&theirs.common));
            }
            (SupportedCipherSuite::Tls12(ours), SupportedCipherSuite::Tls12(theirs)) => {
                assert_eq!(common(&ours.common), common(&theirs.common));
                assert_eq!(ours.sign, theirs.sign, "{ours:?}");
            }
            _ => panic!("{ours:?} and {theirs:?}"),
        }
    }
}

fn common(common: &rustls::crypto::CipherSuiteCommon) -> (rustls::CipherSuite, usize, u64) {
    let hash = common.hash_provider.output_len();
    (common.suite, hash, common.confidentiality_limit)
}

#[test]
fn hashes_and_keys_are_those_of_rustls() {
    for (ours, theirs) in suites() {
        let (Some(ours), Some(theirs)) = (ours.tls13(), theirs.tls13()) else {
            continue;
        };
        let hash = |suite: &rustls::Tls13CipherSuite| {
            let mut context = suite.common.hash_provider.start();
            context.update(b"one");
            let mut fork = context.fork();
            fork.update(b"two");
            let at_once = suite.common.hash_provider.hash(b"onetwo");
            assert_eq!(fork.fork_finish().as_ref(), at_once.as_ref());
            assert_ne!(context.finish().as_ref(), at_once.as_ref());
            fork.finish().as_ref().to_vec()
        };
        assert_eq!(hash(ours), hash(theirs));
        let schedule = |suite: &rustls::Tls13CipherSuite| {
            let hkdf = suite.hkdf_provider;
            let early = hkdf.extract_from_zero_ikm(None);
            let early = early.expand_block(&[b"label", b"context"]);
            let master = hkdf.extract_from_secret(Some(early.as_ref()), b"shared");
            let mut output = [0; 100];
            master.expand_slice(&[b"a", b"bc"], &mut output).unwrap();
            let mut again = [0; 12];
            let expander = hkdf.expander_for_okm(&early);
            expander.expand_slice(&[], &mut again).unwrap();
            let key = OkmBlock::new(&output[..master.hash_len()]);
            let tag = hkdf.hmac_sign(&key, b"message");
            let mut long = vec![0; 255 * master.hash_len() + 1];
            assert!(master.expand_slice(&[], &mut long).is_err());
            [&output[..], &again, tag.as_ref()].concat()
        };
        assert_eq!(schedule(ours), schedule(theirs));
    }
}

#[test]
fn secrets_of_tls12_are_those_of_rustls() {
    for (ours, theirs) in suites() {
        let (SupportedCipherSuite::Tls12(ours), SupportedCipherSuite::Tls12(theirs)) =
            (ours, theirs)
        else {
            continue;
        };
        let derive = |suite: &rustls::Tls12CipherSuite| {
            let mut output = [0; 104];
            suite
                .prf_provider
                .for_secret(&mut output, b"secret", b"label", b"seed");
            output
        };
        assert_eq!(derive(ours), derive(theirs));
    }
}

#[test]
fn groups_agree_with_those_of_rustls_in_both_directions() {
    for ours in ALL_GROUPS {
        let name = ours.name();
        let theirs = ALL_KX_GROUPS.iter().find(|it| it.name() == name).unwrap();
        for (client, server) in [(ours, *theirs), (*theirs, ours)] {
            let exchange = client.start().unwrap();
            assert_eq!(exchange.group(), name);
            let answer = server.start_and_complete(exchange.pub_key()).unwrap();
            let secret = exchange.complete(&answer.pub_key).unwrap();
            assert_eq!(
                secret.secret_bytes(),
                answer.secret.secret_bytes(),
                "{name:?}"
            );
        }
        let versions = [
            rustls::ProtocolVersion::TLSv1_2,
            rustls::ProtocolVersion::TLSv1_3,
        ];
        for version in versions {
            let usable = [ours, *theirs].map(|group| group.usable_for_version(version));
            assert_eq!(usable[0], usable[1], "{name:?} {version:?}");
        }
    }
}

#[test]
fn key_of_a_hybrid_serves_for_its_curve_alone() {
    for (hybrid, curve) in [(X25519_ML_KEM_768, X25519), (P256_ML_KEM_768, P256)] {
        let exchange = hybrid.start().unwrap();
        let (name, key) = exchange.hybrid_component().unwrap();
        assert_eq!(name, curve.name());
        let answer = curve.start_and_complete(key).unwrap();
        let secret = exchange.complete_hybrid_component(&answer.pub_key).unwrap();
        assert_eq!(secret.secret_bytes(), answer.secret.secret_bytes());
    }
}

#[test]
fn invalid_key_shares_are_refused() {
    for group in ALL_GROUPS {
        let name = group.name();
        let good = group.start().unwrap().pub_key().to_vec();
        let mut cases = vec![Vec::new(), good[1..].to_vec(), [&good[..], &[0]].concat()];
        cases.push(vec![0; good.len()]);
        if group.name() == P256.name() {
            // A compressed point, which is on the curve.
            let sign = 2 + (good[64] & 1);
            cases.push([&[sign], &good[1..33]].concat());
        }
        for share in cases {
            // All bytes 0 are a key of ML-KEM.
            let is_kem = good.len() > 97 && share.len() == good.len();
            if !is_kem || group.name() == X25519_ML_KEM_768.name() {
                let error = group.start_and_complete(&share).err();
                assert_eq!(error, Some(agreement::INVALID_KEY_SHARE), "{name:?}");
            }
            if share.len() != good.len() || !is_kem {
                let error = group.start().unwrap().complete(&share).err();
                assert_eq!(error, Some(agreement::INVALID_KEY_SHARE), "{name:?}");
            }
        }
    }
}

#[test]
fn random_numbers_differ() {
    let provider = default_provider();
    let mut bytes = [[0; 32]; 2];
    for bytes in &mut bytes {
        provider.secure_random.fill(bytes).unwrap();
    }
    assert_ne!(bytes[0], bytes[1]);
}

#[test]
fn fips_is_claimed_only_by_a_fips_module() {
    let is_fips = cfg!(feature = "fips");
    assert_eq!(default_provider().fips(), is_fips);
    assert_eq!(crate::Cryptography::default().is_fips(), is_fips);
}

/// The schemes of the key types, for tests of keys.
fn schemes_of(key: &dyn SigningKey) -> Vec<SignatureScheme> {
    let all = verification::ALGORITHMS.supported_schemes();
    let all = all.into_iter();
    all.filter(|&scheme| key.choose_scheme(&[scheme]).is_some())
        .collect()
}
