//! URI templates of UDP proxies (RFC 9298 §2, RFC 6570).

mod invalid;
mod parser;

use std::fmt::Write as _;
use std::str::FromStr;

use http::Uri;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

pub use self::invalid::InvalidTemplate;
use self::parser::{Expression, Part};
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
pub struct Template {
    text: String,
    /// Scheme, `://` and authority; empty for a path.
    origin: String,
    parts: Vec<Part>,
}

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
        check_text(text)?;
        let (scheme, rest) = text
            .split_once("://")
            .ok_or_else(|| InvalidTemplate::NotAbsolute(text.to_owned()))?;
        if !scheme.eq_ignore_ascii_case("https") {
            return Err(InvalidTemplate::Scheme(scheme.to_owned()));
        }
        let end = rest.find(['/', '?', '#', '{']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.is_empty() || authority.contains('@') {
            return Err(InvalidTemplate::NotAbsolute(text.to_owned()));
        }
        let origin = format!("https://{authority}");
        let template = Self::of_parts(text, origin, path)?;
        // An authority that is none would be refused with the first request.
        match template.origin.parse::<Uri>() {
            Ok(_) => Ok(template),
            Err(_) => Err(InvalidTemplate::NotAbsolute(text.to_owned())),
        }
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
        check_text(text)?;
        let template = Self::of_parts(text, String::new(), text)?;
        template.check_readable()?;
        Ok(template)
    }

    fn of_parts(text: &str, origin: String, path: &str) -> Result<Self, InvalidTemplate> {
        if !path.starts_with('/') {
            return Err(InvalidTemplate::NoPath);
        }
        let parts = parser::parts(path)?;
        let template = Self {
            text: text.to_owned(),
            origin,
            parts,
        };
        for required in VARIABLES {
            if !template.variables().any(|name| name == required) {
                return Err(InvalidTemplate::Missing(required));
            }
        }
        let mut seen = Vec::new();
        for name in template.variables() {
            if seen.contains(&name) {
                return Err(InvalidTemplate::Twice(name.to_owned()));
            }
            seen.push(name);
        }
        Ok(template)
    }

    fn variables(&self) -> impl Iterator<Item = &str> {
        let expressions = self.parts.iter().filter_map(|part| match part {
            Part::Expression(expression) => Some(expression),
            Part::Literal(_) => None,
        });
        expressions.flat_map(|expression| expression.names.iter().map(String::as_str))
    }

    /// Checks that [`find`](Self::find) knows where each value ends.
    fn check_readable(&self) -> Result<(), InvalidTemplate> {
        if let Some(name) = self.variables().find(|name| !VARIABLES.contains(name)) {
            return Err(InvalidTemplate::Unknown(name.to_owned()));
        }
        for pair in self.parts.windows(2) {
            let [Part::Expression(_), next] = pair else {
                continue;
            };
            let first = match next {
                Part::Literal(literal) => literal.chars().next().unwrap_or_default(),
                Part::Expression(expression) => expression.first().unwrap_or('{'),
            };
            if !is_delimiter(first) {
                return Err(InvalidTemplate::Ambiguous(first.to_string()));
            }
        }
        Ok(())
    }

    /// Returns the template as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the URI of a target, or its path and query for a template of a path. Every character of a value
    /// other than letters, digits, `-`, `.`, `_` and `~` is percent-encoded, the colons of an IPv6 address among
    /// them (RFC 9298 §3).
    pub fn expand(&self, target: &Target) -> String {
        let host = target.host().to_string();
        let port = target.port().to_string();
        let value_of = |name: &str| match name {
            HOST => Some(host.as_str()),
            PORT => Some(port.as_str()),
            _ => None,
        };
        let mut out = self.origin.clone();
        for part in &self.parts {
            match part {
                Part::Literal(literal) => out.push_str(literal),
                Part::Expression(expression) => expression.expand(&mut out, value_of),
            }
        }
        out
    }

    /// Returns the target of a path with its query.
    ///
    /// The text of the template has to occur byte by byte: `%2F`, `..` and other forms of the same path are none.
    ///
    /// # Errors
    /// Returns [`Mismatch::NotThis`] for another path, and [`Mismatch::Malformed`] if the path has the form of the
    /// template, but its host or port is invalid.
    pub fn find(&self, path_and_query: &str) -> Result<Target, Mismatch> {
        let mut rest = path_and_query;
        let (mut host, mut port) = (None, None);
        for part in &self.parts {
            match part {
                Part::Literal(literal) => {
                    rest = rest
                        .strip_prefix(literal.as_str())
                        .ok_or(Mismatch::NotThis)?;
                }
                Part::Expression(expression) => {
                    for (index, name) in expression.names.iter().enumerate() {
                        let lead = expression.lead(index, name);
                        rest = rest.strip_prefix(lead.as_str()).ok_or(Mismatch::NotThis)?;
                        let end = rest.find(is_delimiter).unwrap_or(rest.len());
                        let value = &rest[..end];
                        rest = &rest[end..];
                        match name == HOST {
                            true => host = Some(value),
                            false => port = Some(value),
                        }
                    }
                }
            }
        }
        let (Some(host), Some(port), "") = (host, port, rest) else {
            return Err(Mismatch::NotThis);
        };
        Ok(Target::new(&decode(host)?, &decode(port)?)?)
    }
}

impl FromStr for Template {
    type Err = InvalidTemplate;

    fn from_str(text: &str) -> Result<Self, InvalidTemplate> {
        Self::new(text)
    }
}

impl Expression {
    /// Returns the text before the value of a variable.
    fn lead(&self, index: usize, name: &str) -> String {
        match (self.operator, index) {
            (None, 0) => String::new(),
            (None, _) => ",".to_owned(),
            (Some(operator), 0) => format!("{operator}{name}="),
            (Some(_), _) => format!("&{name}="),
        }
    }

    /// Returns the first character of the expansion, if it does not depend on a value.
    const fn first(&self) -> Option<char> {
        self.operator
    }

    fn expand<'a>(&self, out: &mut String, value_of: impl Fn(&str) -> Option<&'a str>) {
        let defined = self
            .names
            .iter()
            .filter_map(|name| Some((name, value_of(name)?)));
        for (index, (name, value)) in defined.enumerate() {
            let lead = self.lead(index, name);
            // Writing to a string does not fail.
            let _ = write!(out, "{lead}{}", utf8_percent_encode(value, ENCODED));
        }
    }
}

/// Checks the length and the characters of a template.
fn check_text(text: &str) -> Result<(), InvalidTemplate> {
    if text.len() > LONGEST {
        return Err(InvalidTemplate::TooLong(text.len()));
    }
    let is_wrong =
        |character: &char| !('!'..='~').contains(character) || "\"'<>\\^`|".contains(*character);
    match text.chars().find(is_wrong) {
        Some(character) => Err(InvalidTemplate::Character(character)),
        None => Ok(()),
    }
}

/// Decodes a value, in which only unreserved characters may stand as they are (RFC 6570 §3.2.2).
fn decode(value: &str) -> Result<String, InvalidTarget> {
    let mut bytes = value.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let mut is_digit = || bytes.next().is_some_and(|digit| digit.is_ascii_hexdigit());
                if !(is_digit() && is_digit()) {
                    return Err(InvalidTarget::PercentEncoding);
                }
            }
            byte if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {}
            _ => return Err(InvalidTarget::Host(value.chars().take(64).collect())),
        }
    }
    // Bytes that are no UTF-8 are part of no host.
    Ok(percent_decode_str(value).decode_utf8_lossy().into_owned())
}

/// Returns true for characters that end a value.
const fn is_delimiter(character: char) -> bool {
    matches!(character, '/' | '?' | '&' | ',' | '#' | ';')
}

/// The variables of a UDP proxy.
const VARIABLES: [&str; 2] = [HOST, PORT];
const HOST: &str = "target_host";
const PORT: &str = "target_port";

/// All characters but unreserved ones (RFC 3986 §2.3).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Longest template, in bytes.
const LONGEST: usize = 4096;

#[cfg(test)]
mod tests;
