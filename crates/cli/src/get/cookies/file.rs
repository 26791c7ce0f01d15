//! Cookies in files: the format of Netscape's browser, which curl, wget and browsers exchange, or
//! heads of responses.
//!
//! A line each, of seven parts with tabs between: domain, whether it includes what is below, path,
//! whether it is secure, when it expires in seconds since 1970 (0 for the end of the session), name,
//! value. `#HttpOnly_` before the domain keeps a cookie from scripts.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use cookie::time::OffsetDateTime;
use cookie_store::{CookieDomain, CookieExpiration, RawCookie};
use url::Url;

/// The cookies of a file, each with a URL that it may come from. Lines that are none are skipped,
/// as curl does.
pub(super) fn read(text: &str) -> impl Iterator<Item = (RawCookie<'_>, Url)> {
    let lines = text.lines().filter(|line| line.len() <= MAX_LINE);
    lines.filter_map(|line| of_field(line).unwrap_or_else(|| of_parts(line)))
}

/// A file of cookies.
pub(super) fn write<'a>(
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

/// Puts a text in the place of a file, whole or not at all; `-` is standard output. What is new is
/// for the user's eyes only: cookies are credentials.
pub(super) fn save(name: &str, text: &str) -> io::Result<()> {
    if name == "-" {
        let mut stdout = io::stdout();
        return stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush());
    }
    // The file that a link leads to is written, not the link.
    let path = fs::canonicalize(name).unwrap_or_else(|_| PathBuf::from(name));
    match fs::metadata(&path) {
        // Devices and pipes.
        Ok(known) if !known.is_file() => fs::write(&path, text),
        Ok(known) => replace(&path, text, Some(known.permissions())),
        Err(_) => replace(&path, text, None),
    }
}

fn replace(path: &Path, text: &str, permissions: Option<fs::Permissions>) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.tmp", std::process::id()));
    let beside = PathBuf::from(beside);
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&beside)?;
    let result = file
        .write_all(text.as_bytes())
        .and_then(|()| match permissions {
            Some(permissions) => file.set_permissions(permissions),
            None => Ok(()),
        })
        .and_then(|()| fs::rename(&beside, path));
    if result.is_err() {
        let _ = fs::remove_file(&beside);
    }
    result
}

/// `set-cookie: name=value; domain=example.org`; `None` if the line is another one. One without a
/// domain belongs nowhere, as curl has it.
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

/// The seven parts; a missing value is an empty one.
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
        // Beyond the year 9999 is for ever.
        let time = OffsetDateTime::from_unix_timestamp(expires.clamp(0, LATEST)).ok()?;
        cookie = cookie.expires(time);
    }
    Some((cookie.build(), url_for(domain)?))
}

/// A URL of the domain, secure so that its cookies may be.
fn url_for(domain: &str) -> Option<Url> {
    let host = if domain.contains(':') {
        format!("[{}]", bare(domain))
    } else {
        domain.to_owned()
    };
    Url::parse(&format!("https://{host}/")).ok()
}

/// An address without its brackets.
fn bare(host: &str) -> &str {
    let inner = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    inner.unwrap_or(host)
}

const HTTP_ONLY: &str = "#HttpOnly_";
const FIELD: &str = "set-cookie:";
/// Longer lines are no cookies that anybody keeps; curl has the same.
const MAX_LINE: usize = 5000;
/// The end of the year 9999.
const LATEST: i64 = 253_402_300_799;

/// The first line is what readers know the format by.
const HEADER: &str = "\
# Netscape HTTP Cookie File
# https://curl.se/docs/http-cookies.html
# This file was generated by courser! Edit at your own risk.

";
