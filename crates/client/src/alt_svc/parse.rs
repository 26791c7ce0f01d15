//! Parsing of the `alt-svc` field (RFC 7838 §3).

use std::time::Duration;

/// The parsed value of a field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Announcement {
    /// Withdraws all previous announcements.
    Clear,
    Services(Vec<Service>),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Service {
    pub(super) protocol: String,
    pub(super) host: Box<str>,
    pub(super) port: u16,
    pub(super) max_age: Duration,
    pub(super) persists: bool,
}

/// Parses a value. Returns `None` if its syntax is invalid; services with an invalid or missing address are
/// skipped.
pub(super) fn parse(value: &str) -> Option<Announcement> {
    if value.trim() == "clear" {
        return Some(Announcement::Clear);
    }
    let mut services = Vec::new();
    let mut rest = value;
    while !rest.trim_start_matches([' ', '\t', ',']).is_empty() {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let (service, behind) = parse_service(rest)?;
        services.extend(service);
        if services.len() > MAX_SERVICES {
            return None;
        }
        rest = behind;
    }
    (!services.is_empty()).then_some(Announcement::Services(services))
}

/// Parses one service. Returns it with the remaining text, or without it if its address is unusable.
fn parse_service(text: &str) -> Option<(Option<Service>, &str)> {
    let (protocol, rest) = text.split_once('=')?;
    let protocol = percent_decode(protocol.trim())?;
    let (address, mut rest) = parse_value(rest)?;
    let mut max_age = DEFAULT_MAX_AGE;
    let mut persists = false;
    loop {
        rest = rest.trim_start_matches([' ', '\t']);
        let Some(parameter) = rest.strip_prefix(';') else {
            break;
        };
        let (name, behind) = parameter.split_once('=')?;
        let (value, behind) = parse_value(behind)?;
        match name.trim().to_ascii_lowercase().as_str() {
            // A value that overflows is longer than any limit.
            "ma" => max_age = Duration::from_secs(parse_seconds(&value)?),
            "persist" => persists = value == "1",
            // Other parameters are ignored (RFC 7838 §3.1).
            _ => {}
        }
        rest = behind;
    }
    if !rest.is_empty() && !rest.starts_with(',') {
        return None;
    }
    let service = parse_address(&address).map(|(host, port)| Service {
        protocol,
        host,
        port,
        max_age,
        persists,
    });
    Some((service, rest))
}

/// Parses a token or a quoted string (RFC 9110 §5.6.4). Returns it and the remaining text.
fn parse_value(text: &str) -> Option<(String, &str)> {
    let text = text.trim_start_matches([' ', '\t']);
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([';', ',', ' ', '\t']).unwrap_or(text.len());
        let (token, rest) = text.split_at(end);
        return (!token.is_empty()).then(|| (token.to_owned(), rest));
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &quoted[at + 1..])),
            '\\' => value.push(characters.next()?.1),
            character => value.push(character),
        }
    }
    None
}

/// Parses `host:port` or `:port`.
fn parse_address(address: &str) -> Option<(Box<str>, u16)> {
    let (host, port) = address.rsplit_once(':')?;
    let host = match host.strip_prefix('[') {
        Some(host) => host.strip_suffix(']')?,
        None if host.contains(':') => return None,
        None => host,
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    if host.len() > MAX_HOST || !host.chars().all(is_name) {
        return None;
    }
    Some((host.to_ascii_lowercase().into(), port.parse().ok()?))
}

fn parse_seconds(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(text.parse().unwrap_or(u64::from(u32::MAX)))
}

/// Decodes percent-encoded characters in protocol names (RFC 7838 §3).
fn percent_decode(text: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let digits = [bytes.next()?, bytes.next()?];
            let digits = std::str::from_utf8(&digits).ok()?;
            decoded.push(u8::from_str_radix(digits, 16).ok()?);
        } else {
            decoded.push(byte);
        }
    }
    String::from_utf8(decoded)
        .ok()
        .filter(|name| !name.is_empty())
}

/// Lifetime of services without the parameter `ma` (RFC 7838 §3.1).
const DEFAULT_MAX_AGE: Duration = Duration::from_secs(24 * 3600);
/// Longest DNS name in characters (RFC 1035 §2.3.4, without the root).
const MAX_HOST: usize = 253;
/// Largest number of services in a value, to bound the work for one response.
const MAX_SERVICES: usize = 32;
