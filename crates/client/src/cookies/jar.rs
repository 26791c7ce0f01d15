//! The stored cookies, whose number is limited.

use std::cmp::Reverse;

use url::Url;

use super::cookie::{Cookie, Place, host_of, is_in_domain, is_in_path, is_secure};

/// The cookies in the order of their creation.
#[derive(Default, Debug)]
pub struct Jar(Vec<Cookie>);

impl Jar {
    /// Stores the cookie of a Set-Cookie field in a response from `url`. Returns a description of the change.
    ///
    /// # Errors
    /// Returns the reason if the cookie is refused.
    pub fn set(&mut self, field: &[u8], url: &Url, now: i64) -> Result<String, String> {
        let cookie = Cookie::parse(field, url, now)?;
        if !is_secure(url) && self.hides_secure(&cookie, url, now) {
            let name = cookie.shown_name();
            return Err(format!("a secure cookie named '{name}' exists already"));
        }
        Ok(self.insert(cookie, now))
    }

    /// Stores a cookie, or removes an expired one. Returns a description of the change.
    pub fn insert(&mut self, cookie: Cookie, now: i64) -> String {
        let known = self.0.iter().position(|known| known.is_same(&cookie));
        let (name, domain) = (cookie.shown_name(), cookie.domain.clone());
        let path = String::from_utf8_lossy(&cookie.path).into_owned();
        let done = match (known, cookie.is_expired(now)) {
            (Some(known), true) => {
                self.0.remove(known);
                "Expired"
            }
            (None, true) => "Ignored expired",
            (Some(known), false) => {
                // Its place, which is the time of its creation, stays the same.
                self.0[known] = cookie;
                "Replaced"
            }
            (None, false) => {
                self.0.push(cookie);
                self.make_room(&domain, now);
                "Added"
            }
        };
        // The text omits the value, which is a credential.
        format!("{done} cookie {name} for {domain}, path {path}")
    }

    /// Returns the value of the Cookie field for a request.
    pub fn field(&self, url: &Url, now: i64) -> Vec<u8> {
        let Some(place) = Place::of(url) else {
            return Vec::new();
        };
        let mut cookies: Vec<_> = self.current(now).filter(|it| it.matches(&place)).collect();
        // Longer paths come first, then older cookies.
        cookies.sort_by_key(|cookie| Reverse(cookie.path.len()));
        let mut field = Vec::new();
        for cookie in cookies.into_iter().take(MAX_SENT) {
            let before = field.len();
            if before > 0 {
                field.extend(b"; ");
            }
            cookie.write(&mut field);
            if field.len() > MAX_FIELD {
                field.truncate(before);
                break;
            }
        }
        field
    }

    /// Returns true if there is no cookie, not even an expired one.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the cookies that have not expired.
    pub fn current(&self, now: i64) -> impl Iterator<Item = &Cookie> {
        self.0.iter().filter(move |cookie| !cookie.is_expired(now))
    }

    /// Returns true if this cookie would hide a secure one, in which case an attacker on the path may have set it
    /// (draft-ietf-httpbis-rfc6265bis §5.7).
    fn hides_secure(&self, cookie: &Cookie, url: &Url, now: i64) -> bool {
        let host = host_of(url).unwrap_or_default();
        self.current(now).any(|known| {
            let is_near = is_in_domain(&host, &known.domain)
                || is_in_domain(&known.domain, &cookie.domain)
                || is_in_domain(&cookie.domain, &known.domain);
            known.is_secure
                && known.name == cookie.name
                && is_near
                && is_in_path(&cookie.path, &known.path)
        })
    }

    /// Removes expired cookies if there are too many, or otherwise the oldest.
    fn make_room(&mut self, domain: &str, now: i64) {
        let here = |cookies: &[Cookie]| cookies.iter().filter(|it| it.domain == domain).count();
        if here(&self.0) > MAX_OF_DOMAIN || self.0.len() > MAX_COOKIES {
            self.0.retain(|cookie| !cookie.is_expired(now));
        }
        let is_crowded = here(&self.0) > MAX_OF_DOMAIN;
        if is_crowded || self.0.len() > MAX_COOKIES {
            let mut cookies = self.0.iter();
            let oldest = cookies.position(|cookie| !is_crowded || cookie.domain == domain);
            oldest.map(|oldest| self.0.remove(oldest));
        }
    }
}

/// The largest number of cookies of one domain, K521, as in browsers. RFC 6265 §6.1 requires at least 50.
pub const MAX_OF_DOMAIN: usize = 180;
/// The largest number of cookies: the minimum of RFC 6265 §6.1.
pub const MAX_COOKIES: usize = 3000;
/// The largest number of cookies in one request, as in curl.
pub const MAX_SENT: usize = 150;
/// The largest size of the Cookie field in bytes, as in curl. Servers refuse longer fields.
pub const MAX_FIELD: usize = 8190;
