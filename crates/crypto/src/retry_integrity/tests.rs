use super::*;
use crate::testing::{example_id, hex};

const RETRY: &str = "ff000000010008f067a5502a4262b5746f6b656e04a265ba2eff4d829058fb3f0f2496ba";

#[test]
fn tag_matches_rfc_9001_a4() {
    let retry = hex(RETRY);
    let (packet, seen) = retry.split_last_chunk::<TAG_LEN>().unwrap();
    assert_eq!(&tag(&example_id(), packet), seen);
    assert!(is_valid(&example_id(), &retry));
}

/// The Retry packet of RFC 9369 §A.4.
const RETRY_2: &str = "cf6b3343cf0008f067a5502a4262b5746f6b656ec8646ce8bfe33952d955543665dcc7b6";

#[test]
fn tag_matches_rfc_9369_a4() {
    let retry = hex(RETRY_2);
    let (packet, seen) = retry.split_last_chunk::<TAG_LEN>().unwrap();
    assert_eq!(&tag(&example_id(), packet), seen);
    assert!(is_valid(&example_id(), &retry));
}

#[test]
fn tag_of_one_version_is_rejected_in_the_other() {
    for (retry, other) in [(RETRY, [0x6b, 0x33, 0x43, 0xcf]), (RETRY_2, [0, 0, 0, 1])] {
        let mut retry = hex(retry);
        retry[1..5].copy_from_slice(&other);
        assert!(!is_valid(&example_id(), &retry), "{other:?}");
    }
}

#[test]
fn any_flipped_bit_is_rejected() {
    let intact = hex(RETRY);
    for bit in 0..intact.len() * 8 {
        let mut retry = intact.clone();
        retry[bit / 8] ^= 1 << (bit % 8);
        assert!(!is_valid(&example_id(), &retry), "bit {bit}");
    }
}

#[test]
fn another_connection_id_is_rejected() {
    let other = ConnectionId::new(&hex("8394c8f03e515709")).unwrap();
    assert!(!is_valid(&other, &hex(RETRY)));
    assert!(!is_valid(&ConnectionId::EMPTY, &hex(RETRY)));
}

#[test]
fn truncated_packet_is_rejected() {
    let retry = hex(RETRY);
    for len in 0..retry.len() {
        assert!(!is_valid(&example_id(), &retry[..len]), "{len}");
    }
}
