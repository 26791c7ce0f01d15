use super::*;
use crate::testing::{SUITES, secret};

#[test]
fn unprotecting_restores_a_protected_packet() {
    for suite in SUITES {
        let key = secret(suite, 9).header_key();
        for first in [0x40_u8, 0xc0] {
            for len in 1..=4_usize {
                let mut packet: Vec<u8> = (100..150).collect();
                packet[0] = first | u8::try_from(len - 1).unwrap();
                let plain = packet.clone();
                protect(&key, &mut packet, 9, len);
                assert_ne!(
                    packet[9..9 + len],
                    plain[9..9 + len],
                    "{suite} {first} {len}"
                );
                let truncated = plain[9..9 + len]
                    .iter()
                    .fold(0, |n, b| n << 8 | u64::from(*b));
                assert_eq!(unprotect(&key, &mut packet, 9), Some((len, truncated)));
                assert_eq!(packet, plain, "{suite} {first} {len}");
            }
        }
    }
}

/// With the feature `fused` the first two are different code.
#[test]
fn masks_are_those_of_aws_lc() {
    for suite in SUITES {
        let key = vec![6; suite.key_len()];
        let keys = [HeaderKey::new, HeaderKey::of_library, HeaderKey::compact];
        let [usual, library, compact] = keys.map(|create| create(suite, &key));
        for fill in 0..=255 {
            let sample = [fill; SAMPLE_LEN];
            let mask = library.mask(&sample);
            assert_eq!(usual.mask(&sample), mask, "{suite} {fill}");
            assert_eq!(compact.mask(&sample), mask, "{suite} {fill}");
        }
    }
}

/// Attack A05: a half-open handshake has four of them.
#[test]
fn keys_of_handshakes_take_little_memory() {
    assert!(size_of::<HeaderKey>() <= 48, "{}", size_of::<HeaderKey>());
}

#[test]
fn only_the_low_bits_of_the_first_byte_are_masked() {
    let key = secret(CipherSuite::Aes128Gcm, 9).header_key();
    let (mut long, mut short) = (0, 0);
    for fill in 0..=255 {
        let mut packet = [fill; 40];
        packet[0] = 0xc0;
        protect(&key, &mut packet, 5, 1);
        long |= packet[0] ^ 0xc0;
        packet = [fill; 40];
        packet[0] = 0x40;
        protect(&key, &mut packet, 5, 1);
        short |= packet[0] ^ 0x40;
    }
    assert_eq!((long, short), (0x0f, 0x1f));
}

#[test]
fn nothing_but_first_byte_and_packet_number_changes() {
    let key = secret(CipherSuite::Aes256Gcm, 9).header_key();
    let mut packet = [0x42; 40];
    protect(&key, &mut packet, 9, 2);
    assert_eq!(packet[1..9], [0x42; 8]);
    assert_eq!(packet[11..], [0x42; 29]);
}

#[test]
fn packet_too_short_for_a_sample_is_left_alone() {
    let key = secret(CipherSuite::Aes128Gcm, 9).header_key();
    for len in 0..9 + SAMPLE_OFFSET + SAMPLE_LEN {
        let mut packet = vec![0x55; len];
        assert_eq!(unprotect(&key, &mut packet, 9), None, "{len}");
        assert_eq!(packet, vec![0x55; len], "{len}");
    }
    let mut packet = [0x55; 9 + SAMPLE_OFFSET + SAMPLE_LEN];
    assert!(unprotect(&key, &mut packet, 9).is_some());
}

#[test]
fn offset_beyond_the_packet_does_not_overflow() {
    let key = secret(CipherSuite::Aes128Gcm, 9).header_key();
    assert_eq!(unprotect(&key, &mut [0; 40], usize::MAX), None);
}

#[test]
#[should_panic(expected = "holds a sample")]
fn packet_without_padding_for_a_sample_panics() {
    let key = secret(CipherSuite::Aes128Gcm, 9).header_key();
    protect(&key, &mut [0; 20], 1, 1);
}
