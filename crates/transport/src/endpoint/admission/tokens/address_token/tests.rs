use std::collections::HashSet;

use super::*;

const NOW: SystemSeconds = SystemSeconds(1_800_000_000);

fn rng() -> Rng {
    Rng::new([1; 32])
}

fn key() -> TokenKey {
    TokenKey::new(&[2; 32])
}

fn filter() -> TokenFilter {
    TokenFilter::new(1000, NOW)
}

fn peer() -> SocketAddr {
    "192.0.2.7:4242".parse().unwrap()
}

fn id(len: usize) -> ConnectionId {
    ConnectionId::new(&[0xab; ConnectionId::MAX_LEN][..len]).unwrap()
}

fn retry() -> RetryToken {
    RetryToken {
        address: peer(),
        original_destination: id(8),
        retry_source: id(12),
        version: Version::V1,
        issued: NOW,
    }
}

fn sealed_retry() -> Vec<u8> {
    retry().seal(&key(), &mut rng())
}

fn sealed_validation() -> Vec<u8> {
    ValidationToken::new(ScopedIp::of(peer()), Version::V1, NOW, &mut rng())
        .seal(&key(), &mut rng())
}

/// Returns a correct answer to a Retry, with `token`.
fn presented(token: &[u8]) -> Presented<'_> {
    Presented {
        token,
        peer: peer(),
        destination: id(12),
        version: Version::V1,
        now: NOW,
        lifetimes: Lifetimes {
            retry: RETRY_LIFETIME,
            validation: VALIDATION_LIFETIME,
        },
    }
}

fn judge(presented: &Presented<'_>) -> AddressProof {
    presented.judge(&key(), &filter())
}

fn is_validation(proof: AddressProof) -> bool {
    matches!(proof, AddressProof::Validation(_))
}

#[test]
fn retry_token_validates_the_address_and_contains_the_ids() {
    assert_eq!(
        judge(&presented(&sealed_retry())),
        AddressProof::Retry(retry())
    );
}

#[test]
fn validation_token_validates_the_address() {
    assert!(is_validation(judge(&presented(&sealed_validation()))));
}

#[test]
fn tokens_contain_ids_and_addresses_of_every_kind() {
    for address in [
        "0.0.0.0:0",
        "255.255.255.255:65535",
        "[::]:1",
        "[2001:db8::7]:443",
        "[fe80::7%4294967295]:443",
    ] {
        let address: SocketAddr = address.parse().unwrap();
        for len in 0..=ConnectionId::MAX_LEN {
            let token = RetryToken {
                address,
                original_destination: id(len),
                retry_source: id(ConnectionId::MAX_LEN - len),
                version: Version::V1,
                issued: SystemSeconds(u64::MAX),
            };
            let sealed = token.seal(&key(), &mut rng());
            assert_eq!(sealed.len(), RetryToken::LEN);
            assert_eq!(RetryToken::open(&key(), &sealed), Some(token));
        }
        let token = ValidationToken::new(ScopedIp::of(address), Version::V1, NOW, &mut rng());
        let sealed = token.seal(&key(), &mut rng());
        assert_eq!(sealed.len(), ValidationToken::LEN);
        assert_eq!(ValidationToken::open(&key(), &sealed), Some(token));
    }
}

#[test]
fn tokens_are_invalid_in_another_version() {
    for (issuer, other) in [(Version::V1, Version::V2), (Version::V2, Version::V1)] {
        let retry = RetryToken {
            version: issuer,
            ..retry()
        };
        let sealed = retry.seal(&key(), &mut rng());
        let (own, foreign) = [issuer, other]
            .map(|version| Presented {
                version,
                ..presented(&sealed)
            })
            .into();
        assert_eq!(judge(&own), AddressProof::Retry(retry));
        assert_eq!(judge(&foreign), AddressProof::InvalidRetry, "RFC 9369 §4.1");
        let token = ValidationToken::new(ScopedIp::of(peer()), issuer, NOW, &mut rng());
        let sealed = token.seal(&key(), &mut rng());
        let (own, foreign) = [issuer, other]
            .map(|version| Presented {
                version,
                ..presented(&sealed)
            })
            .into();
        assert_eq!(judge(&own), AddressProof::Validation(token));
        assert_eq!(judge(&foreign), AddressProof::None, "RFC 9369 §5");
    }
}

/// A link-local address is that of another host on another link (RFC 4007 §6).
#[test]
fn tokens_are_valid_only_in_the_zone_of_their_address() {
    let [own, other, none] = ["[fe80::7%2]:4242", "[fe80::7%3]:4242", "[fe80::7]:4242"]
        .map(|text| text.parse::<SocketAddr>().unwrap());
    let retry = RetryToken {
        address: own,
        ..retry()
    };
    let token = ValidationToken::new(ScopedIp::of(own), Version::V1, NOW, &mut rng());
    let sealed = [
        retry.seal(&key(), &mut rng()),
        token.seal(&key(), &mut rng()),
    ];
    let judged = |peer| {
        sealed.each_ref().map(|token| {
            judge(&Presented {
                peer,
                ..presented(token)
            })
        })
    };
    let proofs = [AddressProof::Retry(retry), AddressProof::Validation(token)];
    assert_eq!(judged(own), proofs);
    for peer in [other, none] {
        let nothing = [AddressProof::InvalidRetry, AddressProof::None];
        assert_eq!(judged(peer), nothing, "{peer}");
    }
    // A flow label is no part of the address.
    let SocketAddr::V6(mut labelled) = own else {
        unreachable!("it is IPv6")
    };
    labelled.set_flowinfo(0x12345);
    assert_eq!(judged(labelled.into()), proofs);
}

#[test]
fn each_kind_of_token_is_accepted_only_as_that_kind() {
    let (retry, validation) = (sealed_retry(), sealed_validation());
    assert_eq!(ValidationToken::open(&key(), &retry), None);
    assert_eq!(RetryToken::open(&key(), &validation), None);
    assert_ne!(retry[0], validation[0]);
    let mut relabelled = retry;
    relabelled[0] = VALIDATION;
    assert_eq!(judge(&presented(&relabelled)), AddressProof::None);
    let mut relabelled = validation;
    relabelled[0] = RETRY;
    assert_eq!(judge(&presented(&relabelled)), AddressProof::None);
}

/// The label is authenticated, even if the length is right.
#[test]
fn label_is_authenticated() {
    let mut token = seal(
        VALIDATION,
        &[0; RetryToken::CONTENT_LEN],
        &key(),
        &mut rng(),
    );
    token[0] = RETRY;
    assert_eq!(judge(&presented(&token)), AddressProof::InvalidRetry);
}

#[test]
fn empty_token_validates_nothing() {
    assert_eq!(judge(&presented(&[])), AddressProof::None);
}

#[test]
fn every_flipped_bit_is_detected() {
    let sealed = sealed_retry();
    for bit in 0..8 * sealed.len() {
        let mut wrong = sealed.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        let expected = if bit < 8 {
            AddressProof::None
        } else {
            AddressProof::InvalidRetry
        };
        assert_eq!(
            judge(&presented(&wrong)),
            expected,
            "bit {bit} of a Retry token"
        );
    }
    let sealed = sealed_validation();
    for bit in 0..8 * sealed.len() {
        let mut wrong = sealed.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(
            judge(&presented(&wrong)),
            AddressProof::None,
            "bit {bit} of a NEW_TOKEN token"
        );
    }
}

#[test]
fn tokens_of_other_lengths_are_invalid() {
    for whole in [sealed_retry(), sealed_validation()] {
        for len in (0..=600).filter(|&len| len != whole.len()) {
            let mut wrong = whole.clone();
            wrong.resize(len, 0);
            assert_eq!(judge(&presented(&wrong)), AddressProof::None, "{len} bytes");
        }
    }
}

#[test]
fn random_tokens_of_all_lengths_are_invalid() {
    let mut rng = rng();
    for len in 0..=600 {
        for first in [RETRY, VALIDATION, 0, 0xff] {
            let mut token = vec![0; len];
            rng.fill(&mut token);
            if let Some(byte) = token.first_mut() {
                *byte = first;
            }
            let expected = match (first, len) {
                (RETRY, RetryToken::LEN) => AddressProof::InvalidRetry,
                _ => AddressProof::None,
            };
            assert_eq!(
                judge(&presented(&token)),
                expected,
                "{len} bytes, first {first:#x}"
            );
        }
    }
}

#[test]
fn tokens_of_another_key_are_invalid() {
    let other = TokenKey::new(&[3; 32]);
    let (retry, validation) = (sealed_retry(), sealed_validation());
    assert_eq!(
        presented(&retry).judge(&other, &filter()),
        AddressProof::InvalidRetry
    );
    assert_eq!(
        presented(&validation).judge(&other, &filter()),
        AddressProof::None
    );
}

#[test]
fn retry_token_of_another_address_or_port_is_invalid() {
    let sealed = sealed_retry();
    for peer in ["192.0.2.8:4242", "192.0.2.7:4243", "[2001:db8::7]:4242"] {
        let presented = Presented {
            peer: peer.parse().unwrap(),
            ..presented(&sealed)
        };
        assert_eq!(judge(&presented), AddressProof::InvalidRetry, "{peer}");
    }
}

#[test]
fn validation_token_of_another_address_is_invalid() {
    let sealed = sealed_validation();
    for peer in ["192.0.2.8:4242", "[2001:db8::7]:4242"] {
        let presented = Presented {
            peer: peer.parse().unwrap(),
            ..presented(&sealed)
        };
        assert_eq!(judge(&presented), AddressProof::None, "{peer}");
    }
}

#[test]
fn validation_token_of_another_port_is_valid() {
    let sealed = sealed_validation();
    let presented = Presented {
        peer: "192.0.2.7:9".parse().unwrap(),
        ..presented(&sealed)
    };
    assert!(is_validation(judge(&presented)));
}

#[test]
fn mapped_address_equals_its_ipv4_address() {
    let mapped = "[::ffff:192.0.2.7]:4242".parse().unwrap();
    for sealed in [sealed_retry(), sealed_validation()] {
        let presented = Presented {
            peer: mapped,
            ..presented(&sealed)
        };
        let proof = judge(&presented);
        assert!(
            matches!(proof, AddressProof::Retry(_) | AddressProof::Validation(_)),
            "{proof:?}"
        );
    }
    let retry = RetryToken {
        address: mapped,
        ..retry()
    }
    .seal(&key(), &mut rng());
    assert!(matches!(judge(&presented(&retry)), AddressProof::Retry(_)));
}

#[test]
fn retry_token_of_another_connection_is_invalid() {
    let sealed = sealed_retry();
    let presented = Presented {
        destination: id(8),
        ..presented(&sealed)
    };
    assert_eq!(judge(&presented), AddressProof::InvalidRetry);
}

#[test]
fn retry_token_is_valid_for_ten_seconds() {
    let sealed = sealed_retry();
    for (age, is_good) in [(0, true), (10, true), (11, false), (1_000_000, false)] {
        let presented = Presented {
            now: SystemSeconds(NOW.0 + age),
            ..presented(&sealed)
        };
        let proof = judge(&presented);
        let expected = if is_good {
            AddressProof::Retry(retry())
        } else {
            AddressProof::InvalidRetry
        };
        assert_eq!(proof, expected, "after {age} s");
    }
}

#[test]
fn validation_token_is_valid_for_a_day() {
    let sealed = sealed_validation();
    for (age, is_good) in [(86_400, true), (86_401, false), (1_000_000, false)] {
        let presented = Presented {
            now: SystemSeconds(NOW.0 + age),
            ..presented(&sealed)
        };
        let proof = judge(&presented);
        assert_eq!(is_validation(proof), is_good, "after {age} s");
    }
}

#[test]
fn token_from_the_future_is_invalid() {
    for (ahead, is_good) in [(10, true), (11, false), (NOW.0, false)] {
        let now = SystemSeconds(NOW.0 - ahead);
        let (retry, validation) = (sealed_retry(), sealed_validation());
        let is_retry = matches!(
            judge(&Presented {
                now,
                ..presented(&retry)
            }),
            AddressProof::Retry(_)
        );
        let is_validation = is_validation(judge(&Presented {
            now,
            ..presented(&validation)
        }));
        assert_eq!(
            (is_retry, is_validation),
            (is_good, is_good),
            "{ahead} s ahead"
        );
    }
}

#[test]
fn validation_token_is_valid_once() {
    let (key, mut filter, sealed) = (key(), filter(), sealed_validation());
    let proofs = (0..10_000).map(|_| {
        let proof = presented(&sealed).judge(&key, &filter);
        proof.claim(&mut filter, NOW)
    });
    assert_eq!(proofs.filter(|&proof| is_validation(proof)).count(), 1);
}

#[test]
fn token_that_is_checked_twice_is_claimed_once() {
    let (key, mut filter, sealed) = (key(), filter(), sealed_validation());
    let [one, other] = [(); 2].map(|()| presented(&sealed).judge(&key, &filter));
    assert!(is_validation(one) && is_validation(other));
    assert!(is_validation(one.claim(&mut filter, NOW)));
    assert_eq!(other.claim(&mut filter, NOW), AddressProof::None);
}

/// A check that fails for another reason leaves the token unused. Otherwise observers of the token
/// could use it up.
#[test]
fn token_from_the_wrong_address_is_not_used_up() {
    let (key, mut filter, sealed) = (key(), filter(), sealed_validation());
    let thief = Presented {
        peer: "198.51.100.1:1".parse().unwrap(),
        ..presented(&sealed)
    };
    let proof = thief.judge(&key, &filter).claim(&mut filter, NOW);
    assert_eq!(proof, AddressProof::None);
    assert!(is_validation(presented(&sealed).judge(&key, &filter)));
}

/// A client may send its Initial again. The token is bound to address, connection ID and ten
/// seconds, so repeating it gains nothing.
#[test]
fn retry_token_is_valid_for_every_initial_of_its_attempt() {
    let (key, mut filter, sealed) = (key(), filter(), sealed_retry());
    for _ in 0..10_000 {
        let proof = presented(&sealed).judge(&key, &filter);
        let proof = proof.claim(&mut filter, NOW);
        assert_eq!(proof, AddressProof::Retry(retry()));
    }
}

/// Tokens for one client differ in all places, and so do their contents.
#[test]
fn tokens_are_unique_and_unlinkable() {
    let (key, mut rng) = (key(), rng());
    let tokens: Vec<_> = (0..10_000)
        .map(|_| {
            ValidationToken::new(ScopedIp::of(peer()), Version::V1, NOW, &mut rng)
                .seal(&key, &mut rng)
        })
        .collect();
    assert_eq!(tokens.iter().collect::<HashSet<_>>().len(), tokens.len());
    for place in 1..ValidationToken::LEN {
        let values: HashSet<_> = tokens.iter().map(|token| token[place]).collect();
        assert_eq!(values.len(), 256, "byte {place}");
    }
}

#[test]
fn contents_with_impossible_lengths_are_refused() {
    let mut content = [0; RetryToken::CONTENT_LEN];
    content[IP_LEN + 2] = 21;
    let sealed = seal(RETRY, &content, &key(), &mut rng());
    assert_eq!(RetryToken::open(&key(), &sealed), None);
    assert_eq!(judge(&presented(&sealed)), AddressProof::InvalidRetry);
}

#[test]
fn contents_of_another_length_are_refused() {
    let sealed = seal(RETRY, &[0; RetryToken::CONTENT_LEN + 1], &key(), &mut rng());
    assert_eq!(RetryToken::open(&key(), &sealed), None);
    let sealed = seal(
        VALIDATION,
        &[0; ValidationToken::CONTENT_LEN + 1],
        &key(),
        &mut rng(),
    );
    assert_eq!(ValidationToken::open(&key(), &sealed), None);
}
