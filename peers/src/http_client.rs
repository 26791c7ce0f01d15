//! Requests from one client, so many at once over so many connections, for clients that are
//! written in Rust.

use std::sync::Arc;
use std::time::Instant;

use tokio::task::JoinSet;

use crate::command_line::ClientOptions;
use crate::latency::Latency;
use crate::operations::Done;
use crate::tally::Work;
use crate::{ClientResult, Failure};

/// Sends `options.count` requests over `connections`, with `options.in_flight` of them under way
/// over all. `request` sends one and returns the length of its response.
///
/// # Errors
/// When a request fails, or is answered with another length than was asked for.
pub async fn run<Connection, Sending>(
    options: &ClientOptions,
    version: String,
    connections: &[Connection],
    request: impl Fn(Connection) -> Sending + Clone + Send + 'static,
) -> Result<ClientResult, Failure>
where
    Connection: Clone + Send + Sync + 'static,
    Sending: Future<Output = Result<u64, Failure>> + Send,
{
    let left = Arc::new(Work::new(options.count));
    let size = options.bytes;
    let start = Instant::now();
    let mut workers = JoinSet::new();
    for (_, connection) in (0..options.in_flight).zip(connections.iter().cycle()) {
        let (left, request, connection) = (left.clone(), request.clone(), connection.clone());
        workers.spawn(async move {
            let mut samples = Vec::new();
            while left.take() {
                let begin = Instant::now();
                let received = request(connection.clone()).await?;
                samples.push(begin.elapsed());
                if received != size {
                    return Err(format!("received {received} bytes, wanted {size}").into());
                }
            }
            Ok::<_, Failure>(samples)
        });
    }
    let mut samples = Vec::new();
    while let Some(worker) = workers.join_next().await {
        samples.extend(worker??);
    }
    let done = Done {
        latency: Latency::of(samples),
        bytes: size * options.count,
        count: options.count,
        ..Done::after(start.elapsed())
    };
    Ok(ClientResult::new(version, options.scenario, &done))
}
