use super::*;

fn own(addresses: &[&str]) -> OwnAddresses {
    let mut own = OwnAddresses::default();
    for address in addresses {
        own.add(address.parse().expect("an address"));
    }
    own
}

fn may(own: &OwnAddresses, target: &str) -> bool {
    own.may_probe(target.parse().expect("an address"))
}

#[test]
fn special_addresses_are_never_probed() {
    let own = own(&[
        "192.168.1.2:4433",
        "198.51.100.1:5000",
        "[2001:db8::1]:4433",
    ]);
    for target in [
        "0.0.0.0:5000",
        "0.1.2.3:5000",
        "127.0.0.1:5000",
        "127.255.0.9:5000",
        "169.254.169.254:5000",
        "224.0.0.251:5353",
        "239.1.1.1:5000",
        "255.255.255.255:5000",
        "240.0.0.1:5000",
        "[::]:5000",
        "[::1]:5000",
        "[::ffff:127.0.0.1]:5000",
        "[::127.0.0.1]:5000",
        "[::8.8.8.8]:5000",
        "[64:ff9b::127.0.0.1]:5000",
        "[64:ff9b::192.168.1.9]:5000",
        "[2002:7f00:1::]:5000",
        "[2002:c0a8:109::]:5000",
        "[2001:0:1::1]:5000",
        "[fe80::1]:5000",
        "[fec0::1]:5000",
        "[ff02::1]:5000",
        "[100::1]:5000",
        "[fd00::1]:5000",
    ] {
        assert!(!may(&own, target), "{target}");
    }
}

#[test]
fn global_addresses_are_probed_on_user_ports_and_443() {
    let own = own(&["198.51.100.1:5000", "[2001:db8::1]:4433"]);
    for (target, is_allowed) in [
        ("203.0.113.7:50000", true),
        ("203.0.113.7:1024", true),
        ("203.0.113.7:443", true),
        ("203.0.113.7:1023", false),
        ("203.0.113.7:53", false),
        ("203.0.113.7:0", false),
        ("[2001:db8:1::1]:5000", true),
        ("[64:ff9b::8.8.8.8]:5000", true),
        ("[2002:808:808::1]:5000", true),
    ] {
        assert_eq!(may(&own, target), is_allowed, "{target}");
    }
}

#[test]
fn own_addresses_and_other_families_are_not_probed() {
    let own = own(&["198.51.100.1:5000"]);
    assert!(!may(&own, "198.51.100.1:5000"));
    assert!(
        may(&own, "198.51.100.1:5001"),
        "another host behind the same NAT"
    );
    assert!(!may(&own, "[2001:db8::1]:5000"));
    assert!(
        !may(&OwnAddresses::default(), "203.0.113.7:5000"),
        "none is offered"
    );
}

#[test]
fn private_addresses_are_probed_in_networks_of_ours() {
    let mut own = own(&["192.168.1.2:4433", "[fd00::1]:4433"]);
    for (target, is_allowed) in [
        ("192.168.1.77:5000", true),
        ("192.168.2.77:5000", false),
        ("10.0.0.1:5000", false),
        ("172.16.0.1:5000", false),
        ("100.64.0.1:5000", false),
        ("[fd00::2]:5000", true),
        ("[fd00:0:0:1::2]:5000", false),
    ] {
        assert_eq!(may(&own, target), is_allowed, "{target}");
    }
    own.add_network([192, 168, 0, 0].into(), 16);
    own.add_network([10, 0, 0, 0].into(), 8);
    for (target, is_allowed) in [
        ("192.168.2.77:5000", true),
        ("10.9.8.7:5000", true),
        ("172.16.0.1:5000", false),
        ("[fd00::2]:5000", true),
    ] {
        assert_eq!(may(&own, target), is_allowed, "{target}, named networks");
    }
    own.add_network([0, 0, 0, 0].into(), 0);
    assert!(may(&own, "172.16.0.1:5000"), "every network");
}

#[test]
fn loopback_is_probed_from_loopback() {
    let own = own(&["127.0.0.1:4433"]);
    assert!(may(&own, "127.0.0.2:5000"));
    assert!(!may(&own, "192.168.1.1:5000"));
}

#[test]
fn near_addresses_come_first() {
    let own = own(&["192.168.1.2:4433", "198.51.100.1:5000"]);
    let rank = |target: &str| own.rank(target.parse().expect("an address"));
    assert!(rank("192.168.1.3:5000") < rank("203.0.113.7:5000"));
}
