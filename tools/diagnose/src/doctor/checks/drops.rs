//! Checks the datagrams that the kernel has dropped since the machine was started.

use crate::doctor::machine::Machine;
use crate::finding::Finding;

/// Checks the counters of UDP and of the receive queues.
pub(crate) fn check(machine: &Machine) -> Vec<Finding> {
    let counts = match machine.read("/proc/net/snmp") {
        Ok(text) => Counts::of(&text, &machine.read("/proc/net/snmp6").unwrap_or_default()),
        Err(reason) => return vec![reason.finding(FULL)],
    };
    let mut found = vec![full(machine, &counts), damaged(&counts)];
    found.extend(backlog(machine));
    found
}

fn full(machine: &Machine, counts: &Counts) -> Finding {
    let Counts { received, full, .. } = *counts;
    let saw = format!(
        "{full} datagrams of {received} received were dropped at a full socket since the start of the machine"
    );
    // A warning above one in ten thousand.
    if full.saturating_mul(10_000) > received {
        let why = "programs did not read in time, or their buffers were too small: peers see these drops as packet loss";
        let mut fix = "ss -ulnm   # shows the sockets with their drops (d)".to_owned();
        if let Some(command) = raise(machine, "rmem_max", 7_340_032) {
            fix.push_str(&format!("\n{command}   # then restart the program"));
        }
        return Finding::weak(FULL, saw, why).fix(fix);
    }
    Finding::good(FULL, saw)
}

fn damaged(counts: &Counts) -> Finding {
    let name = "UDP checksums";
    let saw = format!("{} datagrams with a wrong checksum", counts.damaged);
    if counts.damaged.saturating_mul(100_000) > counts.received {
        let why = "a cable, a network card or its checksum offload damages packets, each of which counts as lost";
        return Finding::weak(name, saw, why)
            .fix("ethtool -S IFACE | grep -i err\nethtool -K IFACE rx off   # if the offload is at fault");
    }
    Finding::good(name, saw)
}

/// Reads `/proc/net/softnet_stat`, with a line of hexadecimal numbers for each core.
fn backlog(machine: &Machine) -> Option<Finding> {
    let name = "receive backlog";
    let text = machine.read("/proc/net/softnet_stat").ok()?;
    let column = |index: usize| -> u64 {
        let cells = text
            .lines()
            .filter_map(|line| line.split_whitespace().nth(index));
        cells
            .filter_map(|cell| u64::from_str_radix(cell, 16).ok())
            .sum()
    };
    let (packets, dropped) = (column(0), column(1));
    let saw = format!("{dropped} of {packets} packets were dropped before UDP");
    Some(match dropped.saturating_mul(10_000) > packets {
        true => {
            let why = "packets arrived faster than a core could process them: the queue before UDP was full";
            let found = Finding::weak(name, saw, why);
            match raise(machine, "netdev_max_backlog", 5000) {
                Some(command) => found.fix(command),
                None => found,
            }
        }
        false => Finding::good(name, saw),
    })
}

/// Returns the command that raises a setting; `None` if it is high enough already.
fn raise(machine: &Machine, name: &str, value: u64) -> Option<String> {
    let now = machine.number(&format!("/proc/sys/net/core/{name}"));
    let is_high = now.is_ok_and(|now| now >= value);
    (!is_high).then(|| format!("sysctl -w net.core.{name}={value}"))
}

/// Counters of UDP over IPv4 and IPv6.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Counts {
    received: u64,
    full: u64,
    damaged: u64,
}

impl Counts {
    /// Reads `/proc/net/snmp`, which has a line of names and one of numbers, and `/proc/net/snmp6`,
    /// which has a name and a number in each line.
    fn of(snmp: &str, snmp6: &str) -> Self {
        let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Udp:"));
        let names = lines.next().unwrap_or_default().split_whitespace();
        let numbers = lines.next().unwrap_or_default().split_whitespace();
        let v4: Vec<_> = names.zip(numbers).collect();
        let count = |name: &str| {
            let four = v4
                .iter()
                .find(|(it, _)| *it == name)
                .map(|(_, number)| *number);
            let six = snmp6.lines().find_map(|line| {
                let rest = line.strip_prefix("Udp6")?.strip_prefix(name)?;
                rest.starts_with([' ', '\t']).then(|| rest.trim())
            });
            let numbers = [four, six].into_iter().flatten();
            numbers.filter_map(|text| text.parse::<u64>().ok()).sum()
        };
        Self {
            received: count("InDatagrams"),
            full: count("RcvbufErrors"),
            damaged: count("InCsumErrors"),
        }
    }
}

const FULL: &str = "UDP drops";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::checks::testing::Tree;
    use crate::finding::Verdict::{Good, Weak};

    fn snmp(received: u64, full: u64, damaged: u64) -> String {
        format!(
            "Tcp: RtoAlgorithm\nTcp: 1\n\
             Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors\n\
             Udp: {received} 5 6 7 {full} 9 {damaged}\n\
             UdpLite: InDatagrams\nUdpLite: 77\n"
        )
    }

    #[test]
    fn counters_of_both_ip_versions_are_added_up() {
        let snmp6 =
            "Udp6InDatagrams                 \t1000\nUdp6RcvbufErrors\t3\nUdpLite6InDatagrams 9\n";
        let counts = Counts::of(&snmp(100, 2, 1), snmp6);
        assert_eq!(
            counts,
            Counts {
                received: 1100,
                full: 5,
                damaged: 1
            }
        );
        assert_eq!(Counts::of("", ""), Counts::default());
    }

    #[test]
    fn one_drop_in_ten_thousand_is_tolerated() {
        for (full, verdict) in [(0, Good), (100, Good), (101, Weak)] {
            let tree = Tree::new();
            tree.write("/proc/net/snmp", &snmp(1_000_000, full, 0));
            assert_eq!(check(&tree.machine())[0].verdict, verdict, "{full}");
        }
    }

    #[test]
    fn wrong_checksums_are_reported() {
        for (damaged, verdict) in [(0, Good), (10, Good), (11, Weak)] {
            let tree = Tree::new();
            tree.write("/proc/net/snmp", &snmp(1_000_000, 0, damaged));
            assert_eq!(check(&tree.machine())[1].verdict, verdict, "{damaged}");
        }
    }

    #[test]
    fn drops_before_udp_are_summed_over_cores() {
        let tree = Tree::new();
        tree.write("/proc/net/snmp", &snmp(1, 0, 0));
        tree.write(
            "/proc/net/softnet_stat",
            "00000100 0000000a 0\n00000100 00000010 0\n",
        );
        let found = check(&tree.machine());
        assert_eq!(found[2].saw, "26 of 512 packets were dropped before UDP");
        assert_eq!(found[2].verdict, Weak);
        let command = "sysctl -w net.core.netdev_max_backlog=5000";
        assert_eq!(found[2].fix.as_deref(), Some(command));
    }

    #[test]
    fn commands_never_lower_a_setting() {
        let tree = Tree::new();
        tree.write("/proc/net/snmp", &snmp(1, 1, 0));
        tree.write("/proc/net/softnet_stat", "00000001 0000000a 0\n");
        for (now, is_raised) in [("4999", true), ("5000", false), ("30000", false)] {
            tree.write("/proc/sys/net/core/netdev_max_backlog", now);
            let found = check(&tree.machine());
            assert_eq!(found[2].fix.is_some(), is_raised, "{now}");
        }
        for (now, is_raised) in [("212992", true), ("7340032", false), ("16777216", false)] {
            tree.write("/proc/sys/net/core/rmem_max", now);
            let found = check(&tree.machine());
            let fix = found[0].fix.as_deref().expect("a fix for drops");
            assert_eq!(fix.contains("rmem_max=7340032"), is_raised, "{now}");
        }
    }
}
