use super::*;
use crate::probability::{Effect, Keyed};

fn numbers(index: u64) -> Numbers {
    Keyed::new(1, 0, Effect::Corrupt).numbers(index)
}

#[test]
fn one_byte_of_the_first_fifty_changes() {
    let payload = Bytes::from(vec![7; 1200]);
    let mut positions = std::collections::BTreeSet::new();
    for index in 0..2_000 {
        let changed = corrupted(&payload, numbers(index));
        assert_eq!(changed.len(), payload.len());
        let differing: Vec<usize> = (0..1200).filter(|&at| changed[at] != 7).collect();
        assert_eq!(differing.len(), 1, "packet {index}");
        positions.insert(differing[0]);
    }
    assert_eq!(positions, (0..50).collect());
}

#[test]
fn short_payloads_change_within_their_length() {
    assert_ne!(corrupted(&Bytes::from_static(&[1]), numbers(1))[0], 1);
    assert!(corrupted(&Bytes::new(), numbers(1)).is_empty());
}

#[test]
fn truncation_keeps_a_shorter_prefix() {
    let payload: Bytes = (0..200).collect::<Vec<u8>>().into();
    let mut lengths = std::collections::BTreeSet::new();
    for index in 0..5_000 {
        let cut = truncated(&payload, numbers(index));
        assert_eq!(cut, payload[..cut.len()]);
        lengths.insert(cut.len());
    }
    assert_eq!(lengths, (1..200).collect());
    assert_eq!(truncated(&Bytes::from_static(&[5, 6]), numbers(1)), [5][..]);
}

#[test]
fn extension_adds_up_to_32_bytes_but_not_beyond_a_datagram() {
    let payload = Bytes::from_static(b"abc");
    let lengths: std::collections::BTreeSet<usize> = (0..2_000)
        .map(|index| {
            let longer = extended(&payload, numbers(index));
            assert_eq!(longer[..3], payload);
            longer.len() - 3
        })
        .collect();
    assert_eq!(lengths, (1..=32).collect());
    assert_eq!(extended(&vec![0; 65_507].into(), numbers(1)).len(), 65_507);
}

#[test]
fn version_negotiation_has_version_zero_in_a_long_header() {
    assert!(is_version_negotiation(&[0x80, 0, 0, 0, 0, 8]));
    assert!(!is_version_negotiation(&[0x40, 0, 0, 0, 0, 8]));
    assert!(!is_version_negotiation(&[0xc0, 0, 0, 0, 1, 8]));
    assert!(!is_version_negotiation(&[0x80, 0, 0, 0]));
}
