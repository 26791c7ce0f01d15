use super::*;

#[test]
fn names_of_interfaces_are_checked_before_the_system_sees_them() {
    for name in ["courser0", "a", "fifteen-letters", "tun.1"] {
        assert!(is_name(name), "{name}");
    }
    for name in [
        "",
        ".",
        "..",
        "sixteen-letters-",
        "a b",
        "a/b",
        "a:b",
        "tun%d",
        "tün",
        "a\0",
    ] {
        assert!(!is_name(name), "{name}");
        let error = Device::builder().name(name).open().unwrap_err();
        assert!(matches!(error, OpenError::Name(_)), "{error}");
    }
}
