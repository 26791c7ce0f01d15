//! A service with the layers that programs use, which must answer alike whatever serves it.
//!
//! `axum-witness courser|axum-server|axum ADDRESS CERTIFICATE KEY FILES`

mod programs;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::error_handling::HandleErrorLayer;
use axum::extract::{ConnectInfo, Path, Query};
use axum::http::{HeaderName, Method, Request, StatusCode, header};
use axum::response::{IntoResponse, Json, sse};
use axum::routing::{get, post};
use axum::{BoxError, Router};
use axum_client_ip::{ClientIp, ClientIpSource};
use axum_prometheus::PrometheusMetricLayer;
use courser::observe::Metrics;
use courser::server::{Certificates, shutdown_signal};
use futures_util::{StreamExt as _, stream};
use tower::ServiceBuilder;
use tower_governor::GovernorLayer;
use tower_governor::governor::GovernorConfigBuilder;
use tower_http::ServiceBuilderExt as _;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::cors::{Any, CorsLayer};
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::request_id::MakeRequestUuid;
use tower_http::services::ServeDir;
use tower_http::timeout::TimeoutLayer;
use tower_http::trace::TraceLayer;
use tower_http::validate_request::ValidateRequestHeaderLayer;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [server, address, certificate, key, files] = &arguments[..] else {
        return Err("usage: axum-witness SERVER ADDRESS CERTIFICATE KEY FILES".into());
    };
    let address: SocketAddr = address.parse()?;
    let metrics = Metrics::new();
    let app = app(files, &metrics)?;
    match &**server {
        "courser" => {
            let certificates = Certificates::pem_files(certificate, key)?;
            let drained = courser::serve(address, certificates)
                .connect_info()
                .metrics(&metrics)
                .http2_extended_connect(true)
                .on_event(|event| tracing::warn!("{event}"))
                .drain(shutdown_signal())
                .service(app)
                .await?;
            tracing::info!("{drained}");
        }
        "axum-server" => {
            let config =
                axum_server::tls_rustls::RustlsConfig::from_pem_file(certificate, key).await?;
            let mut server = axum_server::bind_rustls(address, config);
            server.http_builder().http2().enable_connect_protocol();
            server
                .serve(app.into_make_service_with_connect_info::<SocketAddr>())
                .await?;
        }
        "axum" => {
            let listener = tokio::net::TcpListener::bind(address).await?;
            let service = app.into_make_service_with_connect_info::<SocketAddr>();
            axum::serve(listener, service).await?;
        }
        other => return Err(format!("{other} is no server").into()),
    }
    Ok(())
}

fn app(files: &str, metrics: &Metrics) -> Result<Router, Failure> {
    let governor = GovernorConfigBuilder::default()
        .per_second(3600)
        .burst_size(2)
        .use_headers()
        .finish()
        .ok_or("a rate of zero")?;
    let (counting, counted) = PrometheusMetricLayer::pair();
    let limited = Router::new()
        .route("/limited", get(|| async { "within the limit" }))
        .layer(GovernorLayer::new(governor));
    let slow = Router::new()
        .route("/slow", get(never))
        .layer(TimeoutLayer::with_status_code(
            StatusCode::REQUEST_TIMEOUT,
            Duration::from_millis(200),
        ));
    let shed = Router::new().route("/shed", get(never)).layer(
        ServiceBuilder::new()
            .layer(HandleErrorLayer::new(|error: BoxError| async move {
                (StatusCode::SERVICE_UNAVAILABLE, error.to_string())
            }))
            .timeout(Duration::from_millis(200)),
    );
    let private = Router::new()
        .route("/private", get(|| async { "private" }))
        .layer(ValidateRequestHeaderLayer::accept("application/json"));
    let caught = Router::new()
        .route("/caught", get(panics))
        .layer(CatchPanicLayer::new());
    let request_id = HeaderName::from_static("x-request-id");
    let layers = ServiceBuilder::new()
        .set_request_id(request_id.clone(), MakeRequestUuid)
        .layer(TraceLayer::new_for_http())
        .propagate_request_id(request_id)
        .layer(counting)
        .layer(
            CorsLayer::new()
                .allow_origin(Any)
                .allow_methods([Method::GET, Method::POST])
                .allow_headers([header::CONTENT_TYPE]),
        )
        .layer(RequestBodyLimitLayer::new(1000))
        .layer(CompressionLayer::new())
        .layer(ClientIpSource::ConnectInfo.into_extension());
    Ok(Router::new()
        .route("/", get(|| async { "hello\n" }))
        .route("/connect", get(connect))
        .route(
            "/client",
            get(|ClientIp(ip): ClientIp| async move { ip.to_string() }),
        )
        .route(
            "/item/{name}",
            get(|Path(name): Path<String>| async move { name }),
        )
        .route("/query", get(query))
        .route("/json", get(json))
        .route("/echo", post(|body: Bytes| async { body }))
        .route("/large", get(|| async { "courser ".repeat(10_000) }))
        .route("/events", get(events))
        .route("/panics", get(panics))
        .route("/panics-late", get(panics_late))
        .route("/content-panics", get(content_panics))
        .route("/empty", get(|| async { StatusCode::NO_CONTENT }))
        .route(
            "/teapot",
            get(|| async { StatusCode::IM_A_TEAPOT.into_response() }),
        )
        .route("/counted", get(move || async move { counted.render() }))
        .route_service("/metrics", metrics.service())
        .nest_service("/files", ServeDir::new(files).precompressed_gzip())
        .merge(programs::routes())
        .merge(limited)
        .merge(slow)
        .merge(shed)
        .merge(private)
        .merge(caught)
        .layer(layers))
}

async fn connect(ConnectInfo(client): ConnectInfo<SocketAddr>) -> String {
    client.ip().to_string()
}

async fn never() -> String {
    std::future::pending().await
}

async fn query(Query(all): Query<Vec<(String, String)>>) -> String {
    format!("{all:?}")
}

async fn json() -> impl IntoResponse {
    Json([("name", "courser"), ("over", "everything")])
}

async fn events() -> sse::Sse<impl stream::Stream<Item = Result<sse::Event, Infallible>>> {
    let each = (1..=3).map(|number| Ok(sse::Event::default().data(number.to_string())));
    sse::Sse::new(stream::iter(each))
}

async fn panics(_: Request<Body>) -> String {
    panic!("the handler fails")
}

async fn panics_late() -> String {
    tokio::task::yield_now().await;
    panic!("the handler fails late")
}

async fn content_panics() -> Body {
    let frames = stream::iter(0..3).map(|number| {
        assert!(number < 2, "the content fails");
        Ok::<_, Infallible>("frame ")
    });
    Body::from_stream(frames)
}
