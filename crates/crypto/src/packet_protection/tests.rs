use super::*;
use crate::testing::{SUITES, hex, hex_of, secret};
use crate::{Secret, header_protection};
use courser_wire::PathId;

const HEADER: &[u8] = b"some header";

fn sealed(key: &PacketKey, number: u64, header: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut packet = [header, payload, &[0; TAG_LEN]].concat();
    key.seal_packet(number, &mut packet, header.len());
    packet.split_off(header.len())
}

#[test]
fn short_header_packet_matches_rfc_9001_a5() {
    let bytes = hex("9ac312a7f877468ebe69422748ad00a15443f18203a07d6060f688f30f21632b");
    let keys = Secret::new(CipherSuite::ChaCha20Poly1305, &bytes).keys();
    let mut packet = hex("4200bff4 01 00000000000000000000000000000000");
    keys.packet.seal_packet(654_360_564, &mut packet, 4);
    assert_eq!(hex_of(&packet[4..]), "655e5cd55c41f69080575d7999c25a5bfb");
    let sample = packet[5..].first_chunk().unwrap();
    assert_eq!(hex_of(&keys.header.mask(sample)), "aefefe7d03");
    header_protection::protect(&keys.header, &mut packet, 1, 3);
    assert_eq!(
        hex_of(&packet),
        "4cfe4189655e5cd55c41f69080575d7999c25a5bfb"
    );
}

#[test]
fn short_header_packet_of_rfc_9001_a5_opens() {
    let bytes = hex("9ac312a7f877468ebe69422748ad00a15443f18203a07d6060f688f30f21632b");
    let keys = Secret::new(CipherSuite::ChaCha20Poly1305, &bytes).keys();
    let mut packet = hex("4cfe4189655e5cd55c41f69080575d7999c25a5bfb");
    assert_eq!(
        header_protection::unprotect(&keys.header, &mut packet, 1),
        Some((3, 0xbff4))
    );
    let (header, payload) = packet.split_at_mut(4);
    assert_eq!(keys.packet.open(654_360_564, header, payload), Ok(1));
    assert_eq!(payload[0], 1);
}

#[test]
fn sealed_payload_opens_to_the_plaintext() {
    for suite in SUITES {
        let key = secret(suite, 3).packet_key();
        for len in [0, 1, 15, 16, 17, 1350, 9000] {
            let plain: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
            let mut payload = sealed(&key, 77, HEADER, &plain);
            assert_eq!(key.open(77, HEADER, &mut payload), Ok(len), "{suite} {len}");
            assert_eq!(payload[..len], plain[..], "{suite} {len}");
        }
    }
}

#[test]
fn sealing_out_of_place_gives_the_same_bytes() {
    for suite in SUITES {
        let key = secret(suite, 3).packet_key();
        let plain = [5; 1350];
        let mut out = [0; 1350 + TAG_LEN];
        let (ciphertext, tag) = out.split_last_chunk_mut().unwrap();
        key.seal_from(9, HEADER, &plain, ciphertext, tag);
        assert_eq!(out[..], sealed(&key, 9, HEADER, &plain)[..], "{suite}");
    }
}

/// With the feature `fused` the two are different code.
#[test]
fn a_key_interoperates_with_one_of_aws_lc() {
    for suite in SUITES {
        let (key, iv) = (vec![6; suite.key_len()], [8; 12]);
        let usual = PacketKey::new(suite, &key, &iv);
        let library = PacketKey::of_library(suite, &key, &iv);
        for len in [0, 1, 16, 31, 33, 1350, 9000] {
            let plain = vec![3; len];
            let mut payload = sealed(&usual, 1 << 60, HEADER, &plain);
            assert_eq!(payload, sealed(&library, 1 << 60, HEADER, &plain));
            assert_eq!(library.open(1 << 60, HEADER, &mut payload), Ok(len));
            assert_eq!(payload[..len], plain[..], "{suite} {len}");
        }
    }
}

#[test]
fn forged_packet_leaves_no_plaintext() {
    for suite in SUITES {
        let key = secret(suite, 3).packet_key();
        let plain = [0x77; 600];
        let mut payload = sealed(&key, 5, HEADER, &plain);
        payload[plain.len()] ^= 1;
        assert_eq!(key.open(5, HEADER, &mut payload), Err(OpenError));
        let found = payload.windows(4).any(|bytes| bytes == [0x77; 4]);
        assert!(!found, "{suite}");
    }
}

#[test]
fn packets_are_protected_by_the_implementation_of_the_build() {
    let is_fused = |suite: CipherSuite| suite.implementation() != "AWS-LC";
    let expected = cfg!(feature = "fused") && !cfg!(feature = "fips");
    #[cfg(feature = "fused")]
    let expected = expected && courser_fused::Kernel::best().is_some();
    assert_eq!(is_fused(CipherSuite::Aes128Gcm), expected);
    assert_eq!(is_fused(CipherSuite::Aes256Gcm), expected);
    assert!(!is_fused(CipherSuite::ChaCha20Poly1305));
    for suite in SUITES {
        let key = secret(suite, 3).packet_key();
        let is_library = matches!(key.cipher, Cipher::Library { .. });
        assert_eq!(is_library, !is_fused(suite), "{suite}");
    }
}

#[test]
fn packet_number_affects_all_eight_low_bytes_of_the_nonce() {
    let iv = Iv::new(&[0xff, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    assert_eq!(
        iv.nonce(0.into()).as_ref(),
        &[0xff, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
    );
    assert_eq!(
        iv.nonce(0x3f00_0000_0000_0001.into()).as_ref(),
        &[0xff, 1, 2, 3, 4 ^ 0x3f, 5, 6, 7, 8, 9, 10, 11 ^ 1]
    );
}

#[test]
fn any_flipped_bit_is_rejected() {
    for suite in SUITES {
        let key = secret(suite, 3).packet_key();
        let intact = sealed(&key, 5, HEADER, b"hello");
        for bit in 0..intact.len() * 8 {
            let mut payload = intact.clone();
            payload[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(
                key.open(5, HEADER, &mut payload),
                Err(OpenError),
                "{suite} bit {bit}"
            );
        }
        for bit in 0..HEADER.len() * 8 {
            let mut header = HEADER.to_vec();
            header[bit / 8] ^= 1 << (bit % 8);
            let mut payload = intact.clone();
            assert_eq!(
                key.open(5, &header, &mut payload),
                Err(OpenError),
                "{suite} bit {bit}"
            );
        }
    }
}

#[test]
fn wrong_packet_number_is_rejected() {
    let key = secret(CipherSuite::Aes128Gcm, 3).packet_key();
    for number in [4, 6, 5 + (1 << 32), 5 + (1 << 61)] {
        let mut payload = sealed(&key, 5, HEADER, b"hello");
        assert_eq!(
            key.open(number, HEADER, &mut payload),
            Err(OpenError),
            "{number}"
        );
    }
}

#[test]
fn payload_shorter_than_a_tag_is_rejected() {
    let key = secret(CipherSuite::Aes128Gcm, 3).packet_key();
    for len in 0..=TAG_LEN {
        assert_eq!(
            key.open(0, HEADER, &mut vec![0; len]),
            Err(OpenError),
            "{len}"
        );
    }
}

#[test]
fn nonce_matches_the_example_of_rfc_10069() {
    let iv = Iv::new(&hex("6b26114b9cba2b63a9e8dd4f").try_into().unwrap());
    let nonce = iv.nonce(PacketNonce::new(PathId::new(3), 54321));
    assert_eq!(hex_of(nonce.as_ref()), "6b2611489cba2b63a9e8097e");
}
