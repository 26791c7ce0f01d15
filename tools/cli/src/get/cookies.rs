//! `--cookie` and `--cookie-jar`: the cookie engine (draft-ietf-httpbis-rfc6265bis).

mod file;

use std::io;
use std::sync::MutexGuard;
use std::time::SystemTime;

use courser::client::cookie_parts::Jar;
use courser_base::Mutex;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Uri};
use url::Url;

use super::plan::{CookiePlan, Verbosity};
use super::verbose::Details;
use super::{content, date};

/// The cookies of all transfers, if the cookie engine is on.
#[derive(Debug)]
pub(crate) struct Cookies {
    known: Option<Mutex<Jar>>,
    /// The file of `--cookie-jar`.
    jar: Option<String>,
    verbosity: Verbosity,
    details: Details,
}

impl Cookies {
    /// Reads the files of `--cookie`. As with curl, a file that cannot be read is reported and counts as empty,
    /// because it does not exist before the first run.
    pub(crate) fn load(plan: &CookiePlan, verbosity: Verbosity, details: Details) -> Self {
        let keeps = !plan.files.is_empty() || plan.jar.is_some();
        let cookies = Self {
            known: keeps.then(Mutex::default),
            jar: plan.jar.clone(),
            verbosity,
            details,
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
            Ok(bytes) => {
                for cookie in file::read(&bytes, now()) {
                    if cookie.expires.is_some() || !drops_sessions {
                        known.insert(cookie, now());
                    }
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.note(|| format!("Cookie file {name} does not exist yet"));
            }
            Err(error) => self.report(&format!("cannot read cookies from {name}: {error}")),
        }
    }

    /// Adds the cookies for a URL to the header of a request, before those that it already has.
    ///
    /// A TRACE request has none, because the server returns it to whoever reads the response.
    pub(crate) fn apply(&self, method: &Method, uri: &Uri, headers: &mut HeaderMap) {
        let Some(known) = self.lock().filter(|_| *method != Method::TRACE) else {
            return;
        };
        let Some(url) = url_of(uri, headers) else {
            return;
        };
        let mut value = known.field(&url, now());
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
            match known.set(field.as_bytes(), &url, now()) {
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
        let text = file::write(known.current(now()));
        if let Err(error) = file::save(name, &text) {
            self.report(&format!("cannot save cookies in {name}: {error}"));
        }
    }

    fn lock(&self) -> Option<MutexGuard<'_, Jar>> {
        let known = self.known.as_ref()?;
        Some(known.lock())
    }

    fn note(&self, text: impl FnOnce() -> String) {
        if !self.details.are_hidden() {
            self.details.note(&text());
        }
    }

    fn report(&self, text: &str) {
        if self.verbosity.shows_errors {
            crate::output::note(text);
        }
    }
}

/// Reads a file of cookies and returns the file that would be saved.
#[cfg(feature = "fuzzing")]
pub(crate) fn rewrite(text: &str) -> String {
    let mut known = Jar::default();
    for cookie in file::read(text.as_bytes(), now()) {
        known.insert(cookie, now());
    }
    String::from_utf8_lossy(&file::write(known.current(now()))).into_owned()
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

fn now() -> i64 {
    date::seconds(SystemTime::now())
}

/// The largest number of cookies that one response sets, as in curl.
const MAX_SET_AT_ONCE: usize = 50;
#[cfg(test)]
mod tests;
