use super::*;

fn prefixes(texts: &[&str]) -> Vec<Prefix> {
    texts.iter().map(|it| it.parse().expect(it)).collect()
}

fn texts(prefixes: &[Prefix]) -> Vec<String> {
    prefixes.iter().map(ToString::to_string).collect()
}

fn plan(assigned: &[&str], offered: &[&str], wishes: &Wishes) -> Plan {
    plan_in(&Surroundings::default(), assigned, offered, wishes)
}

fn plan_in(
    surroundings: &Surroundings,
    assigned: &[&str],
    offered: &[&str],
    wishes: &Wishes,
) -> Plan {
    let offered: Vec<_> = prefixes(offered)
        .into_iter()
        .map(AddressRange::from)
        .collect();
    let tunnel = Tunnel {
        device: "courser0",
        proxy: "192.0.2.1".parse().expect("an address"),
        assigned: &prefixes(assigned),
        offered: &offered,
        max_packet_size: 1350,
        has_ipv6: true,
        surroundings,
    };
    Plan::new(&tunnel, wishes)
}

const BOTH: [&str; 2] = ["10.89.0.2/32", "fd00::2/128"];
const ALL: [&str; 2] = ["0.0.0.0/0", "::/0"];

#[test]
fn offered_networks_are_routed_and_everything_is_not() {
    let found = plan(&BOTH, &["10.1.0.0/16", "2001:db8::/32"], &Wishes::default());
    assert_eq!(texts(&found.routes), ["10.1.0.0/16", "2001:db8::/32"]);
    assert!(
        found.captured.is_empty() && found.warnings.is_empty(),
        "{found}"
    );
    let found = plan(&BOTH, &ALL, &Wishes::default());
    assert!(found.routes.is_empty() && found.captured.is_empty());
    assert!(
        found.warnings[0].contains("the proxy offers everything"),
        "{found}"
    );
}

#[test]
fn default_route_captures_both_versions_and_spares_the_proxy() {
    let wishes = Wishes {
        default_route: true,
        ..Wishes::default()
    };
    let found = plan(&BOTH, &ALL, &wishes);
    assert_eq!(texts(&found.captured), ALL);
    assert_eq!(
        found.to_string(),
        "device   courser0, MTU 1350\n\
         address  10.89.0.2, fd00::2\n\
         route    everything of IPv4 without another route, except for the proxy at 192.0.2.1\n\
         route    everything of IPv6 without another route\n\
         warning  names are resolved as before, perhaps beside the tunnel: no name servers were given for it"
    );
    let found = plan(&BOTH[..1], &ALL[..1], &wishes);
    assert_eq!(texts(&found.captured), ALL[..1]);
    assert!(
        found.warnings[0].contains("IPv6 does not use the tunnel"),
        "{found}"
    );
    let found = plan(&BOTH, &["10.1.0.0/16"], &wishes);
    assert_eq!(texts(&found.routes), ["10.1.0.0/16"]);
    assert!(found.warnings[0].contains("no default route"), "{found}");
}

#[test]
fn routes_that_contain_the_proxy_are_captured() {
    let wishes = Wishes {
        routes: prefixes(&["192.0.0.0/16", "198.51.100.0/24"]),
        ..Wishes::default()
    };
    let found = plan(&BOTH, &ALL, &wishes);
    assert_eq!(texts(&found.routes), ["198.51.100.0/24"]);
    assert_eq!(texts(&found.captured), ["192.0.0.0/16"]);
    assert!(
        found
            .to_string()
            .contains("192.0.0.0/16, except for the proxy at 192.0.2.1")
    );
}

#[test]
fn routes_that_are_not_offered_are_reported() {
    let wishes = Wishes {
        routes: prefixes(&["10.0.0.0/8", "2001:db8::/32"]),
        ..Wishes::default()
    };
    let found = plan(&BOTH[..1], &["10.0.0.0/9"], &wishes);
    assert_eq!(texts(&found.routes), ["10.0.0.0/8"]);
    assert!(
        found.warnings[0].contains("no address of its version"),
        "{found}"
    );
    assert!(
        found.warnings[1].contains("does not offer all of 10.0.0.0/8"),
        "{found}"
    );
}

#[test]
fn name_servers_are_reached_through_the_tunnel() {
    let wishes = Wishes {
        dns: vec![
            "10.1.0.53".parse().expect("an address"),
            "9.9.9.9".parse().expect("an address"),
        ],
        mtu: Some(1300),
        ..Wishes::default()
    };
    let found = plan(&BOTH, &["10.1.0.0/16"], &wishes);
    assert_eq!(texts(&found.routes), ["10.1.0.0/16", "9.9.9.9/32"]);
    assert_eq!(found.mtu, 1300);
    assert!(
        found.to_string().contains("\ndns      10.1.0.53, 9.9.9.9"),
        "{found}"
    );
}

#[test]
fn systems_without_ipv6_use_ipv4_alone() {
    let tunnel = Tunnel {
        device: "courser0",
        proxy: "192.0.2.1".parse().expect("an address"),
        assigned: &prefixes(&BOTH),
        offered: &[AddressRange::all_ipv6()],
        max_packet_size: 1350,
        has_ipv6: false,
        surroundings: &Surroundings::default(),
    };
    let wishes = Wishes {
        default_route: true,
        ..Wishes::default()
    };
    let found = Plan::new(&tunnel, &wishes);
    assert_eq!(texts(&found.addresses), ["10.89.0.2/32"]);
    assert!(found.captured.is_empty());
    assert!(found.warnings[0].contains("IPv6 is disabled"), "{found}");
}

/// Attack A401.
#[test]
fn everything_in_parts_takes_a_wish_too() {
    for parts in [
        &["0.0.0.0/1", "128.0.0.0/1"][..],
        &["32.0.0.0/3", "128.0.0.0/2", "192.0.0.0/3"],
        &["64.0.0.0/4"],
    ] {
        let found = plan(&BOTH, parts, &Wishes::default());
        assert!(
            found.routes.is_empty() && found.captured.is_empty(),
            "{found}"
        );
        assert!(found.warnings[0].contains("takes a wish"), "{found}");
    }
    let found = plan(&BOTH, &["10.0.0.0/8", "2000::/3"], &Wishes::default());
    assert_eq!(texts(&found.routes), ["10.0.0.0/8"]);
    assert!(found.warnings[0].contains("IPv6 is not routed"), "{found}");
    let private = ["10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "fc00::/7"];
    let found = plan(&BOTH, &private, &Wishes::default());
    assert_eq!(texts(&found.routes), private);
    assert!(found.warnings.is_empty(), "{found}");
}

/// Attack A401.
#[test]
fn networks_of_the_machine_are_not_taken_by_the_proxy() {
    let home = Surroundings {
        connected: prefixes(&["192.168.1.0/24", "192.0.2.0/24"]),
        ..Surroundings::default()
    };
    let offered = [
        "192.0.2.0/24",
        "192.168.0.0/16",
        "192.168.1.0/25",
        "192.168.1.1/32",
    ];
    let all = Wishes {
        default_route: true,
        ..Wishes::default()
    };
    for wishes in [&Wishes::default(), &all] {
        let found = plan_in(&home, &BOTH, &offered, wishes);
        // The network of the machine is more precise than this one.
        assert_eq!(texts(&found.routes), ["192.168.0.0/16"]);
        assert!(found.captured.is_empty(), "{found}");
        let shown = found.to_string();
        assert!(shown.contains("connected to 192.168.1.0/24"), "{found}");
        assert!(shown.contains("connected to 192.0.2.0/24"), "{found}");
    }
    let wishes = Wishes {
        routes: prefixes(&["192.168.1.0/25"]),
        ..Wishes::default()
    };
    let found = plan_in(&home, &BOTH, &offered, &wishes);
    assert_eq!(texts(&found.routes), ["192.168.1.0/25"]);
}

/// Attack A399.
#[test]
fn addresses_of_the_machine_and_its_routers_are_not_taken() {
    let home = Surroundings {
        taken: ["192.168.1.1", "192.168.1.7"]
            .map(|it| it.parse().expect("an address"))
            .into(),
        ..Surroundings::default()
    };
    let assigned = [
        "192.168.1.1/32",
        "192.168.1.7/32",
        "192.0.2.1/32",
        "192.168.1.0/24",
    ];
    let found = plan_in(&home, &assigned, &["10.0.0.0/8"], &Wishes::default());
    assert!(found.addresses.is_empty(), "{found}");
    assert_eq!(found.warnings.len(), 4, "{found}");
    let found = plan_in(
        &home,
        &["192.168.1.8/32"],
        &["10.0.0.0/8"],
        &Wishes::default(),
    );
    assert_eq!(texts(&found.addresses), ["192.168.1.8/32"]);
}

/// Attack A401, limit K662.
#[test]
fn offered_networks_are_bounded() {
    let networks: Vec<_> = (0..1500)
        .map(|number| format!("10.{}.{}.0/24", number / 200, number % 200))
        .collect();
    let networks: Vec<_> = networks.iter().map(String::as_str).collect();
    let found = plan(&BOTH, &networks, &Wishes::default());
    assert_eq!(found.routes.len(), 1024);
    assert!(found.warnings[0].contains("more than 1024"), "{found}");
}

/// Fault F179.
#[test]
fn default_route_stays_when_the_proxy_takes_it_back() {
    let wishes = Wishes {
        default_route: true,
        ..Wishes::default()
    };
    let before = plan(&BOTH, &ALL, &wishes);
    let mut found = plan(&BOTH, &["10.0.0.0/8"], &wishes);
    found.hold(&before);
    assert_eq!(texts(&found.captured), ALL);
    assert_eq!(texts(&found.routes), ["10.0.0.0/8"]);
    let mut found = plan(&[], &ALL, &wishes);
    assert!(found.captured.is_empty());
    found.hold(&before);
    assert_eq!(found.captured, before.captured);
    assert_eq!(found.addresses, before.addresses);
    assert!(found.warnings[0].contains("all addresses back"), "{found}");
}

#[test]
fn name_servers_need_an_address_of_their_version() {
    let wishes = Wishes {
        dns: vec!["2620:fe::fe".parse().expect("an address")],
        ..Wishes::default()
    };
    let found = plan(&BOTH[..1], &ALL, &wishes);
    assert!(found.dns.is_empty() && found.routes.is_empty(), "{found}");
    assert!(
        found.warnings[1].contains("2620:fe::fe is not used"),
        "{found}"
    );
}

/// Attack A401.
#[test]
fn other_routes_to_public_addresses_are_reported() {
    let cafe = Surroundings {
        connected: prefixes(&["192.168.1.0/24", "203.0.113.0/24", "fe80::/64"]),
        routed: prefixes(&["10.0.0.0/8", "0.0.0.0/1", "128.0.0.0/1"]),
        ..Surroundings::default()
    };
    let wishes = Wishes {
        default_route: true,
        ..Wishes::default()
    };
    let found = plan_in(&cafe, &BOTH, &ALL, &wishes);
    assert!(
        found.warnings[0].starts_with("packets to 203.0.113.0/24, 0.0.0.0/1, 128.0.0.0/1 do not"),
        "{found}"
    );
    let many = Surroundings {
        routed: (0..20)
            .map(|it| Prefix::single([9, 9, 9, it].into()))
            .collect(),
        ..Surroundings::default()
    };
    let found = plan_in(&many, &BOTH, &ALL, &wishes);
    assert!(
        found.warnings[0].contains("9.9.9.7/32 and 12 more"),
        "{found}"
    );
    let found = plan_in(&cafe, &BOTH, &["10.1.0.0/16"], &Wishes::default());
    assert!(found.warnings.is_empty(), "{found}");
}
