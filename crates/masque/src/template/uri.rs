//! URI templates of level 3 with simple and form expansion (RFC 6570).

use std::fmt::Write as _;

use http::Uri;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::invalid::InvalidTemplate;
use super::parser::{self, Expression, Part};

/// A template, whose variables its owner knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct UriTemplate {
    text: String,
    /// Scheme, `://` and authority; empty for a path.
    origin: String,
    parts: Vec<Part>,
}

/// A value that is not percent-encoded as it has to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum InvalidValue {
    /// A `%` is not followed by two hexadecimal digits.
    PercentEncoding,
    /// A character that only stands in values as an escape.
    Character,
}

impl UriTemplate {
    /// Creates the template of a client, which has to be an absolute URI with these variables.
    pub(crate) fn absolute(text: &str, required: &[&'static str]) -> Result<Self, InvalidTemplate> {
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
        check_port(authority)?;
        let origin = format!("https://{authority}");
        let template = Self::of_parts(text, origin, path, required)?;
        // An authority that is none would be refused with the first request.
        match template.origin.parse::<Uri>() {
            Ok(_) => Ok(template),
            Err(_) => Err(InvalidTemplate::NotAbsolute(text.to_owned())),
        }
    }

    /// Creates the template of a proxy, whose host and port may be any. It may have the `known` variables only.
    pub(crate) fn path(
        text: &str,
        required: &[&'static str],
        known: &[&str],
    ) -> Result<Self, InvalidTemplate> {
        check_text(text)?;
        let template = Self::of_parts(text, String::new(), text, required)?;
        template.check_readable(known)?;
        Ok(template)
    }

    fn of_parts(
        text: &str,
        origin: String,
        path: &str,
        required: &[&'static str],
    ) -> Result<Self, InvalidTemplate> {
        if !path.starts_with('/') {
            return Err(InvalidTemplate::NoPath);
        }
        let parts = parser::parts(path)?;
        let template = Self {
            text: text.to_owned(),
            origin,
            parts,
        };
        for required in required {
            if !template.variables().any(|name| name == *required) {
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

    pub(crate) fn variables(&self) -> impl Iterator<Item = &str> {
        let expressions = self.parts.iter().filter_map(|part| match part {
            Part::Expression(expression) => Some(expression),
            Part::Literal(_) => None,
        });
        expressions.flat_map(|expression| expression.names.iter().map(String::as_str))
    }

    /// Checks that [`find`](Self::find) knows where each value ends.
    fn check_readable(&self, known: &[&str]) -> Result<(), InvalidTemplate> {
        if let Some(name) = self.variables().find(|name| !known.contains(name)) {
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

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the expansion with values, with the characters of `encoded` percent-encoded. Other variables are
    /// undefined, and expand to nothing.
    pub(crate) fn expand(&self, values: &[(&str, &str)], encoded: &'static AsciiSet) -> String {
        let mut out = self.origin.clone();
        for part in &self.parts {
            match part {
                Part::Literal(literal) => out.push_str(literal),
                Part::Expression(expression) => expression.expand(&mut out, values, encoded),
            }
        }
        out
    }

    /// Returns the values of variables in a path with its query, as they stand there: `None` for those that the template
    /// or the path has not. The text of the template has to occur byte by byte. `None` if the path is another one.
    pub(crate) fn find<'a, const N: usize>(
        &self,
        path_and_query: &'a str,
        names: [&str; N],
    ) -> Option<[Option<&'a str>; N]> {
        let mut rest = path_and_query;
        let mut values = [None; N];
        for part in &self.parts {
            match part {
                Part::Literal(literal) => rest = rest.strip_prefix(literal.as_str())?,
                Part::Expression(expression) => {
                    let mut found = 0;
                    for name in &expression.names {
                        let lead = expression.lead(found, name);
                        rest = match rest.strip_prefix(lead.as_str()) {
                            Some(value) => value,
                            // Undefined variables leave no trace in a form.
                            None if expression.operator.is_some() => continue,
                            None => return None,
                        };
                        found += 1;
                        let end = rest.find(is_delimiter).unwrap_or(rest.len());
                        let value = &rest[..end];
                        rest = &rest[end..];
                        if let Some(index) = names.iter().position(|known| known == name) {
                            values[index] = Some(value);
                        }
                    }
                }
            }
        }
        rest.is_empty().then_some(values)
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

    fn expand(&self, out: &mut String, values: &[(&str, &str)], encoded: &'static AsciiSet) {
        let value_of = |wanted: &str| values.iter().find(|(name, _)| *name == wanted);
        let defined = self
            .names
            .iter()
            .filter_map(|name| Some((name, value_of(name)?.1)));
        for (index, (name, value)) in defined.enumerate() {
            let lead = self.lead(index, name);
            // Writing to a string does not fail.
            let _ = write!(out, "{lead}{}", utf8_percent_encode(value, encoded));
        }
    }
}

/// Checks the port of an authority. Some parsers of URIs take one that is too large for none, and would use another.
fn check_port(authority: &str) -> Result<(), InvalidTemplate> {
    // The colons of an IPv6 address are in brackets.
    let Some((_, port)) = authority.rsplit_once(':') else {
        return Ok(());
    };
    let is_decimal = port.bytes().all(|byte| byte.is_ascii_digit());
    let is_port = is_decimal && port.parse::<u16>().is_ok_and(|it| it > 0);
    match port.is_empty() || port.ends_with(']') || is_port {
        true => Ok(()),
        false => Err(InvalidTemplate::Port(port.to_owned())),
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

/// Decodes a value, in which only unreserved characters (RFC 6570 §3.2.2) and those of `plain` may stand as they are.
pub(crate) fn decode(value: &str, plain: &[u8]) -> Result<String, InvalidValue> {
    let mut bytes = value.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let mut is_digit = || bytes.next().is_some_and(|digit| digit.is_ascii_hexdigit());
                if !(is_digit() && is_digit()) {
                    return Err(InvalidValue::PercentEncoding);
                }
            }
            byte if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {}
            byte if plain.contains(&byte) => {}
            _ => return Err(InvalidValue::Character),
        }
    }
    // Bytes that are no UTF-8 are part of no host.
    Ok(percent_decode_str(value).decode_utf8_lossy().into_owned())
}

/// Returns true for characters that end a value.
const fn is_delimiter(character: char) -> bool {
    matches!(character, '/' | '?' | '&' | ',' | '#' | ';')
}

/// All characters but unreserved ones (RFC 3986 §2.3).
pub(crate) const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Longest template, in bytes.
const LONGEST: usize = 4096;
