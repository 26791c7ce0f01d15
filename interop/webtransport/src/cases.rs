//! What clients try.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

use crate::end::{Connect, Receiving, Sending, Session};

const CASES: &[&str] = &[
    "protocol",
    "bi-1",
    "bi-100",
    "bi-1000",
    "uni-1",
    "uni-100",
    "uni-1000",
    "open-1",
    "open-100",
    "open-1000",
    "bulk",
    "datagrams",
    "reset",
    "stop",
    "close-client",
    "close-server",
    "drain",
    "two",
];

/// Runs the cases, and prints the outcome of each: its name, `ok`, `FAILED` or `none`, and what was seen.
pub async fn run<C: Connect>(connector: &C, only: &[&str]) -> Result<()> {
    let names = CASES
        .iter()
        .filter(|name| only.is_empty() || only.contains(name));
    for name in names {
        let began = Instant::now();
        let outcome = tokio::time::timeout(Duration::from_secs(30), case(connector, name)).await;
        let (word, text) = match outcome {
            Ok(Ok(Some(text))) => ("ok", text),
            Ok(Ok(None)) => ("none", "the library has none".to_owned()),
            Ok(Err(error)) => ("FAILED", format!("{error:#}").replace(['\n', '\t'], " ")),
            Err(_) => ("FAILED", "no end within 30 s".to_owned()),
        };
        println!("{name}\t{word}\t{text}\t{} ms", began.elapsed().as_millis());
    }
    Ok(())
}

async fn case<C: Connect>(connector: &C, name: &str) -> Result<Option<String>> {
    let (kind, count) = name.split_once('-').unwrap_or((name, ""));
    let count = count.parse().unwrap_or(0);
    let echo = || connector.connect("/echo");
    match kind {
        "protocol" => {
            let session = echo().await?;
            let Some(protocol) = session.protocol() else {
                return Ok(None);
            };
            ensure!(protocol == "echo", "{protocol}");
            return Ok(Some(format!("{protocol}, {}", session.dialect())));
        }
        "bi" => bidirectional(&echo().await?, count).await?,
        "uni" => unidirectional(&echo().await?, count).await?,
        "open" => opened(&connector.connect(&format!("/open/{count}")).await?, count).await?,
        "bulk" => bulk(&echo().await?).await?,
        "datagrams" => return Ok(Some(datagrams(&echo().await?).await?)),
        "reset" => reset(&echo().await?).await?,
        "stop" => stop(&echo().await?).await?,
        "close" if name == "close-client" => {
            let session = echo().await?;
            bidirectional(&session, 1).await?;
            session.close(7, "bye");
            let last = connector.connect("/last").await?;
            let reason = last.accept_uni().await?.read_all().await?;
            let reason = String::from_utf8_lossy(&reason).into_owned();
            ensure!(reason == "7 bye", "the server saw {reason:?}");
        }
        "close" => {
            let session = connector.connect("/close").await?;
            let (mut send, _receive) = session.open_bi().await?;
            send.write_all(b"x").await?;
            let reason = session.closed().await;
            ensure!(reason == "9 server", "the client saw {reason:?}");
        }
        "drain" => {
            let session = connector.connect("/drain").await?;
            if session.draining().await.is_none() {
                return Ok(None);
            }
            bidirectional(&session, 1).await?;
        }
        "two" => {
            let sessions = match connector.two().await {
                Some(sessions) => sessions?,
                None => [echo().await?, echo().await?],
            };
            let [first, second] = &sessions;
            tokio::try_join!(bidirectional(first, 50), bidirectional(second, 50))?;
            tokio::try_join!(unidirectional(first, 50), unidirectional(second, 50))?;
            first.close(0, "");
            bidirectional(second, 5).await?;
        }
        other => bail!("unknown case {other}"),
    }
    Ok(Some(String::new()))
}

async fn bidirectional<S: Session>(session: &S, count: usize) -> Result<()> {
    let mut tasks = tokio::task::JoinSet::new();
    for index in 0..count {
        let (mut send, mut receive) = session.open_bi().await?;
        tasks.spawn(async move {
            let text = format!("stream {index}");
            send.write_all(text.as_bytes()).await?;
            send.finish().await;
            let back = receive.read_all().await?;
            ensure!(back == text.as_bytes(), "another echo");
            Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(())
}

async fn unidirectional<S: Session>(session: &S, count: usize) -> Result<()> {
    let sender = session.clone();
    let sending = tokio::spawn(async move {
        for index in 0..count {
            let mut send = sender.open_uni().await?;
            send.write_all(format!("stream {index}").as_bytes()).await?;
            send.finish().await;
        }
        anyhow::Ok(())
    });
    let mut seen = BTreeSet::new();
    for _ in 0..count {
        seen.insert(session.accept_uni().await?.read_all().await?);
    }
    sending.await??;
    ensure!(seen.len() == count, "{} of {count} streams", seen.len());
    Ok(())
}

async fn opened<S: Session>(session: &S, count: usize) -> Result<()> {
    let echoer = session.clone();
    let echo = tokio::spawn(async move {
        for _ in 0..count {
            let (mut send, mut receive) = echoer.accept_bi().await?;
            tokio::spawn(async move {
                let all = receive.read_all().await?;
                send.write_all(&all).await?;
                send.finish().await;
                anyhow::Ok(())
            });
        }
        anyhow::Ok(())
    });
    let mut seen = BTreeSet::new();
    for _ in 0..=count {
        let text = session.accept_uni().await?.read_all().await?;
        seen.insert(String::from_utf8_lossy(&text).into_owned());
    }
    echo.await??;
    ensure!(
        seen.len() == count + 1 && seen.contains("failed 0"),
        "{} streams",
        seen.len()
    );
    Ok(())
}

async fn bulk<S: Session>(session: &S) -> Result<()> {
    const SIZE: usize = 10 * 1024 * 1024;
    let (mut send, mut receive) = session.open_bi().await?;
    let writing = tokio::spawn(async move {
        let part: Vec<u8> = (0..64 * 1024).map(|at| (at % 251) as u8).collect();
        for _ in 0..SIZE / part.len() {
            send.write_all(&part).await?;
        }
        send.finish().await;
        anyhow::Ok(())
    });
    let back = receive.read_all().await?;
    writing.await??;
    ensure!(back.len() == SIZE, "{} bytes", back.len());
    let is_equal = |(at, byte): (usize, &u8)| usize::from(*byte) == at % (64 * 1024) % 251;
    ensure!(back.iter().enumerate().all(is_equal), "other bytes");
    Ok(())
}

async fn datagrams<S: Session>(session: &S) -> Result<String> {
    let mut seen = BTreeSet::new();
    for index in 0..50_u8 {
        session.send_datagram(vec![index; 100])?;
        let wait = Duration::from_millis(50);
        if let Ok(payload) = tokio::time::timeout(wait, session.datagram()).await {
            let payload = payload?;
            ensure!(payload.len() == 100, "{} bytes", payload.len());
            seen.insert(payload[0]);
        }
    }
    ensure!(seen.len() > 40, "{} of 50 came back", seen.len());
    Ok(format!("{} of 50", seen.len()))
}

async fn reset<S: Session>(session: &S) -> Result<()> {
    let (mut send, mut receive) = session.open_bi().await?;
    send.write_all(b"x").await?;
    receive.read().await?;
    send.reset(77);
    loop {
        match receive.read().await {
            Ok(Some(_)) => {}
            Ok(None) => bail!("an end"),
            Err(broken) => {
                ensure!(broken.code == Some(77), "{broken}");
                return Ok(());
            }
        }
    }
}

async fn stop<S: Session>(session: &S) -> Result<()> {
    let (mut send, mut receive) = session.open_bi().await?;
    send.write_all(b"x").await?;
    receive.read().await?;
    receive.stop(78);
    loop {
        if let Err(broken) = send.write_all(b"y").await {
            ensure!(broken.code == Some(78), "{broken}");
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
