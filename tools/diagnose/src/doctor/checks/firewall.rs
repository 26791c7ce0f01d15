//! Checks the rules of the firewall for UDP.

mod nft;

use serde_json::Value;

use self::nft::Fate;
use crate::doctor::machine::{Machine, Unseen};
use crate::finding::Finding;

/// Looks for rules that block clients from `port`.
///
/// Judges only rules of nftables. Current versions of iptables also create such rules, but `nft` does not
/// show their matches, such as those of `-m conntrack`. These rules, and those of the legacy interface of
/// iptables, are reported as unclear.
pub(crate) fn check(machine: &Machine, port: u16) -> Finding {
    let ruleset = ruleset(machine);
    let fate = ruleset.as_ref().ok().map(|rules| nft::judge(rules, port));
    match &fate {
        Some(Fate::Dropped { rule, chain }) => {
            let rule = match rule {
                Some(handle) => nft::text(machine, chain, *handle),
                None => format!("the policy of {chain} is drop, and no rule accepts the packet"),
            };
            return closed(&rule, chain, port);
        }
        Some(Fate::Unclear { rule, chain }) => {
            return unclear("nft", &nft::text(machine, chain, *rule), port);
        }
        Some(Fate::Accepted | Fate::NoChain) | None => {}
    }
    let mut reasons = Vec::new();
    for (program, family) in [("iptables", "ip"), ("ip6tables", "ip6")] {
        let is_judged = ruleset
            .as_ref()
            .is_ok_and(|it| nft::has_iptables(it, family));
        match machine.run(program, &["-S", "INPUT"]) {
            Ok(text) if !is_judged => {
                let rules = text.lines().map(str::trim).filter(|line| !line.is_empty());
                let mut rules = rules.filter(|line| *line != "-P INPUT ACCEPT");
                if let Some(rule) = rules.next() {
                    return unclear(program, rule, port);
                }
            }
            Ok(_) => {}
            Err(reason) => reasons.push(reason),
        }
    }
    match (fate, ruleset) {
        (Some(Fate::NoChain), _) => Finding::good(NAME, "no rules for incoming packets"),
        (Some(_), _) => Finding::good(NAME, format!("the rules do not drop UDP to port {port}")),
        // Rules that only `nft` shows may drop packets, whatever iptables shows.
        (None, Err(reason)) if !matches!(reason, Unseen::Absent(_)) => reason.finding(NAME),
        (None, Err(reason)) if reasons.len() == 2 => {
            reasons.insert(0, reason);
            without_programs(machine, &reasons)
        }
        (None, _) => Finding::good(NAME, "no rules for incoming packets"),
    }
}

/// Returns the rules of nftables.
fn ruleset(machine: &Machine) -> Result<Value, Unseen> {
    let text = machine.run("nft", &["-j", "list", "ruleset"])?;
    serde_json::from_str(&text)
        .map_err(|error| Unseen::Failed(format!("cannot read the output of nft: {error}")))
}

fn closed(rule: &str, chain: &str, port: u16) -> Finding {
    let why =
        "clients on other machines get no answer over QUIC, and fall back to TCP after a delay";
    Finding::weak(NAME, format!("UDP port {port} seems closed: {rule}"), why)
        .fix(format!("nft insert rule {chain} udp dport {port} accept"))
}

fn unclear(program: &str, rule: &str, port: u16) -> Finding {
    let saw = format!("cannot judge UDP port {port} by this rule of {program}: {rule}");
    let why = "courser probe from another machine shows whether packets arrive";
    Finding::fact(NAME, saw).because(why)
}

/// Returns the finding if `nft` and `iptables` are missing, when the kernel only shows which iptables tables
/// exist.
fn without_programs(machine: &Machine, reasons: &[Unseen]) -> Finding {
    let is_there = |reason: &&Unseen| !matches!(reason, Unseen::Absent(_));
    if let Some(reason) = reasons.iter().find(is_there) {
        return reason.finding(NAME);
    }
    let tables = ["/proc/net/ip_tables_names", "/proc/net/ip6_tables_names"]
        .map(|path| machine.read(path).unwrap_or_default());
    let names: Vec<_> = tables.iter().flat_map(|text| text.lines()).collect();
    let saw = match names.is_empty() {
        true => "neither nft nor iptables is installed, and the kernel has no iptables tables"
            .to_owned(),
        false => format!(
            "iptables tables exist ({}), but neither nft nor iptables is installed",
            names.join(", ")
        ),
    };
    Unseen::Failed(saw)
        .finding(NAME)
        .fix("apt install nftables   # to see the rules")
}

const NAME: &str = "firewall";

#[cfg(test)]
mod tests;
