//! Judges the rules of nftables for the first UDP packet of a new client, from any address and interface.
//!
//! The rules come from `nft -j list ruleset`, whose format libnftables-json(5) describes. Rules with unknown
//! statements are unclear, unless they cannot accept or drop such a packet whatever these statements mean.

use std::slice;

use serde_json::Value;

use crate::doctor::machine::Machine;

/// The fate of the packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    /// No chain has a hook for incoming packets.
    NoChain,
    Accepted,
    /// The first rule that may decide has unknown statements.
    Unclear {
        rule: u64,
        chain: String,
    },
    /// A chain drops the packet. `rule` is the handle of the rule, or `None` for the policy of the chain.
    Dropped {
        rule: Option<u64>,
        chain: String,
    },
}

/// The packet that is judged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Packet {
    port: u16,
    /// False if a rule exempts packets from connection tracking, so that the state of this one is unknown.
    is_tracked: bool,
}

/// The effect of one rule on the packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Effect {
    Accepts,
    Drops,
    /// The rule does not match the packet, or only counts it.
    Passes,
    Unclear,
}

/// The result of matching the packet against the conditions of a rule. The worst condition counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Match {
    Always,
    Unclear,
    Never,
}

/// Judges the chains of the hook `input`. A packet must pass all of them.
pub(super) fn judge(ruleset: &Value, port: u16) -> Fate {
    let chains = objects(ruleset, "chain").filter(|chain| {
        chain["hook"] == "input" && chain["family"] != "arp" && !is_dormant(ruleset, chain)
    });
    let rank = |fate: &Fate| match fate {
        Fate::NoChain => 0,
        Fate::Accepted => 1,
        Fate::Unclear { .. } => 2,
        Fate::Dropped { .. } => 3,
    };
    let packet = Packet {
        port,
        is_tracked: !objects(ruleset, "rule").any(stops_tracking),
    };
    let fates = chains.map(|chain| fate_in(ruleset, chain, packet));
    // Keeps the first of several equally bad fates.
    fates.fold(Fate::NoChain, |worst, fate| {
        if rank(&fate) > rank(&worst) {
            fate
        } else {
            worst
        }
    })
}

/// Returns true for a rule with `notrack`.
fn stops_tracking(rule: &Value) -> bool {
    let mut statements = rule["expr"].as_array().into_iter().flatten();
    statements.any(|it| it.get("notrack").is_some())
}

/// Returns true if the table of a chain is dormant.
fn is_dormant(ruleset: &Value, chain: &Value) -> bool {
    objects(ruleset, "table").any(|table| {
        let flags = &table["flags"];
        let flags = flags
            .as_array()
            .map_or(slice::from_ref(flags), Vec::as_slice);
        table["family"] == chain["family"]
            && table["name"] == chain["table"]
            && flags.iter().any(|flag| flag == "dormant")
    })
}

/// Returns true if the rules include the chain that iptables creates for incoming packets.
pub(super) fn has_iptables(ruleset: &Value, family: &str) -> bool {
    objects(ruleset, "chain").any(|chain| {
        chain["family"] == family && chain["table"] == "filter" && chain["name"] == "INPUT"
    })
}

/// Returns the text of a rule in the format of `nft`.
pub(super) fn text(machine: &Machine, chain: &str, handle: u64) -> String {
    let mut arguments = vec!["-a", "list", "chain"];
    arguments.extend(chain.split(' '));
    let listing = machine.run("nft", &arguments).unwrap_or_default();
    let suffix = format!(" # handle {handle}");
    let text = listing.lines().find_map(|line| line.strip_suffix(&suffix));
    text.map_or_else(
        || format!("rule {handle} of {chain}"),
        |text| text.trim().to_owned(),
    )
}

/// Returns the objects of a kind, in the order of the ruleset.
fn objects<'a>(ruleset: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    let all = ruleset["nftables"].as_array().into_iter().flatten();
    all.filter_map(move |object| object.get(kind))
}

/// Returns the fate of the packet in a chain. The first rule that decides or may decide determines it.
fn fate_in(ruleset: &Value, chain: &Value, packet: Packet) -> Fate {
    let mut rules = objects(ruleset, "rule").filter(|rule| {
        rule["chain"] == chain["name"]
            && rule["table"] == chain["table"]
            && rule["family"] == chain["family"]
    });
    let decided = rules.find_map(|rule| match effect(rule, packet) {
        Effect::Passes => None,
        effect => Some((effect, rule["handle"].as_u64().unwrap_or_default())),
    });
    let part = |name: &str| chain[name].as_str().unwrap_or_default();
    let chain_name = [part("family"), part("table"), part("name")].join(" ");
    let dropped = |rule, chain| Fate::Dropped { rule, chain };
    match decided {
        Some((Effect::Unclear, rule)) => Fate::Unclear {
            rule,
            chain: chain_name,
        },
        Some((Effect::Drops, rule)) => dropped(Some(rule), chain_name),
        None if chain["policy"] == "drop" => dropped(None, chain_name),
        Some(_) | None => Fate::Accepted,
    }
}

fn effect(rule: &Value, packet: Packet) -> Effect {
    let mut conditions = Match::Always;
    let mut effect = Effect::Passes;
    let statements = rule["expr"].as_array().into_iter().flatten();
    for (kind, body) in statements.filter_map(|it| it.as_object()?.iter().next()) {
        match kind.as_str() {
            "accept" => effect = Effect::Accepts,
            "drop" | "reject" => effect = Effect::Drops,
            "counter" | "log" | "notrack" | "last" | "ct helper" | "ct timeout"
            | "ct expectation" | "secmark" => {}
            // A rewritten port changes the packet for the following rules.
            "mangle" if body["key"]["payload"].is_null() => {}
            "match" => conditions = conditions.max(condition(body, rule, packet)),
            // These statements may end the rule without a decision.
            "limit" | "quota" | "set" | "map" | "meter" | "ct count" => {
                conditions = conditions.max(Match::Unclear);
            }
            "xt" if body["type"] == "match" => conditions = conditions.max(Match::Unclear),
            // `jump`, `goto`, `vmap`, extensions of iptables and others.
            _ => {
                conditions = conditions.max(Match::Unclear);
                effect = Effect::Unclear;
            }
        }
    }
    match (conditions, effect) {
        (Match::Never, _) | (_, Effect::Passes) => Effect::Passes,
        (Match::Unclear, _) => Effect::Unclear,
        (Match::Always, effect) => effect,
    }
}

/// Compares the packet with the condition of a `match` statement.
fn condition(body: &Value, rule: &Value, packet: Packet) -> Match {
    let left = &body["left"];
    let (payload, meta) = (&left["payload"], left["meta"]["key"].as_str());
    // The condition is about an encapsulated header.
    if !payload["tunnel"].is_null() {
        return Match::Unclear;
    }
    let field = payload["protocol"].as_str().zip(payload["field"].as_str());
    if field.is_some_and(|(protocol, _)| OTHER_PROTOCOLS.contains(&protocol)) {
        return Match::Never;
    }
    let is_listed = matches!(body["op"].as_str(), Some("==" | "in"));
    let compared = |is_match: fn(&Value, u16) -> Option<bool>| {
        let is_match = any(&body["right"], |value| is_match(value, packet.port));
        match is_match.filter(|_| is_listed) {
            Some(true) => Match::Always,
            Some(false) => Match::Never,
            None => Match::Unclear,
        }
    };
    match (field, meta) {
        (Some(("udp" | "th", "dport")), _) => compared(has_port),
        // In chains for both IP versions, packets of the other version do not match.
        (Some(("ip", "protocol") | ("ip6", "nexthdr")), _)
            if matches!(rule["family"].as_str(), Some("inet" | "bridge")) =>
        {
            compared(is_udp).max(Match::Unclear)
        }
        (Some(("ip", "protocol") | ("ip6", "nexthdr")), _) | (_, Some("l4proto")) => {
            compared(is_udp)
        }
        // Packets from other machines do not arrive on loopback.
        (_, Some("iif" | "iifname")) => compared(|name, _| (name == "lo").then_some(false)),
        _ if left["ct"]["key"] == "state" && packet.is_tracked => compared(is_new),
        _ => Match::Unclear,
    }
}

/// Returns true if a value, or one of a list, matches. Returns `None` if none matches and some cannot be
/// judged, such as the name of a set.
fn any(right: &Value, is_match: impl Fn(&Value) -> Option<bool>) -> Option<bool> {
    let list = right.as_array().or_else(|| right["set"].as_array());
    let values = list.map_or(slice::from_ref(right), Vec::as_slice);
    let mut is_known = true;
    for value in values {
        match is_match(value) {
            Some(true) => return Some(true),
            Some(false) => {}
            None => is_known = false,
        }
    }
    is_known.then_some(false)
}

fn has_port(value: &Value, port: u16) -> Option<bool> {
    let port = u64::from(port);
    match value["range"].as_array().map(Vec::as_slice) {
        Some([low, high]) => Some((low.as_u64()?..=high.as_u64()?).contains(&port)),
        _ => Some(value.as_u64()? == port),
    }
}

fn is_udp(value: &Value, _: u16) -> Option<bool> {
    let name = value.as_str()?;
    (name == "udp" || OTHER_PROTOCOLS.contains(&name)).then_some(name == "udp")
}

fn is_new(value: &Value, _: u16) -> Option<bool> {
    match value.as_str()? {
        "new" => Some(true),
        "established" | "related" | "invalid" | "untracked" => Some(false),
        _ => None,
    }
}

/// Names of protocols that are not UDP.
const OTHER_PROTOCOLS: [&str; 9] = [
    "ah",
    "dccp",
    "esp",
    "icmp",
    "icmpv6",
    "igmp",
    "ipv6-icmp",
    "sctp",
    "tcp",
];
