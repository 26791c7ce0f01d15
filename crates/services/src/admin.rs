//! Health, metrics and a live page, over plain HTTP/1.1 on an address of its own.

mod guard;

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use courser::server::{ConnectionSummary, Protocol, ServerHandle, ServerStats};
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use tokio::net::TcpListener;

pub use self::guard::{Advice, Guard, TokenError};
use crate::body::{Body, explained, plain, typed};
use crate::metrics::Metrics;

/// The admin endpoints of a server: `/`, `/health`, `/ready`, `/metrics`, `/status` and `/busy`.
#[derive(Debug)]
pub struct Admin {
    /// The server.
    pub handle: ServerHandle,
    /// The content of `/metrics`.
    pub metrics: Arc<Metrics>,
    /// The folder or upstream server that is served, for humans.
    pub what: String,
    /// The start of the server.
    pub began: Instant,
    /// Checks which requests may read and switch.
    pub guard: Guard,
}

/// Serves the admin endpoints for as long as the process lives, also while the server drains.
pub async fn serve(listener: TcpListener, admin: Arc<Admin>) {
    let room = Arc::new(tokio::sync::Semaphore::new(MOST_CONNECTIONS));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let Ok(permit) = room.clone().try_acquire_owned() else {
            continue;
        };
        let Ok(local) = stream.local_addr() else {
            continue;
        };
        let admin = admin.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let response = admin.answer(&request, local.ip());
                async move { Ok::<_, Infallible>(response) }
            });
            let mut builder = hyper::server::conn::http1::Builder::new();
            builder
                .timer(TokioTimer::new())
                .header_read_timeout(HEADER_TIMEOUT);
            // Mistakes of clients concern nothing but their connections.
            let _ = builder
                .serve_connection(TokioIo::new(stream), service)
                .await;
            drop(permit);
        });
    }
}

impl Admin {
    fn answer<B>(&self, request: &Request<B>, local: IpAddr) -> Response<Body> {
        if let Some(refusal) = self.guard.refusal(request, local) {
            return refusal;
        }
        if request.uri().path() == "/busy" {
            return self.switch(request.method());
        }
        if request.method() != Method::GET && request.method() != Method::HEAD {
            return plain(StatusCode::METHOD_NOT_ALLOWED);
        }
        let mut response = match request.uri().path() {
            "/" => page(),
            "/health" => plain(StatusCode::OK),
            "/ready" if self.handle.is_ready() => plain(StatusCode::OK),
            "/ready" => plain(StatusCode::SERVICE_UNAVAILABLE),
            "/metrics" => typed(StatusCode::OK, OPENMETRICS, self.metrics.text()),
            "/status" => {
                let status = self.status().to_string();
                typed(StatusCode::OK, "application/json", status)
            }
            _ => plain(StatusCode::NOT_FOUND),
        };
        let no_store = HeaderValue::from_static("no-store");
        response
            .headers_mut()
            .insert(header::CACHE_CONTROL, no_store);
        response
    }

    /// Switches to busy with POST and back with DELETE.
    ///
    /// A web page can have a browser that reaches these endpoints send requests, but not the token.
    fn switch(&self, method: &Method) -> Response<Body> {
        let is_busy = match *method {
            Method::POST => true,
            Method::DELETE => false,
            _ => {
                let mut response = explained(StatusCode::METHOD_NOT_ALLOWED, "use POST or DELETE");
                let allowed = HeaderValue::from_static("POST, DELETE");
                response.headers_mut().insert(header::ALLOW, allowed);
                return response;
            }
        };
        if !self.guard.has_token() {
            let advice = self.guard.advice().set_token;
            let reason = format!("{advice} to switch the server to busy");
            return explained(StatusCode::FORBIDDEN, &reason);
        }
        self.handle.set_busy(is_busy);
        let state = match is_busy {
            true => "new clients are refused",
            false => "new clients are served",
        };
        explained(StatusCode::OK, state)
    }

    /// Returns the content of `/status`, which the page shows.
    fn status(&self) -> Value {
        let stats = self.handle.stats();
        let protocols = Protocol::ALL.map(|protocol| {
            let it = stats.of(protocol);
            json!({
                "protocol": protocol.name(),
                "connections": it.connections,
                "connections_open": it.connections_open,
                "requests": it.requests,
                "requests_in_flight": it.requests_in_flight,
            })
        });
        let udp = stats.listeners.iter().filter_map(|listener| listener.udp);
        let (udp_received, udp_sent) = udp.fold((0, 0), |(received, sent), it| {
            (received + it.received_bytes, sent + it.sent_bytes)
        });
        let dropped = stats.listeners.iter().filter_map(|it| it.udp_overflow);
        let dropped = dropped.reduce(|sum, next| sum + next);
        let refused = stats.refusals.by_reason();
        let connections = self.handle.connections();
        let shown: Vec<Value> = connections
            .iter()
            .rev()
            .take(MOST_SHOWN)
            .map(connection)
            .collect();
        json!({
            "what": self.what,
            "version": env!("CARGO_PKG_VERSION"),
            "uptime_seconds": self.began.elapsed().as_secs(),
            "ready": stats.ready,
            "draining": stats.draining,
            "busy": stats.busy,
            "refused": Value::from_iter(refused),
            "protocols": protocols,
            "bytes_received": stats.tcp.bytes_received + udp_received,
            "bytes_sent": stats.tcp.bytes_sent + udp_sent,
            "handshakes_failed": stats.tcp.handshakes_failed + stats.quic_handshakes_failed,
            "quic_packets_sent": stats.quic.packets_sent,
            "quic_packets_lost": stats.quic.packets_lost,
            "early_data": early_data_counts(&stats),
            "udp_dropped_datagrams": dropped,
            "connections": shown,
            "connections_not_shown": connections.len() - shown.len(),
        })
    }
}

/// Returns the counts of connections and requests with early data (0-RTT).
pub fn early_data_counts(stats: &ServerStats) -> Value {
    json!({
        "connections_accepted": stats.quic.early_data_accepted,
        "connections_refused": stats.quic.early_data_refused,
        "requests_accepted": stats.early_requests,
        "requests_too_early": stats.requests_too_early,
    })
}

fn connection(it: &ConnectionSummary) -> Value {
    let quic = it.quic.map(|quic| {
        json!({
            "rtt_ms": quic.path.rtt.as_secs_f64() * 1e3,
            "congestion_window": quic.path.congestion_window,
            "bytes_in_flight": quic.path.bytes_in_flight,
            "packets_sent": quic.packets_sent,
            "packets_lost": quic.packets_lost,
            "controller": quic.path.controller,
            "mtu": quic.path.mtu,
        })
    });
    json!({
        "id": it.peer.connection_id(),
        "client": it.peer.current_address().to_string(),
        "protocol": it.peer.protocol().name(),
        "cipher": it.peer.tls().cipher_suite,
        "seconds": it.age.as_secs_f64(),
        "requests": it.requests,
        "requests_in_flight": it.requests_in_flight,
        "bytes_received": it.bytes_received,
        "bytes_sent": it.bytes_sent,
        "quic": quic,
    })
}

fn page() -> Response<Body> {
    let mut response = typed(StatusCode::OK, "text/html; charset=utf-8", PAGE);
    let policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                  connect-src 'self'";
    let policy = HeaderValue::from_static(policy);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    response
}

const PAGE: &str = include_str!("live.html");
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const MOST_CONNECTIONS: usize = 100;
/// Rows of the page; more are not readable.
const MOST_SHOWN: usize = 200;
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(100);
