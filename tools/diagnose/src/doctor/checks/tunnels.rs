//! Checks the parts of the system that IP tunnels and their proxies need.

use crate::doctor::machine::{Machine, Unseen};
use crate::finding::Finding;

/// Checks TUN devices, the privilege to create them, and the settings of a machine that forwards packets. Most machines have
/// no tunnels, so that what is missing is no warning.
pub(crate) fn check(machine: &Machine) -> Vec<Finding> {
    let mut found = vec![device(machine), privilege(machine), offloads(machine)];
    found.extend(forwarding(
        machine,
        "net.ipv4.ip_forward",
        "/proc/sys/net/ipv4/ip_forward",
    ));
    found.extend(forwarding(
        machine,
        "net.ipv6.conf.all.forwarding",
        "/proc/sys/net/ipv6/conf/all/forwarding",
    ));
    found.extend(reverse_path(machine));
    found
}

fn device(machine: &Machine) -> Finding {
    let name = "TUN devices";
    match machine.list("/dev/net") {
        Ok(names) if names.iter().any(|it| it == "tun") => {
            Finding::good(name, "/dev/net/tun exists")
        }
        Ok(_) | Err(Unseen::Absent(_)) => Finding::fact(name, "/dev/net/tun does not exist")
            .because("'courser tunnel' and 'courser proxy --ip' create a device with it")
            .fix("modprobe tun   # in a container: --device /dev/net/tun"),
        Err(reason) => reason.finding(name),
    }
}

/// Reads the effective capabilities of this process.
fn privilege(machine: &Machine) -> Finding {
    let name = "CAP_NET_ADMIN";
    let status = match machine.read("/proc/self/status") {
        Ok(status) => status,
        Err(reason) => return reason.finding(name),
    };
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = line.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    match mask {
        None => Unseen::Failed("/proc/self/status has no CapEff".to_owned()).finding(name),
        Some(mask) if mask & (1 << NET_ADMIN) != 0 => Finding::good(name, "this process has it"),
        Some(_) => Finding::fact(name, "this process does not have it")
            .because("it permits to create TUN devices and to set addresses, routes and rules")
            .fix("sudo courser tunnel ...\nsetcap cap_net_admin+ep \"$(command -v courser)\"   # or for this program always"),
    }
}

/// Judges the offloads by the version of the kernel: a device would have to be created to ask it.
fn offloads(machine: &Machine) -> Finding {
    let name = "TUN offloads";
    let release = match machine.read("/proc/sys/kernel/osrelease") {
        Ok(release) => release,
        Err(reason) => return reason.finding(name),
    };
    let mut numbers = release.trim().split(['.', '-']).map(str::parse::<u32>);
    let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else {
        return Unseen::Failed(format!("the release is '{}'", release.trim())).finding(name);
    };
    match (major, minor) >= UDP_SINCE {
        true => Finding::good(name, format!("Linux {major}.{minor} passes batches of TCP and UDP")),
        false => Finding::fact(name, format!("Linux {major}.{minor} passes batches of TCP only"))
            .because("QUIC and other protocols over UDP take a system call for each packet of a tunnel; Linux 6.2 passes theirs too"),
    }
}

fn forwarding(machine: &Machine, name: &str, path: &str) -> Option<Finding> {
    Some(match machine.number(path).ok()? {
        0 => Finding::fact(name, "0: this machine forwards no packets")
            .because("clients of 'courser proxy --ip' reach this machine only")
            .fix(format!("sysctl -w {name}=1   # on a proxy of IP")),
        value => Finding::good(name, format!("{value}: this machine forwards packets")),
    })
}

/// Checks the filter of sources, which drops packets that come from elsewhere than answers would go.
fn reverse_path(machine: &Machine) -> Option<Finding> {
    let name = "net.ipv4.conf.all.rp_filter";
    let path = "/proc/sys/net/ipv4/conf/all/rp_filter";
    Some(match machine.number(path).ok()? {
        1 => Finding::fact(
            name,
            "1: packets are dropped unless answers leave through their interface",
        )
        .because(
            "a tunnel whose routes cover only a part of what its peers send from loses the rest",
        )
        .fix(format!(
            "sysctl -w {name}=2   # if a tunnel loses packets that arrive"
        )),
        value => Finding::good(
            name,
            format!("{value}: sources are not bound to an interface"),
        ),
    })
}

/// The number of the capability.
const NET_ADMIN: u32 = 12;

/// The first version of Linux whose TUN devices have segmentation of UDP.
const UDP_SINCE: (u32, u32) = (6, 2);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::checks::testing::Tree;
    use crate::finding::Verdict::{Fact, Good, Unknown};

    fn ready() -> Tree {
        let tree = Tree::new();
        for (path, text) in [
            ("/dev/net/tun", ""),
            ("/proc/self/status", "Name:\tx\nCapEff:\t000001ffffffffff\n"),
            ("/proc/sys/kernel/osrelease", "6.18.44-x\n"),
            ("/proc/sys/net/ipv4/ip_forward", "1\n"),
            ("/proc/sys/net/ipv6/conf/all/forwarding", "1\n"),
            ("/proc/sys/net/ipv4/conf/all/rp_filter", "2\n"),
        ] {
            tree.write(path, text);
        }
        tree
    }

    #[test]
    fn machine_for_tunnels_is_good() {
        let found = check(&ready().machine());
        assert!(found.iter().all(|it| it.verdict == Good), "{found:?}");
        assert_eq!(found.len(), 6);
    }

    #[test]
    fn what_is_missing_is_reported_with_its_command() {
        for (name, path, text, command) in [
            (
                "CAP_NET_ADMIN",
                "/proc/self/status",
                "CapEff:\t0000000000000000\n",
                "setcap",
            ),
            (
                "net.ipv4.ip_forward",
                "/proc/sys/net/ipv4/ip_forward",
                "0",
                "ip_forward=1",
            ),
            (
                "net.ipv6.conf.all.forwarding",
                "/proc/sys/net/ipv6/conf/all/forwarding",
                "0",
                "forwarding=1",
            ),
            (
                "net.ipv4.conf.all.rp_filter",
                "/proc/sys/net/ipv4/conf/all/rp_filter",
                "1",
                "rp_filter=2",
            ),
        ] {
            let tree = ready();
            tree.write(path, text);
            let found = check(&tree.machine());
            let found = found.into_iter().find(|it| it.name == name).expect(name);
            assert_eq!(found.verdict, Fact, "{name}");
            assert!(found.fix.expect(name).contains(command), "{name}");
        }
        let tree = ready();
        tree.write("/proc/sys/kernel/osrelease", "5.15.0-91-generic");
        let found = check(&tree.machine());
        let found = found.into_iter().find(|it| it.name == "TUN offloads");
        assert!(found.expect("a row").saw.contains("TCP only"));
    }

    #[test]
    fn machine_without_devices_gets_advice() {
        let found = check(&Tree::new().machine());
        assert_eq!(found[0].verdict, Fact);
        assert!(
            found[0]
                .fix
                .as_ref()
                .expect("advice")
                .contains("modprobe tun")
        );
        assert!(
            found[1..].iter().all(|it| it.verdict == Unknown),
            "{found:?}"
        );
    }
}
