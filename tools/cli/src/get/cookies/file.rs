//! Reads and writes cookie files: in Netscape's format, which curl, wget and browsers share, or as response headers.
//!
//! A cookie is a line of seven values separated by tabs: domain, whether subdomains are included, path,
//! whether it is secure, expiry in seconds since 1970 (0 for the end of the session), name, value.
//! `#HttpOnly_` before the domain hides a cookie from scripts.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;

use cookie::time::OffsetDateTime;
use cookie_store::{CookieDomain, CookieExpiration, RawCookie};
use url::Url;

/// Returns the cookies of a file, each with a URL that may set it. Other lines are skipped, as by curl.
pub(crate) fn read(text: &str) -> impl Iterator<Item = (RawCookie<'_>, Url)> {
    let lines = text.lines().filter(|line| line.len() <= MAX_LINE);
    lines.filter_map(|line| of_field(line).unwrap_or_else(|| of_parts(line)))
}

/// Returns the text of a file of cookies.
pub(crate) fn write<'a>(
    cookies: impl Iterator<Item = &'a cookie_store::Cookie<'static>>,
) -> String {
    let mut text = String::from(HEADER);
    for cookie in cookies {
        let (domain, includes_below) = match &cookie.domain {
            CookieDomain::HostOnly(host) => (bare(host).to_owned(), "FALSE"),
            CookieDomain::Suffix(domain) => (format!(".{domain}"), "TRUE"),
            CookieDomain::NotPresent | CookieDomain::Empty => continue,
        };
        let expires = match &cookie.expires {
            CookieExpiration::AtUtc(time) => time.unix_timestamp(),
            CookieExpiration::SessionEnd => 0,
        };
        let mark = if cookie.http_only() == Some(true) {
            HTTP_ONLY
        } else {
            ""
        };
        let path = &*cookie.path;
        let secure = if cookie.secure() == Some(true) {
            "TRUE"
        } else {
            "FALSE"
        };
        let (name, value) = cookie.name_value();
        let _ = writeln!(
            text,
            "{mark}{domain}\t{includes_below}\t{path}\t{secure}\t{expires}\t{name}\t{value}"
        );
    }
    text
}

/// Replaces a file atomically; `-` is standard output. Only the owner can read new files because cookies are
/// credentials.
///
/// # Errors
/// Returns the error of the file system or of standard output. An existing file is unchanged then.
pub(crate) fn save(name: &str, text: &str) -> io::Result<()> {
    if name == "-" {
        let mut stdout = io::stdout();
        return stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush());
    }
    courser_base::replace_file(Path::new(name), text.as_bytes())
}

/// Parses `set-cookie: name=value; domain=example.org`. Returns `None` for other lines, and `Some(None)` for a
/// cookie without a domain, which curl drops too.
fn of_field(line: &str) -> Option<Option<(RawCookie<'_>, Url)>> {
    let start = line.get(..FIELD.len())?;
    if !start.eq_ignore_ascii_case(FIELD) {
        return None;
    }
    let cookie = RawCookie::parse(&line[FIELD.len()..]).ok();
    Some(cookie.and_then(|cookie| {
        let url = url_for(cookie.domain()?)?;
        Some((cookie, url))
    }))
}

/// Parses a line of seven values. The last one may be missing.
fn of_parts(line: &str) -> Option<(RawCookie<'_>, Url)> {
    let (line, is_http_only) = match line.strip_prefix(HTTP_ONLY) {
        Some(line) => (line, true),
        None => (line, false),
    };
    if line.starts_with('#') {
        return None;
    }
    let mut parts = line.split('\t');
    let domain = parts.next()?.trim_start_matches('.');
    let includes_below = parts.next()?.eq_ignore_ascii_case("TRUE");
    let path = parts.next()?;
    let is_secure = parts.next()?.eq_ignore_ascii_case("TRUE");
    let expires: i64 = parts.next()?.parse().ok()?;
    let name = parts.next().filter(|name| !name.is_empty())?;
    let value = parts.next().unwrap_or_default();
    if parts.next().is_some() {
        return None;
    }
    let mut cookie = RawCookie::build((name, value))
        .path(path)
        .secure(is_secure)
        .http_only(is_http_only);
    if includes_below {
        cookie = cookie.domain(domain);
    }
    if expires != 0 {
        // Later times count as the end of the year 9999.
        let time = OffsetDateTime::from_unix_timestamp(expires.clamp(0, LATEST)).ok()?;
        cookie = cookie.expires(time);
    }
    Some((cookie.build(), url_for(domain)?))
}

/// Returns a URL that may set cookies of the domain, secure ones too.
fn url_for(domain: &str) -> Option<Url> {
    let host = if domain.contains(':') {
        format!("[{}]", bare(domain))
    } else {
        domain.to_owned()
    };
    // Only a host: `a@b` would be the host `b` with a user.
    let is_part = |byte: u8| b"@/?#\\".contains(&byte);
    let url = Url::parse(&format!("https://{host}/")).ok()?;
    (!host.bytes().any(is_part) && url.port().is_none()).then_some(url)
}

/// Returns an address without its brackets.
fn bare(host: &str) -> &str {
    let inner = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    inner.unwrap_or(host)
}

const HTTP_ONLY: &str = "#HttpOnly_";
const FIELD: &str = "set-cookie:";
/// The largest length of a line, as in curl.
const MAX_LINE: usize = 5000;
/// The end of the year 9999, in seconds since 1970.
const LATEST: i64 = 253_402_300_799;

/// The header of a file, by whose first line readers recognize the format.
const HEADER: &str = "\
# Netscape HTTP Cookie File
# https://curl.se/docs/http-cookies.html
# This file was generated by courser! Edit at your own risk.

";
