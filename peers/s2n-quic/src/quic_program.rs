//! s2n-quic as a peer beside courser.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use clap::Parser;
use peers_common::command_line::{
    ClientOptions, CommandLine, Role, ServerOptions, TransportOptions,
};
use peers_common::settings::{
    ALPN, CHUNK_SIZE, CONNECTION_WINDOW, HEADER_LEN, IDLE_TIMEOUT, SERVER_NAME, STREAM_WINDOW,
};
use peers_common::tally::Tally;
use peers_common::{Failure, PathCounts, Ready, ServerResult, standard_input, tls, workloads};
use s2n_quic::client::Connect;
use s2n_quic::connection::Handle;
use s2n_quic::provider::io::tokio::{Builder, Provider};
use s2n_quic::provider::limits::Limits;
use s2n_quic::stream::{ReceiveStream, SendStream};
use s2n_quic::{Client, Connection, Server};
use tokio::task::JoinSet;

use crate::{client_tls, server_tls};

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
                let mut client = client(&options)?;
                let dialer = Dialer {
                    client: client.clone(),
                    server: options.server,
                };
                let version = peers_common::locked_version("s2n-quic");
                workloads::run(&dialer, &options, version).await?;
                client.wait_idle().await?;
            }
        }
        Ok(())
    })
}

/// Returns a socket with the shared buffers and packet size. s2n-quic counts the headers of IP and UDP,
/// and must not set the buffers again: it cannot exceed the limit of the kernel.
fn io(address: SocketAddr, options: TransportOptions) -> Result<Provider, Failure> {
    let socket = peers_common::sockets::udp(address)?;
    let builder = Builder::default()
        .with_rx_socket(socket.try_clone()?)?
        .with_tx_socket(socket)?;
    if options.own_settings {
        return Ok(builder.build()?);
    }
    let size = options.datagram + HEADERS;
    let builder = builder
        .with_max_mtu(size)?
        .with_initial_mtu(size)?
        .with_base_mtu(size)?;
    Ok(builder.build()?)
}

fn limits(options: TransportOptions, streams: u32) -> Result<Limits, Failure> {
    let limits = Limits::new()
        .with_max_idle_timeout(IDLE_TIMEOUT)?
        .with_max_open_local_bidirectional_streams(MANY_STREAMS)?
        .with_max_open_remote_bidirectional_streams(streams.into())?;
    if options.own_settings {
        return Ok(limits);
    }
    Ok(limits
        .with_data_window(CONNECTION_WINDOW.into())?
        .with_bidirectional_local_data_window(STREAM_WINDOW.into())?
        .with_bidirectional_remote_data_window(STREAM_WINDOW.into())?)
}

async fn serve(options: &ServerOptions) -> Result<ServerResult, Failure> {
    let tls = tls::server(&options.identity, &[ALPN])?;
    let mut server = Server::builder()
        .with_tls(server_tls(tls))?
        .with_io(io(options.listen, options.transport)?)?
        .with_limits(limits(options.transport, options.streams)?)?
        .start()?;
    peers_common::print(&Ready {
        listening: server.local_addr()?,
    })?;
    let tally = Arc::new(Tally::default());
    let stop = standard_input::closed();
    tokio::pin!(stop);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = &mut stop => break,
            connection = server.accept() => {
                let Some(connection) = connection else { break };
                connections.spawn(serve_connection(connection, tally.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
    Ok(ServerResult::new(&tally))
}

async fn serve_connection(mut connection: Connection, tally: Arc<Tally>) {
    tally.connected();
    // The error is the client's close.
    while let Ok(Some(stream)) = connection.accept_bidirectional_stream().await {
        let tally = tally.clone();
        tokio::spawn(async move {
            let (receive, send) = stream.split();
            if let Err(error) = answer(send, receive, &tally).await {
                eprintln!("stream: {error}");
            }
        });
    }
}

async fn answer(
    mut send: SendStream,
    mut receive: ReceiveStream,
    tally: &Tally,
) -> Result<(), Failure> {
    let mut wanted = [0; HEADER_LEN];
    let mut filled = 0;
    let mut received = 0;
    while let Some(chunk) = receive.receive().await? {
        let of_header = chunk.len().min(HEADER_LEN - filled);
        wanted[filled..filled + of_header].copy_from_slice(&chunk[..of_header]);
        filled += of_header;
        received += (chunk.len() - of_header) as u64;
        received += read_more(&mut receive, filled == HEADER_LEN).await?;
    }
    if filled < HEADER_LEN {
        return Err("the request ended in its header".into());
    }
    let wanted = u64::from_be_bytes(wanted);
    write(&mut send, wanted).await?;
    send.finish()?;
    tally.answered(received, wanted);
    Ok(())
}

/// Reads until FIN if the header has come, many chunks at a time. Returns how many bytes came.
async fn read_more(receive: &mut ReceiveStream, has_header: bool) -> Result<u64, Failure> {
    if has_header {
        read_to_fin(receive).await
    } else {
        Ok(0)
    }
}

fn client(options: &ClientOptions) -> Result<Client, Failure> {
    let tls = tls::client(&options.identity, &[ALPN])?;
    Ok(Client::builder()
        .with_tls(client_tls(tls))?
        .with_io(io(options.local(), options.transport)?)?
        .with_limits(limits(options.transport, 0)?)?
        .start()?)
}

/// The client's end.
#[derive(Clone)]
struct Dialer {
    client: Client,
    server: SocketAddr,
}

impl workloads::Client for Dialer {
    type Connection = Dialed;

    async fn connect(&self) -> Result<Dialed, Failure> {
        let connect = Connect::new(self.server).with_server_name(SERVER_NAME);
        let connection = self.client.connect(connect).await?;
        Ok(Dialed(connection.handle()))
    }
}

/// A connection of the client; it lives as long as a handle of it.
#[derive(Clone)]
struct Dialed(Handle);

impl workloads::Connection for Dialed {
    async fn exchange(&self, up: u64, down: u64) -> Result<(), Failure> {
        let stream = self.0.clone().open_bidirectional_stream().await?;
        let (mut receive, mut send) = stream.split();
        send.send(Bytes::copy_from_slice(&down.to_be_bytes()))
            .await?;
        write(&mut send, up).await?;
        send.finish()?;
        match read_to_fin(&mut receive).await? {
            received if received == down => Ok(()),
            received => Err(format!("received {received} bytes, wanted {down}").into()),
        }
    }

    /// Header and byte leave in one write.
    async fn request(&self) -> Result<(), Failure> {
        let stream = self.0.clone().open_bidirectional_stream().await?;
        let (mut receive, mut send) = stream.split();
        let mut upload = [0; HEADER_LEN + 1];
        upload[..HEADER_LEN].copy_from_slice(&1_u64.to_be_bytes());
        send.send(Bytes::copy_from_slice(&upload)).await?;
        send.finish()?;
        match read_to_fin(&mut receive).await? {
            1 => Ok(()),
            other => Err(format!("received {other} bytes, wanted 1").into()),
        }
    }

    async fn send_datagram(&self, _: Bytes) -> Result<(), Failure> {
        Err("s2n-quic has datagrams only behind a feature that it calls unstable".into())
    }

    fn datagram_room(&self) -> usize {
        0
    }

    fn counts(&self) -> Option<PathCounts> {
        None
    }

    fn close(&self) {
        self.0.close(0_u32.into());
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
        send.send(chunk.slice(..next)).await?;
        left -= next as u64;
    }
    Ok(())
}

/// Reads until FIN and returns how many bytes came.
async fn read_to_fin(receive: &mut ReceiveStream) -> Result<u64, Failure> {
    let mut chunks = [const { Bytes::new() }; CHUNKS];
    let mut length = 0;
    loop {
        let (count, is_open) = receive.receive_vectored(&mut chunks).await?;
        for chunk in &mut chunks[..count] {
            length += std::mem::take(chunk).len() as u64;
        }
        if !is_open {
            return Ok(length);
        }
    }
}

/// Chunks of one read; a full receive buffer holds 45 packets.
const CHUNKS: usize = 64;

/// Headers of IPv4 and UDP.
const HEADERS: u16 = 28;

/// More streams than any workload has at the same time.
const MANY_STREAMS: u64 = 1 << 20;
