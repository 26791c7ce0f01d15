use super::*;

#[test]
fn versions_1_and_2_are_supported() {
    assert!(is_supported(VERSION_1));
    assert!(is_supported(0x6b33_43cf), "RFC 9369 §3.1");
    for other in [NEGOTIATION, 2, 0xff00_001d, 0x709a_50c4, 0x1a2a_3a4a] {
        assert!(!is_supported(other), "{other:#x}");
    }
    for version in Version::ALL {
        assert_eq!(Version::from_value(version.value()), Some(version));
    }
}

#[test]
fn list_of_versions_keeps_its_order_without_repetitions() {
    let list: Versions = [Version::V2, Version::V1, Version::V2]
        .into_iter()
        .collect();
    assert!(list.iter().eq([Version::V2, Version::V1]));
    assert_eq!(list.first(), Some(Version::V2));
    assert_eq!(list.choose(|&it| it != Version::V2), Some(Version::V1));
    assert_eq!(Versions::V1.choose(|&it| it == Version::V2), None);
    assert!(!Versions::V1.contains(Version::V2));
    assert_eq!(Versions::default().first(), None);
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
