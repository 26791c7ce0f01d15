//! What the client expects of a store of cookies.

use std::fmt::Debug;

use http::{HeaderValue, Uri};

/// A store of cookies for [`ClientBuilder::cookie_store`](super::super::ClientBuilder::cookie_store).
///
/// The client calls it for every request and every response, including those of redirects. With the feature
/// `cookies`, `CookieJar` implements it in memory. Its methods are called in tasks, and must not block.
pub trait CookieStore: Send + Sync + Debug {
    /// Stores the cookies of a response to a request for `url`. Each value is that of a `set-cookie` field.
    fn set_cookies(&self, url: &Uri, values: &mut dyn Iterator<Item = &HeaderValue>);

    /// Returns the value of the `cookie` field of a request for `url`; `None` for no field.
    fn cookies(&self, url: &Uri) -> Option<HeaderValue>;
}
