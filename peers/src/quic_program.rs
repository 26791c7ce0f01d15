//! The QUIC peer, written once and compiled against each library that has quinn's method names.
//!
//! A program that includes this file with `#[path]` has a module `stack` beside it, with the
//! library's `Connection`, `ConnectionError`, `Endpoint`, `Incoming`, `RecvStream` and
//! `SendStream`, the close code `NO_ERROR`, and the functions `server` and `client`, which make an
//! endpoint, `counts` of a connection, `read`, and `version`. So the programs differ in
//! the settings of their library and in nothing else.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use clap::Parser;
use peers::command_line::{ClientOptions, CommandLine, Role, Scenario, ServerOptions};
use peers::operations::{Done, in_flight};
use peers::settings::{CHUNK_SIZE, HEADER_LEN, SERVER_NAME};
use peers::tally::Tally;
use peers::{ClientResult, Failure, Ready, ServerResult, process, standard_input};
use tokio::task::JoinSet;

use crate::stack::{self, Connection, ConnectionError, Endpoint, Incoming, RecvStream, SendStream};

/// Runs the end that the command line asks for on one thread.
pub(crate) fn run() -> Result<(), Failure> {
    let command_line = CommandLine::parse();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        match command_line.role {
            Role::Server(options) => peers::print(&serve(&options).await?)?,
            Role::Client(options) => peers::print(&work(&options).await?)?,
        }
        Ok(())
    })
}

async fn serve(options: &ServerOptions) -> Result<ServerResult, Failure> {
    let endpoint = stack::server(options)?;
    peers::print(&Ready {
        listening: endpoint.local_addr()?,
    })?;
    let tally = Arc::new(Tally::default());
    let stop = standard_input::closed();
    tokio::pin!(stop);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = &mut stop => break,
            incoming = endpoint.accept() => {
                let Some(incoming) = incoming else { break };
                connections.spawn(serve_connection(incoming, tally.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
    endpoint.close(stack::NO_ERROR, b"");
    // A client's close may be lost on its way; ours ends the connection and it tells its counts.
    while connections.join_next().await.is_some() {}
    Ok(ServerResult::new(&tally))
}

async fn serve_connection(incoming: Incoming, tally: Arc<Tally>) {
    let connection = match incoming.await {
        Ok(connection) => connection,
        // A client of `handshake` may close in the datagram that ends the handshake. An
        // application's close is read only after that end (RFC 9001 §5.7), so this one counts.
        Err(ConnectionError::ApplicationClosed { .. }) => return tally.connected(),
        Err(error) => return eprintln!("handshake: {error}"),
    };
    tally.connected();
    // The error is the client's close.
    while let Ok((send, receive)) = connection.accept_bi().await {
        let tally = tally.clone();
        tokio::spawn(async move {
            if let Err(error) = answer(send, receive, &tally).await {
                eprintln!("stream: {error}");
            }
        });
    }
    tally.ended(stack::counts(&connection));
}

async fn answer(
    mut send: SendStream,
    mut receive: RecvStream,
    tally: &Tally,
) -> Result<(), Failure> {
    let mut wanted = [0; HEADER_LEN];
    receive.read_exact(&mut wanted).await?;
    let wanted = u64::from_be_bytes(wanted);
    let received = read_to_fin(&mut receive).await?;
    write(&mut send, wanted).await?;
    send.finish()?;
    tally.answered(received, wanted);
    Ok(())
}

async fn work(options: &ClientOptions) -> Result<ClientResult, Failure> {
    let endpoint = stack::client(options)?;
    let done = match options.scenario {
        Scenario::Up => transfer(&endpoint, options, options.bytes, 0).await?,
        Scenario::Down => transfer(&endpoint, options, 0, options.bytes).await?,
        Scenario::Handshake => handshakes(&endpoint, options).await?,
        Scenario::Rr => requests(&endpoint, options).await?,
        Scenario::Http => return Err("this program does not speak HTTP".into()),
    };
    endpoint.close(stack::NO_ERROR, b"");
    endpoint.wait_idle().await;
    Ok(ClientResult {
        version: stack::version(),
        scenario: options.scenario,
        bytes: options.bytes,
        count: options.count,
        seconds: done.time.as_secs_f64(),
        latency: done.latency,
        peak_rss_kib: process::peak_rss_kib(),
        path: done.path,
    })
}

async fn transfer(
    endpoint: &Endpoint,
    options: &ClientOptions,
    up: u64,
    down: u64,
) -> Result<Done, Failure> {
    let connection = endpoint.connect(options.server, SERVER_NAME)?.await?;
    let start = Instant::now();
    exchange(&connection, up, down).await?;
    Ok(Done {
        time: start.elapsed(),
        latency: None,
        path: Some(stack::counts(&connection)),
    })
}

async fn exchange(connection: &Connection, up: u64, down: u64) -> Result<(), Failure> {
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(&down.to_be_bytes()).await?;
    write(&mut send, up).await?;
    send.finish()?;
    let received = read_to_fin(&mut receive).await?;
    if received != down {
        return Err(format!("received {received} bytes, wanted {down}").into());
    }
    Ok(())
}

async fn handshakes(endpoint: &Endpoint, options: &ClientOptions) -> Result<Done, Failure> {
    let endpoint = endpoint.clone();
    let server = options.server;
    in_flight(options.count, options.in_flight, move || {
        let endpoint = endpoint.clone();
        async move {
            let connection = endpoint.connect(server, SERVER_NAME)?.await?;
            connection.close(stack::NO_ERROR, b"");
            Ok(())
        }
    })
    .await
}

async fn requests(endpoint: &Endpoint, options: &ClientOptions) -> Result<Done, Failure> {
    let connection = endpoint.connect(options.server, SERVER_NAME)?.await?;
    let every = connection.clone();
    let done = in_flight(options.count, options.in_flight, move || {
        let connection = every.clone();
        async move { request(&connection).await }
    })
    .await?;
    Ok(Done {
        path: Some(stack::counts(&connection)),
        ..done
    })
}

/// One byte there and one back; header and byte leave in one write.
async fn request(connection: &Connection) -> Result<(), Failure> {
    let (mut send, mut receive) = connection.open_bi().await?;
    let mut upload = [0; HEADER_LEN + 1];
    upload[..HEADER_LEN].copy_from_slice(&1_u64.to_be_bytes());
    send.write_all(&upload).await?;
    send.finish()?;
    match read_to_fin(&mut receive).await? {
        1 => Ok(()),
        other => Err(format!("received {other} bytes, wanted 1").into()),
    }
}

/// Writes `length` bytes in chunks; the chunks share their memory.
async fn write(send: &mut SendStream, length: u64) -> Result<(), Failure> {
    let size = usize::try_from(length)
        .unwrap_or(CHUNK_SIZE)
        .min(CHUNK_SIZE);
    let chunk = Bytes::from(vec![0; size]);
    let mut left = length;
    while left > 0 {
        let next = usize::try_from(left).unwrap_or(size).min(size);
        send.write_chunk(chunk.slice(..next)).await?;
        left -= next as u64;
    }
    Ok(())
}

/// Reads until FIN and returns how many bytes came.
async fn read_to_fin(receive: &mut RecvStream) -> Result<u64, Failure> {
    let mut chunks = [const { Bytes::new() }; CHUNKS];
    let mut length = 0;
    while let Some(count) = stack::read(receive, &mut chunks).await? {
        length += chunks[..count]
            .iter()
            .map(|chunk| chunk.len() as u64)
            .sum::<u64>();
    }
    Ok(length)
}

/// Chunks of one read; a full receive buffer holds 45 packets.
const CHUNKS: usize = 64;
