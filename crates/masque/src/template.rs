//! URI templates of UDP proxies (RFC 9298 §2, RFC 6570).

mod invalid;
mod parser;
mod uri;

use std::str::FromStr;

pub use self::invalid::InvalidTemplate;
pub(crate) use self::uri::{ENCODED, InvalidValue, UriTemplate, decode};
use crate::target::{InvalidTarget, Target};

/// The URI template of a proxy, with the variables `target_host` and `target_port`.
///
/// A client uses a whole URI, a proxy a [path](Self::path). Simple expansion (`{target_host}`) and form expansion
/// (`{?target_host,target_port}`) are supported. Further variables are undefined, and expand to nothing.
///
/// ```
/// use courser_masque::Template;
/// let template: Template = "https://proxy.example/udp{?target_host,target_port}".parse()?;
/// let uri = template.expand(&"[2001:db8::1]:443".parse()?);
/// assert_eq!(uri, "https://proxy.example/udp?target_host=2001%3Adb8%3A%3A1&target_port=443");
///
/// let paths = Template::path("/udp{?target_host,target_port}")?;
/// let target = paths.find("/udp?target_host=example.org&target_port=443")?;
/// assert_eq!(target.to_string(), "example.org:443");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Template(UriTemplate);

/// The reason why a path has no target.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Mismatch {
    /// The path is not that of the template.
    #[error("the path is not one of the template")]
    NotThis,
    /// The path has the form of the template, but no valid target.
    #[error("{0}")]
    Malformed(#[from] InvalidTarget),
}

impl Template {
    /// The path of a proxy whose template is not known otherwise (RFC 9298 §2).
    pub const WELL_KNOWN: &str = "/.well-known/masque/udp/{target_host}/{target_port}/";

    /// Creates the template of a client.
    ///
    /// # Errors
    /// Returns an error if the template is not absolute, lacks a path or a variable, or has an operator other than
    /// simple and form expansion.
    pub fn new(text: &str) -> Result<Self, InvalidTemplate> {
        UriTemplate::absolute(text, &VARIABLES).map(Self)
    }

    /// Creates the template of a proxy that is known by its host and port only, such as `proxy.example:4433` (RFC
    /// 9298 §2).
    ///
    /// # Errors
    /// Returns an error if `authority` is no host with or without a port.
    pub fn of_proxy(authority: &str) -> Result<Self, InvalidTemplate> {
        Self::new(&format!("https://{authority}{}", Self::WELL_KNOWN))
    }

    /// Creates the template of a proxy, whose host and port may be any.
    ///
    /// # Errors
    /// Returns an error if the path lacks a variable or has others, or if a value could not be told from the text
    /// after it.
    pub fn path(text: &str) -> Result<Self, InvalidTemplate> {
        UriTemplate::path(text, &VARIABLES, &VARIABLES).map(Self)
    }

    /// Returns the template as it was written.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Returns the URI of a target, or its path and query for a template of a path. Every character of a value
    /// other than letters, digits, `-`, `.`, `_` and `~` is percent-encoded, the colons of an IPv6 address among
    /// them (RFC 9298 §3).
    pub fn expand(&self, target: &Target) -> String {
        let host = target.host().to_string();
        let port = target.port().to_string();
        self.0.expand(&[(HOST, &host), (PORT, &port)], ENCODED)
    }

    /// Returns the target of a path with its query.
    ///
    /// The text of the template has to occur byte by byte: `%2F`, `..` and other forms of the same path are none.
    ///
    /// # Errors
    /// Returns [`Mismatch::NotThis`] for another path, and [`Mismatch::Malformed`] if the path has the form of the
    /// template, but its host or port is invalid.
    pub fn find(&self, path_and_query: &str) -> Result<Target, Mismatch> {
        let values = self.0.find(path_and_query, VARIABLES);
        let Some([Some(host), Some(port)]) = values else {
            return Err(Mismatch::NotThis);
        };
        let decoded = |value| {
            decode(value, b"").map_err(|error| match error {
                InvalidValue::PercentEncoding => InvalidTarget::PercentEncoding,
                InvalidValue::Character => InvalidTarget::Host(value.chars().take(64).collect()),
            })
        };
        Ok(Target::new(&decoded(host)?, &decoded(port)?)?)
    }
}

impl FromStr for Template {
    type Err = InvalidTemplate;

    fn from_str(text: &str) -> Result<Self, InvalidTemplate> {
        Self::new(text)
    }
}

/// The variables of a UDP proxy.
const VARIABLES: [&str; 2] = [HOST, PORT];
const HOST: &str = "target_host";
const PORT: &str = "target_port";

#[cfg(test)]
mod tests;
