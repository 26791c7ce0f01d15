//! Requests in early data, which may be replayed (RFC 8470).

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use courser_http3_tokio::EarlyData;
use http::{Request, Response, StatusCode};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

/// A layer that responds to disallowed requests in early data with `425 Too Early`. The client repeats them
/// after the handshake.
///
/// A server with [`Server::early_data`](crate::Server::early_data) applies one to all requests in early data,
/// which [`Server::early_requests`](crate::Server::early_requests) replaces. Intermediaries in front of a server
/// mark such requests with `Early-Data: 1`, which this layer respects. A route can have its own policy through
/// its own layer:
///
/// ```
/// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; }
/// use axum::{Router, routing::{get, post}};
/// use courser::server::TooEarly;
///
/// let app: Router = Router::new()
///     .route("/search", get(|| async { "found" }))
///     .route("/order", post(|| async { "ordered" }))
///     .layer(TooEarly::unless(|request| request.method() == http::Method::GET));
/// ```
#[derive(Clone)]
pub struct TooEarly(Policy);

type Policy = Arc<dyn Fn(&Request<()>) -> bool + Send + Sync>;

impl TooEarly {
    /// Allows requests with safe methods: GET, HEAD, OPTIONS and TRACE (RFC 9110 §9.2.1).
    pub fn unless_safe() -> Self {
        Self::unless(|request| request.method().is_safe())
    }

    /// Allows no requests in early data.
    pub fn always() -> Self {
        Self::unless(|_| false)
    }

    /// Allows the requests for which `is_allowed` returns true. It receives the request without body and
    /// extensions.
    pub fn unless(is_allowed: impl Fn(&Request<()>) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(is_allowed))
    }

    /// Returns true for a disallowed request in early data.
    pub(crate) fn refuses<B>(&self, request: &Request<B>) -> bool {
        is_early(request) && !(self.0)(&without_body(request))
    }
}

impl std::fmt::Debug for TooEarly {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TooEarly")
    }
}

impl<S> Layer<S> for TooEarly {
    type Service = Timely<S>;

    fn layer(&self, service: S) -> Timely<S> {
        Timely {
            service,
            policy: self.clone(),
        }
    }
}

/// A service that receives no disallowed early requests; see [`TooEarly`].
#[derive(Clone, Debug)]
pub struct Timely<S> {
    service: S,
    policy: TooEarly,
}

impl<S, A, B> Service<Request<A>> for Timely<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    B: Default,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = TimelyFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let is_refused = self.policy.refuses(&request);
        TimelyFuture {
            future: (!is_refused).then(|| self.service.call(request)),
        }
    }
}

pin_project! {
    /// The response future of a [`Timely`] service.
    #[derive(Debug)]
    pub struct TimelyFuture<F> {
        // `None` if the request was too early.
        #[pin]
        future: Option<F>,
    }
}

impl<F, B, E> Future for TimelyFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
    B: Default,
{
    type Output = Result<Response<B>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(future) = self.project().future.as_pin_mut() {
            return Poll::Ready(ready!(future.poll(cx)));
        }
        let mut response = Response::new(B::default());
        *response.status_mut() = StatusCode::TOO_EARLY;
        Poll::Ready(Ok(response))
    }
}

/// Returns true for requests in early data. Any intermediary may have added the field. Invalid values and several
/// fields count as one with the value 1 (RFC 8470 §5.1).
pub(crate) fn is_early<B>(request: &Request<B>) -> bool {
    request.extensions().get::<EarlyData>().is_some()
        || request.headers().contains_key("early-data")
}

fn without_body<B>(request: &Request<B>) -> Request<()> {
    let mut head = Request::new(());
    *head.method_mut() = request.method().clone();
    *head.uri_mut() = request.uri().clone();
    *head.version_mut() = request.version();
    *head.headers_mut() = request.headers().clone();
    head
}
