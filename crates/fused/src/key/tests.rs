use super::*;

#[test]
fn debug_output_hides_keys() {
    if let Some(key) = PacketKey::new(&[0x5a; 16], &[0x5a; IV_LEN]) {
        let text = format!("{key:?} {:?}", HeaderKey::new(&[0x5a; 16]));
        assert!(!text.contains("90"), "{text}");
    }
}

#[test]
fn moved_keys_are_small() {
    assert!(size_of::<PacketKey>() <= 16);
    assert!(size_of::<HeaderKey>() <= 16);
}
