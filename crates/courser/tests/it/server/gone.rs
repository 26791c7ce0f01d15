//! What happens to a handler whose client goes away.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::{get, post};
use courser::TransportConfig;
use courser::server::Protocol;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::client::{BoxBody, BoxError, Client, request};
use super::{Running, start_with, within};
use crate::common::relay::Relay;

/// What a handler reports.
#[derive(Debug, PartialEq, Eq)]
enum Report {
    Content(usize),
    /// The content failed, with this text.
    Failed(String),
    /// The handler ran on after that, up to its end.
    Finished,
    Dropped,
}

use Report::{Content, Dropped, Failed, Finished};

/// Reports that it was dropped, unless it was finished.
struct Guard(Option<UnboundedSender<Report>>);

impl Guard {
    fn finish(mut self) {
        let report = self.0.take().expect("it is there until its end");
        let _ = report.send(Finished);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(report) = self.0.take() {
            let _ = report.send(Dropped);
        }
    }
}

/// Returns a service that reads an upload, itself or in a task of its own, and one that waits for ever.
fn app(report: &UnboundedSender<Report>) -> Router {
    let (of_wait, of_upload, of_task) = (report.clone(), report.clone(), report.clone());
    let wait = move || {
        let guard = Guard(Some(of_wait.clone()));
        async move {
            let _ = guard.0.as_ref().map(|it| it.send(Content(0)));
            std::future::pending::<()>().await;
            drop(guard);
        }
    };
    let upload = move |body: Body| read(body, of_upload.clone());
    let task = move |body: Body| {
        let reading = tokio::spawn(read(body, of_task.clone()));
        async move { reading.await.expect("no panic") }
    };
    Router::new()
        .route("/wait", get(wait))
        .route("/upload", post(upload))
        .route("/task", post(task))
}

async fn read(mut body: Body, report: UnboundedSender<Report>) {
    let guard = Guard(Some(report.clone()));
    while let Some(frame) = body.frame().await {
        let _ = report.send(match frame {
            Ok(frame) => Content(frame.into_data().map_or(0, |data| data.len())),
            Err(error) => {
                let _ = report.send(Failed(causes(&error)));
                // Something that takes time, such as a write to a file.
                tokio::time::sleep(Duration::from_millis(200)).await;
                return guard.finish();
            }
        });
    }
    guard.finish();
}

fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let all = std::iter::successors(Some(error), |it| it.source());
    let all: Vec<_> = all.map(ToString::to_string).collect();
    all.join(": ")
}

/// Content that begins and never ends.
fn endless() -> BoxBody {
    use futures_util::StreamExt as _;
    let begin = Ok::<_, BoxError>(Frame::data(vec![7; 1000].into()));
    let frames = futures_util::stream::iter([begin]).chain(futures_util::stream::pending());
    StreamBody::new(frames).boxed_unsync()
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Leaving {
    /// The client drops its request.
    Cancels,
    /// The client ends its connection.
    Closes,
    /// The process of the client is killed.
    Killed,
}

fn start() -> (Running, UnboundedReceiver<Report>) {
    let (report, reports) = unbounded_channel();
    let running = start_with(app(&report), |server| {
        server.transport(TransportConfig {
            max_idle_timeout: Some(Duration::from_secs(1)),
            ..TransportConfig::default()
        })
    });
    (running, reports)
}

/// The runtime of a client. Its sockets close with it, without a farewell, as with a process.
struct Process(Option<tokio::runtime::Runtime>);

impl Process {
    fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build();
        Self(Some(runtime.expect("threads")))
    }

    fn runtime(&self) -> &tokio::runtime::Runtime {
        self.0.as_ref().expect("it runs")
    }

    fn kill(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns what a handler reports after its first content.
async fn reports(protocol: Protocol, leaving: Leaving, path: &'static str) -> Vec<Report> {
    let (running, mut reports) = start();
    let (address, identity) = (running.handle.local_addr(), running.identity.clone());
    // What a client that is killed sends last must not arrive.
    let relay = Relay::new(address);
    let address = match protocol {
        Protocol::Http3 => relay.address,
        _ => address,
    };
    let mut process = Process::start();
    let (quic, connected) = tokio::sync::oneshot::channel();
    let (cancel, cancelled) = tokio::sync::oneshot::channel::<()>();
    process.runtime().spawn(async move {
        let client = Client::connect(protocol, address, &identity).await;
        let mut client = client.expect("a server");
        let _ = quic.send(match &client {
            Client::Http3(client) => Some(client.quic().clone()),
            _ => None,
        });
        let request = match path {
            "/wait" => request("GET", path, super::client::empty()),
            _ => request("POST", path, endless()),
        };
        let mut sending = Box::pin(client.send(request));
        tokio::select! {
            _ = &mut sending => {}
            _ = cancelled => {}
        }
        drop(sending);
        // The connection remains. Its end could overtake that of the request.
        tokio::time::sleep(Duration::from_secs(600)).await;
    });
    let quic = within(connected).await.expect("connected");
    let first = within(reports.recv()).await.expect("a report");
    assert!(matches!(first, Content(_)), "{first:?}");
    match (leaving, quic) {
        (Leaving::Cancels, _) => cancel.send(()).expect("a client"),
        (Leaving::Closes, Some(quic)) => quic.close(256_u32.into(), b""),
        _ => {
            relay.hold_finished();
            process.kill();
        }
    }
    let mut seen = Vec::new();
    loop {
        let report = within(reports.recv()).await.expect("a report");
        let is_last = matches!(report, Dropped | Finished);
        seen.push(report);
        if is_last {
            return seen;
        }
    }
}

const ALL: [Leaving; 3] = [Leaving::Cancels, Leaving::Closes, Leaving::Killed];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handler_that_waits_is_dropped() {
    for protocol in Protocol::ALL {
        for leaving in ALL {
            let seen = reports(protocol, leaving, "/wait").await;
            assert_eq!(seen, [Dropped], "{protocol} {leaving:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handler_that_reads_gets_the_error_first() {
    let mut all = Vec::new();
    for leaving in ALL {
        for protocol in Protocol::ALL {
            let seen = reports(protocol, leaving, "/upload").await;
            all.push((protocol, leaving, seen));
        }
    }
    for (protocol, leaving, seen) in &all {
        // Over HTTP/1.1 a handler runs on if it has read the error.
        let end = match protocol {
            Protocol::Http1 => Finished,
            _ => Dropped,
        };
        let is_expected = matches!(&seen[..], [Failed(text), last]
            if text.contains(text_of(*protocol, *leaving)) && *last == end);
        assert!(is_expected, "{protocol} {leaving:?}: {all:#?}");
    }
}

/// Returns a part of the error.
fn text_of(protocol: Protocol, leaving: Leaving) -> &'static str {
    match (protocol, leaving) {
        (Protocol::Http2, Leaving::Cancels) => "stream no longer needed",
        (Protocol::Http1 | Protocol::Http2, _) => "error reading a body from connection",
        (_, Leaving::Cancels) => "H3_REQUEST_CANCELLED",
        (_, Leaving::Closes) => "closed by peer's application with code 256",
        (_, Leaving::Killed) => "timed out",
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn task_of_a_handler_gets_the_error_and_ends_by_itself() {
    for leaving in ALL {
        for protocol in Protocol::ALL {
            let seen = reports(protocol, leaving, "/task").await;
            let is_expected = matches!(&seen[..], [Failed(_), Finished]);
            assert!(is_expected, "{protocol} {leaving:?}: {seen:?}");
        }
    }
}
