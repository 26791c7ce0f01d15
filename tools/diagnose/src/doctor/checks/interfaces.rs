//! Checks network interfaces: MTU and offloads.

use crate::doctor::machine::{Machine, Unseen};
use crate::finding::Finding;

/// Checks each interface that is up, except loopback.
pub(crate) fn check(machine: &Machine) -> Vec<Finding> {
    let names = match machine.list(FOLDER) {
        Ok(names) => names,
        Err(reason) => return vec![reason.finding("interfaces")],
    };
    let mut found = Vec::new();
    for name in names.iter().filter(|name| *name != "lo") {
        let state = machine.read(&format!("{FOLDER}/{name}/operstate"));
        // Tunnels and bridges report no state.
        if !matches!(state.as_deref().map(str::trim), Ok("up" | "unknown"))
            || is_unused(machine, name)
        {
            continue;
        }
        let is_tunnel = state.is_ok_and(|state| state.trim() == "unknown");
        found.push(mtu(machine, name, is_tunnel));
        found.push(offload(machine, name));
        // Each interface has two findings.
        if found.len() >= 2 * MAX_INTERFACES {
            break;
        }
    }
    match found.is_empty() {
        true => vec![no_interface()],
        false => found,
    }
}

/// Checks the route to a host. `mtu` is that of the interface towards it.
pub(crate) fn route(host: &str, is_ipv6: bool, mtu: Option<u32>) -> Finding {
    let name = "route";
    let Some(mtu) = mtu else {
        let reason = Unseen::Failed(format!(
            "this system does not report the packet size towards {host}"
        ));
        return reason.finding(name);
    };
    let min_mtu = 1200 + if is_ipv6 { 48 } else { 28 };
    let saw = format!("packets of up to {mtu} bytes towards {host}");
    match mtu < min_mtu {
        true => {
            let why = "QUIC needs datagrams of 1200 bytes on every path (RFC 9000 §14)";
            Finding::bad(name, saw, why)
                .fix("raise the MTU of the tunnel or of the interface on the path")
        }
        false => {
            let rest = "courser probe measures the path beyond the first hop";
            Finding::good(name, format!("{saw}; {rest}"))
        }
    }
}

fn mtu(machine: &Machine, interface: &str, is_tunnel: bool) -> Finding {
    let name = format!("{interface} MTU");
    let mtu = match machine.number(&format!("{FOLDER}/{interface}/mtu")) {
        Ok(mtu) => mtu,
        Err(reason) => return reason.finding(&name),
    };
    let saw = format!("{mtu} bytes");
    // Packets of a tunnel get another header, so that 1500 bytes do not fit.
    let enough = if is_tunnel { MIN_MTU } else { USUAL_MTU };
    let fix = format!("ip link set {interface} mtu {enough}");
    if mtu < MIN_MTU {
        let why = "QUIC needs datagrams of 1200 bytes, and IPv6 packets of 1280 (RFC 9000 §14, RFC 8200 §5)";
        return Finding::bad(&name, saw, why).fix(fix);
    }
    if mtu < USUAL_MTU {
        let why = "less than Ethernet: a tunnel, or the network of a cloud. The same data needs more packets; \
                   courser discovers the size";
        return Finding::fact(&name, saw).because(why);
    }
    Finding::good(&name, saw)
}

/// Reads the features of the interface with ethtool, because the kernel has no file with them.
fn offload(machine: &Machine, interface: &str) -> Finding {
    let name = format!("{interface} offload");
    let text = match machine.run("ethtool", &["-k", interface]) {
        Ok(text) => text,
        Err(reason @ Unseen::Absent(_)) => {
            return reason
                .finding(&name)
                .fix("apt install ethtool   # to see the offloads");
        }
        Err(reason) => return reason.finding(&name),
    };
    let value = |feature: &str| {
        let mut lines = text.lines().map(str::trim);
        let value = lines.find_map(|line| line.strip_prefix(feature)?.strip_prefix(": "));
        value.unwrap_or_default()
    };
    let missing: Vec<_> = OFFLOADS
        .into_iter()
        .filter(|(feature, _)| !value(feature).starts_with("on"))
        .collect();
    if missing.is_empty() {
        return Finding::good(&name, "segmentation, coalescing and checksums of UDP");
    }
    let names: Vec<_> = missing.iter().map(|(feature, _)| *feature).collect();
    // A feature that is fixed or not listed cannot be turned on.
    let flags: Vec<_> = missing
        .iter()
        .filter(|(feature, _)| {
            value(feature).starts_with("off") && !value(feature).contains("[fixed]")
        })
        .map(|(_, flag)| format!(" {flag} on"))
        .collect();
    let why = "the CPU does this work for each packet; many virtual interfaces do not support it";
    let finding = Finding::fact(&name, format!("off: {}", names.join(", "))).because(why);
    match flags.is_empty() {
        true => finding,
        false => finding.fix(format!("ethtool -K {interface}{}", flags.concat())),
    }
}

/// Returns true for interfaces that have never sent or received anything.
fn is_unused(machine: &Machine, interface: &str) -> bool {
    ["rx_packets", "tx_packets"].iter().all(|counter| {
        machine.number(&format!("{FOLDER}/{interface}/statistics/{counter}")) == Ok(0)
    })
}

fn no_interface() -> Finding {
    let why = "clients on other machines cannot reach a server here";
    Finding::fact("interfaces", "only loopback is up").because(why)
}

const FOLDER: &str = "/sys/class/net";
/// Names of features in the output of ethtool, and in its arguments.
const OFFLOADS: [(&str, &str); 3] = [
    ("tx-udp-segmentation", "tx-udp-segmentation"),
    ("generic-receive-offload", "gro"),
    ("tx-checksumming", "tx"),
];
/// The smallest MTU of IPv6 (RFC 8200 §5), which suffices for datagrams of 1200 bytes.
const MIN_MTU: u64 = 1280;
const USUAL_MTU: u64 = 1500;
/// The largest number of interfaces that are reported, because each container has one.
const MAX_INTERFACES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::checks::testing::Tree;
    use crate::finding::Verdict::{Bad, Fact, Good, Unknown};

    fn interface(tree: &Tree, name: &str, state: &str, mtu: &str) {
        tree.write(&format!("{FOLDER}/{name}/operstate"), state);
        tree.write(&format!("{FOLDER}/{name}/mtu"), mtu);
    }

    #[test]
    fn interfaces_that_are_up_are_checked() {
        let tree = Tree::new();
        interface(&tree, "lo", "unknown\n", "65536\n");
        interface(&tree, "eth0", "up\n", "1500\n");
        interface(&tree, "eth1", "down\n", "100\n");
        interface(&tree, "ifb0", "unknown\n", "100\n");
        tree.write(&format!("{FOLDER}/ifb0/statistics/rx_packets"), "0\n");
        tree.write(&format!("{FOLDER}/ifb0/statistics/tx_packets"), "0\n");
        interface(&tree, "wg0", "unknown\n", "1420\n");
        let found = check(&tree.machine());
        let named: Vec<_> = found.iter().map(|it| (&*it.name, it.verdict)).collect();
        assert_eq!(
            named,
            [
                ("eth0 MTU", Good),
                ("eth0 offload", Unknown),
                ("wg0 MTU", Fact),
                ("wg0 offload", Unknown)
            ]
        );
    }

    #[test]
    fn interfaces_that_are_down_do_not_hide_others() {
        let tree = Tree::new();
        for number in 0..20 {
            interface(&tree, &format!("a{number}"), "down\n", "1500\n");
        }
        for number in 0..20 {
            interface(&tree, &format!("b{number}"), "up\n", "1500\n");
        }
        let found = check(&tree.machine());
        assert_eq!(found.len(), 2 * MAX_INTERFACES);
        assert_eq!(found[0].name, "b0 MTU");
    }

    #[test]
    fn mtu_that_is_too_small_for_quic_is_an_error() {
        let tree = Tree::new();
        interface(&tree, "tun0", "unknown\n", "1279\n");
        let found = check(&tree.machine());
        assert_eq!(found[0].verdict, Bad);
        assert_eq!(found[0].fix.as_deref(), Some("ip link set tun0 mtu 1280"));
        interface(&tree, "tun0", "up\n", "1279\n");
        let found = check(&tree.machine());
        assert_eq!(found[0].fix.as_deref(), Some("ip link set tun0 mtu 1500"));
        interface(&tree, "tun0", "unknown\n", "1280\n");
        assert_eq!(check(&tree.machine())[0].verdict, Fact);
    }

    #[test]
    fn offloads_come_from_ethtool() {
        let tree = Tree::new();
        interface(&tree, "eth0", "up\n", "1500\n");
        let text = "Features for eth0:\nrx-checksumming: on\ntx-checksumming: on\n\
                    \ttx-checksum-ipv4: off [fixed]\ngeneric-receive-offload: off\n\
                    tx-udp-segmentation: on [fixed]\n";
        let found = check(&tree.machine().with_output("ethtool -k eth0", text));
        assert_eq!(found[1].saw, "off: generic-receive-offload");
        assert_eq!(found[1].fix.as_deref(), Some("ethtool -K eth0 gro on"));
        let text = text.replace("offload: off", "offload: on");
        let found = check(&tree.machine().with_output("ethtool -k eth0", &text));
        assert_eq!(found[1].verdict, Good);
        let text = text.replace("segmentation: on", "segmentation: off");
        let found = check(&tree.machine().with_output("ethtool -k eth0", &text));
        assert_eq!(found[1].saw, "off: tx-udp-segmentation");
        assert_eq!(found[1].fix, None, "the feature is fixed");
        let found = check(&tree.machine());
        assert!(
            found[1].verdict == Unknown && found[1].saw.contains("the program ethtool"),
            "{found:?}"
        );
    }

    #[test]
    fn machine_with_only_loopback_gets_a_note() {
        let tree = Tree::new();
        interface(&tree, "lo", "unknown\n", "65536\n");
        assert_eq!(check(&tree.machine())[0].saw, "only loopback is up");
        assert_eq!(check(&Tree::new().machine())[0].verdict, Unknown);
    }

    #[test]
    fn routes_must_carry_datagrams_of_1200_bytes() {
        for (is_ipv6, mtu, verdict) in [
            (false, Some(1228), Good),
            (false, Some(1227), Bad),
            (true, Some(1247), Bad),
            (true, Some(1248), Good),
            (true, None, Unknown),
        ] {
            assert_eq!(route("a.test", is_ipv6, mtu).verdict, verdict, "{mtu:?}");
        }
    }
}
