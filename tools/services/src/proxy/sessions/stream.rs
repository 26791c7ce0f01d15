//! One direction of a stream through the proxy.

use std::time::Duration;

use courser::webtransport::{ApplicationCode, ReadError, RecvStream, SendStream, WriteError};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// A copy that is in progress.
pub(super) struct Running(watch::Sender<usize>);

impl Running {
    pub(super) fn begin(running: &watch::Sender<usize>) -> Self {
        running.send_modify(|count| *count += 1);
        Self(running.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// Waits until streams that were read to their end have arrived at the other end, or their time is over. The end of a
/// session resets its streams, and would take away what its sender has finished before.
pub(super) async fn settle(running: &watch::Sender<usize>) {
    let mut changes = running.subscribe();
    let _ = timeout(SETTLE, changes.wait_for(|count| *count == 0)).await;
}

/// The end of one direction.
enum End {
    Finish,
    /// The sender has reset the stream.
    Reset(Option<ApplicationCode>),
    /// The receiver has stopped the stream.
    Stop(Option<ApplicationCode>),
    /// The session of either side has ended.
    Session,
}

/// Copies a stream to its end, and passes the kind of end on with its code.
///
/// At most one chunk is in memory beside what QUIC keeps: nothing is read before it is written, so that a slow receiver
/// holds the sender back.
pub(super) async fn copy(mut receive: RecvStream, mut send: SendStream, running: Running) {
    // Calls fail on halves that have ended meanwhile, which needs no answer.
    match copy_to_end(&mut receive, &mut send).await {
        End::Finish => {
            let _ = send.finish();
            // Until everything has arrived, the session of the receiver must not end.
            let _ = send.stopped().await;
        }
        End::Reset(Some(ApplicationCode(code))) => drop(send.reset(code)),
        End::Stop(Some(ApplicationCode(code))) => drop(receive.stop(code)),
        // Codes that are none of an application come with the end of a session, which follows.
        End::Reset(None) => {
            tokio::select! {
                () = sleep(SETTLE) => drop(send.reset(0)),
                _ = send.stopped() => {}
            }
        }
        End::Stop(None) => {
            sleep(SETTLE).await;
            let _ = receive.stop(0);
        }
        // The other session ends soon, and resets the stream: dropping a half now would finish it, as if it were whole.
        End::Session => {
            drop(running);
            let _ = send.stopped().await;
        }
    }
}

async fn copy_to_end(receive: &mut RecvStream, send: &mut SendStream) -> End {
    loop {
        let chunk = tokio::select! {
            biased;
            chunk = receive.read_chunk(CHUNK) => chunk,
            stopped = send.stopped() => return of_stop(stopped),
        };
        let chunk = match chunk {
            Ok(Some(chunk)) => chunk,
            Ok(None) => return End::Finish,
            Err(ReadError::Reset(code)) => return End::Reset(code),
            Err(_) => return End::Session,
        };
        let written = tokio::select! {
            biased;
            written = send.write_chunk(chunk) => written,
            // A receiver that never reads must not hide it.
            code = receive.was_reset() => return End::Reset(code),
        };
        match written {
            Ok(()) => {}
            Err(WriteError::Stopped(code)) => return End::Stop(code),
            Err(_) => return End::Session,
        }
    }
}

fn of_stop(stopped: Result<Option<ApplicationCode>, WriteError>) -> End {
    match stopped {
        Ok(code) => End::Stop(code),
        Err(_) => End::Session,
    }
}

/// Bytes of a stream that are read at once (limit K669).
const CHUNK: usize = 64 << 10;

/// Time for bytes that were read completely to reach the other end, after one end has closed the session (limit K668).
const SETTLE: Duration = Duration::from_millis(500);
