//! Cookies, and the fields that set them (draft-ietf-httpbis-rfc6265bis §5.6, §5.7).

use std::fmt;

use url::{Host, Url};

use super::date;

/// A cookie with the place that it belongs to. Its name and value are bytes, because servers use any encoding.
#[derive(Clone, PartialEq, Eq)]
pub struct Cookie {
    /// The name, which may be empty.
    pub name: Vec<u8>,
    /// The value, which may be empty if the name is not.
    pub value: Vec<u8>,
    /// The host, in lower case and without brackets, or the domain that the server gave.
    pub domain: String,
    /// True if names below the domain do not get the cookie.
    pub is_host_only: bool,
    /// The path at and below which requests have the cookie.
    pub path: Vec<u8>,
    /// The end in seconds since 1970; `None` for the end of the session.
    pub expires: Option<i64>,
    /// True if the cookie is sent over secure connections only.
    pub is_secure: bool,
    /// True if scripts of web pages may not read the cookie.
    pub is_http_only: bool,
}

impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the value, which is a credential.
        f.debug_struct("Cookie")
            .field("name", &self.shown_name())
            .field("domain", &self.domain)
            .field("path", &String::from_utf8_lossy(&self.path))
            .finish_non_exhaustive()
    }
}

/// The parts of the URL of a request that decide about its cookies.
pub struct Place<'a> {
    host: &'a str,
    path: &'a [u8],
    is_secure: bool,
}

impl<'a> Place<'a> {
    /// Returns the place of a URL, or `None` if it has no host.
    pub fn of(url: &'a Url) -> Option<Self> {
        Some(Self {
            host: bare_host(url)?,
            path: url.path().as_bytes(),
            is_secure: is_secure(url),
        })
    }
}

impl Cookie {
    /// Parses a Set-Cookie field in a response from `url`.
    ///
    /// # Errors
    /// Returns the reason if the cookie is refused.
    pub fn parse(field: &[u8], url: &Url, now: i64) -> Result<Self, String> {
        if field.iter().any(|byte| is_control(*byte)) {
            return Err("control characters are not allowed".to_owned());
        }
        let mut parts = field.split(|byte| *byte == b';');
        let pair = parts.next().unwrap_or_default();
        let (name, value) = match pair.iter().position(|byte| *byte == b'=') {
            Some(at) => (trim(&pair[..at]), trim(&pair[at + 1..])),
            None => (&b""[..], trim(pair)),
        };
        let len = name.len() + value.len();
        if len > MAX_COOKIE {
            return Err(format!("{len} bytes exceed the limit of {MAX_COOKIE}"));
        }
        if len == 0 {
            return Err("it has neither a name nor a value".to_owned());
        }
        let mut attributes = Attributes::default();
        for part in parts {
            attributes.read(part, now);
        }
        let host = host_of(url).ok_or("the URL has no host")?;
        let has_root_path = attributes.path == Some(b"/");
        let path = attributes.path.filter(|path| path.starts_with(b"/"));
        let mut cookie = Self {
            name: name.to_vec(),
            value: value.to_vec(),
            domain: host.clone(),
            is_host_only: true,
            path: path.map_or_else(|| default_path(url), <[u8]>::to_vec),
            expires: attributes.max_age.or(attributes.expires),
            is_secure: attributes.is_secure,
            is_http_only: attributes.is_http_only,
        };
        if cookie.is_secure && !is_secure(url) {
            let name = cookie.shown_name();
            return Err(format!("'{name}' is secure, the connection is not"));
        }
        cookie.set_domain(attributes.domain, &host)?;
        cookie.check_prefix(attributes.domain.is_none() && has_root_path)?;
        Ok(cookie)
    }

    fn set_domain(&mut self, domain: Option<&[u8]>, host: &str) -> Result<(), String> {
        let Some(domain) = domain else {
            return Ok(());
        };
        let domain = String::from_utf8_lossy(domain).to_ascii_lowercase();
        if courser_suffix::is_public(&domain) {
            // The host itself may have cookies.
            return match domain == host {
                true => Ok(()),
                false => Err(format!("'{domain}' is a public suffix")),
            };
        }
        if !is_in_domain(host, &domain) {
            return Err(format!("'{host}' is not in the domain '{domain}'"));
        }
        self.domain = domain;
        self.is_host_only = false;
        Ok(())
    }

    /// Checks the conditions of the name prefixes. Servers that ignore the name see the value of a nameless cookie
    /// as its name.
    fn check_prefix(&self, is_for_whole_host: bool) -> Result<(), String> {
        let begins = |text: &[u8], prefix: &str| {
            let start = text.get(..prefix.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
        };
        let is_hidden = self.name.is_empty()
            && [HOST_PREFIX, SECURE_PREFIX]
                .iter()
                .any(|prefix| begins(&self.value, prefix));
        let name = self.shown_name();
        if is_hidden {
            return Err("a value without a name must not begin like a protected name".to_owned());
        }
        if begins(&self.name, HOST_PREFIX) && !(self.is_secure && is_for_whole_host) {
            return Err(format!(
                "'{name}' must be secure, with path '/' and no domain"
            ));
        }
        if begins(&self.name, SECURE_PREFIX) && !self.is_secure {
            return Err(format!("'{name}' must be secure"));
        }
        Ok(())
    }

    /// Returns the name as text.
    pub fn shown_name(&self) -> String {
        String::from_utf8_lossy(&self.name).into_owned()
    }

    /// Returns true if the cookie is no longer sent at a time.
    pub fn is_expired(&self, now: i64) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    /// Returns true if it is the same cookie with another value.
    pub fn is_same(&self, other: &Self) -> bool {
        self.name == other.name
            && self.domain == other.domain
            && self.is_host_only == other.is_host_only
            && self.path == other.path
    }

    /// Returns true if requests to a place get the cookie.
    pub fn matches(&self, place: &Place<'_>) -> bool {
        let is_here = match self.is_host_only {
            true => place.host == self.domain,
            false => is_in_domain(place.host, &self.domain),
        };
        is_here && is_in_path(place.path, &self.path) && (!self.is_secure || place.is_secure)
    }

    /// Writes the pair of the Cookie field.
    pub fn write(&self, field: &mut Vec<u8>) {
        if !self.name.is_empty() {
            field.extend(&self.name);
            field.push(b'=');
        }
        field.extend(&self.value);
    }
}

/// The attributes of a Set-Cookie field. The last one of each name counts.
#[derive(Default)]
struct Attributes<'a> {
    expires: Option<i64>,
    max_age: Option<i64>,
    domain: Option<&'a [u8]>,
    path: Option<&'a [u8]>,
    is_secure: bool,
    is_http_only: bool,
}

impl<'a> Attributes<'a> {
    fn read(&mut self, part: &'a [u8], now: i64) {
        let (name, value) = match part.iter().position(|byte| *byte == b'=') {
            Some(at) => (trim(&part[..at]), trim(&part[at + 1..])),
            None => (trim(part), &b""[..]),
        };
        if value.len() > MAX_ATTRIBUTE {
            return;
        }
        let latest = now.saturating_add(MAX_LIFETIME);
        match name.to_ascii_lowercase().as_slice() {
            b"expires" => {
                if let Some(time) = date::of_cookie(value) {
                    self.expires = Some(time.min(latest));
                }
            }
            b"max-age" => {
                if let Some(seconds) = max_age(value) {
                    self.max_age = Some(match seconds {
                        ..=0 => i64::MIN,
                        _ => now.saturating_add(seconds).min(latest),
                    });
                }
            }
            b"domain" => {
                let domain = value.strip_prefix(b".").unwrap_or(value);
                if !domain.is_empty() {
                    self.domain = Some(domain);
                }
            }
            b"path" => self.path = Some(value),
            b"secure" => self.is_secure = true,
            b"httponly" => self.is_http_only = true,
            _ => {}
        }
    }
}

/// Parses the value of Max-Age. Large numbers count as the largest one.
fn max_age(value: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match value.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, value),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits.iter().fold(0_i64, |sum, digit| {
        sum.saturating_mul(10)
            .saturating_add(i64::from(digit - b'0'))
    });
    Some(if is_negative { -number } else { number })
}

/// Returns true for control characters other than TAB.
const fn is_control(byte: u8) -> bool {
    matches!(byte, 0..=0x08 | 0x0a..=0x1f | 0x7f)
}

/// Removes spaces and tabs at both ends.
fn trim(text: &[u8]) -> &[u8] {
    let is_text = |byte: &u8| !matches!(byte, b' ' | b'\t');
    let start = text.iter().position(is_text).unwrap_or(text.len());
    let end = text
        .iter()
        .rposition(is_text)
        .map_or(start, |last| last + 1);
    &text[start..end]
}

/// Returns the path up to its last slash (§5.1.4).
fn default_path(url: &Url) -> Vec<u8> {
    let path = url.path();
    match path.rfind('/') {
        None | Some(0) => b"/".to_vec(),
        Some(last) => path.as_bytes()[..last].to_vec(),
    }
}

/// Returns true if a path is another one or below it (§5.1.4).
pub fn is_in_path(path: &[u8], parent: &[u8]) -> bool {
    path.strip_prefix(parent)
        .is_some_and(|rest| rest.is_empty() || parent.ends_with(b"/") || rest.starts_with(b"/"))
}

/// Returns true if a host is a domain or, unless it is an address, a name below it (§5.1.3).
pub fn is_in_domain(host: &str, domain: &str) -> bool {
    let is_address = || host.parse::<std::net::IpAddr>().is_ok();
    host == domain
        || host
            .strip_suffix(domain)
            .is_some_and(|above| above.ends_with('.') && !is_address())
}

/// Returns the host of a URL. An IPv6 address has no brackets.
pub fn host_of(url: &Url) -> Option<String> {
    bare_host(url).map(str::to_owned)
}

fn bare_host(url: &Url) -> Option<&str> {
    Some(url.host_str()?.trim_matches(['[', ']']))
}

/// Returns true if attackers cannot read the connection: over TLS, or on this machine.
pub fn is_secure(url: &Url) -> bool {
    url.scheme() == "https"
        || match url.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(ip)) => ip.is_loopback(),
            Some(Host::Ipv6(ip)) => ip.is_loopback(),
            None => false,
        }
}

const HOST_PREFIX: &str = "__Host-";
const SECURE_PREFIX: &str = "__Secure-";
/// The largest size of name and value in bytes (§5.6), and the limit of curl, K521.
pub const MAX_COOKIE: usize = 4096;
/// The largest size of an attribute's value in bytes (§5.6).
const MAX_ATTRIBUTE: usize = 1024;
/// The longest lifetime in seconds: 400 days (§5.5).
pub const MAX_LIFETIME: i64 = 400 * 86_400;
