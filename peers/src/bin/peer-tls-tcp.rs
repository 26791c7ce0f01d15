//! TLS over TCP as a peer: `peer-tls-tcp server|client`.
//!
//! A connection is a stream and its end is FIN. Requests of `rr` follow one another on as many
//! connections as there are requests in flight.

use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Parser;
use peers::command_line::{ClientOptions, CommandLine, Role, Scenario, ServerOptions};
use peers::latency::Latency;
use peers::settings::{ALPN, ALPN_REQUESTS, CHUNK_SIZE, HEADER_LEN, SERVER_NAME};
use peers::tally::{Tally, Work};
use peers::{ClientResult, Failure, Ready, ServerResult, process, sockets, standard_input, tls};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

fn main() -> Result<(), Failure> {
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
    let config = tls::server(&options.identity, &[ALPN, ALPN_REQUESTS])?;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind(options.listen).await?;
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

async fn serve_connection(tcp: TcpStream, acceptor: TlsAcceptor, tally: Arc<Tally>) {
    let stream = match acceptor.accept(tcp).await {
        Ok(stream) => stream,
        Err(error) => {
            eprintln!("handshake: {error}");
            return;
        }
    };
    tally.connected();
    let requests = stream.get_ref().1.alpn_protocol() == Some(ALPN_REQUESTS);
    // A client of `handshake` leaves without a word; what is not answered is not counted.
    let _ = if requests {
        answer_requests(stream, &tally).await
    } else {
        answer(stream, &tally).await
    };
}

async fn answer(mut stream: server::TlsStream<TcpStream>, tally: &Tally) -> Result<(), Failure> {
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

async fn answer_requests(
    mut stream: server::TlsStream<TcpStream>,
    tally: &Tally,
) -> Result<(), Failure> {
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

async fn work(options: &ClientOptions) -> Result<ClientResult, Failure> {
    let (seconds, latency) = match options.scenario {
        Scenario::Up => (transfer(options, options.bytes, 0).await?, None),
        Scenario::Down => (transfer(options, 0, options.bytes).await?, None),
        Scenario::Handshake => handshakes(options).await?,
        Scenario::Rr => requests(options).await?,
        Scenario::Http => return Err("this program does not speak HTTP".into()),
    };
    Ok(ClientResult {
        version: format!("rustls {}", peers::locked_version("rustls")),
        scenario: options.scenario,
        bytes: options.bytes,
        count: options.count,
        seconds: seconds.as_secs_f64(),
        latency,
        peak_rss_kib: process::peak_rss_kib(),
        path: None,
    })
}

async fn connect(
    options: &ClientOptions,
    connector: &TlsConnector,
) -> Result<client::TlsStream<TcpStream>, Failure> {
    let socket = TcpSocket::new_v4()?;
    sockets::tune_tcp(&socket)?;
    let tcp = socket.connect(options.server).await?;
    Ok(connector
        .connect(ServerName::try_from(SERVER_NAME)?, tcp)
        .await?)
}

fn connector(options: &ClientOptions, alpn: &[u8]) -> Result<TlsConnector, Failure> {
    Ok(TlsConnector::from(Arc::new(tls::client(
        &options.identity,
        &[alpn],
    )?)))
}

async fn transfer(options: &ClientOptions, up: u64, down: u64) -> Result<Duration, Failure> {
    let mut stream = connect(options, &connector(options, ALPN)?).await?;
    let start = Instant::now();
    stream.write_all(&down.to_be_bytes()).await?;
    write(&mut stream, up).await?;
    stream.shutdown().await?;
    let received = read_to_fin(&mut stream).await?;
    if received != down {
        return Err(format!("received {received} bytes, wanted {down}").into());
    }
    Ok(start.elapsed())
}

async fn handshakes(options: &ClientOptions) -> Result<(Duration, Option<Latency>), Failure> {
    let connector = connector(options, ALPN)?;
    let left = Arc::new(Work::new(options.count));
    let start = Instant::now();
    let mut workers = JoinSet::new();
    for _ in 0..options.in_flight {
        let (left, connector, options) = (left.clone(), connector.clone(), options.clone());
        workers.spawn(async move {
            let mut samples = Vec::new();
            while left.take() {
                let begin = Instant::now();
                connect(&options, &connector).await?;
                samples.push(begin.elapsed());
            }
            Ok(samples)
        });
    }
    let samples = join(workers).await?;
    Ok((start.elapsed(), Latency::of(samples)))
}

async fn requests(options: &ClientOptions) -> Result<(Duration, Option<Latency>), Failure> {
    let connector = connector(options, ALPN_REQUESTS)?;
    let mut streams = Vec::new();
    for _ in 0..options.in_flight {
        streams.push(connect(options, &connector).await?);
    }
    let left = Arc::new(Work::new(options.count));
    let start = Instant::now();
    let mut workers = JoinSet::new();
    for mut stream in streams {
        let left = left.clone();
        workers.spawn(async move {
            let mut samples = Vec::new();
            let mut request = [0; HEADER_LEN + 1];
            request[..HEADER_LEN].copy_from_slice(&1_u64.to_be_bytes());
            while left.take() {
                let begin = Instant::now();
                stream.write_all(&request).await?;
                stream.flush().await?;
                stream.read_u8().await?;
                samples.push(begin.elapsed());
            }
            Ok(samples)
        });
    }
    let samples = join(workers).await?;
    Ok((start.elapsed(), Latency::of(samples)))
}

/// Waits for all workers and puts their samples together.
async fn join(
    mut workers: JoinSet<Result<Vec<Duration>, Failure>>,
) -> Result<Vec<Duration>, Failure> {
    let mut samples = Vec::new();
    while let Some(worker) = workers.join_next().await {
        samples.extend(worker??);
    }
    Ok(samples)
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
