//! The echo of one session.

use bytes::Bytes;
use courser::h3::DatagramError;
use courser::webtransport::{
    ApplicationCode, ReadError, RecvStream, SendStream, Session, SessionEnded, WriteError,
};
use tokio::task::JoinSet;

use super::wishes::Wishes;

/// Echoes streams and datagrams until the session ends.
pub(super) async fn serve(session: &Session, wishes: Wishes) {
    if let Some((code, message)) = wishes.close {
        session.close(code, &message);
        session.closed().await;
        return;
    }
    tokio::join!(
        bidirectional(session),
        unidirectional(session),
        datagrams(session),
        own_streams(session, wishes.open),
    );
}

/// The number of streams is bounded by what the connection grants (limit K593), and each has one chunk in memory.
async fn bidirectional(session: &Session) {
    let mut streams = JoinSet::new();
    while let Ok((mut send, receive)) = session.accept_bi().await {
        streams.spawn(async move { copy(receive, &mut send).await });
        while streams.try_join_next().is_some() {}
    }
}

async fn unidirectional(session: &Session) {
    let mut streams = JoinSet::new();
    while let Ok(receive) = session.accept_uni().await {
        let session = session.clone();
        streams.spawn(async move {
            if let Ok(mut send) = session.open_uni().await {
                copy(receive, &mut send).await;
            }
        });
        while streams.try_join_next().is_some() {}
    }
}

/// Opens streams of the server, each with a line that numbers it, and echoes what the client sends on them.
async fn own_streams(session: &Session, count: u32) {
    let mut streams = JoinSet::new();
    for number in 0..count {
        let Ok((mut send, receive)) = session.open_bi().await else {
            return;
        };
        streams.spawn(async move {
            let line = format!("stream {number} of {count}\n");
            if send.write_all(line.as_bytes()).await.is_ok() {
                copy(receive, &mut send).await;
            }
        });
    }
    while streams.join_next().await.is_some() {}
}

async fn datagrams(session: &Session) {
    let mut batch: Vec<Bytes> = Vec::new();
    let datagrams = session.datagrams();
    while datagrams.receive_many(&mut batch, BATCH).await.is_some() {
        while let Err(error) = datagrams.send_many(&mut batch) {
            if !matches!(error, DatagramError::TooLarge { .. }) || batch.is_empty() {
                return;
            }
            // The path to the client carries less than the path from it: the echo is lost, as datagrams may be.
            batch.remove(0);
        }
    }
}

/// How the sending half of an echo ends.
enum End {
    Finish,
    /// The client has reset its stream with this code.
    Reset(u32),
    /// The client has stopped reading the echo with this code.
    Stop(u32),
}

/// Copies a stream, and ends each half as the client has ended the other.
async fn copy(mut receive: RecvStream, send: &mut SendStream) {
    // The halves may have ended with the session.
    match copy_to_end(&mut receive, send).await {
        Ok(End::Finish) => drop(send.finish()),
        Ok(End::Reset(code)) => drop(send.reset(code)),
        Ok(End::Stop(code)) => drop(receive.stop(code)),
        Err(SessionEnded(_)) => {}
    }
}

async fn copy_to_end(receive: &mut RecvStream, send: &mut SendStream) -> Result<End, SessionEnded> {
    loop {
        let chunk = tokio::select! {
            biased;
            chunk = receive.read_chunk(CHUNK) => chunk,
            code = send.stopped() => return stopped(code),
        };
        match chunk {
            Ok(Some(chunk)) => match send.write_all(&chunk).await {
                Ok(()) => {}
                Err(WriteError::SessionEnded(closed)) => return Err(SessionEnded(closed)),
                Err(WriteError::Stopped(code)) => return Ok(End::Stop(number(code))),
                Err(_) => return Ok(End::Finish),
            },
            Ok(None) => return Ok(End::Finish),
            Err(ReadError::Reset(code)) => return Ok(End::Reset(number(code))),
            Err(ReadError::SessionEnded(closed)) => return Err(SessionEnded(closed)),
            Err(_) => return Ok(End::Finish),
        }
    }
}

fn stopped(code: Result<Option<ApplicationCode>, WriteError>) -> Result<End, SessionEnded> {
    match code {
        Ok(code) => Ok(End::Stop(number(code))),
        Err(WriteError::SessionEnded(closed)) => Err(SessionEnded(closed)),
        Err(_) => Ok(End::Finish),
    }
}

fn number(code: Option<ApplicationCode>) -> u32 {
    code.map_or(0, |ApplicationCode(code)| code)
}

/// Largest number of bytes of a stream that are copied at once.
const CHUNK: usize = 256 << 10;
/// Largest number of datagrams that are echoed at once.
const BATCH: usize = 64;
