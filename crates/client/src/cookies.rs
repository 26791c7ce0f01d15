//! Cookies of requests and responses.

#[cfg(feature = "cookies")]
pub(super) mod cookie;
#[cfg(feature = "cookies")]
pub(super) mod date;
mod interface;
#[cfg(feature = "cookies")]
pub(super) mod jar;
#[cfg(feature = "cookies")]
mod store;

use http::header::{self, HeaderMap, HeaderValue};
use http::request::Parts;
use http::{Method, Uri};

pub use self::interface::CookieStore;
#[cfg(feature = "cookies")]
pub(super) use self::store::of_response;
#[cfg(feature = "cookies")]
pub use self::store::{CookieJar, RefusedCookie};

/// Adds the cookies of a store to a request, after those that the request has. Returns the field that it had, which
/// [`restore`] puts back for the next request.
pub(super) fn apply(store: &dyn CookieStore, parts: &mut Parts) -> Vec<HeaderValue> {
    let own: Vec<_> = parts
        .headers
        .get_all(header::COOKIE)
        .iter()
        .cloned()
        .collect();
    // The server returns a TRACE request to whoever reads the response.
    if parts.method == Method::TRACE {
        return own;
    }
    let Some(stored) = store.cookies(&parts.uri) else {
        return own;
    };
    let values = own.iter().chain(Some(&stored));
    let values: Vec<&[u8]> = values.map(HeaderValue::as_bytes).collect();
    // A request has only one Cookie field (RFC 6265 §5.4).
    if let Ok(mut value) = HeaderValue::from_bytes(&values.join(&b"; "[..])) {
        value.set_sensitive(true);
        parts.headers.insert(header::COOKIE, value);
    }
    own
}

/// Restores the Cookie fields that a request had before [`apply`].
pub(super) fn restore(headers: &mut HeaderMap, own: Vec<HeaderValue>) {
    headers.remove(header::COOKIE);
    for value in own {
        headers.append(header::COOKIE, value);
    }
}

/// Stores the cookies of a response.
pub(super) fn store(store: &dyn CookieStore, url: &Uri, headers: &HeaderMap) {
    if headers.contains_key(header::SET_COOKIE) {
        let values = headers.get_all(header::SET_COOKIE);
        store.set_cookies(url, &mut values.iter().take(MAX_SET_AT_ONCE));
    }
}

/// The largest number of cookies that one response sets, as in curl, K521.
pub(super) const MAX_SET_AT_ONCE: usize = 50;
