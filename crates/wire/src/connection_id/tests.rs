use std::collections::HashSet;

use super::*;

#[test]
fn every_length_up_to_20_bytes_is_kept() {
    let bytes: Vec<u8> = (1..=20).collect();
    for len in 0..=20 {
        let id = ConnectionId::new(&bytes[..len]).unwrap();
        assert_eq!(&*id, &bytes[..len], "{len}");
        assert_eq!((id.len(), id.is_empty()), (len, len == 0), "{len}");
    }
}

#[test]
fn connection_ids_above_20_bytes_are_refused() {
    for len in [21, 255, 256, 257, 1000] {
        assert_eq!(ConnectionId::new(&vec![1; len]), None, "{len}");
    }
}

#[test]
fn ids_that_differ_in_trailing_zeros_are_not_equal() {
    let ids = [&[][..], &[0], &[0, 0], &[1], &[1, 0]];
    let set: HashSet<_> = ids
        .iter()
        .map(|id| ConnectionId::new(id).unwrap())
        .collect();
    assert_eq!(set.len(), ids.len());
    assert_eq!(ConnectionId::new(&[]), Some(ConnectionId::EMPTY));
    assert_eq!(ConnectionId::default(), ConnectionId::EMPTY);
}

#[test]
fn displays_as_hex() {
    let id = ConnectionId::new(&[0x83, 0x94, 0x0c]).unwrap();
    assert_eq!(id.to_string(), "83940c");
    assert_eq!(format!("{id:?}"), "ConnectionId(83940c)");
}
