//! What media needs: shares, orders, deadlines, and one trait for sessions and connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use courser_quic::{Rate, TransportConfig};
use courser_webtransport_tokio::{
    self as webtransport, ApplicationCode, Closed, Config, ReadError, ReceiveHalf as _, RecvStream,
    SendHalf as _, Session, Transport, WriteError,
};

use crate::{Pair, connections, serve_on, session, session_with, wish, within};

/// Two sessions of one connection, of which the server sends at most this rate. The first two are the server's ends.
async fn two_sessions(rate: u64) -> (Pair, [Session; 2], [Session; 2]) {
    two_sessions_with(rate, Config::new()).await
}

async fn two_sessions_with(rate: u64, config: Config) -> (Pair, [Session; 2], [Session; 2]) {
    let transport = TransportConfig {
        max_send_rate: Some(Rate::from_bytes_per_second(rate)),
        ..TransportConfig::default()
    };
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let service = move |mut request| {
        let sender = sender.clone();
        async move {
            let upgrade = webtransport::upgrade(&mut request);
            let accepted = upgrade.accept(|session| async move { sender.send(session).is_ok() });
            accepted.await
        }
    };
    let configs = [config.clone(), config];
    let never = std::future::pending();
    let (pair, _) = serve_on(transport, configs, service, never).await;
    let mut near = Vec::new();
    let mut far = Vec::new();
    for _ in 0..2 {
        let session = within(webtransport::connect(&pair.client, wish())).await;
        near.push(session.expect("accepted"));
        far.push(within(receiver.recv()).await.expect("accepted"));
    }
    let ends = |mut ends: Vec<Session>| {
        let second = ends.pop().expect("two");
        [ends.pop().expect("two"), second]
    };
    (pair, ends(far), ends(near))
}

/// Reads all streams of a session, and counts bytes and streams.
fn count(session: &Session) -> [Arc<AtomicU64>; 2] {
    let counters = [Arc::default(), Arc::default()];
    let [bytes, streams]: [Arc<AtomicU64>; 2] = counters.clone();
    let session = session.clone();
    tokio::spawn(async move {
        while let Ok(mut stream) = session.accept_uni().await {
            streams.fetch_add(1, Ordering::Relaxed);
            let bytes = bytes.clone();
            tokio::spawn(async move {
                while let Ok(Some(chunk)) = stream.read_chunk(usize::MAX).await {
                    bytes.fetch_add(chunk.len() as u64, Ordering::Relaxed);
                }
            });
        }
    });
    counters
}

/// Writes on a stream for as long as it takes bytes.
fn pour(session: &Session) {
    let session = session.clone();
    tokio::spawn(async move {
        let mut stream = session.open_uni().await?;
        let chunk = Bytes::from(vec![7; 16 * 1024]);
        loop {
            stream.write_chunk(chunk.clone()).await?;
        }
        #[expect(unreachable_code, reason = "it gives the block its type")]
        Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    });
}

/// Attack A388: one of two sessions takes all it can get. draft-ietf-webtrans-http3-16 §3.4; WT-h3-045, WT-h3-047.
#[tokio::test]
async fn session_keeps_its_share_of_bytes_beside_one_that_takes_all() {
    let (_pair, [greedy, modest], [greedy_end, modest_end]) = two_sessions(4_000_000).await;
    let [greedy_bytes, _] = count(&greedy_end);
    let [modest_bytes, _] = count(&modest_end);
    for _ in 0..64 {
        pour(&greedy);
    }
    let flooding = greedy.clone();
    tokio::spawn(async move {
        while flooding.close_reason().is_none() {
            let mut batch = vec![Bytes::from(vec![0; 1000]); 8];
            let _ = flooding.datagrams().send_many(&mut batch);
            tokio::task::yield_now().await;
        }
    });
    let mut received = Vec::new();
    let datagrams = greedy_end.clone();
    let datagram_bytes = Arc::new(AtomicU64::new(0));
    let counter = datagram_bytes.clone();
    tokio::spawn(async move {
        while datagrams
            .datagrams()
            .receive_many(&mut received, 64)
            .await
            .is_some()
        {
            let bytes: usize = received.drain(..).map(|it: Bytes| it.len()).sum();
            counter.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    });
    // The other begins when the first has what it can get.
    let reaches = async |counter: &AtomicU64, bytes: u64| {
        while counter.load(Ordering::Relaxed) < bytes {
            tokio::task::yield_now().await;
        }
    };
    within(reaches(&greedy_bytes, 1_000_000)).await;
    pour(&modest);
    within(reaches(&modest_bytes, 100_000)).await;
    let sum = || {
        let greedy = greedy_bytes.load(Ordering::Relaxed) + datagram_bytes.load(Ordering::Relaxed);
        [greedy, modest_bytes.load(Ordering::Relaxed)]
    };
    let before = sum();
    within(reaches(&modest_bytes, before[1] + 2_000_000)).await;
    let after = sum();
    let [greedy_share, modest_share] = [0, 1].map(|at| after[at] - before[at]);
    assert!(
        modest_share * 100 >= 45 * (greedy_share + modest_share),
        "{modest_share} beside {greedy_share}"
    );
}

/// Attack A389: the peer allows a thousand streams at a time, and one session asks for as many as it can.
#[tokio::test]
async fn session_keeps_its_share_of_new_streams_beside_one_that_opens_all() {
    let (_pair, [greedy, modest], [greedy_end, modest_end]) = two_sessions(400_000).await;
    let [_, greedy_streams] = count(&greedy_end);
    let [_, modest_streams] = count(&modest_end);
    let open = |session: &Session| {
        let session = session.clone();
        tokio::spawn(async move {
            while let Ok(mut stream) = session.open_uni().await {
                let done = stream.write_all(b"x").await.is_ok() && stream.finish().is_ok();
                assert!(done || session.close_reason().is_some());
            }
        });
    };
    for _ in 0..64 {
        open(&greedy);
    }
    let reaches = async |counter: &AtomicU64, streams: u64| {
        while counter.load(Ordering::Relaxed) < streams {
            tokio::task::yield_now().await;
        }
    };
    within(reaches(&greedy_streams, 1500)).await;
    open(&modest);
    within(reaches(&modest_streams, 200)).await;
    let sum = || [&greedy_streams, &modest_streams].map(|it| it.load(Ordering::Relaxed));
    let before = sum();
    within(reaches(&modest_streams, before[1] + 1000)).await;
    let after = sum();
    let [greedy_share, modest_share] = [0, 1].map(|at| after[at] - before[at]);
    assert!(
        modest_share * 100 >= 45 * (greedy_share + modest_share),
        "{modest_share} beside {greedy_share}"
    );
}

/// RFC 9218 §7; WT-h3-046.
#[tokio::test]
async fn client_changes_the_urgency_of_a_running_session() {
    let (pair, [first, second], [first_end, second_end]) = two_sessions(2_000_000).await;
    let [first_bytes, _] = count(&first_end);
    let [second_bytes, _] = count(&second_end);
    for session in [&first, &second] {
        pour(session);
        pour(session);
    }
    let reaches = async |counter: &AtomicU64, bytes: u64| {
        while counter.load(Ordering::Relaxed) < bytes {
            tokio::task::yield_now().await;
        }
    };
    within(reaches(&first_bytes, 300_000)).await;
    within(reaches(&second_bytes, 300_000)).await;
    let urgent = courser_http3_tokio::Priority {
        urgency: 1,
        incremental: true,
    };
    pair.client.set_priority(second_end.id().stream(), urgent);
    // What is in the buffers of the path arrives first.
    let start = second_bytes.load(Ordering::Relaxed);
    within(reaches(&second_bytes, start + 700_000)).await;
    let [before, start] = [&first_bytes, &second_bytes].map(|it| it.load(Ordering::Relaxed));
    within(reaches(&second_bytes, start + 1_000_000)).await;
    let other = first_bytes.load(Ordering::Relaxed) - before;
    assert!(other < 100_000, "{other} of the session that waits");
}

/// MT-005, MT-006.
#[tokio::test]
async fn orders_and_groups_decide_inside_a_session() {
    let (_pair, [session, other], [end, _]) = two_sessions(500_000).await;
    let group = session.send_group();
    let mut streams = Vec::new();
    for at in 0..4_i64 {
        let mut stream = within(session.open_uni()).await.expect("open");
        stream.set_order(i64::MIN + at).expect("open");
        assert_eq!(stream.order(), Ok(i64::MIN + at));
        stream.set_group(Some(&group)).expect("open");
        let written = stream.write(&[at as u8; 12_000]).await.expect("open");
        assert!(written > 8000, "so that most have data to send");
        streams.push(stream);
    }
    let late = within(session.open_uni()).await.expect("open");
    assert_eq!(
        late.set_group(Some(&other.send_group())),
        Err(WriteError::OtherSession)
    );
    late.set_priority(1).expect("open");
    let mut late = late;
    late.write_all(&[9; 1000]).await.expect("open");
    late.finish().expect("open");
    streams.iter_mut().for_each(|it| it.finish().expect("open"));
    let mut ends = Vec::new();
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    for _ in 0..5 {
        let mut stream = within(end.accept_uni()).await.expect("open");
        let sender = sender.clone();
        tokio::spawn(async move {
            let mut first = None;
            while let Ok(Some(chunk)) = stream.read_chunk(usize::MAX).await {
                first = first.or_else(|| chunk.first().copied());
            }
            let _ = sender.send(first);
        });
    }
    for _ in 0..5 {
        ends.push(within(receiver.recv()).await.expect("five").expect("bytes"));
    }
    let of_group: Vec<u8> = ends.iter().copied().filter(|it| *it != 9).collect();
    // The first packets left before there were orders: the first stream may be done early, but none overtakes another.
    assert!(
        of_group.ends_with(&[1]) || of_group.ends_with(&[0]),
        "{ends:?}"
    );
    let position = |of: u8| of_group.iter().position(|it| *it == of);
    assert!(position(3) < position(1), "{ends:?}");
}

/// MT-008.
#[tokio::test]
async fn late_stream_is_reset_with_its_code_and_keeps_its_session() {
    let (_pair, near, far) = session().await;
    let mut stream = within(near.open_uni()).await.expect("open");
    let deadline = Some(Duration::from_millis(20));
    stream.set_deadline(deadline, 77).expect("open");
    let mut arrived = within(far.accept_uni()).await.expect("open");
    let error = within(arrived.read_chunk(1)).await.expect_err("reset");
    assert_eq!(error, ReadError::Reset(Some(ApplicationCode(77))));
    let error = within(stream.write(b"late")).await.expect_err("late");
    assert_eq!(error, WriteError::DeadlinePassed);
}

/// MT-004, MT-009.
#[tokio::test]
async fn reset_can_keep_what_is_acknowledged_or_will_be() {
    let (_pair, near, far) = session().await;
    let mut stream = within(near.open_uni()).await.expect("open");
    let mut chunks = [
        Bytes::from_static(b"kept, "),
        Bytes::from_static(b"dropped"),
    ];
    let written = within(stream.write_chunks(&mut chunks)).await;
    assert_eq!(written, Ok(13));
    assert!(chunks.iter().all(Bytes::is_empty));
    let mut arrived = within(far.accept_uni()).await.expect("open");
    within(stream.acknowledged()).await.expect("open");
    assert!(stream.stats().expect("open").acked >= 13);
    stream.reset_at(5, 6).expect("open");
    let mut all = Vec::new();
    let error = loop {
        match within(arrived.read_chunk(100)).await {
            Ok(chunk) => all.extend_from_slice(&chunk.expect("no end")),
            Err(error) => break error,
        }
    };
    assert_eq!(error, ReadError::Reset(Some(ApplicationCode(5))));
    assert!(all.starts_with(b"kept, "), "{all:?}");
    assert_eq!(arrived.final_size(), Some(13), "it outlives the reset");
}

#[tokio::test]
async fn unread_streams_give_their_bytes_back_to_the_window() {
    let mut config = Config::new();
    config.limits.max_data = 4000;
    let (_pair, near, far) = session_with([config.clone(), config]).await;
    for number in 0..20_u32 {
        let mut stream = within(near.open_uni()).await.expect("open");
        let writing = tokio::time::timeout(Duration::from_secs(5), stream.write_all(&[1; 3000]));
        let written = writing.await;
        written
            .unwrap_or_else(|_| panic!("no credit for stream {number}"))
            .expect("open");
        let mut arrived: RecvStream = within(far.accept_uni()).await.expect("open");
        match number % 4 {
            // Stopped before its end is known, and after.
            0 => arrived.stop(1).expect("open"),
            1 => {
                stream.finish().expect("open");
                within(stream.acknowledged()).await.expect("open");
                arrived.stop(1).expect("open");
            }
            2 => {
                let part = within(arrived.read_chunk(1000)).await;
                assert!(part.expect("open").is_some());
            }
            _ => stream.reset(3).expect("open"),
        }
    }
}

#[tokio::test]
async fn bytes_that_a_reset_leaves_unsent_are_credit_again() {
    let mut config = Config::new();
    config.limits.max_data = 100_000;
    let (_pair, [near, _], [far, _]) = two_sessions_with(400_000, config).await;
    let mut unsent = 0;
    for _ in 0..20 {
        let mut stream = within(near.open_uni()).await.expect("open");
        within(stream.write_all(&[1; 40_000]))
            .await
            .expect("credit");
        stream.reset(3).expect("open");
        let mut arrived = within(far.accept_uni()).await.expect("open");
        let error = loop {
            match within(arrived.read_chunk(usize::MAX)).await {
                Ok(chunk) => assert!(chunk.is_some(), "no end"),
                Err(error) => break error,
            }
        };
        assert_eq!(error, ReadError::Reset(Some(ApplicationCode(3))));
        unsent += 40_000 - arrived.final_size().expect("reset");
    }
    assert!(unsent > 200_000, "{unsent} bytes were never sent");
}

#[tokio::test]
async fn close_tells_when_the_peer_has_it() {
    let (_pair, near, far) = session().await;
    assert!(within(near.close(4, "done")).await);
    let closed = within(far.closed()).await;
    assert!(matches!(closed, Closed::Peer(reason) if reason.message == "done"));
    let (pair, near, _far) = session().await;
    pair.client.quic().close(0u32.into(), b"");
    assert!(!within(near.close(4, "late")).await, "nobody has it");
}

/// MT-010.
#[tokio::test]
async fn rate_is_known_and_marked_while_the_application_is_the_limit() {
    let (_pair, [session, _], [end, _]) = two_sessions(2_000_000).await;
    let [bytes, _] = count(&end);
    let mut stream = within(session.open_uni()).await.expect("open");
    within(stream.write_all(b"little")).await.expect("open");
    within(stream.acknowledged()).await.expect("open");
    let estimate = session.send_rate().expect("something was acknowledged");
    assert!(estimate.is_app_limited, "{estimate:?}");
    pour(&session);
    let poured = async {
        while bytes.load(Ordering::Relaxed) < 2_000_000 {
            tokio::task::yield_now().await;
        }
    };
    within(poured).await;
    let estimate = session.send_rate().expect("much was acknowledged");
    let rate = estimate.rate.as_bytes_per_second();
    assert!(rate > 1_000_000, "{estimate:?}");
}

/// Runs both ends of a protocol on any transport.
async fn exchange<T: Transport>(near: T, far: T) {
    let group = near.send_group();
    let (mut send, mut receive) = within(near.open_bi()).await.expect("open");
    send.set_group(Some(&group)).expect("open");
    send.set_order(-5).expect("open");
    send.set_priority(3).expect("open");
    send.set_deadline(Some(Duration::from_secs(100)), 1)
        .expect("open");
    within(send.write_chunk("question".into()))
        .await
        .expect("open");
    send.finish().expect("open");
    let (back, mut arrived) = within(far.accept_bi()).await.expect("open");
    let question = within(arrived.read_chunk(100)).await.expect("open");
    assert_eq!(question.as_deref(), Some(b"question".as_slice()));
    assert_eq!(within(arrived.read_chunk(100)).await, Ok(None));
    assert_eq!(arrived.final_size(), Some(8));
    assert_eq!(
        within(send.stopped()).await,
        Ok(None),
        "all is acknowledged"
    );
    receive.stop(9).expect("open");
    assert_eq!(within(back.stopped()).await, Ok(Some(ApplicationCode(9))));

    let mut send = within(far.open_uni()).await.expect("open");
    within(send.write_chunk("xy".into())).await.expect("open");
    within(send.acknowledged()).await.expect("open");
    send.reset_at(12, 1).expect("open");
    let mut arrived = within(near.accept_uni()).await.expect("open");
    let mut all = Vec::new();
    let error = loop {
        match within(arrived.read_chunk(1)).await {
            Ok(chunk) => all.extend_from_slice(&chunk.expect("no end")),
            Err(error) => break error,
        }
    };
    assert_eq!(error, ReadError::Reset(Some(ApplicationCode(12))));
    assert_eq!(all[0], b'x');

    assert!(near.max_datagram_size().expect("negotiated") > 1000);
    near.send_datagram("now".into()).expect("sent");
    assert_eq!(within(far.receive_datagram()).await.expect("open"), "now");
    let large = Bytes::from(vec![0; 60_000]);
    let error = near
        .send_datagram(large)
        .expect_err("too large")
        .to_string();
    assert!(error.contains("60000"), "{error}");
    assert!(near.stats().data_sent >= 8 && near.close_reason().is_none());
    near.close(6, "bye");
    let closed = within(far.closed()).await;
    assert!(
        matches!(&closed, Closed::Peer(reason) if reason.message == "bye"),
        "{closed}"
    );
    assert_eq!(within(far.accept_uni()).await.expect_err("over").0, closed);
}

/// MT-002.
#[tokio::test]
async fn one_program_runs_on_quic_and_on_sessions() {
    let (near, far, _endpoints) = connections(TransportConfig::default()).await;
    assert_eq!(Transport::protocol(&near).as_deref(), Some("h3"));
    exchange(near, far).await;
    let (_pair, near, far) = session().await;
    exchange(near, far).await;
}
