//! Runs many operations of a client in parallel and measures them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::command_line::Scenario;
use crate::latency::Latency;
use crate::tally::Work;
use crate::{ClientResult, Failure, PathCounts, process};

/// The measurements of completed operations.
#[derive(Debug, Default)]
pub struct Done {
    /// Time from the start of the first operation to the end of the last one.
    pub time: Duration,
    /// The latency of single operations, if it was measured.
    pub latency: Option<Latency>,
    /// Counts of the connection, if the stack reports them.
    pub path: Option<PathCounts>,
    /// Bytes of contents that were moved.
    pub bytes: u64,
    /// Operations.
    pub count: u64,
}

impl Done {
    /// Creates what took `time`, without anything else.
    pub fn after(time: Duration) -> Self {
        Self {
            time,
            ..Self::default()
        }
    }
}

impl ClientResult {
    /// Creates the line about what is done, with the memory used so far.
    pub fn new(version: String, scenario: Scenario, done: &Done) -> Self {
        Self {
            version,
            scenario,
            bytes: done.bytes,
            count: done.count,
            seconds: done.time.as_secs_f64(),
            latency: done.latency,
            peak_rss_kib: process::peak_rss_kib(),
            path: done.path,
            socket_drops: process::socket_drops(),
        }
    }
}

/// Does `count` operations, always `at_once` of them at the same time.
///
/// # Errors
/// The first error of an operation.
pub async fn in_flight<Operation>(
    count: u64,
    at_once: u32,
    operation: impl Fn() -> Operation + Clone + Send + 'static,
) -> Result<Done, Failure>
where
    Operation: Future<Output = Result<(), Failure>> + Send,
{
    let left = Arc::new(Work::new(count));
    let start = Instant::now();
    let mut workers = JoinSet::new();
    for _ in 0..at_once {
        let (left, operation) = (left.clone(), operation.clone());
        workers.spawn(async move {
            let mut samples = Vec::new();
            while left.take() {
                let begin = Instant::now();
                operation().await?;
                samples.push(begin.elapsed());
            }
            Ok::<_, Failure>(samples)
        });
    }
    let mut samples = Vec::new();
    while let Some(worker) = workers.join_next().await {
        samples.extend(worker??);
    }
    Ok(Done {
        time: start.elapsed(),
        latency: Latency::of(samples),
        count,
        ..Done::default()
    })
}
