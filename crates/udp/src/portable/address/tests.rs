use super::*;

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

#[test]
fn family_of_the_socket_decides_the_form() {
    let mapped = address("[::ffff:192.0.2.1]:5");
    let plain = address("192.0.2.1:5");
    assert_eq!(for_socket(plain, true), mapped);
    assert_eq!(for_socket(mapped, true), mapped);
    assert_eq!(for_socket(mapped, false), plain);
    assert_eq!(for_socket(plain, false), plain);
}

#[test]
fn source_of_another_family_is_dropped() {
    let v4 = address("192.0.2.1:5");
    let v6 = address("[2001:db8::1]:5");
    let usable = |ip: &str, to| usable_source(Some(ip.parse().unwrap()), to);
    assert_eq!(
        usable("::ffff:192.0.2.9", v4),
        Some("192.0.2.9".parse().unwrap())
    );
    assert_eq!(usable("192.0.2.9", v6), None);
    assert_eq!(usable("::1", v4), None);
    assert_eq!(usable("0.0.0.0", v4), None);
    assert_eq!(usable_source(None, v4), None);
}
