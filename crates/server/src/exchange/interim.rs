//! Interim responses of services over HTTP/1.1 and HTTP/2.

use std::fmt::Debug;
use std::sync::Arc;

use courser_http3_tokio::hooks::InterimSink;
use http::request::Parts;

/// A connection over which services can send interim responses.
pub(crate) trait InterimSource: Debug + Send + Sync {
    /// Returns the interim responses of a request, unless its client does not support them. Removes fields that
    /// identify the request.
    fn begin(&self, head: &mut Parts) -> Option<Arc<dyn InterimOfRequest>>;
}

/// The interim responses of one request.
pub(crate) trait InterimOfRequest: InterimSink {
    /// Refuses further interim responses, because the service has responded.
    fn end(&self);
}
