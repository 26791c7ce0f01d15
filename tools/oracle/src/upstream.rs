//! An upstream server that records requests and responds as a script says.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::client::NEIGHBOUR;
use crate::message::{Ending, Response};
use crate::seen::Seen;
use crate::wire::{Step, Wire};
use crate::{PATIENCE, h1, h2};

/// The version of HTTP of an upstream server. TLS and HTTP/3 are to come with the gateway's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum UpstreamVersion {
    /// HTTP/1.1 without TLS.
    Http1,
    /// HTTP/2 with prior knowledge.
    H2c,
}

impl UpstreamVersion {
    /// Every version, in their order.
    pub const ALL: [Self; 2] = [Self::Http1, Self::H2c];

    /// Returns the scheme of `--proxy`.
    pub const fn scheme(self) -> &'static str {
        match self {
            Self::Http1 => "http",
            Self::H2c => "h2c",
        }
    }
}

impl fmt::Display for UpstreamVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http1 => "h1",
            Self::H2c => "h2c",
        })
    }
}

/// The time at which a response begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// As soon as the header section of the request has arrived.
    AtHead,
    /// At the end of the request.
    AtEnd,
}

/// The reaction of an upstream server to a request.
#[derive(Clone, Debug)]
pub enum Script {
    /// Sends a response.
    Answer(When, Response),
    /// Runs these steps, in HTTP/1.1.
    Raw(When, Vec<Step>),
    /// Sends these frames on the stream of the request, in HTTP/2.
    Frames(When, Vec<h2::Frame>),
    /// Reads the request and sends nothing.
    Silence,
}

impl Script {
    /// Sends a response at the end of the request.
    pub const fn answer(response: Response) -> Self {
        Self::Answer(When::AtEnd, response)
    }

    const fn when(&self) -> When {
        match self {
            Self::Answer(when, _) | Self::Raw(when, _) | Self::Frames(when, _) => *when,
            Self::Silence => When::AtEnd,
        }
    }
}

/// A server that the gateway forwards to.
#[derive(Debug)]
pub struct Upstream {
    /// Its address.
    pub address: SocketAddr,
    /// Its version.
    pub version: UpstreamVersion,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    script: Script,
    seen: Vec<Seen>,
    /// Requests that have begun and not ended.
    open: usize,
    connections: usize,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self) -> Script {
        let mut state = self.state();
        state.open += 1;
        state.script.clone()
    }

    fn end(&self, seen: Seen) {
        let mut state = self.state();
        state.open -= 1;
        state.seen.push(seen);
        drop(state);
        self.changed.notify_waiters();
    }
}

impl Upstream {
    /// Starts a server that responds with 200 and the content `ok`.
    ///
    /// # Panics
    /// Panics if there is no free port.
    pub async fn start(version: UpstreamVersion) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                script: Script::answer(Response::ok()),
                seen: Vec::new(),
                open: 0,
                connections: 0,
            }),
            changed: Notify::new(),
        });
        let task = tokio::spawn(accept(listener, version, shared.clone()));
        Self {
            address,
            version,
            shared,
            task,
        }
    }

    /// Returns the value of `--proxy`.
    pub fn url(&self) -> String {
        format!("{}://{}", self.version.scheme(), self.address)
    }

    /// Sets the reaction to further requests.
    pub fn script(&self, script: Script) {
        self.shared.state().script = script;
    }

    /// Returns the number of connections so far.
    pub fn connections(&self) -> usize {
        self.shared.state().connections
    }

    /// Waits until all requests that have begun have ended. Returns those that have arrived since the last call.
    pub async fn take(&self) -> Vec<Seen> {
        let waiting = async {
            loop {
                let changed = self.shared.changed.notified();
                if self.shared.state().open == 0 {
                    return;
                }
                changed.await;
            }
        };
        // The gateway has not ended a request that is still open then.
        let is_over = tokio::time::timeout(PATIENCE, waiting).await.is_ok();
        let mut state = self.shared.state();
        let mut seen = std::mem::take(&mut state.seen);
        if !is_over {
            seen.push(Seen::nothing(crate::End::Silent));
        }
        seen
    }
}

async fn accept(listener: TcpListener, version: UpstreamVersion, shared: Arc<Shared>) {
    // Aborted with the accepting task.
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        shared.state().connections += 1;
        let shared = shared.clone();
        connections.spawn(async move {
            match version {
                UpstreamVersion::Http1 => serve_http1(stream, &shared).await,
                UpstreamVersion::H2c => serve_h2c(stream, &shared).await,
            }
        });
    }
}

fn is_neighbour(seen: &Seen) -> bool {
    seen.start.ends_with(NEIGHBOUR)
}

async fn serve_http1(stream: TcpStream, shared: &Shared) {
    let mut wire = Wire::from(stream);
    while let Some(head) = h1::read_request_head(&mut wire).await {
        if is_neighbour(&head.seen) {
            h1::read_content(&mut wire, head).await;
            wire.send(&h1::response(&Response::ok())).await;
            continue;
        }
        let script = shared.begin();
        let is_head = head.seen.start.starts_with("HEAD ");
        if script.when() == When::AtHead {
            play(&script, &mut wire, is_head).await;
        }
        let seen = h1::read_content(&mut wire, head).await;
        let is_complete = seen.is_complete();
        if script.when() == When::AtEnd && is_complete {
            play(&script, &mut wire, is_head).await;
        }
        shared.end(seen);
        if !is_complete {
            return;
        }
    }
}

async fn play(script: &Script, wire: &mut Wire, is_head: bool) {
    match script {
        Script::Answer(_, response) => {
            let mut bytes = h1::response(response);
            if is_head {
                let content = response.content.bytes().len();
                bytes.truncate(bytes.len() - content);
            }
            wire.send(&bytes).await;
            match response.ending {
                Ending::Complete => {}
                Ending::Cut => wire.close().await,
                Ending::Reset => wire.reset(),
            }
        }
        Script::Raw(_, steps) => {
            // The response of the client shows whether the gateway did something else.
            let _ = wire.run(steps).await;
        }
        Script::Frames(..) | Script::Silence => {}
    }
}

async fn serve_h2c(stream: TcpStream, shared: &Shared) {
    let Some(mut connection) = h2::Connection::server(Wire::from(stream)).await else {
        return;
    };
    let mut exchanges: std::collections::BTreeMap<u32, Exchange> = Default::default();
    loop {
        // A connection may be idle for longer than the time limit of a step.
        let is_on = connection.step().await || connection.wire.end.is_none();
        let numbers: Vec<u32> = connection.streams().map(|(number, _)| number).collect();
        for number in numbers {
            let seen = connection.request_on(number);
            if seen.start.is_empty() {
                continue;
            }
            let exchange = exchanges.entry(number).or_insert_with(|| Exchange {
                script: if is_neighbour(&seen) {
                    Script::answer(Response::ok())
                } else {
                    shared.begin()
                },
                is_answered: false,
                is_over: false,
            });
            let is_ended = !matches!(seen.end, crate::End::Silent) || !is_on;
            if !exchange.is_answered
                && (seen.is_complete() || exchange.script.when() == When::AtHead)
            {
                exchange.is_answered = true;
                let script = exchange.script.clone();
                let is_head = seen.start.starts_with("HEAD ");
                answer(&script, &mut connection, number, is_head).await;
            }
            if is_ended && !exchange.is_over {
                exchange.is_over = true;
                if !is_neighbour(&seen) {
                    shared.end(seen);
                }
            }
        }
        if !is_on {
            return;
        }
    }
}

/// The state of a request of HTTP/2.
struct Exchange {
    script: Script,
    is_answered: bool,
    is_over: bool,
}

async fn answer(script: &Script, connection: &mut h2::Connection, stream: u32, is_head: bool) {
    match script {
        Script::Answer(_, response) => {
            let mut frames = h2::response(response, stream);
            if is_head {
                frames.truncate(1);
                frames[0].flags |= h2::END_STREAM;
            }
            connection.send(&frames).await;
            if response.ending == Ending::Cut {
                connection.wire.close().await;
            }
        }
        Script::Frames(_, frames) => {
            let on_stream = frames.iter().map(|frame| h2::Frame {
                stream: if frame.kind == h2::GOAWAY { 0 } else { stream },
                ..frame.clone()
            });
            let frames: Vec<_> = on_stream.collect();
            connection.send(&frames).await;
        }
        Script::Raw(..) | Script::Silence => {}
    }
}
