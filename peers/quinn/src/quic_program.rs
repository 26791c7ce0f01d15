//! The QUIC peer, written once and compiled against each library that has quinn's method names.
//!
//! A crate that includes this file with `#[path]` has the library at its root under the name `api`, and a
//! module `stack` with the functions `server` and `client`, which make an endpoint for an application
//! protocol, `counts` of a connection, `read`, and `version`. So the programs differ in the settings of their
//! library and in nothing else.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use clap::Parser;
use peers_common::command_line::{CommandLine, Role, ServerOptions};
use peers_common::settings::{ALPN, CHUNK_SIZE, HEADER_LEN, SERVER_NAME};
use peers_common::tally::Tally;
use peers_common::{
    Datagrams, Failure, PathCounts, Ready, ServerResult, standard_input, workloads,
};
use tokio::task::JoinSet;

use crate::api::{Connection, ConnectionError, Endpoint, Incoming, RecvStream, SendStream, VarInt};
use crate::stack;

/// Runs the end that the command line asks for on one thread.
///
/// # Errors
/// Returns the error of the end.
pub fn run() -> Result<(), Failure> {
    let command_line = CommandLine::parse();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        match command_line.role {
            Role::Server(options) => peers_common::print(&serve(&options).await?)?,
            Role::Client(options) => {
                let endpoint = stack::client(&options, ALPN)?;
                let client = Client {
                    endpoint: endpoint.clone(),
                    server: options.server,
                };
                workloads::run(&client, &options, stack::version()).await?;
                endpoint.close(NO_ERROR, b"");
                endpoint.wait_idle().await;
            }
        }
        Ok(())
    })
}

async fn serve(options: &ServerOptions) -> Result<ServerResult, Failure> {
    let endpoint = stack::server(options, ALPN)?;
    peers_common::print(&Ready {
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
                connections.spawn(serve_connection(incoming, options.datagrams, tally.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
    endpoint.close(NO_ERROR, b"");
    // A client's close may be lost on its way; ours ends the connection and it tells its counts.
    while connections.join_next().await.is_some() {}
    Ok(ServerResult::new(&tally))
}

async fn serve_connection(incoming: Incoming, has_datagrams: bool, tally: Arc<Tally>) {
    let connection = match incoming.await {
        Ok(connection) => connection,
        // A client of `handshake` may close in the datagram that ends the handshake. An
        // application's close is read only after that end (RFC 9001 §5.7), so this one counts.
        Err(ConnectionError::ApplicationClosed { .. }) => return tally.connected(),
        Err(error) => return eprintln!("handshake: {error}"),
    };
    tally.connected();
    if has_datagrams {
        tally.datagrams_came(count_datagrams(&connection).await);
    }
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

/// Takes datagrams until the connection ends.
async fn count_datagrams(connection: &Connection) -> Datagrams {
    let mut received = 0;
    let mut first = None;
    let mut last = None;
    while connection.read_datagram().await.is_ok() {
        received += 1;
        last = Some(Instant::now());
        first = first.or(last);
    }
    let span = last.zip(first).map(|(last, first)| last - first);
    Datagrams {
        received,
        seconds: span.unwrap_or_default().as_secs_f64(),
    }
}

/// The client's end.
#[derive(Clone)]
struct Client {
    endpoint: Endpoint,
    server: SocketAddr,
}

impl workloads::Client for Client {
    type Connection = Dialed;

    async fn connect(&self) -> Result<Dialed, Failure> {
        let connecting = self.endpoint.connect(self.server, SERVER_NAME)?;
        Ok(Dialed(connecting.await?))
    }
}

/// A connection of the client.
#[derive(Clone)]
struct Dialed(Connection);

impl workloads::Connection for Dialed {
    async fn exchange(&self, up: u64, down: u64) -> Result<(), Failure> {
        let (mut send, mut receive) = self.0.open_bi().await?;
        send.write_all(&down.to_be_bytes()).await?;
        write(&mut send, up).await?;
        send.finish()?;
        match read_to_fin(&mut receive).await? {
            received if received == down => Ok(()),
            received => Err(format!("received {received} bytes, wanted {down}").into()),
        }
    }

    /// Header and byte leave in one write.
    async fn request(&self) -> Result<(), Failure> {
        let (mut send, mut receive) = self.0.open_bi().await?;
        let mut upload = [0; HEADER_LEN + 1];
        upload[..HEADER_LEN].copy_from_slice(&1_u64.to_be_bytes());
        send.write_all(&upload).await?;
        send.finish()?;
        match read_to_fin(&mut receive).await? {
            1 => Ok(()),
            other => Err(format!("received {other} bytes, wanted 1").into()),
        }
    }

    async fn send_datagram(&self, payload: Bytes) -> Result<(), Failure> {
        Ok(self.0.send_datagram_wait(payload).await?)
    }

    fn datagram_room(&self) -> usize {
        self.0.datagram_send_buffer_space()
    }

    fn counts(&self) -> Option<PathCounts> {
        Some(stack::counts(&self.0))
    }

    fn close(&self) {
        self.0.close(NO_ERROR, b"");
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

const NO_ERROR: VarInt = VarInt::from_u32(0);
