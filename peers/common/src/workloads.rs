//! The client's part of every workload, written once for all stacks with connections.
//!
//! A program describes its stack by [`Client`] and [`Connection`]; what is done with them, in which
//! order and between which readings of the clock, is the same for all.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::task::JoinSet;

use crate::command_line::{ClientOptions, Scenario};
use crate::latency::Latency;
use crate::operations::{Done, in_flight};
use crate::tally::Work;
use crate::{ClientResult, Failure, PathCounts, standard_input};

/// Makes connections to one server.
pub trait Client: Clone + Send + Sync + 'static {
    /// The connections that it makes.
    type Connection: Connection;

    /// Connects, and returns when the client's handshake is complete.
    ///
    /// # Errors
    /// When the handshake fails.
    fn connect(&self) -> impl Future<Output = Result<Self::Connection, Failure>> + Send;
}

/// A connection; clones are the same connection.
pub trait Connection: Clone + Send + Sync + 'static {
    /// Uploads so many bytes on a new stream, and downloads so many on it.
    ///
    /// # Errors
    /// When the connection ends, or the answer has another length.
    fn exchange(&self, up: u64, down: u64) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Sends one byte on a new stream, together with the length in front of it, and reads one byte.
    ///
    /// # Errors
    /// As [`Connection::exchange`].
    fn request(&self) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Sends an unreliable datagram, as soon as the stack's queue has room.
    ///
    /// # Errors
    /// When the connection ends, or the stack has no datagrams.
    fn send_datagram(&self, payload: Bytes) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Returns the room for datagrams that wait to be sent, in bytes; 0 for a stack without datagrams.
    fn datagram_room(&self) -> usize;

    /// Returns what the stack counted on this connection, if it tells.
    fn counts(&self) -> Option<PathCounts>;

    /// Closes the connection.
    fn close(&self);
}

/// Does the work of the command line and prints the result.
///
/// # Errors
/// When any part of the work fails.
pub async fn run<C: Client>(
    client: &C,
    options: &ClientOptions,
    version: String,
) -> Result<(), Failure> {
    let done = match options.scenario {
        Scenario::Up => transfer(client, options, 1, 0).await?,
        Scenario::Down => transfer(client, options, 0, 1).await?,
        Scenario::Handshake => handshakes(client, options).await?,
        Scenario::Rr => requests(client, options).await?,
        Scenario::LatencyUp => beside_bulk(client, options.bytes, 0).await?,
        Scenario::LatencyDown => beside_bulk(client, 0, options.bytes).await?,
        Scenario::Datagrams => datagrams(client, options.count, options.payload).await?,
        Scenario::Idle => return idle(client, options, version).await,
        Scenario::Http => return Err("this program does not speak HTTP".into()),
    };
    crate::print(&ClientResult::new(version, options.scenario, &done))?;
    Ok(())
}

/// Moves `options.bytes` over all streams of all connections: times `up` there, times `down` back.
async fn transfer<C: Client>(
    client: &C,
    options: &ClientOptions,
    up: u64,
    down: u64,
) -> Result<Done, Failure> {
    let mut connections = Vec::new();
    for _ in 0..options.connections {
        connections.push(client.connect().await?);
    }
    let streams = u64::from(options.streams) * u64::from(options.connections);
    let share = options.bytes / streams;
    let (up, down) = (up * share, down * share);
    let start = Instant::now();
    match connections.as_slice() {
        // A task of its own would cost the single stream a detour.
        [connection] if streams == 1 => connection.exchange(up, down).await?,
        _ => {
            let mut exchanges = JoinSet::new();
            for connection in &connections {
                for _ in 0..options.streams {
                    let connection = connection.clone();
                    exchanges.spawn(async move { connection.exchange(up, down).await });
                }
            }
            while let Some(exchange) = exchanges.join_next().await {
                exchange??;
            }
        }
    }
    let time = start.elapsed();
    let path = match connections.as_slice() {
        [connection] => connection.counts(),
        _ => None,
    };
    for connection in &connections {
        connection.close();
    }
    Ok(Done {
        bytes: share * streams,
        path,
        ..Done::after(time)
    })
}

async fn handshakes<C: Client>(client: &C, options: &ClientOptions) -> Result<Done, Failure> {
    let client = client.clone();
    in_flight(options.count, options.in_flight, move || {
        let client = client.clone();
        async move {
            client.connect().await?.close();
            Ok(())
        }
    })
    .await
}

async fn requests<C: Client>(client: &C, options: &ClientOptions) -> Result<Done, Failure> {
    let connection = client.connect().await?;
    let every = connection.clone();
    let done = in_flight(options.count, options.in_flight, move || {
        let connection = every.clone();
        async move { connection.request().await }
    })
    .await?;
    let path = connection.counts();
    connection.close();
    Ok(Done { path, ..done })
}

/// Sends requests one after another, with pauses, while a transfer is under way on the same
/// connection. The time is the transfer's.
async fn beside_bulk<C: Client>(client: &C, up: u64, down: u64) -> Result<Done, Failure> {
    let connection = client.connect().await?;
    let bulk = connection.clone();
    let bulk = tokio::spawn(async move {
        let start = Instant::now();
        bulk.exchange(up, down).await?;
        Ok::<_, Failure>(start.elapsed())
    });
    let (mut samples, mut count) = (Vec::new(), 0);
    while !bulk.is_finished() {
        tokio::time::sleep(REQUEST_PAUSE).await;
        let begin = Instant::now();
        connection.request().await?;
        count += 1;
        // A request that outlives the transfer was not beside it.
        if !bulk.is_finished() {
            samples.push(begin.elapsed());
        }
    }
    let time = bulk.await??;
    let path = connection.counts();
    connection.close();
    Ok(Done {
        latency: Latency::of(samples),
        path,
        bytes: up + down,
        count,
        ..Done::after(time)
    })
}

/// Sends datagrams as fast as the stack takes them, and closes the connection when its queue is empty
/// and what was under way has arrived.
async fn datagrams<C: Client>(client: &C, count: u64, payload: usize) -> Result<Done, Failure> {
    let connection = client.connect().await?;
    let payload = Bytes::from(vec![0; payload]);
    let room = connection.datagram_room();
    let start = Instant::now();
    for _ in 0..count {
        connection.send_datagram(payload.clone()).await?;
    }
    // A queue that does not become empty is one of a connection that is over, or never sends.
    while connection.datagram_room() < room && start.elapsed() < MOST_DATAGRAM_TIME {
        tokio::time::sleep(QUEUE_PAUSE).await;
    }
    let time = start.elapsed();
    tokio::time::sleep(DRAIN).await;
    let path = connection.counts();
    connection.close();
    Ok(Done {
        count,
        path,
        ..Done::after(time)
    })
}

/// Opens `options.connections`, waits until they are quiet, prints the result and keeps them until
/// standard input ends. Each then has to answer a request.
async fn idle<C: Client>(
    client: &C,
    options: &ClientOptions,
    version: String,
) -> Result<(), Failure> {
    let count = u64::from(options.connections);
    let left = Arc::new(Work::new(count));
    let start = Instant::now();
    let mut openers = JoinSet::new();
    for _ in 0..OPENERS {
        let (client, left) = (client.clone(), left.clone());
        openers.spawn(async move {
            let mut connections = Vec::new();
            while left.take() {
                connections.push(client.connect().await?);
            }
            Ok::<_, Failure>(connections)
        });
    }
    let mut connections = Vec::new();
    while let Some(opened) = openers.join_next().await {
        connections.extend(opened??);
    }
    let time = start.elapsed();
    tokio::time::sleep(QUIET).await;
    let done = Done {
        count,
        ..Done::after(time)
    };
    crate::print(&ClientResult::new(version, options.scenario, &done))?;
    standard_input::closed().await;
    for connection in &connections {
        connection.request().await?;
        connection.close();
    }
    Ok(())
}

/// Between a request's answer and the next request beside a transfer, so that requests are a small
/// part of the work.
const REQUEST_PAUSE: Duration = Duration::from_millis(1);

/// Between two looks at the queue of datagrams.
const QUEUE_PAUSE: Duration = Duration::from_millis(5);

/// Shorter than the runner's default patience with a client.
const MOST_DATAGRAM_TIME: Duration = Duration::from_secs(100);

/// For datagrams that are under way, and for the server to read them.
const DRAIN: Duration = Duration::from_secs(1);

/// Handshakes at the same time before connections are idle.
const OPENERS: u32 = 16;

/// After that, the last handshakes are confirmed and the last acknowledgments are sent.
const QUIET: Duration = Duration::from_secs(1);
