//! Services that answer requests.

use http::{Request, Response};
use tower_service::Service;

/// Errors of services and of bodies, whatever they are.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A tower service that answers requests with bodies of type `B`: an axum router, layers of
/// tower-http, a function in `tower::service_fn`.
///
/// Implemented for everything that has the supertraits and whose responses have a body as
/// [`ResponseBody`](HttpService::ResponseBody) has to be, and for nothing else. So there is one name for
/// what [`serve`](super::serve) and `courser::serve` ask of a service, which functions that hand one on
/// can use:
///
/// ```
/// use courser::h3::{self, HttpService};
///
/// fn answer_on(connection: courser::Connection, app: impl HttpService<h3::Body>) {
///     tokio::spawn(h3::serve(connection, app).into_future());
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot answer requests with bodies of type `{B}`",
    note = "what can is a `tower::Service<http::Request<{B}>>` of `http::Response`s, `Clone + Send + \
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
