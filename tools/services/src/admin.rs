//! Admin endpoints over plain HTTP/1.1 on a separate address: health, metrics and a live page.

mod closes;
mod guard;
mod limit_usage;
mod observer;
mod page;
mod query;
mod rows;
mod snapshots;
mod status;
mod tap;
mod watches;
mod write_timeout;

use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use courser::server::{Protocol, ServerHandle, ServerStats};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

pub use self::guard::{Advice, Guard, TokenError};
pub use self::limit_usage::open_files_limit;
pub use self::observer::Observer;
pub use self::status::early_data_counts;

use self::limit_usage::LimitUsage;
use self::query::{LIST_PARAMETERS, MAX_ROWS, Query};
use self::snapshots::Snapshots;
use self::watches::{MAX_WATCHED, WatchError, Watches};
use self::write_timeout::WriteTimeout;
use crate::body::{Body, explained, plain, typed};
use crate::metrics::Metrics;

/// The admin endpoints of a server, to be passed to [`serve`].
///
/// | path | content |
/// |---|---|
/// | `/` | a live page for humans, which reads the next three |
/// | `/status?connections=N` | the server as JSON: traffic, certificates, drain, limits and how full they are, closes by cause, and the newest connections: 200, or `N` up to 500 |
/// | `/connections?sort=&order=&offset=&count=&filter=` | a part of the open connections, at most 500: their rates, round-trip times, windows, losses, and the limit that held their senders back for most of the last second |
/// | `/connections/ID?after=N` | the figures of one connection, ten a second from the first such request on, until 5 s without one |
/// | `/metrics` | counters in the text format of OpenMetrics |
/// | `/qlog?connection=N` | the trace of one connection, or of the newest, from now on; needs a token |
/// | `/health`, `/ready` | 200, or 503 from `/ready` while new clients should go elsewhere |
/// | `/busy` | refuses new clients with POST, and serves them again with DELETE |
///
/// Connections are examined only when a request needs it: for `/connections` at most once a second for all
/// requests together, for `/status`, `/metrics` and `/qlog` each time, and by at most two requests at a time
/// (limit K249). Otherwise the only cost is that of the sinks of [`Observer`].
#[derive(Debug)]
pub struct Admin {
    /// The server whose state is reported.
    pub handle: ServerHandle,
    /// The metrics that `/metrics` returns.
    pub metrics: Arc<Metrics>,
    /// The folder or upstream server that is served, as the live page displays it.
    pub what: String,
    /// The time at which the server started.
    pub began: Instant,
    /// Decides which requests may read the state and switch the server.
    pub guard: Guard,
    /// The observer whose sinks are attached to the server's connections. If they are not, limits and close
    /// causes are missing from the responses.
    pub observer: Observer,
}

/// Serves the admin endpoints for the lifetime of the process, including while the server drains. Returns an
/// error only if the socket fails persistently.
pub async fn serve(listener: TcpListener, admin: Arc<Admin>) -> io::Error {
    accept(listener, Arc::new(Endpoints::new(admin))).await
}

async fn accept(listener: TcpListener, endpoints: Arc<Endpoints>) -> io::Error {
    let mut failures = 0;
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) if failures == MAX_FAILURES => return error,
            Err(_) => {
                failures += 1;
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        failures = 0;
        let Ok(permit) = endpoints.connection_permits.clone().try_acquire_owned() else {
            continue;
        };
        let Ok(local) = stream.local_addr() else {
            continue;
        };
        let endpoints = endpoints.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let endpoints = endpoints.clone();
                async move { Ok::<_, Infallible>(endpoints.answer(&request, local.ip()).await) }
            });
            let mut builder = hyper::server::conn::http1::Builder::new();
            builder
                .timer(TokioTimer::new())
                .header_read_timeout(HEADER_TIMEOUT);
            // An error of one client ends only its connection.
            let _ = builder
                .serve_connection(TokioIo::new(WriteTimeout::new(stream)), service)
                .await;
            drop(permit);
        });
    }
}

/// The endpoints and the state that they keep between requests.
#[derive(Debug)]
struct Endpoints {
    admin: Arc<Admin>,
    snapshots: Arc<Snapshots>,
    watches: Arc<Watches>,
    /// Permits for connections to the admin address.
    connection_permits: Arc<Semaphore>,
    /// Permits for requests that examine connections.
    examination_permits: Arc<Semaphore>,
    /// Permits for readers of `/qlog`.
    qlog_permits: Arc<Semaphore>,
}

impl Endpoints {
    fn new(admin: Arc<Admin>) -> Self {
        let (handle, observer) = (&admin.handle, &admin.observer);
        Self {
            snapshots: Snapshots::new(handle.clone(), observer.clone()),
            watches: Watches::new(handle.clone(), observer.clone()),
            connection_permits: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
            examination_permits: Arc::new(Semaphore::new(MAX_AT_A_TIME)),
            qlog_permits: Arc::new(Semaphore::new(tap::MAX_READERS)),
            admin,
        }
    }

    async fn answer<B>(self: Arc<Self>, request: &Request<B>, local: IpAddr) -> Response<Body> {
        let admin = &self.admin;
        if let Some(refusal) = admin.guard.refusal(request, local) {
            return refusal;
        }
        if request.uri().path() == "/busy" {
            return admin.switch(request.method());
        }
        if request.method() != Method::GET && request.method() != Method::HEAD {
            return plain(StatusCode::METHOD_NOT_ALLOWED);
        }
        let mut response = match request.uri().path() {
            "/health" => plain(StatusCode::OK),
            "/ready" if admin.handle.is_ready() => plain(StatusCode::OK),
            "/ready" => admin.not_ready(),
            "/metrics" => {
                let metrics = admin.metrics.clone();
                self.run_limited(move || typed(StatusCode::OK, OPENMETRICS, metrics.text()))
                    .await
            }
            path if path == "/status" || path.starts_with(CONNECTIONS) => {
                let (this, uri) = (self.clone(), request.uri().clone());
                self.run_limited(move || this.examine(&uri)).await
            }
            "/qlog" => self.follow(request).await,
            path => page::file(path).unwrap_or_else(|| plain(StatusCode::NOT_FOUND)),
        };
        let no_store = HeaderValue::from_static("no-store");
        response
            .headers_mut()
            .insert(header::CACHE_CONTROL, no_store);
        response
    }

    /// Runs work that examines connections on a thread that may block, as soon as a permit is free. The permit
    /// is held until the work ends, even if its client disconnects. Otherwise clients that reconnect could start
    /// any number of jobs.
    async fn run_limited(
        &self,
        work: impl FnOnce() -> Response<Body> + Send + 'static,
    ) -> Response<Body> {
        let Ok(permit) = self.examination_permits.clone().acquire_owned().await else {
            return plain(StatusCode::INTERNAL_SERVER_ERROR);
        };
        let working = tokio::task::spawn_blocking(move || {
            let _turn = permit;
            work()
        });
        let done = working.await;
        done.unwrap_or_else(|_| plain(StatusCode::INTERNAL_SERVER_ERROR))
    }

    /// Streams the trace of a connection. Traces contain the requests of clients, so a token is required.
    async fn follow<B>(&self, request: &Request<B>) -> Response<Body> {
        let guard = &self.admin.guard;
        if !guard.has_token() {
            let advice = guard.advice().set_token;
            let reason = format!("{advice} to follow connections");
            return explained(StatusCode::FORBIDDEN, &reason);
        }
        if request.method() == Method::HEAD {
            return plain(StatusCode::METHOD_NOT_ALLOWED);
        }
        let (handle, qlog_permits) = (self.admin.handle.clone(), self.qlog_permits.clone());
        let uri = request.uri().clone();
        self.run_limited(move || tap::answer(&handle, uri.query(), &qlog_permits))
            .await
    }

    /// Returns the requested state as JSON. May block for milliseconds.
    fn examine(&self, uri: &Uri) -> Response<Body> {
        let path = uri.path();
        let json = match path.strip_prefix(CONNECTIONS) {
            None => self.status(uri),
            Some("") => self.list(uri),
            Some(rest) => match rest.strip_prefix('/').and_then(|id| id.parse().ok()) {
                Some(id) => self.watch(uri, id),
                None => return plain(StatusCode::NOT_FOUND),
            },
        };
        match json {
            Ok(json) => typed(StatusCode::OK, "application/json", json.to_string()),
            Err((status, reason)) => explained(status, &reason),
        }
    }

    fn status(&self, uri: &Uri) -> Result<Value, (StatusCode, String)> {
        let query = Query::parse(uri.query(), &["connections"]).map_err(bad_request)?;
        let count = query.number("connections", DEFAULT_SHOWN, MAX_ROWS);
        let count = usize::try_from(count.map_err(bad_request)?).unwrap_or_default();
        let stats = self.admin.handle.stats();
        let mut status = self.admin.summary(&stats);
        status["limits"] = limit_usage::json(&self.admin.handle, &stats, self.admin_limits());
        // The live page requests no connections here and polls every second.
        let (connections, others) = match count {
            0 => (Vec::new(), open_connections(&stats)),
            count => self.admin.newest(count),
        };
        status["connections"] = Value::Array(connections);
        status["connections_not_shown"] = json!(others);
        Ok(status)
    }

    fn list(&self, uri: &Uri) -> Result<Value, (StatusCode, String)> {
        let query = Query::parse(uri.query(), &LIST_PARAMETERS).map_err(bad_request)?;
        let selection = query.selection().map_err(bad_request)?;
        Ok(self.snapshots.latest().json(&selection))
    }

    fn watch(&self, uri: &Uri, id: u64) -> Result<Value, (StatusCode, String)> {
        let query = Query::parse(uri.query(), &["after"]).map_err(bad_request)?;
        let after = query.number("after", 0, u64::MAX).map_err(bad_request)?;
        self.watches
            .samples(id, after)
            .map_err(|error| match error {
                WatchError::Unknown => {
                    let reason = format!("connection {id} is not open");
                    (StatusCode::NOT_FOUND, reason)
                }
                WatchError::Full => {
                    let reason = format!("{MAX_WATCHED} connections are watched already");
                    (StatusCode::SERVICE_UNAVAILABLE, reason)
                }
            })
    }

    fn admin_limits(&self) -> [LimitUsage; 2] {
        let used = MAX_CONNECTIONS - self.connection_permits.available_permits();
        [
            LimitUsage {
                name: "watched connections".to_owned(),
                label: "K244",
                used: self.watches.count() as u64,
                most: MAX_WATCHED as u64,
                unit: "connections",
            },
            LimitUsage {
                name: "connections to this page".to_owned(),
                label: "K249",
                used: used as u64,
                most: MAX_CONNECTIONS as u64,
                unit: "connections",
            },
        ]
    }
}

impl Admin {
    /// Returns the response of a server that is not ready, with the names of the tasks that do not run.
    fn not_ready(&self) -> Response<Body> {
        let stats = self.handle.stats();
        if stats.acme.is_some() && self.handle.certificates().is_empty() {
            return explained(StatusCode::SERVICE_UNAVAILABLE, "no certificate yet");
        }
        let stopped = stats.stopped_tasks;
        if stopped.is_empty() {
            return plain(StatusCode::SERVICE_UNAVAILABLE);
        }
        let reason = format!("stopped: {}", stopped.join(", "));
        explained(StatusCode::SERVICE_UNAVAILABLE, &reason)
    }

    /// Switches the server to busy with POST and back with DELETE.
    ///
    /// Requires a token: a web page can make a browser on this network send requests, but not with the token.
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
}

/// Returns the number of open connections from the counters, without examining the connections.
fn open_connections(stats: &ServerStats) -> u64 {
    let protocols = Protocol::ALL.iter();
    protocols.map(|it| stats.of(*it).connections_open).sum()
}

fn bad_request(reason: String) -> (StatusCode, String) {
    (StatusCode::BAD_REQUEST, reason)
}

const CONNECTIONS: &str = "/connections";
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Largest number of connections to the admin address; further ones are closed (limit K249).
const MAX_CONNECTIONS: usize = 100;
/// Largest number of requests that examine connections at a time (limit K249). Others need blocking threads too.
const MAX_AT_A_TIME: usize = 2;
/// Number of connections in `/status` if the request gives none.
const DEFAULT_SHOWN: u64 = 200;
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after an error of the socket, and the number of consecutive errors after which `serve` returns (limit
/// K312).
const PAUSE: Duration = Duration::from_millis(100);
const MAX_FAILURES: u32 = 300;

#[cfg(test)]
mod tests;
