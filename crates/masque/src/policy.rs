//! The targets to which a proxy sends packets (RFC 9298 §7).

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

use crate::addresses::{NAT64_LENGTHS, embedded, special_purpose};
use crate::names::Names;
use crate::prefix::Prefix;

/// Decides to which addresses and ports a proxy sends packets. It judges addresses, after names are resolved.
///
/// The first rule that matches decides, in the order in which the rules were added. Without a match,
/// [`public_only`](Self::public_only) allows addresses of the public internet, and [`nothing`](Self::nothing) none.
///
/// A rule for [names](Names) that allows a target allows its public addresses only: whoever controls the name chooses
/// the addresses. Other addresses need a rule for their prefix.
///
/// An IPv6 address that translators and tunnels turn into an IPv4 address (IPv4-mapped, 6to4, NAT64) is allowed only
/// if the IPv4 address is allowed too.
///
/// ```
/// use courser_masque::{Policy, Prefix, WellKnown};
/// let policy = Policy::public_only()
///     .deny_ports(WellKnown::AMPLIFIERS)
///     .deny("198.51.0.0/16".parse()?, 0..=65535)
///     .allow("10.1.2.0/24".parse()?, 443..=443);
/// assert!(policy.judge("93.184.216.34:443".parse()?).is_ok());
/// assert!(policy.judge("93.184.216.34:53".parse()?).is_err());
/// assert!(policy.judge("10.1.2.3:443".parse()?).is_ok());
/// let error = policy.judge("[::ffff:127.0.0.1]:443".parse()?).unwrap_err();
/// assert_eq!(error.to_string(), "127.0.0.1 is a loopback address");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Policy {
    rules: Vec<Rule>,
    /// True if addresses of the public internet are allowed without a rule.
    allows_public: bool,
    /// The prefixes of translators.
    nat64: Vec<Prefix>,
}

#[derive(Clone, Debug)]
struct Rule {
    matches: Matches,
    ports: RangeInclusive<u16>,
    allows: bool,
}

/// The targets of a rule.
#[derive(Clone, Debug)]
enum Matches {
    All,
    Public,
    Prefix(Prefix),
    Names(Names),
}

impl Matches {
    fn has(&self, name: Option<&str>, address: IpAddr) -> bool {
        match self {
            Self::All => true,
            Self::Public => special_purpose(address).is_none(),
            Self::Prefix(prefix) => prefix.contains(address),
            Self::Names(names) => name.is_some_and(|name| names.contains(name)),
        }
    }
}

/// The decision of a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    /// A rule names the address.
    Allowed,
    /// The address is public, and no rule names it.
    Public,
}

/// The reason why a target is not allowed. Its text is for the operator; clients receive
/// `destination_ip_prohibited` only.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Prohibited {
    /// A rule denies the address and port.
    #[error("a rule denies {0}")]
    Denied(SocketAddr),
    /// The address is not one of the public internet.
    #[error("{address} is {kind}")]
    Special {
        /// The address, or the IPv4 address inside of it.
        address: IpAddr,
        /// Its kind, with an article.
        kind: &'static str,
    },
    /// A rule denies the name and port.
    #[error("a rule denies {name} at port {port}")]
    DeniedName {
        /// The name, as the client wrote it.
        name: String,
        /// The port.
        port: u16,
    },
    /// No rule allows the address and port.
    #[error("no rule allows {0}")]
    NotAllowed(SocketAddr),
    /// The name has no address.
    #[error("the name has no address")]
    NoAddress,
}

/// The error of a prefix that no translator can have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{0} is no prefix of a translator: use one of IPv6 with 32, 40, 48, 56, 64 or 96 bits, and 0 from bit 64 to 71 (RFC 6052)"
)]
pub struct InvalidTranslator(Prefix);

/// Lists of ports for [`Policy::deny_ports`].
#[derive(Clone, Copy, Debug)]
pub struct WellKnown;

impl WellKnown {
    /// Services that answer with more bytes than they are sent, and those that trust their network: DNS, TFTP,
    /// portmap, NTP, NetBIOS, SNMP, LDAP, RIP, IPMI, SSDP, STUN, mDNS, CoAP, memcached.
    pub const AMPLIFIERS: [u16; 17] = [
        17, 19, 53, 69, 111, 123, 137, 138, 161, 389, 520, 623, 1900, 3478, 5353, 5683, 11211,
    ];
}

impl Policy {
    /// Allows addresses of the public internet, on all ports. The default.
    pub const fn public_only() -> Self {
        Self {
            rules: Vec::new(),
            allows_public: true,
            nat64: Vec::new(),
        }
    }

    /// Allows only what rules allow.
    pub const fn nothing() -> Self {
        Self {
            rules: Vec::new(),
            allows_public: false,
            nat64: Vec::new(),
        }
    }

    /// Adds a rule that allows addresses, which may be private ones or those of this machine, with these ports.
    #[must_use]
    pub fn allow(self, prefix: Prefix, ports: RangeInclusive<u16>) -> Self {
        self.rule(Matches::Prefix(prefix), ports, true)
    }

    /// Adds a rule that denies addresses with these ports.
    #[must_use]
    pub fn deny(self, prefix: Prefix, ports: RangeInclusive<u16>) -> Self {
        self.rule(Matches::Prefix(prefix), ports, false)
    }

    /// Adds a rule that allows names with these ports, if their addresses are public.
    #[must_use]
    pub fn allow_names(self, names: Names, ports: RangeInclusive<u16>) -> Self {
        self.rule(Matches::Names(names), ports, true)
    }

    /// Adds a rule that denies names with these ports, before they are resolved. Clients can reach the same addresses
    /// by other names and by the addresses themselves.
    #[must_use]
    pub fn deny_names(self, names: Names, ports: RangeInclusive<u16>) -> Self {
        self.rule(Matches::Names(names), ports, false)
    }

    /// Adds a rule that allows public addresses with these ports. Later rules decide about others.
    #[must_use]
    pub fn allow_public(self, ports: RangeInclusive<u16>) -> Self {
        self.rule(Matches::Public, ports, true)
    }

    /// Adds a rule that denies all targets with these ports.
    #[must_use]
    pub fn deny_all(self, ports: RangeInclusive<u16>) -> Self {
        self.rule(Matches::All, ports, false)
    }

    /// Adds rules that deny ports of all addresses.
    #[must_use]
    pub fn deny_ports(self, ports: impl IntoIterator<Item = u16>) -> Self {
        let add = |policy: Self, port| policy.deny_all(port..=port);
        ports.into_iter().fold(self, add)
    }

    /// Adds the prefix of a translator of this network (NAT64, RFC 6052 §2.2), so that the IPv4 addresses inside of its
    /// addresses are judged. `64:ff9b::/96` is known.
    ///
    /// ```
    /// use courser_masque::Policy;
    /// let policy = Policy::public_only().nat64("2001:470:64::/48".parse()?)?;
    /// // 10.0.0.1, in the form for 48 bits.
    /// assert!(policy.judge("[2001:470:64:a00:0:100::]:443".parse()?).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the prefix is not one of IPv6 with 32, 40, 48, 56, 64 or 96 bits, or has a bit set from 64 to 71.
    pub fn nat64(mut self, prefix: Prefix) -> Result<Self, InvalidTranslator> {
        let reserved = match prefix.first() {
            IpAddr::V6(first) => first.octets()[8],
            IpAddr::V4(_) => return Err(InvalidTranslator(prefix)),
        };
        if !NAT64_LENGTHS.contains(&prefix.bits()) || reserved != 0 {
            return Err(InvalidTranslator(prefix));
        }
        self.nat64.push(prefix);
        Ok(self)
    }

    fn rule(mut self, matches: Matches, ports: RangeInclusive<u16>, allows: bool) -> Self {
        self.rules.push(Rule {
            matches,
            ports,
            allows,
        });
        self
    }

    /// Returns the address to which the socket has to be connected, if it is allowed.
    ///
    /// # Errors
    /// Returns the reason why it is not allowed.
    pub fn judge(&self, target: SocketAddr) -> Result<SocketAddr, Prohibited> {
        self.judge_as(None, target)
    }

    /// Returns the address to which the socket has to be connected, if this address of a target with the name `name` is
    /// allowed. `None` is a target without a name.
    ///
    /// ```
    /// use courser_masque::{Names, Policy};
    /// let policy = Policy::nothing().allow_names("*.example.org".parse()?, 443..=443);
    /// let (name, public) = (Some("www.example.org"), "93.184.216.34:443".parse()?);
    /// assert!(policy.judge_as(name, public).is_ok());
    /// assert!(policy.judge_as(None, public).is_err());
    /// assert!(policy.judge_as(name, "10.0.0.1:443".parse()?).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Returns the reason why it is not allowed.
    pub fn judge_as(
        &self,
        name: Option<&str>,
        target: SocketAddr,
    ) -> Result<SocketAddr, Prohibited> {
        let target = SocketAddr::from((target.ip().to_canonical(), target.port()));
        self.verdict(name, target)?;
        if let IpAddr::V6(v6) = target.ip()
            && let Some(inner) = embedded(v6, &self.nat64)
        {
            self.verdict(name, (inner, target.port()).into())?;
        }
        Ok(target)
    }

    /// Decides whether a name has to be resolved: no, if rules deny it whatever its addresses are.
    ///
    /// # Errors
    /// Returns the reason why it is not allowed.
    pub fn judge_name(&self, name: &str, port: u16) -> Result<(), Prohibited> {
        for rule in self.rules.iter().filter(|rule| rule.ports.contains(&port)) {
            let matches = match &rule.matches {
                // It depends on the addresses.
                Matches::Prefix(_) | Matches::Public if rule.allows => return Ok(()),
                Matches::Prefix(_) | Matches::Public => false,
                Matches::All => true,
                Matches::Names(names) => names.contains(name),
            };
            match (matches, rule.allows) {
                (true, true) => return Ok(()),
                (true, false) => {
                    let name = name.to_owned();
                    return Err(Prohibited::DeniedName { name, port });
                }
                (false, _) => {}
            }
        }
        Ok(())
    }

    /// Returns the first allowed one of the addresses of a name, of at most `most`.
    ///
    /// # Errors
    /// Returns the reason for the first address, if none is allowed.
    pub fn judge_all(
        &self,
        addresses: impl IntoIterator<Item = SocketAddr>,
        most: usize,
    ) -> Result<SocketAddr, Prohibited> {
        let mut first = None;
        for address in addresses.into_iter().take(most) {
            match self.judge(address) {
                Ok(allowed) => return Ok(allowed),
                Err(error) => drop(first.get_or_insert(error)),
            }
        }
        Err(first.unwrap_or(Prohibited::NoAddress))
    }

    /// Checks that the policy allows an address on some port.
    ///
    /// # Errors
    /// Returns the reason why it is allowed on none.
    pub fn judge_address(&self, address: IpAddr) -> Result<(), Prohibited> {
        // Verdicts change at the ends of rules only.
        let ends = |rule: &Rule| {
            let (first, last) = (*rule.ports.start(), *rule.ports.end());
            [first, last, first.saturating_sub(1), last.saturating_add(1)]
        };
        let ports = self.rules.iter().flat_map(ends);
        let first = self.judge((address, 0).into());
        let mut others = ports.map(|port| self.judge((address, port).into()));
        match first.is_ok() || others.any(|verdict| verdict.is_ok()) {
            true => Ok(()),
            false => first.map(drop),
        }
    }

    /// Returns true if a rule for prefixes allows the address, which may then be one of this machine.
    pub fn is_named(&self, target: SocketAddr) -> bool {
        self.judge(target)
            .and_then(|target| self.verdict(None, target))
            == Ok(Verdict::Allowed)
    }

    fn verdict(&self, name: Option<&str>, target: SocketAddr) -> Result<Verdict, Prohibited> {
        let (address, port) = (target.ip(), target.port());
        let matches = |rule: &&Rule| rule.ports.contains(&port) && rule.matches.has(name, address);
        let mut allows_public = self.allows_public;
        match self.rules.iter().find(matches) {
            Some(rule) if !rule.allows => return Err(Prohibited::Denied(target)),
            Some(rule) if matches!(rule.matches, Matches::Prefix(_)) => {
                return Ok(Verdict::Allowed);
            }
            Some(_) => allows_public = true,
            None => {}
        }
        match special_purpose(address) {
            Some(kind) => Err(Prohibited::Special { address, kind }),
            None if allows_public => Ok(Verdict::Public),
            None => Err(Prohibited::NotAllowed(target)),
        }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::public_only()
    }
}

#[cfg(test)]
mod tests;
