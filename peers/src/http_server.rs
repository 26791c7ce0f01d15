//! The frame of an HTTP server: it listens, accepts until standard input ends, and tells what it
//! has done.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::task::JoinSet;

use crate::tally::Tally;
use crate::{Failure, Ready, ServerResult, standard_input};

/// Accepts connections until standard input ends. What `accept` returns is run as a task; `None`
/// ends the server.
///
/// # Errors
/// When standard output is closed.
pub async fn run<Accepting, Serving>(
    version: String,
    listening: SocketAddr,
    tally: &Arc<Tally>,
    accept: impl Fn() -> Accepting,
) -> Result<ServerResult, Failure>
where
    Accepting: Future<Output = Option<Serving>>,
    Serving: Future<Output = ()> + Send + 'static,
{
    crate::print(&Ready { listening })?;
    let stop = standard_input::closed();
    tokio::pin!(stop);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = &mut stop => break,
            accepted = accept() => {
                let Some(serving) = accepted else { break };
                connections.spawn(serving);
            }
            Some(_) = connections.join_next() => {}
        }
    }
    Ok(ServerResult {
        version,
        ..ServerResult::new(tally)
    })
}
