//! Rules of the firewall for UDP.

use crate::finding::Finding;
use crate::machine::{Machine, Unseen};

/// Looks for rules that keep clients from `port`.
pub(crate) fn check(machine: &Machine, port: u16) -> Finding {
    let mut reasons = Vec::new();
    let commands: [(&str, &[&str], Reader); 3] = [
        ("nft", &["list", "ruleset"], nft),
        ("iptables", &["-S", "INPUT"], iptables),
        ("ip6tables", &["-S", "INPUT"], iptables),
    ];
    let mut has_rules = false;
    for (program, arguments, read) in commands {
        match machine.run(program, arguments) {
            Ok(text) => {
                let verdict = read(&text, port);
                has_rules |= verdict != Verdict::NoRules;
                if let Verdict::Closed(rule) = verdict {
                    return closed(program, &rule, port);
                }
            }
            Err(reason) => reasons.push(reason),
        }
    }
    if reasons.len() == commands.len() {
        return without_programs(machine, &reasons);
    }
    match has_rules {
        true => Finding::ok(NAME, format!("its rules do not drop UDP to port {port}")),
        false => Finding::ok(NAME, "no rules for incoming packets"),
    }
}

fn closed(program: &str, rule: &str, port: u16) -> Finding {
    let why = "clients of other machines get no answer over QUIC, and wait until they use TCP";
    let fix = match program {
        "nft" => format!("nft insert rule inet filter input udp dport {port} accept"),
        _ => format!("{program} -I INPUT -p udp --dport {port} -j ACCEPT"),
    };
    Finding::warning(NAME, format!("UDP port {port} seems closed: {rule}"), why).fix(fix)
}

/// Without its programs, the kernel shows only whether tables of iptables exist.
fn without_programs(machine: &Machine, reasons: &[Unseen]) -> Finding {
    let is_there = |reason: &&Unseen| !matches!(reason, Unseen::Absent(_));
    if let Some(reason) = reasons.iter().find(is_there) {
        return Finding::unseen(NAME, reason);
    }
    let tables = ["/proc/net/ip_tables_names", "/proc/net/ip6_tables_names"]
        .map(|path| machine.read(path).unwrap_or_default());
    let names: Vec<_> = tables.iter().flat_map(|text| text.lines()).collect();
    let saw = match names.is_empty() {
        true => "neither nft nor iptables is installed, and the kernel shows no table of iptables"
            .to_owned(),
        false => format!(
            "tables of iptables exist ({}), but neither nft nor iptables is installed",
            names.join(", ")
        ),
    };
    Finding::unseen(NAME, &Unseen::Failed(saw)).fix("apt install nftables   # to see the rules")
}

/// The fate of a new client's first packet.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Verdict {
    /// There is no rule about incoming packets.
    NoRules,
    Open,
    /// The rule or policy that drops it.
    Closed(String),
}

type Reader = fn(&str, u16) -> Verdict;

/// Reads the output of `nft list ruleset`: the chains of the hook `input`.
fn nft(text: &str, port: u16) -> Verdict {
    let mut verdict = Verdict::NoRules;
    let (mut is_input, mut is_dropping, mut is_decided) = (false, false, false);
    for line in text.lines().map(str::trim) {
        if line.starts_with("chain ") {
            (is_input, is_dropping, is_decided) = (false, false, false);
        } else if line.contains("hook input") {
            is_input = true;
            is_dropping = line.contains("policy drop");
            verdict = worse(verdict, Verdict::Open);
        } else if is_input && !is_decided {
            match rule(line, port, &["accept"], &["drop", "reject"]) {
                Some(true) => is_decided = true,
                Some(false) => {
                    is_decided = true;
                    verdict = worse(verdict, Verdict::Closed(line.to_owned()));
                }
                None => {}
            }
            if line == "}" && is_dropping && !is_decided {
                let policy = "the policy of the chain is to drop, and no rule accepts it";
                verdict = worse(verdict, Verdict::Closed(policy.to_owned()));
                is_input = false;
            }
        }
    }
    verdict
}

/// Reads the output of `iptables -S INPUT`.
fn iptables(text: &str, port: u16) -> Verdict {
    let mut is_dropping = false;
    let mut rules = 0;
    for line in text.lines().map(str::trim) {
        if line.starts_with("-P INPUT") {
            is_dropping = line.ends_with("DROP");
            continue;
        }
        rules += 1;
        match rule(line, port, &["-j ACCEPT"], &["-j DROP", "-j REJECT"]) {
            Some(true) => return Verdict::Open,
            Some(false) => return Verdict::Closed(line.to_owned()),
            None => {}
        }
    }
    match (is_dropping, rules) {
        (true, _) => {
            Verdict::Closed("the policy of INPUT is DROP, and no rule accepts it".to_owned())
        }
        (false, 0) => Verdict::NoRules,
        (false, _) => Verdict::Open,
    }
}

/// Returns true if a rule accepts new clients of the UDP port, false if it drops them, and `None` if it
/// does not concern them or has conditions that cannot be judged here.
fn rule(line: &str, port: u16, accepts: &[&str], drops: &[&str]) -> Option<bool> {
    let has = |words: &[&str]| words.iter().any(|word| line.contains(word));
    let is_conditional = has(&[
        " saddr", " -s ", "iif", " -i ", "ct state", "ctstate", "limit", "ether", "mark",
    ]);
    let verdict = match (has(accepts), has(drops)) {
        (true, false) => true,
        (false, true) => false,
        _ => return None,
    };
    if is_conditional || has(&["tcp", "icmp", "esp", "sctp"]) {
        return None;
    }
    let mut ports = numbers_after(line, "dport");
    match ports.next() {
        // A rule for all ports.
        None => Some(verdict),
        Some(first) => std::iter::once(first)
            .chain(ports)
            .any(|(low, high)| (low..=high).contains(&port))
            .then_some(verdict),
    }
}

/// Returns the ports and ranges of ports behind a word: `dport { 80, 443 }`, `--dport 400:500`.
fn numbers_after<'a>(line: &'a str, word: &str) -> impl Iterator<Item = (u16, u16)> + 'a {
    let rest = line.split_once(word).map_or("", |(_, rest)| rest);
    let rest = rest.strip_prefix('s').unwrap_or(rest).trim_start();
    let list = match rest.strip_prefix('{') {
        Some(set) => set.split('}').next().unwrap_or_default(),
        None => rest.split_whitespace().next().unwrap_or_default(),
    };
    list.split(',').filter_map(|part| {
        let mut ends = part.trim().split(['-', ':']).map(|end| end.parse().ok());
        let low = ends.next()??;
        Some((low, ends.next().flatten().unwrap_or(low)))
    })
}

fn worse(a: Verdict, b: Verdict) -> Verdict {
    match (&a, &b) {
        (Verdict::Closed(_), _) | (_, Verdict::NoRules) => a,
        _ => b,
    }
}

const NAME: &str = "firewall";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::testing::Tree;
    use crate::finding::Severity::{Note, Ok, Warning};

    fn chain(policy: &str, rules: &str) -> String {
        format!(
            "table inet filter {{\n\tchain input {{\n\t\ttype filter hook input priority filter; policy {policy};\n\
             {rules}\n\t}}\n\tchain forward {{\n\t\ttype filter hook forward priority filter; policy drop;\n\t}}\n}}\n"
        )
    }

    #[test]
    fn rules_of_nft_are_read_in_order() {
        for (policy, rules, is_closed) in [
            ("accept", "", false),
            ("drop", "", true),
            ("drop", "udp dport 443 accept", false),
            ("drop", "udp dport { 80, 443 } accept", false),
            ("drop", "udp dport 400-500 accept", false),
            ("drop", "udp dport 53 accept", true),
            ("drop", "tcp dport 443 accept", true),
            (
                "drop",
                "ct state established,related accept\niifname \"lo\" accept",
                true,
            ),
            ("drop", "accept", false),
            ("accept", "udp dport 443 drop", true),
            ("accept", "ip saddr 192.0.2.0/24 udp dport 443 drop", false),
            (
                "accept",
                "udp dport 443 accept\nreject with icmpx admin-prohibited",
                false,
            ),
            ("accept", "meta l4proto udp reject", true),
        ] {
            let verdict = nft(&chain(policy, rules), 443);
            assert_eq!(
                matches!(verdict, Verdict::Closed(_)),
                is_closed,
                "{policy}: {rules}"
            );
        }
        assert_eq!(
            nft("table ip nat {\n\tchain prerouting {\n\t}\n}\n", 443),
            Verdict::NoRules
        );
    }

    #[test]
    fn rules_of_iptables_are_read_in_order() {
        for (rules, expected) in [
            ("-P INPUT ACCEPT\n", "none"),
            ("-P INPUT DROP\n", "closed"),
            (
                "-P INPUT DROP\n-A INPUT -p udp -m udp --dport 443 -j ACCEPT\n",
                "open",
            ),
            (
                "-P INPUT DROP\n-A INPUT -p udp -m multiport --dports 80,443 -j ACCEPT\n",
                "open",
            ),
            (
                "-P INPUT DROP\n-A INPUT -p udp -m udp --dport 400:500 -j ACCEPT\n",
                "open",
            ),
            ("-P INPUT DROP\n-A INPUT -i lo -j ACCEPT\n", "closed"),
            ("-P INPUT ACCEPT\n-A INPUT -p udp -j DROP\n", "closed"),
            (
                "-P INPUT ACCEPT\n-A INPUT -p tcp -m tcp --dport 22 -j DROP\n",
                "open",
            ),
        ] {
            let found = match iptables(rules, 443) {
                Verdict::NoRules => "none",
                Verdict::Open => "open",
                Verdict::Closed(_) => "closed",
            };
            assert_eq!(found, expected, "{rules}");
        }
    }

    #[test]
    fn a_closed_port_has_the_command_that_opens_it() {
        let tree = Tree::new();
        let machine = tree
            .machine()
            .with_output("nft list ruleset", &chain("drop", ""));
        let found = check(&machine, 8443);
        assert_eq!(found.severity, Warning);
        let fix = found.fix.expect("a command");
        assert_eq!(
            fix,
            "nft insert rule inet filter input udp dport 8443 accept"
        );
        let machine = tree
            .machine()
            .with_output("iptables -S INPUT", "-P INPUT DROP\n");
        let fix = check(&machine, 443).fix.expect("a command");
        assert_eq!(fix, "iptables -I INPUT -p udp --dport 443 -j ACCEPT");
    }

    #[test]
    fn rules_that_cannot_be_read_are_not_visible() {
        let tree = Tree::new();
        tree.write("/proc/net/ip_tables_names", "filter\nnat\n");
        let found = check(&tree.machine(), 443);
        assert!(!found.visible && found.severity == Note, "{found:?}");
        assert!(found.saw.contains("(filter, nat)"), "{found:?}");
    }

    #[test]
    fn a_firewall_without_rules_is_open() {
        let tree = Tree::new();
        let machine = tree.machine().with_output("nft list ruleset", "");
        let found = check(&machine, 443);
        assert_eq!(
            (found.severity, &*found.saw),
            (Ok, "no rules for incoming packets")
        );
    }
}
