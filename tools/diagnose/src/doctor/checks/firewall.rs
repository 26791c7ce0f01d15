//! Rules of the firewall for UDP.

mod rule;

use self::rule::Fate;
use crate::doctor::machine::{Machine, Unseen};
use crate::finding::Finding;

/// Looks for rules that keep clients from `port`.
pub(crate) fn check(machine: &Machine, port: u16) -> Finding {
    let mut reasons = Vec::new();
    let commands: [(&str, &[&str], Reader); 3] = [
        ("nft", &["list", "ruleset"], nft),
        ("iptables", &["-S", "INPUT"], iptables),
        ("ip6tables", &["-S", "INPUT"], iptables),
    ];
    let mut has_rules = false;
    let mut unclear = None;
    for (program, arguments, read) in commands {
        match machine.run(program, arguments) {
            Ok(text) => {
                let verdict = read(&text, port);
                has_rules |= verdict != Verdict::NoRules;
                match verdict {
                    Verdict::Closed { rule, chain } => return closed(program, &rule, &chain, port),
                    Verdict::Unclear(rule) => {
                        unclear.get_or_insert((program, rule));
                    }
                    Verdict::NoRules | Verdict::Open => {}
                }
            }
            Err(reason) => reasons.push(reason),
        }
    }
    if let Some((program, rule)) = unclear {
        let saw = format!("cannot judge UDP port {port} by this rule of {program}: {rule}");
        let why = "courser probe from another machine shows whether packets arrive";
        return Finding::fact(NAME, saw).because(why);
    }
    if reasons.len() == commands.len() {
        return without_programs(machine, &reasons);
    }
    match has_rules {
        true => Finding::good(NAME, format!("its rules do not drop UDP to port {port}")),
        false => Finding::good(NAME, "no rules for incoming packets"),
    }
}

fn closed(program: &str, rule: &str, chain: &str, port: u16) -> Finding {
    let why = "clients of other machines get no answer over QUIC, and wait until they use TCP";
    let fix = match program {
        "nft" => format!("nft insert rule {chain} udp dport {port} accept"),
        _ => format!("{program} -I {chain} -p udp --dport {port} -j ACCEPT"),
    };
    Finding::weak(NAME, format!("UDP port {port} seems closed: {rule}"), why).fix(fix)
}

/// Without its programs, the kernel shows only whether tables of iptables exist.
fn without_programs(machine: &Machine, reasons: &[Unseen]) -> Finding {
    let is_there = |reason: &&Unseen| !matches!(reason, Unseen::Absent(_));
    if let Some(reason) = reasons.iter().find(is_there) {
        return reason.finding(NAME);
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
    Unseen::Failed(saw)
        .finding(NAME)
        .fix("apt install nftables   # to see the rules")
}

/// The fate of a new client's first packet.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Verdict {
    /// There is no rule about incoming packets.
    NoRules,
    Open,
    /// The first rule that may decide, and has words that are not known here.
    Unclear(String),
    /// The rule or policy that drops it, and its chain.
    Closed {
        rule: String,
        chain: String,
    },
}

type Reader = fn(&str, u16) -> Verdict;

/// Reads the output of `nft list ruleset`: the chains of the hook `input`. A packet must pass all of them.
fn nft(text: &str, port: u16) -> Verdict {
    let mut verdict = Verdict::NoRules;
    let (mut table, mut name) = ("", "");
    let mut chain: Option<Chain> = None;
    for line in text.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("table ") {
            table = rest.trim_end_matches('{').trim();
        } else if let Some(rest) = line.strip_prefix("chain ") {
            name = rest.trim_end_matches('{').trim();
        } else if line.contains("hook input") && line.starts_with("type ") {
            chain = Some(Chain::new(
                format!("{table} {name}"),
                line.contains("policy drop"),
            ));
        } else if line == "}" {
            if let Some(chain) = chain.take() {
                verdict = worse(verdict, chain.end());
            }
        } else if let Some(chain) = &mut chain {
            chain.add(line, rule::nft(line, port));
        }
    }
    verdict
}

/// Reads the output of `iptables -S INPUT`.
fn iptables(text: &str, port: u16) -> Verdict {
    let policy = text.lines().find(|line| line.starts_with("-P INPUT"));
    let is_dropping = policy.is_some_and(|line| line.trim().ends_with("DROP"));
    let mut chain = Chain::new("INPUT".to_owned(), is_dropping);
    let rules = text
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("-A "));
    for line in rules.clone() {
        chain.add(line, rule::iptables(line, port));
    }
    match (is_dropping, rules.count()) {
        (false, 0) => Verdict::NoRules,
        _ => chain.end(),
    }
}

/// A chain while its rules are read.
struct Chain {
    name: String,
    is_dropping: bool,
    verdict: Option<Verdict>,
}

impl Chain {
    fn new(name: String, is_dropping: bool) -> Self {
        Self {
            name,
            is_dropping,
            verdict: None,
        }
    }

    /// Adds the next rule. The first one that decides, or may, is the last that counts.
    fn add(&mut self, line: &str, fate: Fate) {
        if self.verdict.is_some() {
            return;
        }
        self.verdict = match fate {
            Fate::Goes => None,
            Fate::Accepted => Some(Verdict::Open),
            Fate::Unclear => Some(Verdict::Unclear(line.to_owned())),
            Fate::Dropped => Some(Verdict::Closed {
                rule: line.to_owned(),
                chain: self.name.clone(),
            }),
        };
    }

    fn end(self) -> Verdict {
        match self.verdict {
            Some(verdict) => verdict,
            None if self.is_dropping => Verdict::Closed {
                rule: format!(
                    "the policy of {} is to drop, and no rule accepts it",
                    self.name
                ),
                chain: self.name,
            },
            None => Verdict::Open,
        }
    }
}

/// Returns the verdict of two chains, which a packet must both pass.
fn worse(a: Verdict, b: Verdict) -> Verdict {
    let rank = |verdict: &Verdict| match verdict {
        Verdict::NoRules => 0,
        Verdict::Open => 1,
        Verdict::Unclear(_) => 2,
        Verdict::Closed { .. } => 3,
    };
    if rank(&b) > rank(&a) { b } else { a }
}

const NAME: &str = "firewall";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::checks::testing::Tree;
    use crate::finding::Verdict::{Fact, Good, Unknown, Weak};

    fn chain(policy: &str, rules: &str) -> String {
        format!(
            "table inet filter {{\n\tchain input {{\n\t\ttype filter hook input priority filter; policy {policy};\n\
             {rules}\n\t}}\n\tchain forward {{\n\t\ttype filter hook forward priority filter; policy drop;\n\t}}\n}}\n"
        )
    }

    fn name(verdict: &Verdict) -> &'static str {
        match verdict {
            Verdict::NoRules => "none",
            Verdict::Open => "open",
            Verdict::Unclear(_) => "unclear",
            Verdict::Closed { .. } => "closed",
        }
    }

    #[test]
    fn rules_of_nft_are_read_in_order() {
        for (policy, rules, expected) in [
            ("accept", "", "open"),
            ("drop", "", "closed"),
            ("drop", "udp dport 443 accept", "open"),
            ("drop", "udp dport { 80, 443 } accept", "open"),
            ("drop", "udp dport { 80, 8443 } accept", "closed"),
            ("drop", "udp dport 400-500 accept", "open"),
            ("drop", "udp dport 53 accept", "closed"),
            ("drop", "tcp dport 443 accept", "closed"),
            ("drop", "tcp dport 443 ct state new accept", "closed"),
            (
                "drop",
                "ct state established,related accept\niifname \"lo\" accept",
                "closed",
            ),
            (
                "drop",
                "ct state { established, new } udp dport 443 accept",
                "open",
            ),
            ("drop", "accept", "open"),
            ("accept", "udp dport 443 drop", "closed"),
            (
                "accept",
                "udp dport 443 counter packets 5 bytes 77 drop comment \"no jump\"",
                "closed",
            ),
            ("accept", "counter packets 5 bytes 77", "open"),
            (
                "accept",
                "ip saddr 192.0.2.0/24 udp dport 443 drop",
                "unclear",
            ),
            ("accept", "ip daddr 192.0.2.1 udp dport 443 drop", "unclear"),
            ("drop", "udp sport 443 accept", "unclear"),
            ("drop", "udp dport != 443 accept", "unclear"),
            ("drop", "udp dport @open accept", "unclear"),
            ("drop", "iifname \"eth0\" accept", "unclear"),
            ("drop", "jump services", "unclear"),
            ("drop", "ip protocol icmp jump pings", "closed"),
            ("drop", "udp dport 443 goto quic", "unclear"),
            (
                "drop",
                "ct state vmap { established : accept, invalid : drop }",
                "unclear",
            ),
            (
                "accept",
                "udp dport 443 accept\nreject with icmpx type admin-prohibited",
                "open",
            ),
            (
                "accept",
                "reject with icmpx type admin-prohibited",
                "closed",
            ),
            ("accept", "meta l4proto udp reject", "closed"),
            ("accept", "meta l4proto { icmp, ipv6-icmp } drop", "open"),
        ] {
            let verdict = nft(&chain(policy, rules), 443);
            assert_eq!(name(&verdict), expected, "{policy}: {rules}");
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
            ("-P INPUT DROP\n-A INPUT ! -i lo -j ACCEPT\n", "unclear"),
            ("-P INPUT DROP\n-A INPUT -i eth0 -j ACCEPT\n", "unclear"),
            (
                "-P INPUT DROP\n-A INPUT -p udp -m udp --sport 443 -j ACCEPT\n",
                "unclear",
            ),
            (
                "-P INPUT DROP\n-A INPUT -d 192.0.2.1/32 -p udp -j ACCEPT\n",
                "unclear",
            ),
            (
                "-P INPUT DROP\n-A INPUT -p udp -m udp ! --dport 443 -j ACCEPT\n",
                "unclear",
            ),
            (
                "-P INPUT DROP\n-A INPUT -m set --match-set open dst -j ACCEPT\n",
                "unclear",
            ),
            ("-P INPUT ACCEPT\n-A INPUT -p udp -j DROP\n", "closed"),
            (
                "-P INPUT ACCEPT\n-A INPUT -p udp -m comment --comment \"no -i here\" -j DROP\n",
                "closed",
            ),
            (
                "-P INPUT ACCEPT\n-A INPUT -p tcp -m tcp --dport 22 -j DROP\n",
                "open",
            ),
        ] {
            assert_eq!(name(&iptables(rules, 443)), expected, "{rules}");
        }
    }

    #[test]
    fn a_rejection_at_the_end_closes_the_port() {
        let rhel = "-P INPUT ACCEPT\n\
                    -A INPUT -m state --state RELATED,ESTABLISHED -j ACCEPT\n\
                    -A INPUT -p icmp -j ACCEPT\n\
                    -A INPUT -i lo -j ACCEPT\n\
                    -A INPUT -p tcp -m state --state NEW -m tcp --dport 22 -j ACCEPT\n\
                    -A INPUT -j REJECT --reject-with icmp-host-prohibited\n";
        let verdict = iptables(rhel, 443);
        let rule = "-A INPUT -j REJECT --reject-with icmp-host-prohibited".to_owned();
        let chain = "INPUT".to_owned();
        assert_eq!(verdict, Verdict::Closed { rule, chain });
    }

    #[test]
    fn chains_that_rules_jump_to_are_not_judged() {
        let ufw = "-P INPUT DROP\n\
                   -A INPUT -j ufw-before-logging-input\n\
                   -A INPUT -j ufw-before-input\n\
                   -A INPUT -j ufw-after-input\n";
        let tree = Tree::new();
        let found = check(&tree.machine().with_output("iptables -S INPUT", ufw), 443);
        assert_eq!((found.verdict, found.fix), (Fact, None));
        assert!(found.saw.contains("cannot judge"), "{}", found.saw);
    }

    #[test]
    fn a_closed_port_has_the_command_that_opens_it() {
        let tree = Tree::new();
        let machine = tree
            .machine()
            .with_output("nft list ruleset", &chain("drop", ""));
        let found = check(&machine, 8443);
        assert_eq!(found.verdict, Weak);
        let fix = found.fix.expect("a command");
        assert_eq!(
            fix,
            "nft insert rule inet filter input udp dport 8443 accept"
        );
        let other = chain("drop", "").replace("table inet filter", "table ip mine");
        let machine = tree.machine().with_output("nft list ruleset", &other);
        let fix = check(&machine, 443).fix.expect("a command");
        assert_eq!(fix, "nft insert rule ip mine input udp dport 443 accept");
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
        assert_eq!(found.verdict, Unknown, "{found:?}");
        assert!(found.saw.contains("(filter, nat)"), "{found:?}");
    }

    #[test]
    fn a_firewall_without_rules_is_open() {
        let tree = Tree::new();
        let machine = tree.machine().with_output("nft list ruleset", "");
        let found = check(&machine, 443);
        assert_eq!(
            (found.verdict, &*found.saw),
            (Good, "no rules for incoming packets")
        );
    }
}
