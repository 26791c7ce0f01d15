use super::*;

#[test]
fn hosts_of_prefixes_are_single_addresses() {
    for (prefix, address, length) in [
        ("192.0.2.7/32", "192.0.2.7", 32),
        ("192.0.2.6/31", "192.0.2.6", 32),
        ("192.0.2.0/24", "192.0.2.1", 32),
        ("2001:db8::7/128", "2001:db8::7", 128),
        ("2001:db8::/64", "2001:db8::1", 128),
    ] {
        let prefix: Prefix = prefix.parse().unwrap();
        assert_eq!(host(&prefix), (address.parse().unwrap(), length));
    }
}

#[test]
fn routes_to_all_destinations_are_left_out() {
    let range = |start: &str, end: &str, protocol| {
        AddressRange::new(start.parse().unwrap(), end.parse().unwrap(), protocol).unwrap()
    };
    let ranges = [
        AddressRange::all_ipv4(),
        AddressRange::all_ipv6(),
        range("10.0.0.0", "10.0.0.255", Some(6)),
        range("10.0.0.0", "10.0.0.255", Some(17)),
        range("10.1.0.1", "10.1.0.2", None),
    ];
    let found = prefixes(&ranges).expect("few");
    let found: Vec<_> = found.iter().map(Prefix::to_string).collect();
    assert_eq!(found, ["10.0.0.0/24", "10.1.0.1/32", "10.1.0.2/32"]);
}

/// Attack A401, limit K662.
#[test]
fn networks_of_a_proxy_are_bounded() {
    let range = |number: u32| {
        let [high, low] = [number << 16 | 1, number << 16 | 0xfffe];
        let [start, end] = [high, low].map(|it| std::net::Ipv4Addr::from_bits(it).into());
        AddressRange::new(start, end, None).unwrap()
    };
    // 30 prefixes each.
    let ranges: Vec<_> = (0..256).map(|number| range(2 * number)).collect();
    assert_eq!(prefixes(&ranges[..34]).map(|it| it.len()), Some(1020));
    assert_eq!(prefixes(&ranges[..35]), None);
    assert_eq!(prefixes(&ranges), None);
}
