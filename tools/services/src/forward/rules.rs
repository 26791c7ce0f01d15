//! Rules of a forward proxy as operators write them.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use courser::masque::{Names, Policy, Prefix};

/// A rule without its verdict: the targets and ports that it matches.
///
/// ```
/// use courser_services::forward::Rule;
/// let rule: Rule = "*.example.org:80,443".parse()?;
/// assert_eq!(rule.to_string(), "*.example.org:80,443");
/// assert!("example.org:https".parse::<Rule>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    targets: Targets,
    /// At least one.
    ports: Vec<RangeInclusive<u16>>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Targets {
    All,
    Prefix(Prefix),
    Names(Names),
}

impl Rule {
    /// Adds the rule to a policy, behind those that it has.
    #[must_use]
    pub fn add_to(&self, policy: Policy, allows: bool) -> Policy {
        let ports = self.ports.iter().cloned();
        ports.fold(policy, |policy, ports| match (&self.targets, allows) {
            (Targets::All, true) => policy.allow_public(ports),
            (Targets::All, false) => policy.deny_all(ports),
            (Targets::Prefix(prefix), true) => policy.allow(*prefix, ports),
            (Targets::Prefix(prefix), false) => policy.deny(*prefix, ports),
            (Targets::Names(names), true) => policy.allow_names(names.clone(), ports),
            (Targets::Names(names), false) => policy.deny_names(names.clone(), ports),
        })
    }

    /// Returns true if the rule matches all targets at all ports.
    pub fn is_for_all(&self) -> bool {
        self.targets == Targets::All && self.ports == [ALL_PORTS]
    }

    /// Returns true if this rule decides about all that the other one matches, so that the other one never does behind it.
    pub fn hides(&self, other: &Self) -> bool {
        let targets = match (&self.targets, &other.targets) {
            (Targets::All, _) => true,
            (Targets::Prefix(own), Targets::Prefix(other)) => {
                own.covers(other.first()) && own.bits() <= other.bits()
            }
            (Targets::Names(own), Targets::Names(other)) => {
                own == other || own.contains(&other.to_string())
            }
            _ => false,
        };
        let covers = |ports: &RangeInclusive<u16>| {
            let mut own = self.ports.iter();
            own.any(|it| it.start() <= ports.start() && ports.end() <= it.end())
        };
        targets && other.ports.iter().all(covers)
    }

    /// Returns true if the rule is for a name that leads to this machine, which a rule for names does not allow.
    pub fn is_localhost(&self) -> bool {
        let Targets::Names(names) = &self.targets else {
            return false;
        };
        let text = names.to_string();
        text == "localhost" || text.ends_with(".localhost")
    }

    /// Returns true if an allowing rule matches public addresses only, which are allowed without a rule too.
    pub fn is_public_only(&self) -> bool {
        match self.targets {
            Targets::All | Targets::Names(_) => true,
            Targets::Prefix(prefix) => {
                let first = prefix.to_string();
                let first = first.split('/').next().and_then(|it| it.parse().ok());
                // Networks beyond a public address contain special ones.
                let is_small = !["/0", "/1", "/2", "/3", "/4"]
                    .iter()
                    .any(|len| prefix.to_string().ends_with(len));
                let is_public = |ip| Policy::public_only().judge((ip, 443).into()).is_ok();
                is_small && first.is_some_and(|first: std::net::IpAddr| is_public(first))
            }
        }
    }
}

impl FromStr for Rule {
    /// A message for the user.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        check(text)?;
        let (targets, ports) = split(text);
        let ports = match ports {
            None => vec![ALL_PORTS],
            Some(ports) => ports
                .split(',')
                .map(parse_ports)
                .collect::<Result<_, _>>()
                .map_err(|error| format!("'{text}': {error}"))?,
        };
        // `[2001:db8::]/32` and `[2001:db8::1]`.
        let without = match targets
            .strip_prefix('[')
            .and_then(|rest| rest.split_once(']'))
        {
            Some((address, len)) if address.contains(':') => format!("{address}{len}"),
            _ => targets.to_owned(),
        };
        let bare = without.as_str();
        let targets = if bare.eq_ignore_ascii_case("all") {
            Targets::All
        } else if let Ok(prefix) = bare.parse() {
            Targets::Prefix(prefix)
        } else if let Ok(names) = bare.parse() {
            Targets::Names(names)
        } else {
            return Err(format!(
                "'{text}' is not a target: use a host name (example.org, *.example.org), an address, a prefix without \
                 bits behind its length (192.0.2.0/24, [2001:db8::]/32) or 'all', then ports as in :443 or :80,8000-8999"
            ));
        };
        Ok(Self { targets, ports })
    }
}

/// Refuses what people mean as something else, with the rule for it.
fn check(text: &str) -> Result<(), String> {
    if let Some((_, rest)) = text.split_once("://") {
        let host = rest.split(['/', '?', '#']).next().unwrap_or(rest);
        return Err(format!(
            "'{text}' is a URL, and a rule is a host with ports: use {host}, or {host}:443 if there is no port"
        ));
    }
    match text.split(':').next() {
        Some(word @ ("*" | "any" | "ANY")) => Err(format!(
            "'{word}' is not a target: use all for everything, such as {}",
            text.replacen(word, "all", 1)
        )),
        _ => Ok(()),
    }
}

/// Splits a rule at the colon before its ports. An IPv6 address with ports is in brackets, and its length behind them.
fn split(text: &str) -> (&str, Option<&str>) {
    let is_bare_v6 = !text.starts_with('[') && text.matches(':').count() > 1;
    match text.rsplit_once(':') {
        _ if is_bare_v6 => (text, None),
        // The colons of an address in brackets.
        Some((_, ports)) if ports.contains(']') => (text, None),
        Some((targets, ports)) => (targets, Some(ports)),
        None => (text, None),
    }
}

fn parse_ports(text: &str) -> Result<RangeInclusive<u16>, String> {
    let port = |text: &str| -> Result<u16, String> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = is_number.then(|| text.parse().ok()).flatten();
        number.ok_or_else(|| {
            format!("the port is '{text}': use 0 to 65535, a range as in 8000-8999, or several with commas")
        })
    };
    let (first, last) = match text.split_once('-') {
        Some((first, last)) => (port(first)?, port(last)?),
        None => (port(text)?, port(text)?),
    };
    if first > last {
        return Err(format!(
            "the range {first}-{last} is empty: use {last}-{first}"
        ));
    }
    Ok(first..=last)
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.targets {
            Targets::All => f.write_str("all")?,
            Targets::Prefix(prefix) => {
                let text = prefix.to_string();
                match text.split_once('/') {
                    Some((address, len)) if address.contains(':') => {
                        write!(f, "[{address}]/{len}")?;
                    }
                    _ => f.write_str(&text)?,
                }
            }
            Targets::Names(names) => names.fmt(f)?,
        }
        if self.ports == [ALL_PORTS] {
            return Ok(());
        }
        for (index, ports) in self.ports.iter().enumerate() {
            f.write_str(if index == 0 { ":" } else { "," })?;
            write!(f, "{}", ports.start())?;
            if ports.start() != ports.end() {
                write!(f, "-{}", ports.end())?;
            }
        }
        Ok(())
    }
}

const ALL_PORTS: RangeInclusive<u16> = 0..=u16::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_and_written() {
        for (text, shown) in [
            ("all", "all"),
            ("all:25", "all:25"),
            ("ALL", "all"),
            ("example.org", "example.org"),
            ("*.Example.org.:80,8000-8999", "*.example.org:80,8000-8999"),
            ("192.0.2.1", "192.0.2.1/32"),
            ("192.0.2.0/24:443", "192.0.2.0/24:443"),
            ("2001:db8::/32", "[2001:db8::]/32"),
            ("[2001:db8::1]", "[2001:db8::1]/128"),
            ("[2001:db8::1]:22", "[2001:db8::1]/128:22"),
            ("::/0", "[::]/0"),
            ("all:0-65535", "all"),
        ] {
            let rule: Rule = text.parse().expect(text);
            assert_eq!(rule.to_string(), shown);
        }
        let rule: Rule = "[2001:db8::]/32:443".parse().expect("with a length");
        assert_eq!(rule.to_string(), "[2001:db8::]/32:443");
    }

    #[test]
    fn mistakes_are_explained() {
        for (text, word) in [
            ("", "is not a target"),
            (":443", "is not a target"),
            ("10.0.0.1/8", "without bits"),
            ("example.org:", "the port is ''"),
            ("example.org:https", "the port is 'https'"),
            ("example.org:70000", "the port is '70000'"),
            ("example.org:90-80", "use 80-90"),
            ("https://example.org", "use example.org, or example.org:443"),
            ("any", "use all for everything, such as all"),
            ("*:443", "such as all:443"),
            ("[::1", "'[::1' is not a target"),
            ("a b", "is not a target"),
        ] {
            let error = text.parse::<Rule>().expect_err(text);
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    #[test]
    fn rules_that_never_decide_are_known() {
        let rule = |text: &str| text.parse::<Rule>().expect(text);
        for (first, second, expected) in [
            ("all", "10.0.0.0/8:443", true),
            ("all:443", "example.org:443", true),
            ("all:443", "example.org:80,443", false),
            ("10.0.0.0/8", "10.1.0.0/16:80", true),
            ("10.1.0.0/16", "10.0.0.0/8", false),
            ("10.0.0.0/8", "[2001:db8::]/32", false),
            ("example.org", "example.org:443", true),
            ("*.example.org", "www.example.org", true),
            ("*.example.org", "*.www.example.org:80", true),
            ("*.example.org", "example.org", false),
            ("*.example.org", "www.example.net", false),
            ("all:0-1000", "all:80,1001", false),
        ] {
            let hides = rule(first).hides(&rule(second));
            assert_eq!(hides, expected, "{first} before {second}");
        }
        assert!(rule("localhost:80").is_localhost() && !rule("127.0.0.1").is_localhost());
    }

    #[test]
    fn rules_become_a_policy_in_their_order() {
        let rule = |text: &str| text.parse::<Rule>().expect(text);
        let policy = rule("10.0.0.0/8:80,443").add_to(Policy::public_only(), true);
        let policy = rule("all").add_to(rule("all:443").add_to(policy, true), false);
        for (target, expected) in [
            ("10.1.1.1:80", true),
            ("10.1.1.1:22", false),
            ("8.8.8.8:443", true),
            ("8.8.8.8:80", false),
            ("127.0.0.1:443", false),
        ] {
            let judged = policy.judge(target.parse().expect("an address"));
            assert_eq!(judged.is_ok(), expected, "{target}");
        }
        for (text, expected) in [
            ("example.org", true),
            ("8.8.8.0/24", true),
            ("10.0.0.0/8", false),
            ("0.0.0.0/0", false),
            ("::/0", false),
        ] {
            assert_eq!(rule(text).is_public_only(), expected, "{text}");
        }
    }
}
