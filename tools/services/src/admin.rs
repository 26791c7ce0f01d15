//! Health, metrics and a live page, over plain HTTP/1.1 on an address of its own.

mod closes;
mod guard;
mod near;
mod observer;
mod page;
mod patient;
mod query;
mod rows;
mod snapshots;
mod status;
mod tap;
mod watches;

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
pub use self::observer::Observer;
pub use self::status::early_data_counts;

use self::near::Near;
use self::patient::Patient;
use self::query::{MOST_ROWS, OF_LIST, Query};
use self::snapshots::Snapshots;
use self::watches::{MOST_WATCHED, WatchError, Watches};
use crate::body::{Body, explained, plain, typed};
use crate::metrics::Metrics;

/// The admin endpoints of a server.
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
/// Connections are looked at only when a request asks for them: by `/connections` at most once a second for all
/// requests, by `/status`, `/metrics` and `/qlog` each time, and by two requests at a time (limit K249). Nothing is
/// computed for them otherwise, except what the sinks of [`Observer`] note.
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
    /// The observer whose sinks the connections of the server have. Without them, limits and closes are missing.
    pub observer: Observer,
}

/// Serves the admin endpoints for as long as the process lives, also while the server drains. Returns the error
/// of a socket that accepts nothing any more.
pub async fn serve(listener: TcpListener, admin: Arc<Admin>) -> io::Error {
    accept(listener, Arc::new(Endpoints::new(admin))).await
}

async fn accept(listener: TcpListener, endpoints: Arc<Endpoints>) -> io::Error {
    let mut failures = 0;
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) if failures == MOST_FAILURES => return error,
            Err(_) => {
                failures += 1;
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        failures = 0;
        let Ok(permit) = endpoints.room.clone().try_acquire_owned() else {
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
            // Mistakes of clients concern nothing but their connections.
            let _ = builder
                .serve_connection(TokioIo::new(Patient::new(stream)), service)
                .await;
            drop(permit);
        });
    }
}

/// The endpoints with what they remember between requests.
#[derive(Debug)]
struct Endpoints {
    admin: Arc<Admin>,
    snapshots: Arc<Snapshots>,
    watches: Arc<Watches>,
    /// Connections to the admin address that may still come.
    room: Arc<Semaphore>,
    /// Requests that may still begin to examine connections.
    turns: Arc<Semaphore>,
    /// Readers of `/qlog` that may still come.
    readers: Arc<Semaphore>,
}

impl Endpoints {
    fn new(admin: Arc<Admin>) -> Self {
        let (handle, observer) = (&admin.handle, &admin.observer);
        Self {
            snapshots: Snapshots::new(handle.clone(), observer.clone()),
            watches: Watches::new(handle.clone(), observer.clone()),
            room: Arc::new(Semaphore::new(MOST_CONNECTIONS)),
            turns: Arc::new(Semaphore::new(MOST_AT_A_TIME)),
            readers: Arc::new(Semaphore::new(tap::MOST_READERS)),
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
                self.in_turn(move || typed(StatusCode::OK, OPENMETRICS, metrics.text()))
                    .await
            }
            path if path == "/status" || path.starts_with(CONNECTIONS) => {
                let (this, uri) = (self.clone(), request.uri().clone());
                self.in_turn(move || this.examine(&uri)).await
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

    /// Does work that looks at each connection on a thread that may block, so that it delays no task, once it has its
    /// turn. Work that has begun keeps its turn until it ends, although its client may have gone: clients that come and
    /// go could start any number of jobs otherwise.
    async fn in_turn(
        &self,
        work: impl FnOnce() -> Response<Body> + Send + 'static,
    ) -> Response<Body> {
        let Ok(turn) = self.turns.clone().acquire_owned().await else {
            return plain(StatusCode::INTERNAL_SERVER_ERROR);
        };
        let working = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work()
        });
        let done = working.await;
        done.unwrap_or_else(|_| plain(StatusCode::INTERNAL_SERVER_ERROR))
    }

    /// Streams the trace of a connection. It shows the requests of a client, so that a token is required.
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
        let (handle, readers) = (self.admin.handle.clone(), self.readers.clone());
        let uri = request.uri().clone();
        self.in_turn(move || tap::answer(&handle, uri.query(), &readers))
            .await
    }

    /// Returns what was asked for as JSON. May block for milliseconds.
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
        let query = Query::parse(uri.query(), &["connections"]).map_err(mistake)?;
        let count = query.number("connections", USUAL_SHOWN, MOST_ROWS);
        let count = usize::try_from(count.map_err(mistake)?).unwrap_or_default();
        let stats = self.admin.handle.stats();
        let mut status = self.admin.summary(&stats);
        status["limits"] = near::json(&self.admin.handle, &stats, self.own_limits());
        // Each page asks for none of them every second.
        let (connections, others) = match count {
            0 => (Vec::new(), open_connections(&stats)),
            count => self.admin.newest(count),
        };
        status["connections"] = Value::Array(connections);
        status["connections_not_shown"] = json!(others);
        Ok(status)
    }

    fn list(&self, uri: &Uri) -> Result<Value, (StatusCode, String)> {
        let query = Query::parse(uri.query(), &OF_LIST).map_err(mistake)?;
        let selection = query.selection().map_err(mistake)?;
        Ok(self.snapshots.latest().json(&selection))
    }

    fn watch(&self, uri: &Uri, id: u64) -> Result<Value, (StatusCode, String)> {
        let query = Query::parse(uri.query(), &["after"]).map_err(mistake)?;
        let after = query.number("after", 0, u64::MAX).map_err(mistake)?;
        self.watches.look(id, after).map_err(|error| match error {
            WatchError::Unknown => {
                let reason = format!("connection {id} is not open");
                (StatusCode::NOT_FOUND, reason)
            }
            WatchError::Full => {
                let reason = format!("{MOST_WATCHED} connections are watched already");
                (StatusCode::SERVICE_UNAVAILABLE, reason)
            }
        })
    }

    fn own_limits(&self) -> [Near; 2] {
        let used = MOST_CONNECTIONS - self.room.available_permits();
        [
            Near {
                name: "watched connections".to_owned(),
                label: "K244",
                used: self.watches.count() as u64,
                most: MOST_WATCHED as u64,
                unit: "connections",
            },
            Near {
                name: "connections to this page".to_owned(),
                label: "K249",
                used: used as u64,
                most: MOST_CONNECTIONS as u64,
                unit: "connections",
            },
        ]
    }
}

impl Admin {
    /// Returns the response of a server that is not ready. It names the tasks that do not run.
    fn not_ready(&self) -> Response<Body> {
        let stopped = self.handle.stopped_tasks();
        if stopped.is_empty() {
            return plain(StatusCode::SERVICE_UNAVAILABLE);
        }
        let reason = format!("stopped: {}", stopped.join(", "));
        explained(StatusCode::SERVICE_UNAVAILABLE, &reason)
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
}

/// Returns the number of open connections without a look at them.
fn open_connections(stats: &ServerStats) -> u64 {
    let protocols = Protocol::ALL.iter();
    protocols.map(|it| stats.of(*it).connections_open).sum()
}

fn mistake(reason: String) -> (StatusCode, String) {
    (StatusCode::BAD_REQUEST, reason)
}

const CONNECTIONS: &str = "/connections";
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Connections to the admin address at a time; further ones are closed (limit K249).
const MOST_CONNECTIONS: usize = 100;
/// Requests that examine connections at a time (limit K249). Services need the threads that they block too.
const MOST_AT_A_TIME: usize = 2;
/// Connections in `/status` unless another number is asked for.
const USUAL_SHOWN: u64 = 200;
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause after an error of the socket, and the errors in a row after which it is opened again (limit K312).
const PAUSE: Duration = Duration::from_millis(100);
const MOST_FAILURES: u32 = 300;

#[cfg(test)]
mod tests;
