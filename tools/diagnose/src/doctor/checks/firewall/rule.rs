//! Judges single rules for the first packet of a new client over UDP, from any address and interface.
//!
//! Only rules whose every word is known are judged. All others are [`Fate::Unclear`], unless they cannot
//! accept or drop such a packet whatever the unknown words mean.

/// The effect of a rule on the packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    Accepted,
    Dropped,
    /// The rule does not concern it, or only counts it.
    Goes,
    /// The rule cannot be judged.
    Unclear,
}

/// The relation of the packet to the conditions of a rule. The worst of them counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Match {
    Always,
    Unclear,
    Never,
}

impl Match {
    fn of(is_match: Option<bool>) -> Self {
        match is_match {
            Some(true) => Self::Always,
            Some(false) => Self::Never,
            None => Self::Unclear,
        }
    }

    fn with(self, target: Fate) -> Fate {
        match self {
            Self::Never => Fate::Goes,
            Self::Always => target,
            Self::Unclear if target == Fate::Goes => Fate::Goes,
            Self::Unclear => Fate::Unclear,
        }
    }
}

/// Judges a rule as `iptables -S INPUT` prints it.
pub(super) fn iptables(line: &str, port: u16) -> Fate {
    let words = words(line);
    let mut words = words.iter().map(String::as_str).peekable();
    let mut conditions = Match::Always;
    // A rule without a target counts packets.
    let mut target = Fate::Goes;
    let mut is_negated = false;
    while let Some(word) = words.next() {
        let mut value = || words.next().unwrap_or_default();
        let met = match word {
            "!" => {
                is_negated = true;
                continue;
            }
            "-A" | "--comment" => {
                value();
                continue;
            }
            "-p" => Match::of(match value() {
                "udp" | "all" | "17" => Some(true),
                "tcp" | "icmp" | "icmpv6" | "ipv6-icmp" | "esp" | "ah" | "sctp" | "gre" | "6"
                | "1" | "58" => Some(false),
                _ => None,
            }),
            // A match that only loads words, or that says nothing alone.
            "-m" => Match::of(match value() {
                "udp" | "multiport" | "conntrack" | "state" | "comment" => Some(true),
                "tcp" | "icmp" | "icmp6" => Some(false),
                _ => None,
            }),
            "--dport" | "--dports" => Match::of(has_port(value(), port)),
            "--ctstate" | "--state" => Match::of(has_new(value())),
            // Only loopback, which other machines do not use.
            "-i" => Match::of((value() == "lo").then_some(false)),
            "-j" => {
                target = match value() {
                    "ACCEPT" => Fate::Accepted,
                    "DROP" | "REJECT" => Fate::Dropped,
                    "LOG" | "NFLOG" => Fate::Goes,
                    _ => Fate::Unclear,
                };
                // What follows are options of the target.
                while words.next_if(|word| *word != "-m").is_some() {}
                continue;
            }
            "-g" => {
                target = Fate::Unclear;
                value();
                continue;
            }
            // `-s`, `-d`, `--sport`, sets and others.
            _ => Match::Unclear,
        };
        let met = if std::mem::take(&mut is_negated) {
            Match::Unclear
        } else {
            met
        };
        conditions = conditions.max(met);
    }
    conditions.with(target)
}

/// Judges a rule as `nft list ruleset` prints it.
pub(super) fn nft(line: &str, port: u16) -> Fate {
    let words = words(line);
    let mut words = words.iter().map(String::as_str).peekable();
    let mut conditions = Match::Always;
    let mut target = Fate::Goes;
    while let Some(word) = words.next() {
        let met = match word {
            "accept" | "drop" => {
                target = if word == "accept" {
                    Fate::Accepted
                } else {
                    Fate::Dropped
                };
                continue;
            }
            "reject" => {
                target = Fate::Dropped;
                // `with icmpx type admin-prohibited`, `with icmp port-unreachable`
                while words.next_if(|word| *word != "comment").is_some() {}
                continue;
            }
            "jump" | "goto" | "queue" | "return" | "vmap" | "dnat" | "redirect" | "tproxy" => {
                target = Fate::Unclear;
                words.next();
                continue;
            }
            "counter" => {
                if words.next_if_eq(&"packets").is_some() {
                    words.nth(2);
                }
                continue;
            }
            "log" | "comment" => {
                if word == "comment" {
                    words.next();
                }
                while words.next_if_eq(&"prefix").is_some() {
                    words.next();
                }
                continue;
            }
            "meta" => words
                .next_if_eq(&"l4proto")
                .map_or(Match::Unclear, |_| protocol(value(&mut words))),
            "ip" if words.next_if_eq(&"protocol").is_some() => protocol(value(&mut words)),
            "ip6" if words.next_if_eq(&"nexthdr").is_some() => protocol(value(&mut words)),
            "udp" => match words.next_if_eq(&"dport") {
                Some(_) => Match::of(value(&mut words).and_then(|value| has_port(&value, port))),
                None => Match::Unclear,
            },
            "tcp" | "icmp" | "icmpv6" | "sctp" | "esp" | "ah" => {
                // What follows are its fields. A verdict without a known field stays without effect.
                Match::Never
            }
            "ct" => match words.next_if_eq(&"state") {
                Some(_) => Match::of(value(&mut words).and_then(|value| has_new(&value))),
                None => Match::Unclear,
            },
            "iif" | "iifname" => {
                Match::of(value(&mut words).filter(|name| name == "lo").map(|_| false))
            }
            _ => Match::Unclear,
        };
        conditions = conditions.max(met);
    }
    conditions.with(target)
}

/// Reads a value of nft: a word, or a list `{ a, b }` or `a, b`. `None` for comparisons, named sets and maps.
fn value<'a>(words: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>) -> Option<String> {
    let first = words.next()?;
    if matches!(
        first,
        "!=" | "<" | ">" | "<=" | ">=" | "==" | "vmap" | "and" | "&"
    ) || first.starts_with('@')
    {
        return None;
    }
    if first != "{" {
        let mut list = first.to_owned();
        while list.ends_with(',')
            && let Some(next) = words.next()
        {
            list.push_str(next);
        }
        return Some(list);
    }
    let mut list = String::new();
    for word in words.by_ref() {
        if word == "}" {
            return Some(list);
        }
        list.push_str(word);
    }
    None
}

fn protocol(value: Option<String>) -> Match {
    let Some(value) = value else {
        return Match::Unclear;
    };
    let mut names = value.split(',');
    if value.split(',').any(|name| matches!(name, "udp" | "17")) {
        return Match::Always;
    }
    let is_other = names.all(|name| {
        matches!(
            name,
            "tcp" | "icmp" | "icmpv6" | "ipv6-icmp" | "esp" | "ah" | "sctp" | "igmp"
        )
    });
    Match::of(is_other.then_some(false))
}

/// Returns whether a list has a port: `443`, `80,443`, `400:500`, `400-500`. `None` if a part has another form.
fn has_port(list: &str, port: u16) -> Option<bool> {
    let mut is_in = false;
    for part in list.split(',') {
        let (low, high) = part.split_once(['-', ':']).unwrap_or((part, part));
        let end = |text: &str| -> Option<u16> {
            match text {
                "https" => Some(443),
                "http" => Some(80),
                "domain" => Some(53),
                number => number.parse().ok(),
            }
        };
        is_in |= (end(low)?..=end(high)?).contains(&port);
    }
    Some(is_in)
}

/// Returns whether a list of states of a connection has that of a first packet.
fn has_new(list: &str) -> Option<bool> {
    let mut states = list.split(',').map(str::to_ascii_lowercase);
    let is_known = states.all(|state| {
        matches!(
            &*state,
            "new" | "established" | "related" | "invalid" | "untracked"
        )
    });
    is_known.then(|| {
        list.split(',')
            .any(|state| state.eq_ignore_ascii_case("new"))
    })
}

/// Splits a rule into words. What is quoted is one word, without the quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in line.split('"').enumerate() {
        match index % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}
