use super::*;

#[test]
fn version_1_is_the_only_one_supported() {
    assert!(is_supported(VERSION_1));
    assert!(!is_supported(NEGOTIATION));
    assert!(!is_supported(0x6b33_43cf));
    assert!(!is_supported(0xff00_001d));
}

#[test]
fn reserved_versions_follow_the_pattern_of_rfc_9000_15() {
    assert!(is_reserved(0x0a0a_0a0a));
    assert!(is_reserved(0x1a2a_3a4a));
    assert!(!is_reserved(VERSION_1));
    assert!(!is_reserved(0x1a2a_3a4b));
    for random in [0, 0x1234_5678, u32::MAX] {
        assert!(is_reserved(reserved(random)), "{random:#x}");
    }
    assert_eq!(reserved(0x1234_5678), 0x1a3a_5a7a);
}
