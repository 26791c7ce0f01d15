//! Futures dropped while pending, at random points: nothing is lost or duplicated, and no task
//! waits forever.

use std::time::Duration;

use crate::common::{Pair, Random, pair_with, pattern, within};
use bytes::{Buf, Bytes};
use courser::{Connection, ReadError, RecvStream, SendStream, TransportConfig, WriteError};

/// Polls a future at least once and drops it after a random time.
async fn attempt<T>(random: &mut Random, future: impl Future<Output = T>) -> Option<T> {
    let patience = random.below(4);
    let pause = async {
        match patience {
            0 => {}
            1 => tokio::task::yield_now().await,
            2 => {
                for _ in 0..5 {
                    tokio::task::yield_now().await;
                }
            }
            // Long enough for packets to come and go.
            _ => {
                let begun = std::time::Instant::now();
                while begun.elapsed() < Duration::from_micros(200) {
                    tokio::task::yield_now().await;
                }
            }
        }
    };
    tokio::select! {
        biased;
        value = future => Some(value),
        () = pause => None,
    }
}

/// Returns small limits, so that writers and readers have to wait often.
fn narrow() -> TransportConfig {
    TransportConfig {
        stream_receive_window: 4096,
        stream_receive_window_max: 4096,
        receive_window: 8192,
        receive_window_max: 8192,
        unsent_limit: 4096,
        send_buffer_max: 16_384,
        max_bidi_streams: 4,
        max_uni_streams: 4,
        ..TransportConfig::default()
    }
}

async fn write_with_cancellation(
    stream: &mut SendStream,
    data: &[u8],
    random: &mut Random,
) -> Result<(), WriteError> {
    let mut rest = Bytes::copy_from_slice(data);
    while !rest.is_empty() {
        let piece = usize::try_from(1 + random.below(9000))
            .expect("fits")
            .min(rest.len());
        if random.below(2) == 0 {
            match attempt(random, stream.write(&rest[..piece])).await {
                Some(written) => rest.advance(written?),
                None => continue,
            }
        } else {
            // The chunks show what was taken, even if the future was dropped.
            let middle = piece / 2;
            let mut chunks = [rest.slice(..middle), rest.slice(middle..piece)];
            if let Some(result) = attempt(random, stream.write_all_chunks(&mut chunks)).await {
                result?;
            }
            let left: usize = chunks.iter().map(Bytes::len).sum();
            rest.advance(piece - left);
        }
    }
    stream.finish().expect("not finished");
    Ok(())
}

async fn read_with_cancellation(
    stream: &mut RecvStream,
    random: &mut Random,
) -> Result<Vec<u8>, ReadError> {
    let mut all = Vec::new();
    let mut buffer = vec![0; 5000];
    let mut places: [Bytes; 3] = Default::default();
    loop {
        let limit = usize::try_from(1 + random.below(5000)).expect("fits");
        let done = match random.below(3) {
            0 => match attempt(random, stream.read(&mut buffer[..limit])).await {
                Some(Ok(Some(read))) => {
                    all.extend_from_slice(&buffer[..read]);
                    false
                }
                Some(other) => other?.is_none(),
                None => false,
            },
            1 => match attempt(random, stream.read_chunk(limit)).await {
                Some(Ok(Some(chunk))) => {
                    all.extend_from_slice(&chunk);
                    false
                }
                Some(other) => other?.is_none(),
                None => false,
            },
            _ => match attempt(random, stream.read_chunks(&mut places)).await {
                Some(Ok(Some(count))) => {
                    places[..count]
                        .iter()
                        .for_each(|chunk| all.extend_from_slice(chunk));
                    false
                }
                Some(other) => other?.is_none(),
                None => false,
            },
        };
        if done {
            return Ok(all);
        }
    }
}

async fn persist<T, F: Future<Output = T>>(random: &mut Random, mut make: impl FnMut() -> F) -> T {
    loop {
        if let Some(value) = attempt(random, make()).await {
            return value;
        }
    }
}

/// Opens streams, writes to them and waits for their end, dropping futures again and again.
async fn send_all(connection: Connection, count: u64, seed: u64) {
    let mut tasks = Vec::new();
    for index in 0..count {
        let mut random = Random(seed + index + 1);
        let mut stream = persist(&mut random, || connection.open_uni())
            .await
            .expect("connection lives");
        tasks.push(crate::common::spawn(async move {
            let data = pattern(stream.id().index(), 10_000 + random.below(30_000) as usize);
            let mut message = (data.len() as u64).to_be_bytes().to_vec();
            message.extend(data);
            write_with_cancellation(&mut stream, &message, &mut random)
                .await
                .expect("written");
            let stopped = persist(&mut random, || stream.stopped()).await;
            assert_eq!(stopped, Ok(None));
        }));
    }
    for task in tasks {
        task.await.expect("no panic");
    }
}

/// Accepts streams and checks their contents.
async fn receive_all(connection: Connection, count: u64, seed: u64) {
    let mut tasks = Vec::new();
    for index in 0..count {
        let mut random = Random(seed * 31 + index + 1);
        let mut stream = persist(&mut random, || connection.accept_uni())
            .await
            .expect("connection lives");
        assert_eq!(stream.id().index(), index, "accepted in order, each once");
        tasks.push(crate::common::spawn(async move {
            let all = read_with_cancellation(&mut stream, &mut random)
                .await
                .expect("read");
            let (len, data) = all.split_at(8);
            let len = u64::from_be_bytes(len.try_into().expect("eight bytes"));
            assert_eq!(data.len() as u64, len, "bytes lost or doubled");
            assert!(data == pattern(index, data.len()), "stream {index} differs");
        }));
    }
    for task in tasks {
        task.await.expect("no panic");
    }
}

async fn both_ways(seed: u64) {
    let pair = pair_with(narrow(), |config| config);
    let (client, server) = pair.connect().await;
    let tasks = [
        crate::common::spawn(send_all(client.clone(), 20, seed)),
        crate::common::spawn(send_all(server.clone(), 20, seed + 100)),
        crate::common::spawn(receive_all(client.clone(), 20, seed + 200)),
        crate::common::spawn(receive_all(server.clone(), 20, seed + 300)),
    ];
    for task in tasks {
        task.await.expect("no panic");
    }
    pair.finish().await;
}

#[tokio::test]
async fn streams_survive_cancellation_on_one_thread() {
    for seed in 1..4 {
        within(60, both_ways(seed * 1000)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn streams_survive_cancellation_on_several_threads() {
    for seed in 4..7 {
        within(60, both_ways(seed * 1000)).await;
    }
}

#[tokio::test]
async fn clients_that_arrive_between_accepts_are_kept() {
    let pair = pair_with(TransportConfig::default(), |config| config);
    let Pair {
        server,
        client,
        address,
        ..
    } = &pair;
    let count: u16 = 30;
    let connect = async {
        let mut connections = Vec::new();
        for _ in 0..count {
            let connecting = client.connect(*address, "localhost").expect("configured");
            connections.push(connecting.await.expect("handshake"));
        }
        connections
    };
    let accept = async {
        let mut random = Random(99);
        let mut connections = Vec::new();
        for _ in 0..count {
            let incoming = persist(&mut random, || server.accept())
                .await
                .expect("open");
            let mut connecting = incoming.accept().expect("first packet");
            // The future for the handshake data may be dropped as well.
            while attempt(&mut random, connecting.handshake_data())
                .await
                .is_none()
            {}
            connections.push(crate::common::spawn(connecting));
        }
        connections
    };
    let (clients, servers) = within(60, async { tokio::join!(connect, accept) }).await;
    assert_eq!((clients.len(), servers.len()), (count.into(), count.into()));
    for server in servers {
        server.await.expect("no panic").expect("handshake");
    }
}

#[tokio::test]
async fn waiting_for_the_end_can_be_cancelled() {
    let pair = pair_with(TransportConfig::default(), |config| config);
    let (client, server) = pair.connect().await;
    let mut random = Random(5);
    for _ in 0..100 {
        assert!(attempt(&mut random, client.closed()).await.is_none());
        assert!(
            attempt(&mut random, pair.client.wait_idle())
                .await
                .is_none()
        );
        assert!(attempt(&mut random, client.accept_bi()).await.is_none());
    }
    server.close(3u32.into(), b"");
    let error = within(10, persist(&mut random, || client.closed())).await;
    assert!(error.to_string().contains("code 3"), "{error}");
    within(10, persist(&mut random, || pair.client.wait_idle())).await;
}

#[tokio::test]
async fn abandoned_handshake_leaves_no_state() {
    let pair = pair_with(TransportConfig::default(), |config| config);
    let mut random = Random(17);
    let serve = crate::common::spawn({
        let server = pair.server.clone();
        async move {
            while let Some(incoming) = server.accept().await {
                crate::common::spawn(async move {
                    if let Ok(connection) = incoming.await {
                        connection.closed().await;
                    }
                });
            }
        }
    });
    for _ in 0..50 {
        let connecting = pair
            .client
            .connect(pair.address, "localhost")
            .expect("configured");
        attempt(&mut random, connecting).await;
    }
    within(20, pair.client.wait_idle()).await;
    pair.server.close(0u32.into(), b"");
    within(20, pair.server.wait_idle()).await;
    serve.await.expect("no panic");
}
