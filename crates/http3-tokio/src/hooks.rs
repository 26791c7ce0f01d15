//! Internal operations for the server and the client of courser.
//!
//! They are not part of the public API and may change at any time.

pub use courser_http3::hooks::{
    CancellationBudget, FrameBudget, Target, is_connection_specific, must_be_escaped, put_escaped,
};
use std::sync::Arc;

use courser_quic::Connection;
use http::Response;

pub use crate::admission::Admission;
pub use crate::first_poll::{First, FirstPolls};
pub use crate::interim::InterimSink;

use crate::{Error, HttpService, Interim, OnInterim, Serve};

/// Like [`serve`](crate::serve), but for a service that receives only the requests that an [`Admission`] admits;
/// see [`serve_admitted`].
pub fn serve<S>(connection: Connection, service: S) -> Serve<S> {
    Serve::new(connection, service)
}

/// Serves a connection until the client closes it or it has drained.
pub fn serve_admitted<S, A>(
    serve: Serve<S>,
    admission: A,
) -> impl Future<Output = Result<(), Error>> + Send
where
    A: Admission,
    S: HttpService<A::Body>,
{
    serve.admitting(admission)
}

/// Returns the [`Interim`] of a request whose protocol does not support interim responses here.
pub fn unsupported_interim() -> Interim {
    Interim::unsupported()
}

/// Returns the [`Interim`] of a request whose interim responses `sink` accepts.
pub fn interim_to(sink: Arc<dyn InterimSink>) -> Interim {
    Interim::to(sink)
}

/// Returns the current time as in the `date` field, or `None` if the clock has no such time.
pub fn date() -> Option<courser_http3::HttpDate> {
    crate::date::now()
}

/// Passes an interim response to the callback in `on_interim`.
pub fn call(on_interim: &OnInterim, response: Response<()>) {
    on_interim.call(response);
}
