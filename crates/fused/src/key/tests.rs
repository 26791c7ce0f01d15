use super::*;

#[test]
fn keys_are_not_shown() {
    if let Some(key) = PacketKey::new(&[0x5a; 16], &[0x5a; IV_LEN]) {
        let text = format!("{key:?} {:?}", HeaderKey::new(&[0x5a; 16]));
        assert!(!text.contains("90"), "{text}");
    }
}

#[test]
fn keys_are_small_where_they_are_moved() {
    assert!(size_of::<PacketKey>() <= 16);
    assert!(size_of::<HeaderKey>() <= 16);
}
