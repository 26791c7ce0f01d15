//! Moves bytes between a session and standard input and output.

use std::cell::Cell;
use std::io::{self, IsTerminal as _};
use std::time::Duration;

use bytes::Bytes;
use courser::webtransport::{ReadError, RecvStream, SendStream, Session, SessionEnded, WriteError};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Stdout};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::args::Arguments;
use crate::get::exit::{Failed, READ_ERROR, RECEIVE_ERROR, SEND_ERROR, TOO_LARGE, WRITE_ERROR};

/// Moves bytes until both directions have ended.
pub(super) async fn run(arguments: &Arguments, session: &Session) -> Result<(), Failed> {
    if arguments.datagrams {
        return datagrams(session, arguments.wait).await;
    }
    if arguments.uni {
        return unidirectional(session, arguments.wait).await;
    }
    let (send, receive) = session.open_bi().await.map_err(lost)?;
    let mut out = Output::new();
    let is_ended = Cell::new(false);
    let mut sending = std::pin::pin!(send_input(send, &is_ended));
    let mut receiving = std::pin::pin!(out.copy(receive));
    tokio::select! {
        received = &mut receiving => received?,
        sent = &mut sending => {
            sent?;
            return receiving.await;
        }
    }
    // Nobody wants to type on for a server that has ended its side. A file is sent as far as the server reads it.
    if io::stdin().is_terminal() {
        return Ok(());
    }
    let has_answered = is_ended.get();
    match sending.await {
        Err(_) if session.close_reason().is_some() => {
            return end_of(SessionEnded(session.closed().await));
        }
        sent => sent?,
    }
    if !has_answered {
        // The end of the session would take the rest from the server, which may have received it and not read.
        let _ = timeout(arguments.wait, session.closed()).await;
    }
    Ok(())
}

/// Sends standard input on one stream, and prints the streams of the server one after the other.
async fn unidirectional(session: &Session, wait: Duration) -> Result<(), Failed> {
    let ended = Notify::new();
    let sending = async {
        let send = session.open_uni().await.map_err(lost)?;
        send_input(send, &Cell::new(false)).await?;
        ended.notify_one();
        Ok::<_, Failed>(())
    };
    let receiving = async {
        let mut out = Output::new();
        let mut has_ended = false;
        loop {
            let accepting = session.accept_uni();
            let accepted = match has_ended {
                true => match timeout(wait, accepting).await {
                    Ok(accepted) => accepted,
                    Err(_) => return Ok(()),
                },
                false => tokio::select! {
                    accepted = accepting => accepted,
                    () = ended.notified() => {
                        has_ended = true;
                        continue;
                    }
                },
            };
            match accepted {
                Ok(receive) => out.copy(receive).await?,
                Err(ended) => return end_of(ended),
            }
        }
    };
    tokio::try_join!(sending, receiving).map(|_| ())
}

/// Sends each line as a datagram, and prints each datagram as a line.
async fn datagrams(session: &Session, wait: Duration) -> Result<(), Failed> {
    if !session.datagrams().negotiated().await {
        return Err(Failed::new(SEND_ERROR, "the server accepts no datagrams"));
    }
    let ended = Notify::new();
    let sending = async {
        send_lines(session).await?;
        ended.notify_one();
        Ok::<_, Failed>(())
    };
    let receiving = async {
        let mut out = Output::new();
        let mut has_ended = false;
        let mut batch: Vec<Bytes> = Vec::new();
        loop {
            let receiving = session.datagrams().receive_many(&mut batch, BATCH);
            let received = match has_ended {
                true => match timeout(wait, receiving).await {
                    Ok(received) => received,
                    Err(_) => return Ok(()),
                },
                false => tokio::select! {
                    received = receiving => received,
                    () = ended.notified() => {
                        has_ended = true;
                        continue;
                    }
                },
            };
            if received.is_none() {
                return end_of(SessionEnded(session.closed().await));
            }
            // In one write, so that the datagrams that arrive meanwhile find room.
            let mut lines = Vec::new();
            for datagram in batch.drain(..) {
                lines.extend_from_slice(&datagram);
                lines.push(b'\n');
            }
            out.write(&lines).await?;
            out.flush().await?;
        }
    };
    tokio::try_join!(sending, receiving).map(|_| ())
}

async fn send_lines(session: &Session) -> Result<(), Failed> {
    let mut input = BufReader::new(tokio::io::stdin());
    let before = session.quic().stats().datagrams.sent;
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        let count = input.read_until(b'\n', &mut line).await.map_err(unread)?;
        if count == 0 {
            break;
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        let datagrams = session.datagrams();
        if let Err(error) = datagrams.send(&line) {
            let code = match datagrams.max_size() {
                Some(max) if line.len() > max => TOO_LARGE,
                _ => SEND_ERROR,
            };
            let text = format!("line {number} cannot be sent as a datagram: {error}");
            return Err(Failed::new(code, text));
        }
        // The oldest of a full queue would be dropped.
        while is_behind(session, before, number) {
            sleep(QUEUE_POLL).await;
        }
    }
    Ok(())
}

/// Returns true while many of `number` datagrams wait to be sent.
fn is_behind(session: &Session, before: u64, number: u64) -> bool {
    let stats = session.quic().stats().datagrams;
    let done = stats.sent + stats.unsent_dropped + stats.expired - before;
    session.close_reason().is_none() && number.saturating_sub(done) > MAX_QUEUE
}

/// Sends standard input, sets `is_ended` at its end, and waits until the server has acknowledged it: the end of the session
/// would cancel what is on its way.
async fn send_input(mut send: SendStream, is_ended: &Cell<bool>) -> Result<(), Failed> {
    let mut input = tokio::io::stdin();
    let mut buffer = vec![0; CHUNK];
    loop {
        let count = tokio::select! {
            count = input.read(&mut buffer) => count.map_err(unread)?,
            code = send.stopped() => return match code {
                // The server needs no more.
                Ok(_) => Ok(()),
                Err(error) => Err(unsent(&error)),
            },
        };
        if count == 0 {
            is_ended.set(true);
            let acknowledged = send.acknowledged();
            send.finish().map_err(|error| unsent(&error))?;
            return match acknowledged.await {
                Ok(()) | Err(WriteError::Stopped(_) | WriteError::ClosedStream) => Ok(()),
                Err(error) => Err(unsent(&error)),
            };
        }
        match send.write_all(&buffer[..count]).await {
            Ok(()) => {}
            Err(WriteError::Stopped(_)) => return Ok(()),
            Err(error) => return Err(unsent(&error)),
        }
    }
}

/// Standard output.
struct Output(Stdout);

impl Output {
    fn new() -> Self {
        Self(tokio::io::stdout())
    }

    /// Prints a stream to its end.
    async fn copy(&mut self, mut receive: RecvStream) -> Result<(), Failed> {
        loop {
            match receive.read_chunk(CHUNK).await {
                Ok(Some(chunk)) => {
                    self.write(&chunk).await?;
                    self.flush().await?;
                }
                Ok(None) => return Ok(()),
                Err(ReadError::SessionEnded(closed)) => return Err(lost(SessionEnded(closed))),
                Err(error) => {
                    return Err(Failed::new(
                        RECEIVE_ERROR,
                        format!("the stream was {error}"),
                    ));
                }
            }
        }
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), Failed> {
        self.0.write_all(bytes).await.map_err(unwritten)
    }

    async fn flush(&mut self) -> Result<(), Failed> {
        self.0.flush().await.map_err(unwritten)
    }
}

/// Returns the result for the end of a session while nothing is due.
fn end_of(SessionEnded(closed): SessionEnded) -> Result<(), Failed> {
    match closed.reason() {
        Some(reason) if reason.code.0 == 0 => Ok(()),
        _ => Err(lost(SessionEnded(closed))),
    }
}

fn lost(SessionEnded(closed): SessionEnded) -> Failed {
    Failed::new(RECEIVE_ERROR, closed.to_string())
}

fn unsent(error: &WriteError) -> Failed {
    match error {
        WriteError::SessionEnded(closed) => lost(SessionEnded(closed.clone())),
        error => Failed::new(SEND_ERROR, error.to_string()),
    }
}

fn unread(error: io::Error) -> Failed {
    Failed::new(READ_ERROR, format!("cannot read standard input: {error}"))
}

fn unwritten(error: io::Error) -> Failed {
    Failed::new(
        WRITE_ERROR,
        format!("cannot write standard output: {error}"),
    )
}

/// Bytes that are moved at once.
const CHUNK: usize = 64 << 10;
/// Datagrams that are received at once.
const BATCH: usize = 64;
/// Datagrams that may wait to be sent before standard input is read on, and the time between two checks.
const MAX_QUEUE: u64 = 64;
const QUEUE_POLL: Duration = Duration::from_millis(1);
