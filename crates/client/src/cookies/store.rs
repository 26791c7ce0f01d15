//! A store of cookies in memory.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use courser_base::Mutex;
use http::Uri;
use http::header::HeaderValue;
use url::Url;

use super::cookie::Cookie;
use super::interface::CookieStore;
use super::jar::Jar;

/// A [store of cookies](CookieStore) in memory, with the rules of browsers (draft-ietf-httpbis-rfc6265bis).
///
/// It refuses cookies for domains under which anyone can register a name, cookies whose names begin with `__Host-` or
/// `__Secure-` without their conditions, and those of insecure connections that would hide secure ones. It keeps
/// 3000 cookies, 180 of them for a domain and 4096 bytes each; the oldest make room for others. A request gets 150
/// cookies with 8190 bytes at most. Cookies end after 400 days.
///
/// ```
/// # mod courser { pub use courser_client::{self as client, Client}; }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
///
/// use courser::client::CookieJar;
///
/// let jar = Arc::new(CookieJar::new());
/// jar.set(&"https://example.org/".parse()?, "session=1234; Secure; HttpOnly")?;
/// let client = courser::Client::builder().cookie_store(jar.clone()).build()?;
/// assert_eq!(jar.all().len(), 1);
/// # drop(client);
/// # Ok(()) }
/// ```
#[derive(Default)]
pub struct CookieJar(Mutex<Jar>);

impl CookieJar {
    /// Creates an empty jar.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stores a cookie as if it was the `set-cookie` field of a response to a request for `url`.
    ///
    /// # Errors
    /// [`RefusedCookie`] with the reason.
    pub fn set(&self, url: &Uri, field: &str) -> Result<(), RefusedCookie> {
        let url = url_of(url).ok_or_else(|| RefusedCookie(format!("'{url}' is not a URL")))?;
        let mut jar = self.0.lock();
        let stored = jar.set(field.as_bytes(), &url, now());
        stored.map(drop).map_err(RefusedCookie)
    }

    /// Stores a cookie that another jar has returned, or replaces one of the same name and place.
    pub fn insert(&self, cookie: Cookie) {
        self.0.lock().insert(cookie, now());
    }

    /// Returns all cookies that have not expired, oldest first, for example to save them.
    pub fn all(&self) -> Vec<Cookie> {
        self.0.lock().current(now()).cloned().collect()
    }

    /// Removes all cookies.
    pub fn clear(&self) {
        *self.0.lock() = Jar::default();
    }
}

impl CookieStore for CookieJar {
    fn set_cookies(&self, url: &Uri, values: &mut dyn Iterator<Item = &HeaderValue>) {
        let Some(url) = url_of(url) else {
            return;
        };
        let mut jar = self.0.lock();
        for value in values {
            // As in browsers, a cookie that is refused is no error of the response.
            let _ = jar.set(value.as_bytes(), &url, now());
        }
    }

    fn cookies(&self, url: &Uri) -> Option<HeaderValue> {
        let jar = self.0.lock();
        if jar.is_empty() {
            return None;
        }
        let field = jar.field(&url_of(url)?, now());
        let mut value = HeaderValue::from_bytes(&field).ok()?;
        value.set_sensitive(true);
        (!field.is_empty()).then_some(value)
    }
}

impl fmt::Debug for CookieJar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.lock().current(now()).count();
        f.debug_struct("CookieJar")
            .field("cookies", &count)
            .finish()
    }
}

/// The reason why a [`CookieJar`] does not store a cookie.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefusedCookie(String);

impl fmt::Display for RefusedCookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the cookie is refused: {}", self.0)
    }
}

impl std::error::Error for RefusedCookie {}

/// Returns the cookies of the fields of a response to a request for `url` that would be stored.
pub fn of_response<'a>(
    url: &Uri,
    values: impl Iterator<Item = &'a HeaderValue>,
) -> impl Iterator<Item = Cookie> {
    let url = url_of(url);
    values.filter_map(move |value| Cookie::parse(value.as_bytes(), url.as_ref()?, now()).ok())
}

fn url_of(uri: &Uri) -> Option<Url> {
    Url::parse(&uri.to_string()).ok()
}

/// Returns the seconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    })
}
