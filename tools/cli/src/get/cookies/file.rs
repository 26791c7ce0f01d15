//! Reads and writes cookie files: in Netscape's format, which curl, wget and browsers share, or as response headers.
//!
//! A cookie is a line of seven values separated by tabs: domain, whether subdomains are included, path,
//! whether it is secure, expiry in seconds since 1970 (0 for the end of the session), name, value.
//! `#HttpOnly_` before the domain hides a cookie from scripts.

use std::io::{self, Write as _};
use std::path::Path;

use courser::client::Cookie;
use courser::client::cookie_parts::{MAX_COOKIE, host_of};
use url::Url;

/// Returns the cookies of a file. Other lines are skipped, as by curl.
pub(super) fn read(text: &[u8], now: i64) -> impl Iterator<Item = Cookie> {
    let lines = text.split(|byte| *byte == b'\n');
    let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let lines = lines.filter(|line| line.len() <= MAX_LINE);
    lines.filter_map(move |line| of_field(line, now).unwrap_or_else(|| of_parts(line)))
}

/// Returns the text of a file of cookies. The format has no cookies with tabs in their names, values or paths.
pub(super) fn write<'a>(cookies: impl Iterator<Item = &'a Cookie>) -> Vec<u8> {
    let mut text = HEADER.as_bytes().to_vec();
    for cookie in cookies {
        let parts = [&cookie.path, &cookie.name, &cookie.value];
        if parts.iter().any(|part| part.contains(&b'\t')) {
            continue;
        }
        let mark = if cookie.is_http_only { HTTP_ONLY } else { "" };
        let (dot, below) = match cookie.is_host_only {
            true => ("", "FALSE"),
            false => (".", "TRUE"),
        };
        let secure = if cookie.is_secure { "TRUE" } else { "FALSE" };
        let expires = cookie.expires.unwrap_or(0).to_string();
        let place = format!("{mark}{dot}{}", cookie.domain);
        let parts: [&[u8]; 7] = [
            place.as_bytes(),
            below.as_bytes(),
            &cookie.path,
            secure.as_bytes(),
            expires.as_bytes(),
            &cookie.name,
            &cookie.value,
        ];
        text.extend(parts.join(&b'\t'));
        text.push(b'\n');
    }
    text
}

/// Replaces a file; `-` is standard output. Only the owner can read new files because cookies are credentials.
///
/// # Errors
/// Returns the error of the file system or of standard output. An existing file is unchanged then.
pub(super) fn save(name: &str, text: &[u8]) -> io::Result<()> {
    if name == "-" {
        let mut stdout = io::stdout();
        return stdout.write_all(text).and_then(|()| stdout.flush());
    }
    courser_base::replace_file(Path::new(name), text)
}

/// Parses `set-cookie: name=value; domain=example.org`. Returns `None` for other lines, and `Some(None)` for a
/// cookie without a domain, which curl drops too.
fn of_field(line: &[u8], now: i64) -> Option<Option<Cookie>> {
    let start = line.get(..FIELD.len())?;
    if !start.eq_ignore_ascii_case(FIELD) {
        return None;
    }
    let field = &line[FIELD.len()..];
    let lower = field.to_ascii_lowercase();
    let domain = lower
        .split(|byte| *byte == b';')
        .filter_map(|part| {
            std::str::from_utf8(part)
                .ok()?
                .trim()
                .strip_prefix("domain=")
        })
        .next_back();
    let url = domain.and_then(|domain| url_for(domain.trim().trim_start_matches('.')));
    Some(url.and_then(|url| Cookie::parse(field, &url, now).ok()))
}

/// Parses a line of seven values. The last one may be missing.
fn of_parts(line: &[u8]) -> Option<Cookie> {
    let (line, is_http_only) = match line.strip_prefix(HTTP_ONLY.as_bytes()) {
        Some(line) => (line, true),
        None => (line, false),
    };
    let is_control = |byte: &u8| matches!(byte, 0..=0x08 | 0x0a..=0x1f | 0x7f);
    if line.starts_with(b"#") || line.iter().any(is_control) {
        return None;
    }
    let mut parts = line.split(|byte| *byte == b'\t');
    let mut text = || std::str::from_utf8(parts.next()?).ok();
    let domain = text()?.trim_start_matches('.').to_ascii_lowercase();
    let includes_below = text()?.eq_ignore_ascii_case("TRUE");
    let path = text()?.as_bytes().to_vec();
    let is_secure = text()?.eq_ignore_ascii_case("TRUE");
    let expires: i64 = text()?.parse().ok()?;
    let name = parts.next()?.to_vec();
    let value = parts.next().unwrap_or_default().to_vec();
    let len = name.len() + value.len();
    if parts.next().is_some() || len == 0 || len > MAX_COOKIE || !path.starts_with(b"/") {
        return None;
    }
    let host = host_of(&url_for(&domain)?)?;
    if includes_below && courser_suffix::is_public(&host) {
        return None;
    }
    Some(Cookie {
        name,
        value,
        domain: host,
        is_host_only: !includes_below,
        path,
        // Later times count as the end of the year 9999.
        expires: (expires != 0).then(|| expires.min(LATEST)),
        is_secure,
        is_http_only,
    })
}

/// Returns a URL that may set cookies of the domain, secure ones too.
fn url_for(domain: &str) -> Option<Url> {
    let bare = domain.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    let host = match domain.contains(':') {
        true => format!("[{}]", bare.unwrap_or(domain)),
        false => domain.to_owned(),
    };
    // Only a host: `a@b` would be the host `b` with a user.
    let is_part = |byte: u8| b"@/?#\\".contains(&byte);
    let url = Url::parse(&format!("https://{host}/")).ok()?;
    (!host.bytes().any(is_part) && url.port().is_none()).then_some(url)
}

const HTTP_ONLY: &str = "#HttpOnly_";
const FIELD: &[u8] = b"set-cookie:";
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
