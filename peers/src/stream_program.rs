//! The TCP peer, written once and compiled with and without TLS.
//!
//! A program that includes this file with `#[path]` has a module `stack` beside it, with an
//! `Acceptor` and a `Connector`, the streams `ServerStream` and `ClientStream` that they return, and
//! the function `version`.
//!
//! A connection is a stream and its end is FIN. Requests of `rr` follow one another on as many
//! connections as there are requests in flight, without FIN; the handshake says so.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use clap::Parser;
use peers::command_line::{ClientOptions, CommandLine, Role, Scenario, ServerOptions};
use peers::latency::Latency;
use peers::operations::Done;
use peers::settings::{CHUNK_SIZE, HEADER_LEN};
use peers::tally::{Tally, Work};
use peers::{
    ClientResult, Failure, PathCounts, Ready, ServerResult, sockets, standard_input, workloads,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use crate::stack::{self, Acceptor, ClientStream, Connector, ServerStream};

/// Runs the end that the command line asks for on one thread.
pub(crate) fn run() -> Result<(), Failure> {
    let command_line = CommandLine::parse();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        match command_line.role {
            Role::Server(options) => peers::print(&serve(&options).await?)?,
            Role::Client(options) => work(&options).await?,
        }
        Ok(())
    })
}

/// The use of the streams of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// One exchange, which FIN ends in both directions.
    Exchange,
    /// Requests one after another.
    Requests,
}

async fn serve(options: &ServerOptions) -> Result<ServerResult, Failure> {
    let acceptor = Acceptor::new(options)?;
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(options.listen)?;
    // Many connections at the same time must not meet a full queue, which costs a second.
    let listener = socket.listen(BACKLOG)?;
    sockets::tune_tcp(&listener)?;
    peers::print(&Ready {
        listening: listener.local_addr()?,
    })?;
    let tally = Arc::new(Tally::default());
    let stop = standard_input::closed();
    tokio::pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => {
                tokio::spawn(serve_connection(accepted?.0, acceptor.clone(), tally.clone()));
            }
        }
    }
    Ok(ServerResult::new(&tally))
}

async fn serve_connection(tcp: TcpStream, acceptor: Acceptor, tally: Arc<Tally>) {
    let (stream, wanted) = match acceptor.accept(tcp).await {
        Ok(accepted) => accepted,
        Err(error) => {
            eprintln!("handshake: {error}");
            return;
        }
    };
    tally.connected();
    // A client of `handshake` leaves without a word; what is not answered is not counted.
    let _ = match wanted {
        Use::Exchange => answer(stream, &tally).await,
        Use::Requests => answer_requests(stream, &tally).await,
    };
}

async fn answer(mut stream: ServerStream, tally: &Tally) -> Result<(), Failure> {
    let mut wanted = [0; HEADER_LEN];
    stream.read_exact(&mut wanted).await?;
    let wanted = u64::from_be_bytes(wanted);
    let received = read_to_fin(&mut stream).await?;
    write(&mut stream, wanted).await?;
    // Counted before the client can see the end.
    tally.answered(received, wanted);
    stream.shutdown().await?;
    Ok(())
}

async fn answer_requests(mut stream: ServerStream, tally: &Tally) -> Result<(), Failure> {
    let mut request = [0; HEADER_LEN + 1];
    loop {
        stream.read_exact(&mut request).await?;
        let mut wanted = [0; HEADER_LEN];
        wanted.copy_from_slice(&request[..HEADER_LEN]);
        let wanted = u64::from_be_bytes(wanted);
        tally.answered(1, wanted);
        write(&mut stream, wanted).await?;
        stream.flush().await?;
    }
}

async fn work(options: &ClientOptions) -> Result<(), Failure> {
    match options.scenario {
        Scenario::Up | Scenario::Down | Scenario::Handshake | Scenario::Idle => {
            let client = Client {
                connector: Connector::new(options, Use::Exchange)?,
                server: options.server,
            };
            workloads::run(&client, options, stack::version()).await
        }
        Scenario::Rr => {
            let done = requests(options).await?;
            let result = ClientResult::new(stack::version(), options.scenario, &done);
            Ok(peers::print(&result)?)
        }
        other => Err(format!("a TCP connection is one stream: it has no {other:?}").into()),
    }
}

async fn dial(connector: &Connector, server: SocketAddr) -> Result<ClientStream, Failure> {
    let socket = TcpSocket::new_v4()?;
    sockets::tune_tcp(&socket)?;
    let tcp = socket.connect(server).await?;
    connector.connect(tcp).await
}

/// The client's end, for exchanges.
#[derive(Clone)]
struct Client {
    connector: Connector,
    server: SocketAddr,
}

impl workloads::Client for Client {
    type Connection = Connection;

    async fn connect(&self) -> Result<Connection, Failure> {
        let stream = dial(&self.connector, self.server).await?;
        Ok(Connection(Arc::new(Mutex::new(Some(stream)))))
    }
}

/// A connection, which has one exchange.
#[derive(Clone)]
struct Connection(Arc<Mutex<Option<ClientStream>>>);

impl Connection {
    async fn exchange_with(&self, first: &[u8], up: u64, down: u64) -> Result<(), Failure> {
        let stream = self.0.lock().await.take();
        let mut stream = stream.ok_or("a TCP connection has one stream")?;
        stream.write_all(first).await?;
        write(&mut stream, up).await?;
        stream.shutdown().await?;
        match read_to_fin(&mut stream).await? {
            received if received == down => Ok(()),
            received => Err(format!("received {received} bytes, wanted {down}").into()),
        }
    }
}

impl workloads::Connection for Connection {
    async fn exchange(&self, up: u64, down: u64) -> Result<(), Failure> {
        self.exchange_with(&down.to_be_bytes(), up, down).await
    }

    async fn request(&self) -> Result<(), Failure> {
        self.exchange_with(&request_of_one(), 0, 1).await
    }

    async fn send_datagram(&self, _: Bytes) -> Result<(), Failure> {
        Err("TCP has no datagrams".into())
    }

    fn datagram_room(&self) -> usize {
        0
    }

    fn counts(&self) -> Option<PathCounts> {
        None
    }

    /// Without a word, as a process ends that has nothing more to do.
    fn close(&self) {
        if let Ok(mut stream) = self.0.try_lock() {
            *stream = None;
        }
    }
}

async fn requests(options: &ClientOptions) -> Result<Done, Failure> {
    let connector = Connector::new(options, Use::Requests)?;
    let mut streams = Vec::new();
    for _ in 0..options.in_flight {
        streams.push(dial(&connector, options.server).await?);
    }
    let left = Arc::new(Work::new(options.count));
    let start = Instant::now();
    let mut workers = JoinSet::new();
    for mut stream in streams {
        let left = left.clone();
        workers.spawn(async move {
            let mut samples = Vec::new();
            let request = request_of_one();
            while left.take() {
                let begin = Instant::now();
                stream.write_all(&request).await?;
                stream.flush().await?;
                stream.read_u8().await?;
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
        latency: Latency::of(samples),
        count: options.count,
        ..Done::after(start.elapsed())
    })
}

/// The wanted length, one, and one byte.
fn request_of_one() -> [u8; HEADER_LEN + 1] {
    let mut request = [0; HEADER_LEN + 1];
    request[..HEADER_LEN].copy_from_slice(&1_u64.to_be_bytes());
    request
}

async fn write(stream: &mut (impl AsyncWrite + Unpin), length: u64) -> Result<(), Failure> {
    let size = usize::try_from(length)
        .unwrap_or(CHUNK_SIZE)
        .min(CHUNK_SIZE);
    let chunk = vec![0; size];
    let mut left = length;
    while left > 0 {
        let next = usize::try_from(left).unwrap_or(size).min(size);
        stream.write_all(&chunk[..next]).await?;
        left -= next as u64;
    }
    Ok(())
}

async fn read_to_fin(stream: &mut (impl AsyncRead + Unpin)) -> Result<u64, Failure> {
    let mut buffer = vec![0; CHUNK_SIZE];
    let mut length = 0;
    loop {
        match stream.read(&mut buffer).await? {
            0 => return Ok(length),
            count => length += count as u64,
        }
    }
}

/// Connections that wait to be accepted, as far as the system's limit allows.
const BACKLOG: u32 = 4096;
