use super::*;

#[test]
fn pattern_does_not_depend_on_chunk_boundaries() {
    let whole = piece(0, 64 * 1024);
    for (offset, len) in [(0, 10), (1, 65_000), (65_000, 536), (12_345, 1)] {
        let cut = piece(offset, len);
        let start = usize::try_from(offset).expect("small");
        assert_eq!(whole[start..start + cut.len()], cut[..]);
        assert!(check(offset, &cut), "{offset}");
    }
    let far = 10_000_000_000;
    assert!(check(far, &piece(far, 5000)));
}

#[test]
fn shifted_or_changed_bytes_are_detected() {
    let bytes = piece(1200, 1200);
    for shift in [1, 1200, 65_536, 256 * 1024] {
        assert!(!check(1200 + shift, &bytes), "{shift}");
    }
    let mut changed = bytes.to_vec();
    changed[1199] ^= 1;
    assert!(!check(1200, &changed));
}
