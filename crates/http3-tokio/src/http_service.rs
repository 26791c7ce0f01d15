//! Services that respond to requests.

use http::{Request, Response};
use tower_service::Service;

/// The type of errors of services and bodies.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A tower service that responds to requests with bodies of type `B`, such as an axum router, layers of
/// tower-http, or a function in `tower::service_fn`.
///
/// Implemented for exactly the types that have the supertraits and whose responses have a body that meets the
/// bounds of [`ResponseBody`](HttpService::ResponseBody). It is a single name for the bounds of
/// [`serve`](super::serve) and `courser::serve`, for functions that pass a service on:
///
/// ```
/// # mod courser { pub use courser_quic::*; pub use courser_http3_tokio as h3; }
/// use courser::h3::{self, HttpService};
///
/// fn answer_on(connection: courser::Connection, app: impl HttpService<h3::Body>) {
///     tokio::spawn(h3::serve(connection, app).into_future());
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot answer requests with bodies of type `{B}`",
    note = "required is a `tower::Service<http::Request<{B}>>` of `http::Response`s, `Clone + Send + \
            'static`, with a `Future` that is `Send` and an `Error` that fits in a `Box<dyn Error>`"
)]
pub trait HttpService<B>:
    Service<
        Request<B>,
        Response = Response<<Self as HttpService<B>>::ResponseBody>,
        Error: Into<BoxError>,
        Future: Send,
    > + Clone
    + Send
    + 'static
{
    /// The body of its responses.
    type ResponseBody: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static;
}

impl<S, B, R> HttpService<B> for S
where
    S: Service<Request<B>, Response = Response<R>, Error: Into<BoxError>, Future: Send>
        + Clone
        + Send
        + 'static,
    R: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    type ResponseBody = R;
}
