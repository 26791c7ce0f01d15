//! Interim responses received by a client.

use std::fmt;
use std::sync::Arc;

use http::Response;

/// A callback for each interim response (1xx) to a request; add it to the extensions of the request.
///
/// A [`Client`](crate::Client) calls it, and so does `courser::Client` over HTTP/3 and HTTP/1.1. Over HTTP/2 it
/// is never called, because hyper's client discards interim responses.
///
/// ```
/// # mod courser { pub use courser_quic::*; pub use courser_http3_tokio as h3; }
/// # use courser::h3::OnInterim;
/// let request = http::Request::get("https://example.org/")
///     .extension(OnInterim::new(|interim| println!("{}", interim.status())));
/// ```
#[derive(Clone)]
pub struct OnInterim(Arc<dyn Fn(Response<()>) + Send + Sync>);

impl OnInterim {
    /// Creates a callback that runs `run`, which should return quickly.
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
