//! Targets of UDP proxies: a host and a port (RFC 9298 §3).

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;
use std::str::FromStr;

/// The host and the port to which a proxy sends UDP packets.
///
/// ```
/// use courser_masque::{Host, Target};
/// let target: Target = "[2001:db8::1]:443".parse()?;
/// assert_eq!(target.host(), &Host::Ip("2001:db8::1".parse()?));
/// assert_eq!(target.port().get(), 443);
/// assert!("0x7f.1:443".parse::<Target>().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Target {
    host: Host,
    port: NonZeroU16,
}

/// The host of a [`Target`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Host {
    /// An address. IPv6 addresses have no zone.
    Ip(IpAddr),
    /// A name of the DNS with ASCII letters, as the client wrote it. Names that some resolvers take for an IPv4
    /// address, such as `2130706433` or `0x7f.1`, do not exist here.
    Name(String),
}

/// The reason why a text is no host and port.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidTarget {
    /// The host is empty.
    #[error("the host is empty")]
    NoHost,
    /// There is no port.
    #[error("there is no port; expected a form such as example.org:443")]
    NoPort,
    /// The port is no decimal number from 1 to 65535.
    #[error("the port is '{0}', allowed is 1 to 65535")]
    Port(String),
    /// An IPv6 address has a zone, which has a meaning on one machine only.
    #[error("the address has the zone '{0}', which the proxy cannot know")]
    Zone(String),
    /// The host is neither an address nor a name.
    #[error("'{0}' is neither an IP address nor a host name of ASCII letters, digits, '-' and '_'")]
    Host(String),
    /// The host looks like an IPv4 address in a form that resolvers read differently.
    #[error("'{0}' is no IPv4 address of four decimal numbers, and no host name ends in a number")]
    Number(String),
    /// The value is not percent-encoded as it has to be (RFC 3986 §2.1).
    #[error("a '%' is not followed by two hexadecimal digits")]
    PercentEncoding,
}

impl Target {
    /// Creates a target from a host and a port without brackets and percent-encoding.
    ///
    /// # Errors
    /// Returns an error if the host is neither an address nor a name, or the port is not from 1 to 65535.
    pub fn new(host: &str, port: &str) -> Result<Self, InvalidTarget> {
        Ok(Self {
            host: host.parse()?,
            port: parse_port(port)?,
        })
    }

    /// Returns the host.
    pub const fn host(&self) -> &Host {
        &self.host
    }

    /// Returns the port.
    pub const fn port(&self) -> NonZeroU16 {
        self.port
    }

    /// Returns the address, if the host is one.
    pub fn address(&self) -> Option<SocketAddr> {
        match self.host {
            Host::Ip(ip) => Some(SocketAddr::from((ip, self.port.get()))),
            Host::Name(_) => None,
        }
    }
}

impl FromStr for Target {
    type Err = InvalidTarget;

    /// Parses `example.org:443`, `192.0.2.1:443` or `[2001:db8::1]:443`.
    fn from_str(text: &str) -> Result<Self, InvalidTarget> {
        let (host, port) = text.rsplit_once(':').ok_or(InvalidTarget::NoPort)?;
        match host.strip_prefix('[') {
            Some(rest) => {
                let inner = rest.strip_suffix(']').unwrap_or_default();
                let host = || InvalidTarget::Host(host.to_owned());
                match inner.parse::<Host>()? {
                    Host::Ip(IpAddr::V6(_)) => Self::new(inner, port),
                    _ => Err(host()),
                }
            }
            // `::1` alone has no port, and `::1:443` may be all address.
            None if host.contains(':') => Err(InvalidTarget::NoPort),
            None => Self::new(host, port),
        }
    }
}

impl TryFrom<SocketAddr> for Target {
    type Error = InvalidTarget;

    /// Fails for port 0, and for an IPv6 address with a zone.
    fn try_from(address: SocketAddr) -> Result<Self, InvalidTarget> {
        if let SocketAddr::V6(v6) = address
            && v6.scope_id() != 0
        {
            return Err(InvalidTarget::Zone(v6.scope_id().to_string()));
        }
        let port = NonZeroU16::new(address.port()).ok_or(InvalidTarget::Port("0".to_owned()))?;
        Ok(Self {
            host: Host::Ip(address.ip()),
            port,
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]:{}", self.port),
            host => write!(f, "{host}:{}", self.port),
        }
    }
}

impl FromStr for Host {
    type Err = InvalidTarget;

    fn from_str(text: &str) -> Result<Self, InvalidTarget> {
        if text.is_empty() {
            return Err(InvalidTarget::NoHost);
        }
        if let Ok(ip) = text.parse() {
            return Ok(Self::Ip(ip));
        }
        if let Some((address, zone)) = text.split_once('%')
            && address.parse::<IpAddr>().is_ok()
        {
            return Err(InvalidTarget::Zone(zone.to_owned()));
        }
        if !is_name(text) {
            return Err(InvalidTarget::Host(shown(text)));
        }
        match ends_in_number(text) {
            true => Err(InvalidTarget::Number(text.to_owned())),
            false => Ok(Self::Name(text.to_owned())),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(ip) => ip.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// Parses a port of decimal digits alone: `+443` and ` 443` are none.
fn parse_port(text: &str) -> Result<NonZeroU16, InvalidTarget> {
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit()) && text.len() <= 5;
    let port = is_decimal.then(|| text.parse().ok()).flatten();
    port.ok_or_else(|| InvalidTarget::Port(shown(text)))
}

/// Returns true for a name of the DNS: labels of 1 to 63 characters, 253 in all, and perhaps a dot at its end.
fn is_name(text: &str) -> bool {
    let name = text.strip_suffix('.').unwrap_or(text);
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

/// Returns true if resolvers may take a name for an IPv4 address in numbers of any base (URL Standard §3.5).
fn ends_in_number(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_hexadecimal = last
        .strip_prefix("0x")
        .or_else(|| last.strip_prefix("0X"))
        .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    is_hexadecimal || last.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns a short text of a value that is no host or port.
fn shown(text: &str) -> String {
    text.chars().take(LONGEST_SHOWN).collect()
}

/// The longest part of an invalid value that an error repeats, in characters.
const LONGEST_SHOWN: usize = 64;

#[cfg(test)]
mod tests;
