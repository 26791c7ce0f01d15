use super::*;

fn prefixes(texts: &[&str]) -> Vec<Prefix> {
    texts.iter().map(|it| it.parse().expect(it)).collect()
}

fn texts(prefixes: &[Prefix]) -> Vec<String> {
    prefixes.iter().map(ToString::to_string).collect()
}

fn plan(assigned: &[&str], offered: &[&str], wishes: &Wishes) -> Plan {
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
         route    everything of IPv6 without another route"
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
