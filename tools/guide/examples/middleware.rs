//! A service with the usual layers in an order that works.

// ANCHOR: all
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, header::AUTHORIZATION};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Router, body::Bytes};
use courser::{Identity, server::shutdown_signal};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::cors::{Any, CorsLayer};
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::request_id::{
    MakeRequestId, PropagateRequestIdLayer, RequestId, SetRequestIdLayer,
};
use tower_http::timeout::TimeoutLayer;
use tower_http::trace::TraceLayer;

// ANCHOR: layers
fn app() -> Router {
    let cors = CorsLayer::new()
        .allow_origin(Any)
        .allow_methods([Method::GET, Method::POST])
        .allow_headers([AUTHORIZATION]);
    let limit = TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, TIME_LIMIT);
    Router::new()
        .route("/", get(|| async { "hello\n" }))
        .route("/echo", post(|body: Bytes| async { body }))
        .route("/slow", get(std::future::pending::<()>))
        .route("/panics", get(fails))
        // The first layer is the innermost, and the last one the outermost.
        .layer(from_fn(authorize))
        .layer(RequestBodyLimitLayer::new(1000))
        .layer(CompressionLayer::new())
        .layer(limit)
        .layer(CatchPanicLayer::new())
        .layer(cors)
        .layer(PropagateRequestIdLayer::x_request_id())
        .layer(TraceLayer::new_for_http())
        .layer(SetRequestIdLayer::x_request_id(Count::default()))
}
// ANCHOR_END: layers

const TIME_LIMIT: Duration = Duration::from_millis(200);

async fn fails() -> String {
    panic!("this handler always fails")
}

async fn authorize(request: Request, next: Next) -> Response {
    match request.headers().get(AUTHORIZATION) {
        Some(token) if token == "Bearer secret" => next.run(request).await,
        _ => StatusCode::UNAUTHORIZED.into_response(),
    }
}

/// Numbers requests. Services with several machines use UUIDs.
#[derive(Clone, Default)]
struct Count(Arc<AtomicU64>);

impl MakeRequestId for Count {
    fn make_request_id<B>(&mut self, _: &axum::http::Request<B>) -> Option<RequestId> {
        let number = self.0.fetch_add(1, Relaxed) + 1;
        Some(RequestId::new(HeaderValue::from(number)))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1);
    let address = address.as_deref().unwrap_or("127.0.0.1:4433");
    let server = courser::serve(address, Identity::dev()?).drain(shutdown_signal());
    let server = server.bind()?;
    println!("https://{}/", server.local_addr());
    server.service(app()).await?;
    Ok(())
}
// ANCHOR_END: all
