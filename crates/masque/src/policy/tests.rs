use std::net::Ipv6Addr;

use proptest::prelude::*;

use super::*;
use crate::target::{Host, Target};

fn judge(policy: &Policy, text: &str) -> Result<SocketAddr, Prohibited> {
    policy.judge(text.parse().expect(text))
}

/// Attack A350, MQ-udp-028.
#[test]
fn addresses_outside_of_the_public_internet_are_refused() {
    let policy = Policy::default();
    for address in SPECIAL {
        let target = SocketAddr::from((address.parse::<IpAddr>().unwrap(), 443));
        assert!(policy.judge(target).is_err(), "{address}");
        assert!(!policy.is_named(target), "{address}");
    }
    for address in PUBLIC {
        let target = SocketAddr::from((address.parse::<IpAddr>().unwrap(), 443));
        assert_eq!(policy.judge(target), Ok(target), "{address}");
        assert!(!policy.is_named(target), "{address}");
    }
    // What is judged is what the socket is connected to.
    assert_eq!(
        judge(&policy, "[::ffff:8.8.8.8]:443"),
        Ok("8.8.8.8:443".parse().unwrap())
    );
}

/// Attack A350: decimal, octal and hexadecimal hosts are no targets, so that no resolver sees them.
#[test]
fn hosts_in_other_forms_never_become_loopback_addresses() {
    for host in [
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "127.1",
        "127.0.1",
        "0",
        "::ffff:0x7f.1",
    ] {
        assert!(host.parse::<Host>().is_err(), "{host}");
    }
    let target = Target::new("::ffff:127.0.0.1", "443").unwrap();
    assert!(Policy::default().judge(target.address().unwrap()).is_err());
}

/// Attack A350, MQ-udp-007: a name with a public and a private address.
#[test]
fn names_are_judged_by_each_of_their_addresses() {
    let policy = Policy::default();
    let answers = |list: &[&str]| {
        list.iter()
            .map(|text| text.parse().unwrap())
            .collect::<Vec<SocketAddr>>()
    };
    let rebinding = answers(&["10.0.0.1:443", "8.8.8.8:443"]);
    assert_eq!(
        policy.judge_all(rebinding, 16),
        Ok("8.8.8.8:443".parse().unwrap())
    );
    let private = answers(&["10.0.0.1:443", "[::1]:443"]);
    let error = policy.judge_all(private, 16).unwrap_err();
    assert_eq!(error.to_string(), "10.0.0.1 is a private address");
    assert_eq!(policy.judge_all([], 16), Err(Prohibited::NoAddress));
    // Limit K624.
    let mut many = vec!["10.0.0.1:443".parse().unwrap(); 16];
    many.push("8.8.8.8:443".parse().unwrap());
    assert!(policy.judge_all(many, 16).is_err());
}

/// `::1` is no IPv4 address inside of an IPv6 one, although it begins like those (RFC 4291 §2.5.5.1).
#[test]
fn rules_can_allow_the_loopback_address_of_ipv6() {
    let policy = Policy::nothing().allow("::1".parse().unwrap(), 443..=443);
    let target = "[::1]:443".parse().unwrap();
    assert_eq!(policy.judge(target), Ok(target));
    assert!(policy.is_named(target));
    assert!(judge(&policy, "[::2]:443").is_err());
}

#[test]
fn the_first_rule_that_matches_decides() {
    let prefix = |text: &str| text.parse::<Prefix>().unwrap();
    let policy = Policy::public_only()
        .allow(prefix("10.1.0.0/16"), 443..=443)
        .deny(prefix("10.0.0.0/8"), 0..=65_535)
        .deny(prefix("8.8.8.0/24"), 0..=1023)
        .allow(prefix("192.168.0.1"), 1..=65_535);
    for (target, expected) in [
        ("10.1.2.3:443", true),
        ("10.1.2.3:444", false),
        ("10.2.0.1:443", false),
        ("8.8.8.8:443", false),
        ("8.8.8.8:1024", true),
        ("192.168.0.1:1", true),
        ("192.168.0.2:1", false),
        ("9.9.9.9:443", true),
    ] {
        assert_eq!(judge(&policy, target).is_ok(), expected, "{target}");
    }
    assert!(policy.is_named("10.1.2.3:443".parse().unwrap()));
    assert!(!policy.is_named("9.9.9.9:443".parse().unwrap()));
    let closed = Policy::nothing().allow(prefix("9.9.9.9"), 443..=443);
    assert!(judge(&closed, "9.9.9.9:443").is_ok());
    assert!(judge(&closed, "1.1.1.1:443").is_err());
}

/// MQ-udp-029.
#[test]
fn ports_are_denied_in_one_line() {
    let policy = Policy::public_only()
        .deny_ports([25])
        .deny_ports(WellKnown::AMPLIFIERS);
    for port in [53, 123, 1900, 11_211, 25] {
        let error = policy.judge(([8, 8, 8, 8], port).into()).unwrap_err();
        assert_eq!(error, Prohibited::Denied(([8, 8, 8, 8], port).into()));
    }
    assert!(judge(&policy, "8.8.8.8:443").is_ok());
    assert!(judge(&policy, "[64:ff9b::8.8.8.8]:53").is_err());
}

#[test]
fn rules_for_ipv4_hold_for_ipv4_inside_of_ipv6() {
    let policy = Policy::public_only().deny("8.8.8.0/24".parse().unwrap(), 0..=65_535);
    for target in [
        "[::ffff:8.8.8.8]:443",
        "[64:ff9b::8.8.8.8]:443",
        "[2002:808:808::1]:443",
        "[::8.8.8.8]:443",
    ] {
        assert!(judge(&policy, target).is_err(), "{target}");
    }
    let own = policy.nat64("2a00:64::/96".parse().unwrap()).unwrap();
    assert!(judge(&own, "[2a00:64::127.0.0.1]:443").is_err());
    assert!(judge(&own, "[2a00:64::8.8.8.8]:443").is_err());
    assert!(judge(&own, "[2a00:64::9.9.9.9]:443").is_ok());
    // An allowed IPv6 prefix does not open private IPv4 addresses.
    let all = Policy::nothing().allow(Prefix::IPV6, 0..=65_535);
    assert!(judge(&all, "[64:ff9b::10.0.0.1]:443").is_err());
    assert!(judge(&all, "[2a00::1]:443").is_ok());
}

/// The examples of RFC 6052 §2.4, with another address.
#[test]
fn addresses_of_translators_are_judged_at_every_length() {
    let prefixes = [
        ("2001:471::/32", "[2001:471:a00:21::]:443"),
        ("2001:471:100::/40", "[2001:471:10a:0:21::]:443"),
        ("2001:471:122::/48", "[2001:471:122:a00:0:2100::]:443"),
        ("2001:471:122:300::/56", "[2001:471:122:30a:0:21::]:443"),
        ("2001:471:122:344::/64", "[2001:471:122:344:a:0:2100::]:443"),
        ("2001:471:122:344::/96", "[2001:471:122:344::10.0.0.33]:443"),
    ];
    for (prefix, target) in prefixes {
        assert!(judge(&Policy::public_only(), target).is_ok(), "{target}");
        let policy = Policy::public_only().nat64(prefix.parse().expect(prefix));
        let error = judge(&policy.expect(prefix), target).expect_err(target);
        assert_eq!(error.to_string(), "10.0.0.33 is a private address");
    }
    // The most precise one decides where several match.
    let all = prefixes
        .iter()
        .fold(Policy::public_only(), |policy, (prefix, _)| {
            policy.nat64(prefix.parse().expect(prefix)).expect(prefix)
        });
    for (_, target) in prefixes {
        assert!(judge(&all, target).is_err(), "{target}");
    }
    assert!(judge(&all, "[2001:471:122:344::9.9.9.9]:443").is_ok());
    for wrong in [
        "10.0.0.0/32",
        "2001:471::/33",
        "2001:471::1/128",
        "2001:471::/0",
        "2001:471:0:0:100::/96",
    ] {
        let Ok(prefix) = wrong.parse() else {
            continue;
        };
        let error = Policy::public_only().nat64(prefix).expect_err(wrong);
        assert!(error.to_string().starts_with(wrong), "{error}");
    }
}

proptest! {
    /// An IPv6 address that carries an IPv4 one is refused whenever that is refused.
    #[test]
    fn embedded_addresses_are_judged_like_their_inner_ones(bits in any::<u32>(), port in any::<u16>()) {
        let policy = Policy::default().deny_ports([53]);
        let inner = std::net::Ipv4Addr::from(bits);
        let is_refused = policy.judge((inner, port).into()).is_err();
        let [a, b, c, d] = inner.octets();
        let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        for outer in [
            Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, high, low),
            Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
            Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
        ] {
            let is_outer_refused = policy.judge((outer, port).into()).is_err();
            prop_assert_eq!(is_outer_refused, is_refused, "{} of {}", outer, inner);
        }
    }
}

/// Addresses that are refused, with IPv4 addresses in IPv6 ones at the end: mapped, compatible, translated, NAT64, 6to4,
/// Teredo.
const SPECIAL: &[&str] = &[
    "127.0.0.1",
    "127.255.255.254",
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "100.64.0.1",
    "100.127.255.255",
    "169.254.169.254",
    "192.0.0.1",
    "192.0.2.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.251",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "192.88.99.1",
    "::",
    "::1",
    "fe80::1",
    "fec0::1",
    "fc00::1",
    "fd00:ec2::254",
    "ff02::1",
    "ff0e::1",
    "2001:db8::1",
    "2001::1",
    "2001:10::1",
    "3fff::1",
    "5f00::1",
    "100::1",
    "64:ff9b:1::7f00:1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "::127.0.0.1",
    "::10.0.0.1",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::10.0.0.1",
    "64:ff9b::169.254.169.254",
    "2002:7f00:1::",
    "2002:a00:1::1",
    "2002:a9fe:a9fe::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "200::1",
    "300:1:2:3::1",
    "1000::1",
    "4000::1",
    "::8.8.8.8",
    "::ffff:0:8.8.8.8",
    "e000::1",
];

const PUBLIC: &[&str] = &[
    "8.8.8.8",
    "1.1.1.1",
    "172.15.255.255",
    "172.32.0.1",
    "100.63.255.255",
    "100.128.0.1",
    "169.253.1.1",
    "11.0.0.1",
    "223.255.255.255",
    "2606:4700::1111",
    "2a00::1",
    "64:ff9b::8.8.8.8",
    "2002:808:808::1",
];

#[test]
fn rules_for_names_allow_public_addresses_only() {
    let policy = Policy::nothing()
        .deny_names("bad.example.org".parse().unwrap(), 0..=65535)
        .allow_names("*.example.org".parse().unwrap(), 443..=443)
        .allow("10.1.0.0/16".parse().unwrap(), 443..=443);
    for (name, target, expected) in [
        (Some("www.example.org"), "8.8.8.8:443", true),
        (Some("WWW.example.org."), "8.8.8.8:443", true),
        (Some("www.example.org"), "8.8.8.8:80", false),
        (Some("bad.example.org"), "8.8.8.8:443", false),
        (Some("example.org"), "8.8.8.8:443", false),
        (None, "8.8.8.8:443", false),
        // Whoever controls the name chooses its addresses.
        (Some("www.example.org"), "127.0.0.1:443", false),
        (Some("www.example.org"), "10.1.0.1:443", false),
        (Some("www.example.org"), "[64:ff9b::7f00:1]:443", false),
        (Some("other.test"), "10.1.0.1:443", true),
        (None, "10.1.0.1:443", true),
    ] {
        let judged = policy.judge_as(name, target.parse().unwrap());
        assert_eq!(judged.is_ok(), expected, "{name:?} {target} {judged:?}");
    }
}

#[test]
fn names_that_are_denied_are_not_resolved() {
    let policy = Policy::public_only()
        .deny("10.0.0.0/8".parse().unwrap(), 0..=65535)
        .deny_names("*.test".parse().unwrap(), 80..=80)
        .allow("192.168.0.0/16".parse().unwrap(), 22..=22)
        .deny_all(22..=22);
    for (name, port, expected) in [
        ("a.test", 80, false),
        ("a.test", 443, true),
        ("example.org", 80, true),
        // Its address may be the one that is allowed.
        ("example.org", 22, true),
    ] {
        assert_eq!(
            policy.judge_name(name, port).is_ok(),
            expected,
            "{name}:{port}"
        );
    }
    assert!(
        Policy::nothing()
            .deny_all(0..=65535)
            .judge_name("a.b", 1)
            .is_err()
    );
    let public = "8.8.8.8:443".parse().unwrap();
    let policy = Policy::public_only()
        .allow_public(443..=443)
        .deny_all(0..=65535);
    assert_eq!(policy.judge(public), Ok(public));
    assert!(judge(&policy, "8.8.8.8:80").is_err());
    assert!(judge(&policy, "127.0.0.1:443").is_err());
    // A private address is none of the first rule.
    let policy = Policy::nothing()
        .allow_public(443..=443)
        .allow("10.1.2.3".parse().unwrap(), 443..=443);
    assert!(judge(&policy, "10.1.2.3:443").is_ok());
    assert!(judge(&policy, "10.1.2.4:443").is_err());
    assert!(judge(&policy, "[64:ff9b::10.1.2.4]:443").is_err());
    assert!(judge(&policy, "8.8.8.8:443").is_ok());
    assert!(policy.judge_name("a.b", 443).is_ok());
}

#[test]
fn addresses_are_allowed_on_some_port() {
    let policy = Policy::nothing()
        .deny("10.1.0.0/16".parse().unwrap(), 0..=65_535)
        .allow("10.0.0.0/8".parse().unwrap(), 443..=443)
        .deny("192.0.2.0/24".parse().unwrap(), 0..=1023)
        .allow("192.0.2.0/24".parse().unwrap(), 0..=65_535);
    for (address, expected) in [
        ("10.2.0.1", true),
        ("10.1.0.1", false),
        ("192.0.2.1", true),
        ("8.8.8.8", false),
    ] {
        let found = policy.judge_address(address.parse().unwrap());
        assert_eq!(found.is_ok(), expected, "{address}");
    }
}
