use super::*;

#[test]
fn pattern_does_not_depend_on_chunk_boundaries() {
    let whole = pattern_at(0, 64 * 1024);
    for (offset, len) in [(0, 10), (1, 65_000), (65_000, 536), (12_345, 1)] {
        let cut = pattern_at(offset, len);
        let start = usize::try_from(offset).expect("the offset fits");
        assert_eq!(whole[start..start + cut.len()], cut[..]);
        assert!(is_pattern_at(offset, &cut), "{offset}");
    }
    let far = 10_000_000_000;
    assert!(is_pattern_at(far, &pattern_at(far, 5000)));
}

#[test]
fn shifted_or_changed_bytes_are_detected() {
    let bytes = pattern_at(1200, 1200);
    for shift in [1, 1200, 65_536, 256 * 1024] {
        assert!(!is_pattern_at(1200 + shift, &bytes), "{shift}");
    }
    let mut changed = bytes.to_vec();
    changed[1199] ^= 1;
    assert!(!is_pattern_at(1200, &changed));
}
