//! Servers with all three protocols, tested by hyper's clients over TCP and by ours over QUIC.

mod asynchronous;
mod certificates;
mod client;
mod control_data;
mod drain;
mod early_answers;
mod early_data;
mod ending;
mod exchange;
mod extensions;
#[cfg(feature = "files")]
mod file_bytes;
#[cfg(feature = "files")]
mod files;
mod gone;
#[cfg(target_os = "linux")]
mod handover;
mod hanging;
mod http1_rules;
mod http2;
mod http2_connect;
mod http2_rules;
mod interim;
mod limits;
#[cfg(feature = "metrics")]
mod metrics;
mod moves;
mod own_responses;
mod panics;
mod raw;
mod redirect;
mod refused;
mod slow;
mod sources;
#[cfg(feature = "files")]
mod stalled_disk;
mod tasks;

use axum::Router;
use courser::server::{Drained, Server, ServerHandle};
use courser::{Identity, serve};
use tokio::task::JoinHandle;

/// A running server.
struct Running {
    handle: ServerHandle,
    identity: Identity,
    task: JoinHandle<Drained>,
}

/// Starts a server with this application on a port chosen by the system.
fn start(app: Router) -> Running {
    start_with(app, |server| server)
}

fn start_with(app: Router, change: impl FnOnce(Server) -> Server) -> Running {
    let identity = Identity::dev().expect("random numbers");
    let server = change(serve("127.0.0.1:0", &identity));
    let bound = server.bind().expect("a free port");
    let handle = bound.handle();
    let serving = bound.service(app).into_future();
    let task = crate::common::spawn(async move { serving.await.expect("bound already") });
    Running {
        handle,
        identity,
        task,
    }
}

impl Running {
    async fn drained(self) -> Drained {
        self.handle.drain();
        within(self.task).await.expect("no panic")
    }
}

/// Fails a test that hangs.
async fn within<T>(future: impl IntoFuture<Output = T>) -> T {
    crate::common::within(20, future).await
}
