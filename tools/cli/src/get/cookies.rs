//! `--cookie` and `--cookie-jar`: the cookie engine (RFC 6265).
//!
//! The crate `cookie_store` stores cookies and finds those of a URL. This module adds the rules of browsers and
//! curl (draft-ietf-httpbis-rfc6265bis), which refuse cookies for all of `co.uk`, secure cookies over insecure
//! connections, and too many cookies.

use std::cmp::Reverse;
use std::io;
use std::sync::MutexGuard;

use cookie_store::{CookieDomain, CookieStore, RawCookie, StoreAction};
use courser_base::Mutex;
use http::Uri;
use http::header::{self, HeaderMap, HeaderValue};
use url::{Host, Url};

use super::content;
use super::plan::{CookiePlan, Verbosity};
use super::verbose;
use crate::transfer::cookie_file as file;

/// The cookies of all transfers, if the cookie engine is on.
#[derive(Debug)]
pub(crate) struct Cookies {
    known: Option<Mutex<Known>>,
    /// The file of `--cookie-jar`.
    jar: Option<String>,
    verbosity: Verbosity,
}

impl Cookies {
    /// Reads the files of `--cookie`. As with curl, a file that cannot be read is reported and counts as empty,
    /// because it does not exist before the first run.
    pub(crate) fn load(plan: &CookiePlan, verbosity: Verbosity) -> Self {
        let keeps = !plan.files.is_empty() || plan.jar.is_some();
        let cookies = Self {
            known: keeps.then(Mutex::default),
            jar: plan.jar.clone(),
            verbosity,
        };
        for name in plan.files.iter().filter(|name| !name.is_empty()) {
            cookies.load_file(name, plan.drops_sessions);
        }
        cookies
    }

    fn load_file(&self, name: &str, drops_sessions: bool) {
        let Some(mut known) = self.lock() else {
            return;
        };
        match content::read_bytes(name) {
            Ok(bytes) => known.read(&String::from_utf8_lossy(&bytes), drops_sessions),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.note(|| format!("Cookie file {name} does not exist yet"));
            }
            Err(error) => self.report(&format!("cannot read cookies from {name}: {error}")),
        }
    }

    /// Adds the cookies for a URL to the header of a request, before those that it already has.
    pub(crate) fn apply(&self, uri: &Uri, headers: &mut HeaderMap) {
        let Some(known) = self.lock() else {
            return;
        };
        let Some(url) = url_of(uri, headers) else {
            return;
        };
        let mut value = known.field(&url).into_bytes();
        if value.is_empty() {
            return;
        }
        // A request has only one Cookie field (RFC 6265 §5.4).
        for own in headers.get_all(header::COOKIE) {
            value.extend_from_slice(b"; ");
            value.extend_from_slice(own.as_bytes());
        }
        if let Ok(mut value) = HeaderValue::from_bytes(&value) {
            value.set_sensitive(true);
            headers.insert(header::COOKIE, value);
        }
    }

    /// Stores the cookies of a response. `request` is the header of its request.
    pub(crate) fn on_response(&self, uri: &Uri, request: &HeaderMap, response: &HeaderMap) {
        let Some(mut known) = self.lock() else {
            return;
        };
        let Some(url) = url_of(uri, request) else {
            return;
        };
        let fields = response.get_all(header::SET_COOKIE).iter();
        for field in fields.take(MAX_SET_AT_ONCE) {
            match known.set(field.as_bytes(), &url) {
                Ok(what) => self.note(|| what),
                Err(why) => self.note(|| format!("Rejected a cookie from {url}: {why}")),
            }
        }
    }

    /// Writes the file of `--cookie-jar`. As with curl, an error is reported but does not change the exit code.
    pub(crate) fn save(&self) {
        let (Some(name), Some(known)) = (&self.jar, self.lock()) else {
            return;
        };
        let text = file::write(known.0.iter_unexpired());
        if let Err(error) = file::save(name, &text) {
            self.report(&format!("cannot save cookies in {name}: {error}"));
        }
    }

    fn lock(&self) -> Option<MutexGuard<'_, Known>> {
        let known = self.known.as_ref()?;
        Some(known.lock())
    }

    fn note(&self, text: impl FnOnce() -> String) {
        if self.verbosity.shows_details {
            verbose::note(&text());
        }
    }

    fn report(&self, text: &str) {
        if self.verbosity.shows_errors {
            crate::output::note(text);
        }
    }
}

/// The stored cookies, whose number is limited.
#[derive(Default, Debug)]
struct Known(CookieStore);

/// Reads a file of cookies and returns the file that would be saved.
#[cfg(feature = "fuzzing")]
pub(crate) fn rewrite(text: &str) -> String {
    let mut known = Known::default();
    known.read(text, false);
    file::write(known.0.iter_unexpired())
}

impl Known {
    /// Stores the cookies of a file, without session cookies if `drops_sessions`.
    fn read(&mut self, text: &str, drops_sessions: bool) {
        for (cookie, url) in file::read(text) {
            let is_session = cookie.expires().is_none() && cookie.max_age().is_none();
            if !(drops_sessions && is_session) {
                // Ignores errors, most of which are about expired cookies.
                let _ = self.insert(&cookie, &url);
            }
        }
    }

    /// Stores the cookie of a Set-Cookie field in a response from `url`. Returns a description of the
    /// change.
    ///
    /// # Errors
    /// Returns the reason if the cookie is refused.
    fn set(&mut self, field: &[u8], url: &Url) -> Result<String, String> {
        let text = std::str::from_utf8(field).map_err(|_| "it is not UTF-8".to_owned())?;
        let cookie = RawCookie::parse(text).map_err(|error| error.to_string())?;
        if cookie.secure() == Some(true) && !is_secure(url) {
            let name = cookie.name();
            return Err(format!("'{name}' is secure, the connection is not"));
        }
        check_prefix(&cookie)?;
        if !is_secure(url) && self.hides_secure(&cookie, url) {
            let name = cookie.name();
            return Err(format!("a secure cookie named '{name}' exists already"));
        }
        self.insert(&cookie, url)
    }

    /// Stores a cookie if its size, its characters and its domain are valid.
    fn insert(&mut self, raw: &RawCookie<'_>, url: &Url) -> Result<String, String> {
        let (name, value) = raw.name_value();
        if name.len() + value.len() > MAX_COOKIE {
            let len = name.len() + value.len();
            return Err(format!("{len} bytes exceed the limit of {MAX_COOKIE}"));
        }
        let parts = [name, value, raw.path().unwrap_or_default()];
        if parts.iter().any(|part| part.chars().any(char::is_control)) {
            return Err("control characters are not allowed".to_owned());
        }
        let mut cookie = cookie_store::Cookie::try_from_raw_cookie(raw, url)
            .map_err(|error| error.to_string())?
            .into_owned();
        if let CookieDomain::Suffix(domain) = &cookie.domain
            && courser_suffix::is_public(domain)
        {
            // The host itself may have cookies (RFC 6265 §5.3 step 5).
            if url.host_str() != Some(domain) {
                return Err(format!("'{domain}' is a public suffix"));
            }
            cookie.domain = CookieDomain::HostOnly(domain.clone());
        }
        let (domain, path, name) = key_of(&cookie);
        let action = self.0.insert(cookie, url);
        let done = match action.map_err(|error| error.to_string())? {
            StoreAction::Inserted => {
                self.make_room(&domain);
                "Added"
            }
            StoreAction::UpdatedExisting => "Replaced",
            StoreAction::ExpiredExisting => "Expired",
        };
        // The text omits the value, which is a credential.
        Ok(format!("{done} cookie {name} for {domain}, path {path}"))
    }

    /// Returns the value of the Cookie field for a request.
    fn field(&self, url: &Url) -> String {
        let mut cookies = self.0.matches(url);
        // Longer paths come first, then older cookies (RFC 6265 §5.4).
        cookies.sort_by_key(|cookie| Reverse(cookie.path.len()));
        let mut field = String::new();
        for cookie in cookies.into_iter().take(MAX_SENT) {
            let (name, value) = cookie.name_value();
            let pair = format!("{name}={value}");
            if field.len() + pair.len() + 2 > MAX_FIELD {
                break;
            }
            if !field.is_empty() {
                field.push_str("; ");
            }
            field.push_str(&pair);
        }
        field
    }

    /// Returns true if this cookie would hide a secure one, in which case an attacker on the path may have set
    /// it (draft-ietf-httpbis-rfc6265bis §5.7).
    fn hides_secure(&self, cookie: &RawCookie<'_>, url: &Url) -> bool {
        let path = cookie.path().unwrap_or_else(|| url.path());
        self.0.iter_unexpired().any(|known| {
            let is_near = known.domain.matches(url)
                || url.host_str().is_some_and(|host| {
                    let domain = String::from(&known.domain);
                    domain
                        .strip_suffix(host)
                        .is_some_and(|it| it.ends_with('.'))
                });
            known.secure() == Some(true)
                && known.name() == cookie.name()
                && is_near
                && path.starts_with(&*known.path)
        })
    }

    /// Removes a cookie if there are too many: an expired one, or otherwise the oldest.
    fn make_room(&mut self, domain: &str) {
        let of_domain = |cookie: &cookie_store::Cookie<'_>| {
            cookie.domain.as_cow().is_some_and(|known| known == domain)
        };
        let (mut all, mut here) = (0, 0);
        for cookie in self.0.iter_any() {
            all += 1;
            here += usize::from(of_domain(cookie));
        }
        let is_crowded = here > MAX_OF_DOMAIN;
        if !is_crowded && all <= MAX_COOKIES {
            return;
        }
        let mut cookies = self.0.iter_any();
        let mut next = || cookies.find(|cookie| !is_crowded || of_domain(cookie));
        let oldest = next();
        let expired = std::iter::from_fn(next).find(|cookie| cookie.is_expired());
        let victim = expired.or(oldest).map(key_of);
        drop(cookies);
        if let Some((domain, path, name)) = victim {
            self.0.remove(&domain, &path, &name);
        }
    }
}

fn key_of(cookie: &cookie_store::Cookie<'_>) -> (String, String, String) {
    (
        String::from(&cookie.domain),
        String::from(&cookie.path),
        cookie.name().to_owned(),
    )
}

/// Returns the URL whose cookies a request has. A Host field replaces the host of the URL.
fn url_of(uri: &Uri, headers: &HeaderMap) -> Option<Url> {
    let mut url = Url::parse(&uri.to_string()).ok()?;
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    if let Some(host) = host {
        let host = Url::parse(&format!("http://{host}/")).ok()?;
        url.set_host(host.host_str()).ok()?;
    }
    Some(url)
}

/// Returns true if attackers cannot read the connection: over TLS, or on this machine.
fn is_secure(url: &Url) -> bool {
    url.scheme() == "https"
        || match url.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(ip)) => ip.is_loopback(),
            Some(Host::Ipv6(ip)) => ip.is_loopback(),
            None => false,
        }
}

/// Checks the conditions of the name prefixes `__Host-` and `__Secure-` (draft-ietf-httpbis-rfc6265bis
/// §4.1.3).
fn check_prefix(cookie: &RawCookie<'_>) -> Result<(), String> {
    let name = cookie.name();
    let begins = |prefix: &str| {
        let start = name.get(..prefix.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    let is_secure = cookie.secure() == Some(true);
    let is_whole_host = cookie.domain().is_none() && cookie.path() == Some("/");
    if begins("__Host-") && !(is_secure && is_whole_host) {
        return Err(format!(
            "'{name}' must be secure, with path '/' and no domain"
        ));
    }
    if begins("__Secure-") && !is_secure {
        return Err(format!("'{name}' must be secure"));
    }
    Ok(())
}

/// The largest size of name and value in bytes: the minimum of RFC 6265 §6.1, and the limit of curl.
const MAX_COOKIE: usize = 4096;
/// The largest number of cookies of one domain, as in browsers. RFC 6265 §6.1 requires at least 50.
const MAX_OF_DOMAIN: usize = 180;
/// The largest number of cookies: the minimum of RFC 6265 §6.1.
const MAX_COOKIES: usize = 3000;
/// The largest number of cookies that one response sets, as in curl.
const MAX_SET_AT_ONCE: usize = 50;
/// The largest number of cookies in one request, as in curl.
const MAX_SENT: usize = 150;
/// The largest size of the Cookie field in bytes, as in curl. Servers refuse longer fields.
const MAX_FIELD: usize = 8190;

#[cfg(test)]
mod tests;
