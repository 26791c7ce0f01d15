//! Interim responses, on a client.

use std::fmt;
use std::sync::Arc;

use http::Response;

/// Called with each interim response (1xx) to the request among whose extensions it is.
///
/// A [`Client`](crate::h3::Client) calls it, and so does `courser::Client` over HTTP/3 and HTTP/1.1. Over
/// HTTP/2 hyper's client passes over interim responses, and it is never called.
///
/// ```
/// # use courser::h3::OnInterim;
/// let request = http::Request::get("https://example.org/")
///     .extension(OnInterim::new(|interim| println!("{}", interim.status())));
/// ```
#[derive(Clone)]
pub struct OnInterim(Arc<dyn Fn(Response<()>) + Send + Sync>);

impl OnInterim {
    /// Calls `run`, which should not take long.
    pub fn new(run: impl Fn(Response<()>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(run))
    }

    pub(crate) fn call(&self, response: Response<()>) {
        (self.0)(response);
    }
}

impl fmt::Debug for OnInterim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnInterim")
    }
}
