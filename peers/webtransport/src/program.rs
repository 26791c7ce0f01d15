//! The program of a library, with the wire and the workloads that all peer programs have, on sessions.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Buf as _, Bytes};
use clap::Parser as _;
use peers_common::command_line::{CommandLine, Role, ServerOptions};
use peers_common::settings::{CHUNK_SIZE, HEADER_LEN};
use peers_common::tally::Tally;
use peers_common::{
    Datagrams, Failure, PathCounts, Ready, ServerResult, standard_input, workloads,
};
use tokio::task::JoinSet;

use crate::session::{Dialer, Library, Receiving, Sending, Server, Session};

/// Runs the end that the command line asks for on one thread.
///
/// # Errors
/// Returns the error of the end.
pub fn run<L: Library>() -> Result<(), Failure> {
    let command_line = CommandLine::parse();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        match command_line.role {
            Role::Server(options) => peers_common::print(&serve::<L>(&options).await?)?,
            Role::Client(options) => {
                let client = Client(L::dialer(&options)?);
                workloads::run(&client, &options, L::version()).await?;
                // The end of the session is on its way.
                tokio::time::sleep(LINGER).await;
            }
        }
        Ok(())
    })
}

async fn serve<L: Library>(options: &ServerOptions) -> Result<ServerResult, Failure> {
    let mut server = L::server(options)?;
    peers_common::print(&Ready {
        listening: server.address()?,
    })?;
    let tally = Arc::new(Tally::default());
    let stop = standard_input::closed();
    tokio::pin!(stop);
    let mut sessions = JoinSet::new();
    loop {
        tokio::select! {
            () = &mut stop => break,
            accepting = server.accept() => {
                let Some(accepting) = accepting else { break };
                let (tally, has_datagrams) = (tally.clone(), options.datagrams);
                sessions.spawn(async move {
                    match accepting.await {
                        Ok(session) => serve_session(session, has_datagrams, tally).await,
                        Err(error) => eprintln!("handshake: {error}"),
                    }
                });
            }
            Some(_) = sessions.join_next() => {}
        }
    }
    // Clients have closed before the runner ends a server, and what is left has been counted.
    sessions.abort_all();
    Ok(ServerResult::new(&tally))
}

async fn serve_session<S: Session>(session: S, has_datagrams: bool, tally: Arc<Tally>) {
    tally.connected();
    if has_datagrams {
        tally.datagrams_came(count_datagrams(&session).await);
    }
    while let Some((send, receive)) = session.accept().await {
        let tally = tally.clone();
        tokio::spawn(async move {
            if let Err(error) = answer(send, receive, &tally).await {
                eprintln!("stream: {error}");
            }
        });
    }
    tally.ended(session.counts());
}

async fn answer(
    mut send: impl Sending,
    mut receive: impl Receiving,
    tally: &Tally,
) -> Result<(), Failure> {
    let mut header = Vec::with_capacity(HEADER_LEN);
    let received = read(&mut receive, |mut chunk| {
        let missing = (HEADER_LEN - header.len()).min(chunk.len());
        header.extend_from_slice(&chunk[..missing]);
        chunk.advance(missing);
        chunk.len() as u64
    })
    .await?;
    let header: [u8; HEADER_LEN] = header.try_into().map_err(|_| "a stream without a length")?;
    let wanted = u64::from_be_bytes(header);
    write(&mut send, wanted).await?;
    send.finish().await?;
    tally.answered(received, wanted);
    Ok(())
}

/// Takes datagrams until the session ends.
async fn count_datagrams(session: &impl Session) -> Datagrams {
    let mut received = 0;
    let mut first = None;
    let mut last = None;
    while let Some(count) = session.datagrams().await {
        received += count;
        last = Some(Instant::now());
        first = first.or(last);
    }
    let span = last.zip(first).map(|(last, first)| last - first);
    Datagrams {
        received,
        seconds: span.unwrap_or_default().as_secs_f64(),
    }
}

#[derive(Clone)]
struct Client<D>(D);

impl<D: Dialer> workloads::Client for Client<D> {
    type Connection = Dialed<D::Session>;

    async fn connect(&self) -> Result<Self::Connection, Failure> {
        Ok(Dialed(self.0.dial().await?))
    }
}

#[derive(Clone)]
struct Dialed<S>(S);

impl<S: Session> workloads::Connection for Dialed<S> {
    async fn exchange(&self, up: u64, down: u64) -> Result<(), Failure> {
        let (mut send, mut receive) = self.0.open().await?;
        send.write(Bytes::copy_from_slice(&down.to_be_bytes()))
            .await?;
        write(&mut send, up).await?;
        send.finish().await?;
        match read(&mut receive, |chunk| chunk.len() as u64).await? {
            received if received == down => Ok(()),
            received => Err(format!("received {received} bytes, wanted {down}").into()),
        }
    }

    async fn request(&self) -> Result<(), Failure> {
        let (mut send, mut receive) = self.0.open().await?;
        let mut upload = [0; HEADER_LEN + 1];
        upload[..HEADER_LEN].copy_from_slice(&1_u64.to_be_bytes());
        send.write(Bytes::copy_from_slice(&upload)).await?;
        send.finish().await?;
        match read(&mut receive, |chunk| chunk.len() as u64).await? {
            1 => Ok(()),
            other => Err(format!("received {other} bytes, wanted 1").into()),
        }
    }

    async fn send_datagram(&self, payload: Bytes) -> Result<(), Failure> {
        self.0.send_datagram(payload).await
    }

    fn datagram_room(&self) -> usize {
        self.0.datagram_room()
    }

    fn counts(&self) -> Option<PathCounts> {
        Some(self.0.counts())
    }

    fn close(&self) {
        self.0.close();
    }
}

/// Writes `length` bytes in chunks; the chunks share their memory.
async fn write(send: &mut impl Sending, length: u64) -> Result<(), Failure> {
    let size = usize::try_from(length)
        .unwrap_or(CHUNK_SIZE)
        .min(CHUNK_SIZE);
    let chunk = Bytes::from(vec![0; size]);
    let mut left = length;
    while left > 0 {
        let next = usize::try_from(left).unwrap_or(size).min(size);
        send.write(chunk.slice(..next)).await?;
        left -= next as u64;
    }
    Ok(())
}

/// Reads until FIN, and returns the sum of what `count` returns.
async fn read(
    receive: &mut impl Receiving,
    mut count: impl FnMut(Bytes) -> u64,
) -> Result<u64, Failure> {
    let mut chunks = [const { Bytes::new() }; CHUNKS];
    let mut length = 0;
    while let Some(read) = receive.read(&mut chunks).await? {
        length += chunks[..read]
            .iter_mut()
            .map(|chunk| count(std::mem::take(chunk)))
            .sum::<u64>();
    }
    Ok(length)
}

/// Time for the server to receive the end of a session.
const LINGER: Duration = Duration::from_millis(100);

/// Chunks of one read; a full receive buffer holds 45 packets.
const CHUNKS: usize = 64;
