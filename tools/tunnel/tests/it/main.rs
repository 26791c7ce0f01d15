//! Tunnels in network namespaces: a client without a route to the target, a proxy, and a target behind it. Needs root.
#![cfg(target_os = "linux")]

mod network;
mod roles;

use std::thread;
use std::time::{Duration, Instant};

use network::{Network, PROXY, Process, TARGET4, TARGET6};

/// Waits until a condition holds.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < deadline, "{what} within 30 s");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Starts a client, and waits until it has set up its network.
fn client(network: &Network, wishes: &[&str]) -> Process {
    let client = network.start("client", "client", wishes);
    client.wait_for("device ");
    client
}

/// Asserts that nothing of a tunnel is left at the client.
fn assert_clean(network: &Network) {
    let ip = |arguments: &str| network.ip("client", arguments);
    assert!(!ip("-o link").contains("courser0"), "{}", ip("-o link"));
    for family in ["-4", "-6"] {
        let rules = ip(&format!("{family} rule"));
        assert!(!rules.contains("52") && !rules.contains("53"), "{rules}");
        let routes = ip(&format!("{family} route show table all"));
        assert!(!routes.contains("courser0"), "{routes}");
    }
}

#[test]
fn packets_pass_both_ways_and_nothing_is_left() {
    let Some(network) = Network::new() else {
        return;
    };
    let _proxy = network.proxy();
    let routes = ["--route=198.18.1.0/30", "--route=fd00:18:1::/64"];
    let client = client(&network, &routes);
    for target in [TARGET4, TARGET6] {
        network.probe(&["ping", target]);
        network.probe(&["upload", target]);
        network.probe(&["download", target]);
    }
    client.interrupt();
    assert_clean(&network);
    // Without the tunnel there is no way.
    assert!(!network.try_probe(&["ping", TARGET4]));
}

#[test]
fn default_route_and_name_servers_spare_the_proxy_and_return() {
    let Some(network) = Network::new() else {
        return;
    };
    network.ip("client", "route add default via 198.18.0.1");
    let before = network.resolv_conf();
    let _proxy = network.proxy();
    let dns = format!("--dns={TARGET4}");
    let client = client(&network, &["--default-route", &dns]);
    let shown = network.ip("client", "-4 rule");
    assert!(
        shown.contains(&format!("to {PROXY} lookup main")),
        "{shown}"
    );
    let route = network.ip("client", &format!("route get {TARGET4}"));
    assert!(route.contains("dev courser0"), "{route}");
    let route = network.ip("client", &format!("route get {PROXY}"));
    assert!(route.contains("dev veth0"), "{route}");
    network.probe(&["download", TARGET4]);
    network.probe(&["resolve", "inside.example"]);
    client.interrupt();
    assert_clean(&network);
    assert_eq!(network.resolv_conf(), before);
}

#[test]
fn tunnel_returns_after_the_proxy_and_keeps_its_device() {
    let Some(network) = Network::new() else {
        return;
    };
    let proxy = network.proxy();
    let client = client(&network, &["--default-route"]);
    let index = || network.ip("client", "-o link show courser0");
    let before = index().split(':').next().map(str::to_owned);
    network.probe(&["upload", TARGET4]);
    drop(proxy);
    client.wait_for("the tunnel was lost");
    let _proxy = network.proxy();
    client.wait_for("connected");
    eventually("the tunnel carries packets again", || {
        network.try_probe(&["ping", TARGET4])
    });
    network.probe(&["upload", TARGET4]);
    assert_eq!(index().split(':').next().map(str::to_owned), before);
    client.interrupt();
    assert_clean(&network);
}

#[test]
fn transfers_continue_when_the_path_shrinks() {
    let Some(network) = Network::new() else {
        return;
    };
    let _proxy = network.proxy();
    let client = client(&network, &["--route=198.18.1.0/30"]);
    let mtu = || {
        let text = network.ip("client", "-o link show courser0");
        let mut words = text.split_whitespace().skip_while(|it| *it != "mtu");
        words
            .nth(1)
            .and_then(|it| it.parse::<u32>().ok())
            .expect("an MTU")
    };
    eventually("an MTU of more than 1400", || mtu() > 1400);
    network.ip("client", "link set veth0 mtu 1400");
    network.ip("proxy", "link set veth0 mtu 1400");
    network.probe(&["download", TARGET4]);
    network.probe(&["upload", TARGET4]);
    // Fault F164.
    eventually("an MTU that the path carries", || {
        (1280..1400).contains(&mtu())
    });
    client.interrupt();
    assert_clean(&network);
}

/// QUIC falls back to 1200 bytes while nothing arrives, which is too little for IPv6.
#[test]
fn tunnel_survives_a_silent_path() {
    let Some(network) = Network::new() else {
        return;
    };
    let _proxy = network.proxy();
    let routes = ["--route=198.18.1.0/30", "--route=fd00:18:1::/64"];
    let client = client(&network, &routes);
    let addresses = || network.ip("client", "-o address show courser0");
    let before = addresses();
    for _ in 0..2 {
        network.ip("proxy", "link set veth0 down");
        // Two seconds each.
        for _ in 0..3 {
            assert!(!network.try_probe(&["ping", TARGET4]));
        }
        network.ip("proxy", "link set veth0 up");
        eventually("the path carries packets again", || {
            network.try_probe(&["ping", TARGET6])
        });
    }
    network.probe(&["upload", TARGET6]);
    network.probe(&["download", TARGET6]);
    // Another tunnel would have others.
    assert_eq!(addresses(), before);
    client.interrupt();
    assert_clean(&network);
}

#[test]
fn client_ends_when_its_device_vanishes() {
    let Some(network) = Network::new() else {
        return;
    };
    let _proxy = network.proxy();
    let client = client(&network, &["--default-route"]);
    network.ip("client", "link delete courser0");
    client.wait_for("failed");
    assert_clean(&network);
}

/// Fault F179: packets would leave beside the tunnel.
#[test]
fn parts_that_other_programs_remove_are_set_again() {
    let Some(network) = Network::new() else {
        return;
    };
    network.ip("client", "route add default via 198.18.0.1");
    network.ip("client", "-6 address add fd00:18::2/64 dev veth0 nodad");
    network.ip("client", "-6 route add default via fd00:18::1");
    let _proxy = network.proxy();
    let client = client(&network, &["--default-route"]);
    let is_inside = |target: &str| {
        let route = network.ip("client", &format!("route get {target}"));
        route.contains("dev courser0")
    };
    assert!(is_inside(TARGET4) && is_inside(TARGET6));
    // Takes routes and addresses of IPv6 with it.
    network.ip("client", "link set courser0 down");
    client.wait_for("another program has removed parts");
    eventually("routes are back", || {
        is_inside(TARGET4) && is_inside(TARGET6)
    });
    network.probe(&["ping", TARGET4]);
    network.probe(&["ping", TARGET6]);
    // As systemd-networkd does when it starts.
    for family in ["-4", "-6"] {
        let rules = network.ip("client", &format!("{family} rule"));
        for line in rules.lines().filter(|line| line.starts_with("53")) {
            let (priority, _) = line.split_once(':').expect("a priority");
            network.ip("client", &format!("{family} rule del pref {priority}"));
        }
    }
    client.wait_for("another program has removed parts");
    eventually("rules are back", || {
        is_inside(TARGET4) && is_inside(TARGET6)
    });
    network.probe(&["download", TARGET4]);
    client.interrupt();
    assert_clean(&network);
}

/// Fault F178: the system has to accept the ICMP errors of the tunnel.
#[test]
fn transfers_continue_when_the_interface_takes_too_large_packets() {
    let Some(network) = Network::new() else {
        return;
    };
    let _proxy = network.proxy();
    let routes = ["--route=198.18.1.0/30", "--route=fd00:18:1::/64"];
    let client = client(&network, &routes);
    for filter in ["0", "1"] {
        network.ip("client", "link set courser0 mtu 9000");
        network.set("client", &format!("net.ipv4.conf.all.rp_filter={filter}"));
        for target in [TARGET4, TARGET6] {
            network.probe(&["upload", target]);
        }
        network.ip("client", "route flush cache");
    }
    client.interrupt();
    assert_clean(&network);
}

#[test]
fn killed_tunnel_is_cleaned_by_the_next() {
    let Some(network) = Network::new() else {
        return;
    };
    let _proxy = network.proxy();
    let dns = format!("--dns={TARGET4}");
    let before = network.resolv_conf();
    // Killed on drop.
    drop(client(&network, &["--default-route", &dns]));
    let left = network.ip("client", "-4 rule");
    assert!(left.contains(PROXY), "{left}");
    assert_ne!(network.resolv_conf(), before);
    client(&network, &["--default-route", &dns]).interrupt();
    assert_clean(&network);
    assert_eq!(network.resolv_conf(), before);
}

/// Attack A399.
#[test]
fn address_that_the_machine_has_is_not_taken() {
    let Some(network) = Network::new() else {
        return;
    };
    network.set("client", "net.ipv4.conf.all.rp_filter=1");
    network.ip("client", "address add 10.89.0.2/32 dev lo");
    let _proxy = network.proxy();
    let client = network.start("client", "client", &["--default-route"]);
    client.wait_for("the address 10.89.0.2 is not used");
    let shown = network.ip("client", "-o address show dev courser0");
    assert!(
        !shown.contains("10.89.0.2") && shown.contains("fd00:89::2"),
        "{shown}"
    );
    network.probe(&["ping", TARGET6]);
    client.interrupt();
    network.ip("client", "address del 10.89.0.2/32 dev lo");
    assert_clean(&network);
}

#[test]
fn device_that_was_there_before_remains_as_it_was() {
    let Some(network) = Network::new() else {
        return;
    };
    network.ip("client", "tuntap add mode tun name courser0");
    let _proxy = network.proxy();
    let client = client(&network, &["--default-route", "--route=203.0.113.0/24"]);
    network.probe(&["ping", TARGET4]);
    client.interrupt();
    let link = network.ip("client", "-o link show courser0");
    assert!(link.contains("courser0"), "{link}");
    for arguments in [
        "address show dev courser0",
        "-4 route show table all",
        "-6 route show table all",
    ] {
        let shown = network.ip("client", arguments);
        let left = [
            "10.89.0.2",
            "fd00:89::",
            "203.0.113.0",
            "default dev courser0",
        ];
        assert!(!left.iter().any(|it| shown.contains(it)), "{shown}");
    }
}

#[test]
fn plan_is_printed_and_nothing_changed() {
    let Some(network) = Network::new() else {
        return;
    };
    let _proxy = network.proxy();
    let checked = network.start("client", "client", &["--check", "--default-route"]);
    checked.wait_for("except for the proxy at");
    assert_clean(&network);
}

/// What other tests start in other namespaces: this binary again. Does nothing by itself.
#[test]
fn role() {
    roles::run();
}
