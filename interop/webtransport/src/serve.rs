//! What servers do with a session, by its path.
//!
//! | path | |
//! |---|---|
//! | `/echo` | returns streams, datagrams, and the codes of streams |
//! | `/open/N` | opens N streams of each kind, waits for the echo of the bidirectional ones, and opens one more |
//! | `/bytes/N` | answers a bidirectional stream with N bytes |
//! | `/close` | closes with 9 and "server" when a bidirectional stream has come |
//! | `/drain` | asks to end the session soon, and otherwise echoes |
//! | `/last` | opens a stream with the reason with which the last echo ended |

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::end::{Receiving, Sending, Session};

/// The reason with which the last echo ended.
pub type Last = Arc<Mutex<String>>;

pub async fn session<S: Session>(session: S, path: &str, last: Last) -> Result<()> {
    let path = path.split('?').next().unwrap_or_default();
    if let Some(count) = path.strip_prefix("/open/") {
        return open(&session, count.parse()?).await;
    }
    if let Some(count) = path.strip_prefix("/bytes/") {
        return bytes(&session, count.parse()?).await;
    }
    match path {
        "/close" => {
            let (_send, mut receive) = session.accept_bi().await?;
            receive.read().await?;
            session.close(9, "server");
            session.closed().await;
        }
        "/last" => {
            // The end of the session before this one may still be on its way.
            tokio::time::sleep(Duration::from_millis(200)).await;
            let text = last.lock().expect("no panic").clone();
            let mut send = session.open_uni().await?;
            send.write_all(text.as_bytes()).await?;
            send.finish().await;
            session.closed().await;
        }
        _ => {
            if path == "/drain" {
                session.drain();
            }
            tokio::spawn(echo_bidirectional(session.clone()));
            tokio::spawn(echo_unidirectional(session.clone()));
            tokio::spawn(echo_datagrams(session.clone()));
            let reason = session.closed().await;
            *last.lock().expect("no panic") = reason;
        }
    }
    Ok(())
}

async fn echo_bidirectional<S: Session>(session: S) -> Result<()> {
    loop {
        let (send, receive) = session.accept_bi().await?;
        tokio::spawn(echo(send, receive));
    }
}

/// Returns bytes and codes.
async fn echo<S: Sending, R: Receiving>(mut send: S, mut receive: R) {
    loop {
        match receive.read().await {
            Ok(Some(bytes)) => {
                if let Err(broken) = send.write_all(&bytes).await {
                    return receive.stop(broken.code.unwrap_or(0));
                }
            }
            Ok(None) => return send.finish().await,
            Err(broken) => return send.reset(broken.code.unwrap_or(0)),
        }
    }
}

async fn echo_unidirectional<S: Session>(session: S) -> Result<()> {
    loop {
        let mut receive = session.accept_uni().await?;
        let session = session.clone();
        tokio::spawn(async move {
            let all = receive.read_all().await?;
            let mut send = session.open_uni().await?;
            send.write_all(&all).await?;
            send.finish().await;
            anyhow::Ok(())
        });
    }
}

async fn echo_datagrams<S: Session>(session: S) -> Result<()> {
    loop {
        let payload = session.datagram().await?;
        // A datagram may be lost.
        let _ = session.send_datagram(payload);
    }
}

async fn bytes<S: Session>(session: &S, count: usize) -> Result<()> {
    let (mut send, _receive) = session.accept_bi().await?;
    let chunk = vec![0; 64 * 1024];
    let mut left = count;
    while left > 0 {
        let next = left.min(chunk.len());
        send.write_all(&chunk[..next]).await?;
        left -= next;
    }
    send.finish().await;
    session.closed().await;
    Ok(())
}

async fn open<S: Session>(session: &S, count: usize) -> Result<()> {
    let mut tasks = tokio::task::JoinSet::new();
    for index in 0..count {
        let (mut send, mut receive) = session.open_bi().await?;
        let mut uni = session.open_uni().await?;
        tasks.spawn(async move {
            let text = format!("stream {index}");
            uni.write_all(text.as_bytes()).await?;
            uni.finish().await;
            send.write_all(text.as_bytes()).await?;
            send.finish().await;
            let back = receive.read_all().await?;
            ensure!(back == text.as_bytes(), "another echo");
            Ok(())
        });
    }
    let mut failed = 0;
    while let Some(done) = tasks.join_next().await {
        failed += usize::from(!matches!(done, Ok(Ok(()))));
    }
    let mut send = session.open_uni().await?;
    send.write_all(format!("failed {failed}").as_bytes())
        .await?;
    send.finish().await;
    session.closed().await;
    Ok(())
}
