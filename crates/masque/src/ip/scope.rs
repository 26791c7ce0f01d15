//! The scope of a request: the packets that a tunnel may carry (RFC 9484 §4.6).

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use crate::ip::range::AddressRange;
use crate::prefix::Prefix;
use crate::target::{Host, InvalidTarget};

/// The packets that a tunnel may carry: their destinations, and their protocol.
///
/// ```
/// use courser_masque::ip::{Destination, Scope};
/// let scope = Scope::new("2001:db8::/32", "17")?;
/// assert_eq!(scope.destination, Destination::Prefix("2001:db8::/32".parse()?));
/// assert_eq!(scope.protocol, Some(17));
/// assert_eq!(Scope::new("*", "*")?, Scope::default());
/// assert!(Scope::new("2001:db8::1/32", "*").is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Scope {
    /// The destinations.
    pub destination: Destination,
    /// The protocol of packets, such as 6 for TCP or 17 for UDP; ICMP is always allowed too. `None` for all.
    pub protocol: Option<u8>,
}

/// The destinations of packets of a tunnel.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum Destination {
    /// All that the proxy allows.
    #[default]
    Any,
    /// The addresses of a prefix, which may be a single one.
    Prefix(Prefix),
    /// The addresses of a name, which the proxy resolves.
    Name(String),
}

/// The reason why a text is no [`Scope`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidScope {
    /// A value is empty; `*` stands for all.
    #[error("the {0} is empty; use * for all")]
    Empty(&'static str),
    /// The length of a prefix is no decimal number up to the length of the address, or a bit behind it is set.
    #[error(
        "'{0}' is no prefix such as 192.0.2.0/24 or 2001:db8::/32, without bits behind its length"
    )]
    Prefix(String),
    /// The target is neither an address nor a name.
    #[error("{0}")]
    Target(#[from] InvalidTarget),
    /// The protocol is no number from 0 to 255.
    #[error("the protocol is '{0}', allowed are 0 to 255 and *")]
    Protocol(String),
    /// The protocol is an extension header of IPv6, which is none of its own.
    #[error("protocol {0} is an extension header of IPv6")]
    ExtensionHeader(u8),
}

impl Scope {
    /// Creates a scope from the values of the variables `target` and `ipproto`, without percent-encoding.
    ///
    /// # Errors
    /// Returns an error if a value is malformed.
    pub fn new(target: &str, ipproto: &str) -> Result<Self, InvalidScope> {
        Ok(Self {
            destination: target.parse()?,
            protocol: protocol(ipproto)?,
        })
    }

    /// Returns the value of the variable `target`.
    pub fn target(&self) -> String {
        self.destination.to_string()
    }

    /// Returns the value of the variable `ipproto`.
    pub fn ipproto(&self) -> String {
        self.protocol
            .map_or_else(|| ANY.to_owned(), |protocol| protocol.to_string())
    }

    /// Returns the ranges of the scope, with the addresses to which its name was resolved.
    pub fn ranges(&self, resolved: &[IpAddr]) -> Vec<AddressRange> {
        let ranges = match &self.destination {
            Destination::Any => vec![AddressRange::all_ipv4(), AddressRange::all_ipv6()],
            Destination::Prefix(prefix) => vec![AddressRange::from(*prefix)],
            Destination::Name(_) => {
                let singles = resolved.iter().map(|address| Prefix::from(*address));
                singles.map(AddressRange::from).collect()
            }
        };
        let scoped = ranges
            .into_iter()
            .map(|range| range.for_protocol(self.protocol));
        scoped.collect()
    }
}

impl FromStr for Destination {
    type Err = InvalidScope;

    fn from_str(text: &str) -> Result<Self, InvalidScope> {
        if text.is_empty() {
            return Err(InvalidScope::Empty("target"));
        }
        if text == ANY {
            return Ok(Self::Any);
        }
        if text.contains('/') {
            let prefix = text.parse();
            let invalid = |_| InvalidScope::Prefix(text.chars().take(LONGEST_SHOWN).collect());
            return prefix.map(Self::Prefix).map_err(invalid);
        }
        Ok(match text.parse()? {
            Host::Ip(address) => Self::Prefix(Prefix::from(address)),
            Host::Name(name) => Self::Name(name),
        })
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str(ANY),
            Self::Prefix(prefix) if prefix.is_single() => prefix.first().fmt(f),
            Self::Prefix(prefix) => prefix.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

fn protocol(text: &str) -> Result<Option<u8>, InvalidScope> {
    let shown = || InvalidScope::Protocol(text.chars().take(LONGEST_SHOWN).collect());
    match text {
        "" => return Err(InvalidScope::Empty("protocol")),
        ANY => return Ok(None),
        _ => {}
    }
    let is_decimal = text.len() <= 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    let number: u8 = is_decimal
        .then(|| text.parse().ok())
        .flatten()
        .ok_or_else(shown)?;
    match super::packet::is_extension(number) {
        true => Err(InvalidScope::ExtensionHeader(number)),
        false => Ok(Some(number)),
    }
}

/// Stands for all targets and protocols.
const ANY: &str = "*";

/// The longest part of an invalid value that an error repeats, in characters.
const LONGEST_SHOWN: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// MQ-ip-002.
    #[test]
    fn malformed_scopes_are_refused() {
        for (target, protocol) in [
            ("", "*"),
            ("*", ""),
            ("10.0.0.1/8", "*"),
            ("10.0.0.0/33", "*"),
            ("10.0.0.0/+8", "*"),
            ("10.0.0.0/", "*"),
            ("2001:db8::/129", "*"),
            ("2001:db8::1/32", "*"),
            ("fe80::1%eth0", "*"),
            ("::ffff:10.0.0.0/104", "*"),
            ("0x7f.1", "*"),
            ("2130706433", "*"),
            ("a b", "*"),
            ("**", "*"),
            ("*", "256"),
            ("*", "-1"),
            ("*", "+6"),
            ("*", "0006"),
            ("*", "tcp"),
            ("*", "60"),
            ("*", "0"),
        ] {
            assert!(Scope::new(target, protocol).is_err(), "{target} {protocol}");
        }
    }

    #[test]
    fn scopes_survive_their_texts() {
        for (target, protocol, ranges) in [
            ("*", "*", "0.0.0.0/0 ::/0"),
            ("10.0.0.0/8", "6", "10.0.0.0/8 protocol 6"),
            ("10.1.2.3", "255", "10.1.2.3/32 protocol 255"),
            ("2001:db8::42", "*", "2001:db8::42/128"),
            ("example.org", "17", "192.0.2.7/32 protocol 17"),
        ] {
            let scope = Scope::new(target, protocol).unwrap();
            assert_eq!(
                (scope.target(), scope.ipproto()),
                (target.into(), protocol.into())
            );
            let all = scope.ranges(&["192.0.2.7".parse().unwrap()]);
            let texts: Vec<_> = all.iter().map(ToString::to_string).collect();
            assert_eq!(texts.join(" "), ranges);
        }
    }
}
