//! Checks the kernel settings for UDP.

use courser_units::binary_size;

use crate::doctor::machine::{Machine, Unseen};
use crate::finding::Finding;

/// Compares the settings with the needs of QUIC. `requested` is the buffer size that courser requests, and
/// `obtained` are the sizes of the receive and the send buffer that it got, in bytes.
pub(crate) fn check(machine: &Machine, requested: u64, obtained: [u64; 2]) -> Vec<Finding> {
    let [receive, send] = obtained.map(|bytes| bytes >= requested);
    let mut found = vec![
        buffer_limit(
            machine,
            "net.core.rmem_max",
            requested,
            receive,
            "a receive buffer cannot become larger, and bulk receive drops packets when the process pauses",
        ),
        buffer_limit(
            machine,
            "net.core.wmem_max",
            requested,
            send,
            "a send buffer cannot become larger, and bulk send waits more often",
        ),
        default_buffer(machine),
        backlog(machine),
        ports(machine),
        udp_memory(machine),
    ];
    found.extend(path_mtu_discovery(machine));
    found.extend(queue(machine));
    found
}

/// Checks the limit of a buffer. `exceeds` is true if this process got a larger one, which CAP_NET_ADMIN
/// permits.
fn buffer_limit(
    machine: &Machine,
    name: &str,
    requested: u64,
    exceeds: bool,
    why: &str,
) -> Finding {
    let fix = persistent(name, &requested.to_string());
    match setting(machine, name) {
        Err(reason) => reason.finding(name),
        Ok(bytes) if bytes < requested && exceeds => {
            let saw = format!(
                "{}; only this process may exceed it (CAP_NET_ADMIN)",
                binary_size(bytes)
            );
            Finding::fact(name, saw).because(why).fix(fix)
        }
        Ok(bytes) if bytes < requested => Finding::weak(name, binary_size(bytes), why).fix(fix),
        Ok(bytes) => Finding::good(name, binary_size(bytes)),
    }
}

/// Checks the default buffer size of programs that set none. courser sets its own.
fn default_buffer(machine: &Machine) -> Finding {
    let name = "net.core.rmem_default";
    match setting(machine, name) {
        Err(reason) => reason.finding(name),
        Ok(bytes) if bytes < USUAL_DEFAULT => {
            let why = "programs that set no size get this one, which is below the usual default of the kernel";
            Finding::fact(name, binary_size(bytes))
                .because(why)
                .fix(persistent(name, &USUAL_DEFAULT.to_string()))
        }
        Ok(bytes) => Finding::good(
            name,
            format!("{}; courser sets its own size", binary_size(bytes)),
        ),
    }
}

fn backlog(machine: &Machine) -> Finding {
    let name = "net.core.netdev_max_backlog";
    match setting(machine, name) {
        Err(reason) => reason.finding(name),
        Ok(packets) if packets < MIN_BACKLOG => {
            let why = "packets that arrive while a core is busy wait in this queue, and are dropped beyond it";
            Finding::weak(name, format!("{packets} packets"), why)
                .fix(persistent(name, &MIN_BACKLOG.to_string()))
        }
        Ok(packets) => Finding::good(name, format!("{packets} packets")),
    }
}

/// Checks the range of local ports, one of which each client socket and each connection of a proxy needs.
fn ports(machine: &Machine) -> Finding {
    let name = "net.ipv4.ip_local_port_range";
    let path = "/proc/sys/net/ipv4/ip_local_port_range";
    let text = match machine.read(path) {
        Ok(text) => text,
        Err(reason) => return reason.finding(name),
    };
    let mut ends = text.split_whitespace().map(str::parse::<u32>);
    let (Some(Ok(first)), Some(Ok(last))) = (ends.next(), ends.next()) else {
        let reason = Unseen::Failed(format!("{path} contains '{}'", text.trim()));
        return reason.finding(name);
    };
    let count = (last + 1).saturating_sub(first);
    let saw = format!("{first} to {last}, {count} ports");
    match count < MIN_PORTS {
        true => {
            let why = "each client socket and each connection of a proxy to its backend takes one";
            Finding::weak(name, saw, why).fix(persistent(name, "'32768 60999'"))
        }
        false => Finding::good(name, saw),
    }
}

/// Checks the memory limit of all UDP sockets together. Above the last number of pages, datagrams are dropped.
fn udp_memory(machine: &Machine) -> Finding {
    let name = "net.ipv4.udp_mem";
    let text = match machine.read("/proc/sys/net/ipv4/udp_mem") {
        Ok(text) => text,
        Err(reason) => return reason.finding(name),
    };
    let last = text.split_whitespace().next_back();
    let Some(pages) = last.and_then(|text| text.parse::<u64>().ok()) else {
        let reason = Unseen::Failed(format!("net.ipv4.udp_mem is '{}'", text.trim()));
        return reason.finding(name);
    };
    let bytes = pages.saturating_mul(PAGE);
    let saw = format!("{} for all UDP sockets", binary_size(bytes));
    match bytes < MIN_UDP_MEMORY {
        true => {
            let why =
                "this is the limit of all UDP sockets together: further datagrams are dropped";
            let pages = MIN_UDP_MEMORY / PAGE;
            let value = format!("'{} {} {pages}'", pages / 2, pages * 3 / 4);
            Finding::weak(name, saw, why).fix(persistent(name, &value))
        }
        false => Finding::good(name, saw),
    }
}

/// Checks path MTU discovery. Without it, packets lack the DF bit unless a program sets it, as courser does.
fn path_mtu_discovery(machine: &Machine) -> Option<Finding> {
    let name = "net.ipv4.ip_no_pmtu_disc";
    match setting(machine, name) {
        Ok(0) | Err(_) => None,
        Ok(mode) => {
            let why =
                "TCP connections may send fragments; courser searches for the path MTU itself";
            Some(
                Finding::fact(name, mode.to_string())
                    .because(why)
                    .fix(persistent(name, "0")),
            )
        }
    }
}

/// Checks the queueing discipline. Without fairness, acknowledgements wait behind bulk data.
fn queue(machine: &Machine) -> Option<Finding> {
    let name = "net.core.default_qdisc";
    let text = machine.read("/proc/sys/net/core/default_qdisc").ok()?;
    let discipline = text.trim();
    match discipline.starts_with("fq") || discipline == "cake" {
        true => Some(Finding::good(name, discipline)),
        false => {
            let why = "this queue is not fair: bulk data of other programs delays QUIC";
            Some(
                Finding::fact(name, discipline)
                    .because(why)
                    .fix(persistent(name, "fq")),
            )
        }
    }
}

/// Reads a setting that is one number.
fn setting(machine: &Machine, name: &str) -> Result<u64, Unseen> {
    machine.number(&format!("/proc/sys/{}", name.replace('.', "/")))
}

/// Returns the commands that change a setting now and after the next boot.
fn persistent(name: &str, value: &str) -> String {
    let plain = value.trim_matches('\'');
    format!(
        "sysctl -w {name}={value}\n\
         echo '{name} = {plain}' >> /etc/sysctl.d/90-courser.conf   # for the next boot"
    )
}

/// The usual default of the kernel: 208 KiB.
const USUAL_DEFAULT: u64 = 212_992;
/// The usual default of the kernel, in packets.
const MIN_BACKLOG: u64 = 1000;
const MIN_PORTS: u32 = 10_000;
const PAGE: u64 = 4096;
/// The memory for a few full socket buffers.
const MIN_UDP_MEMORY: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::checks::testing::Tree;
    use crate::finding::Verdict::{Fact, Good, Unknown, Weak};

    const WANTED: u64 = 7 << 20;

    /// Returns a machine whose settings all suffice.
    fn tuned() -> Tree {
        let tree = Tree::new();
        for (path, text) in [
            ("core/rmem_max", "7340032\n"),
            ("core/wmem_max", "7340032\n"),
            ("core/rmem_default", "212992\n"),
            ("core/netdev_max_backlog", "1000\n"),
            ("ipv4/ip_local_port_range", "32768\t60999\n"),
            ("ipv4/udp_mem", "575799\t767734\t1151598\n"),
            ("ipv4/ip_no_pmtu_disc", "0\n"),
            ("core/default_qdisc", "fq_codel\n"),
        ] {
            tree.write(&format!("/proc/sys/net/{path}"), text);
        }
        tree
    }

    fn finding(tree: &Tree, name: &str) -> Finding {
        let found = check(&tree.machine(), WANTED, [212_992; 2]);
        let mut found = found.into_iter().filter(|it| it.name == name);
        found.next().expect(name)
    }

    #[test]
    fn tuned_machine_is_good() {
        let found = check(&tuned().machine(), WANTED, [WANTED; 2]);
        assert!(found.iter().all(|it| it.verdict == Good), "{found:?}");
        assert_eq!(found.len(), 7);
    }

    #[test]
    fn low_settings_are_reported_with_their_commands() {
        for (name, path, text, verdict, command) in [
            (
                "net.core.rmem_max",
                "core/rmem_max",
                "212992",
                Weak,
                "sysctl -w net.core.rmem_max=7340032",
            ),
            (
                "net.core.wmem_max",
                "core/wmem_max",
                "7340031",
                Weak,
                "sysctl -w net.core.wmem_max=7340032",
            ),
            (
                "net.core.rmem_default",
                "core/rmem_default",
                "4096",
                Fact,
                "net.core.rmem_default=212992",
            ),
            (
                "net.core.netdev_max_backlog",
                "core/netdev_max_backlog",
                "300",
                Weak,
                "backlog=1000",
            ),
            (
                "net.ipv4.ip_local_port_range",
                "ipv4/ip_local_port_range",
                "50000 50100",
                Weak,
                "range='32768 60999'",
            ),
            (
                "net.ipv4.udp_mem",
                "ipv4/udp_mem",
                "100 200 300",
                Weak,
                "udp_mem='8192 12288 16384'",
            ),
            (
                "net.ipv4.ip_no_pmtu_disc",
                "ipv4/ip_no_pmtu_disc",
                "1",
                Fact,
                "ip_no_pmtu_disc=0",
            ),
            (
                "net.core.default_qdisc",
                "core/default_qdisc",
                "pfifo_fast",
                Fact,
                "default_qdisc=fq",
            ),
        ] {
            let tree = tuned();
            tree.write(&format!("/proc/sys/net/{path}"), text);
            let found = finding(&tree, name);
            assert_eq!(found.verdict, verdict, "{name}");
            let fix = found.fix.expect(name);
            assert!(fix.contains(command), "{name}: {fix}");
            assert!(fix.contains("/etc/sysctl.d/"), "{name}: {fix}");
        }
    }

    #[test]
    fn limit_is_no_warning_for_a_process_that_may_exceed_it() {
        let tree = tuned();
        tree.write("/proc/sys/net/core/rmem_max", "212992");
        let found = check(&tree.machine(), WANTED, [WANTED, 212_992]);
        assert_eq!(found[0].verdict, Fact);
        assert!(found[0].fix.is_some() && found[0].saw.contains("CAP_NET_ADMIN"));
    }

    #[test]
    fn missing_settings_are_unknown() {
        let found = check(&Tree::new().machine(), WANTED, [WANTED; 2]);
        assert!(found.iter().all(|it| it.verdict == Unknown), "{found:?}");
        assert!(
            found[0]
                .saw
                .contains("/proc/sys/net/core/rmem_max does not exist")
        );
    }

    #[test]
    fn settings_without_numbers_are_unknown() {
        let tree = tuned();
        tree.write("/proc/sys/net/ipv4/ip_local_port_range", "all\n");
        tree.write("/proc/sys/net/ipv4/udp_mem", "\n");
        tree.write("/proc/sys/net/core/rmem_max", "7M\n");
        for name in [
            "net.ipv4.ip_local_port_range",
            "net.ipv4.udp_mem",
            "net.core.rmem_max",
        ] {
            assert_eq!(finding(&tree, name).verdict, Unknown, "{name}");
        }
    }
}
