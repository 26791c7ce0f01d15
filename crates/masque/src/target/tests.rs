use super::*;

#[test]
fn hosts_are_addresses_or_names() {
    for (text, expected) in [
        ("192.0.2.1:443", "192.0.2.1:443"),
        ("[2001:DB8::1]:443", "[2001:db8::1]:443"),
        ("example.org:1", "example.org:1"),
        ("example.org.:65535", "example.org.:65535"),
        (
            "_quic.xn--bcher-kva.example:443",
            "_quic.xn--bcher-kva.example:443",
        ),
        ("localhost:443", "localhost:443"),
        ("1a:2", "1a:2"),
    ] {
        let target: Target = text.parse().expect(text);
        assert_eq!(target.to_string(), expected);
    }
    let target: Target = "[2001:db8::1]:443".parse().unwrap();
    assert_eq!(target.address(), Some("[2001:db8::1]:443".parse().unwrap()));
    assert_eq!(Target::try_from(target.address().unwrap()).unwrap(), target);
}

/// MQ-udp-004, and the forms of IPv4 addresses of attack A350.
#[test]
fn malformed_hosts_and_ports_are_refused() {
    for text in [
        "",
        ":443",
        "example.org",
        "example.org:",
        "example.org:0",
        "example.org:65536",
        "example.org:+443",
        "example.org: 443",
        "example.org:4 43",
        "example.org:000443",
        "::1:443",
        "[::1]",
        "[::1:443",
        "[127.0.0.1]:443",
        "[example.org]:443",
        "[fe80::1%eth0]:443",
        "2130706433:80",
        "0x7f000001:80",
        "0x7f.1:80",
        "127.1:80",
        "0177.0.0.1:80",
        "127.0.0.0x1:80",
        "127.0.0.1.:80",
        "1.2.3.4.5:80",
        "exa mple.org:443",
        "example..org:443",
        ".example.org:443",
        "bücher.example:443",
        "user@example.org:443",
        "example.org/:443",
        "ex%61mple.org:443",
        "example.org\0:443",
        "１２７.0.0.1:80",
    ] {
        assert!(text.parse::<Target>().is_err(), "{text}");
    }
    let long = format!("{}:443", "a".repeat(64));
    assert!(long.parse::<Target>().is_err());
    let long = format!("{}a:443", "abc.".repeat(64));
    assert!(long.parse::<Target>().is_err());
}

#[test]
fn errors_state_what_was_seen_and_what_is_allowed() {
    let message = |host, port| Target::new(host, port).unwrap_err().to_string();
    assert_eq!(
        message("example.org", "70000"),
        "the port is '70000', allowed is 1 to 65535"
    );
    assert_eq!(
        message("fe80::1%eth0", "1"),
        "the address has the zone 'eth0', which the proxy cannot know"
    );
    let long = "é".repeat(1000);
    assert!(message(&long, "1").len() < 300);
}

#[test]
fn addresses_with_zones_or_port_0_are_no_targets() {
    assert!(Target::try_from("192.0.2.1:0".parse::<SocketAddr>().unwrap()).is_err());
    assert!(Target::try_from("[fe80::1%3]:443".parse::<SocketAddr>().unwrap()).is_err());
}
