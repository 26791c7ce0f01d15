//! Streams, datagrams and the end of sessions.

use courser_webtransport_tokio::{
    ApplicationCode, CloseReason, Closed, Config, ConnectError, Dialect, Limits, ReadError,
    Session, SessionEnded, Unavailable, WriteError, connect, upgrade,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt};

use crate::{serve, serve_until, session, session_with, wish, within};

#[tokio::test]
async fn streams_of_both_ends_carry_bytes_in_both_directions() {
    let (_pair, near, far) = session().await;
    assert_eq!(near.dialect(), Dialect::Draft16);
    assert_eq!(near.id(), far.id());
    for (opener, accepter) in [(&near, &far), (&far, &near)] {
        let (mut send, mut receive) = within(opener.open_bi()).await.expect("open");
        send.write_all(b"question").await.expect("open");
        send.finish().expect("open");
        let (mut back, mut arrived) = within(accepter.accept_bi()).await.expect("open");
        let question = within(arrived.read_to_end(100)).await.expect("whole");
        assert_eq!(question, b"question");
        // With tokio's traits.
        AsyncWriteExt::write_all(&mut back, b"answer")
            .await
            .expect("open");
        back.shutdown().await.expect("open");
        let mut answer = String::new();
        within(receive.read_to_string(&mut answer))
            .await
            .expect("whole");
        assert_eq!(answer, "answer");

        let mut send = within(opener.open_uni()).await.expect("open");
        send.write_all(b"news").await.expect("open");
        drop(send);
        let mut receive = within(accepter.accept_uni()).await.expect("open");
        let news = within(receive.read_to_end(100)).await.expect("whole");
        assert_eq!(news, b"news");
    }
}

/// draft-ietf-webtrans-http3-16 §4.5; WT-h3-066, WT-h3-067.
#[tokio::test]
async fn datagrams_arrive_alone_in_batches_and_empty() {
    let (_pair, near, far) = session().await;
    assert!(near.datagrams().max_size().expect("negotiated") > 1000);
    near.datagrams().send(b"ping").expect("sent");
    let datagram = within(far.datagrams().receive()).await;
    assert_eq!(datagram.expect("open"), "ping");
    let mut batch = vec!["a".into(), "b".into(), "c".into()];
    far.datagrams().send_many(&mut batch).expect("sent");
    let mut received = Vec::new();
    while received.len() < 3 {
        let more = within(near.datagrams().receive_many(&mut received, 10)).await;
        more.expect("open");
    }
    assert_eq!(received, ["a", "b", "c"]);
    near.datagrams().send(b"").expect("sent");
    let datagram = within(far.datagrams().receive()).await;
    assert_eq!(datagram.expect("open"), "");
}

#[tokio::test]
async fn codes_of_streams_arrive_at_the_peer() {
    let (_pair, near, far) = session().await;
    let (mut send, mut receive) = within(near.open_bi()).await.expect("open");
    send.write_all(b"x").await.expect("open");
    let (mut back, mut arrived) = within(far.accept_bi()).await.expect("open");
    send.reset(100_000).expect("open");
    let error = loop {
        match within(arrived.read_chunk(10)).await {
            Ok(chunk) => assert_eq!(chunk.expect("no end"), "x"),
            Err(error) => break error,
        }
    };
    assert_eq!(error, ReadError::Reset(Some(ApplicationCode(100_000))));
    receive.stop(7).expect("open");
    let stopped = within(back.stopped()).await;
    assert_eq!(stopped, Ok(Some(ApplicationCode(7))));
    let error = within(back.write(b"y")).await.expect_err("stopped");
    assert_eq!(error, WriteError::Stopped(Some(ApplicationCode(7))));
}

/// A stream that is reset before anything but its header was sent is delivered.
#[tokio::test]
async fn streams_that_are_reset_at_once_are_accepted() {
    let (_pair, near, far) = session().await;
    let mut send = within(near.open_uni()).await.expect("open");
    send.reset(3).expect("open");
    let mut receive = within(far.accept_uni()).await.expect("open");
    let error = within(receive.read_chunk(1)).await.expect_err("reset");
    assert_eq!(error, ReadError::Reset(Some(ApplicationCode(3))));
}

async fn closes(closer: &Session, other: &Session) {
    let (mut send, _receive) = within(other.open_bi()).await.expect("open");
    closer.close(7, "bye");
    closer.close(8, "too late");
    let reason = CloseReason::new(7, "bye");
    assert_eq!(within(closer.closed()).await, Closed::Local(reason.clone()));
    let closed = Closed::Peer(reason);
    assert_eq!(within(other.closed()).await, closed);
    assert_eq!(other.close_reason(), Some(closed.clone()));
    let ended = SessionEnded(closed.clone());
    assert_eq!(within(other.open_uni()).await.expect_err("ended"), ended);
    assert_eq!(within(other.accept_bi()).await.expect_err("ended"), ended);
    let error = within(send.write(b"late")).await.expect_err("ended");
    assert_eq!(error, WriteError::SessionEnded(closed));
}

#[tokio::test]
async fn either_end_closes_with_a_code_and_a_message() {
    let (pair, near, far) = session().await;
    closes(&near, &far).await;
    // The connection continues, and has another session.
    let next = within(connect(&pair.client, wish()))
        .await
        .expect("accepted");
    assert_ne!(next.id(), near.id());
    let (_pair, near, far) = session().await;
    closes(&far, &near).await;
}

#[tokio::test]
async fn the_last_handle_closes_the_session() {
    let (_pair, near, far) = session().await;
    let clone = near.clone();
    let stream = within(near.open_uni()).await.expect("open");
    drop(near);
    drop(clone);
    assert_eq!(far.close_reason(), None);
    drop(stream);
    let closed = within(far.closed()).await;
    assert_eq!(closed, Closed::Peer(CloseReason::default()));
}

#[tokio::test]
async fn draining_is_told() {
    let (_pair, near, far) = session().await;
    far.drain();
    within(near.draining()).await;
    assert_eq!(near.close_reason(), None);
}

/// draft-ietf-webtrans-http3-16 §4.7. The server waits for the end of the session.
#[tokio::test]
async fn a_server_that_drains_asks_for_the_end_of_its_sessions() {
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let (pair, serving) = serve_until(
        [Config::new(), Config::new()],
        move |mut request| {
            let sender = sender.clone();
            async move {
                let upgrade = upgrade(&mut request);
                let accepted =
                    upgrade.accept(|session| async move { sender.send(session).is_ok() });
                accepted.await
            }
        },
        async { drop(stopped.await) },
    )
    .await;
    let near = within(connect(&pair.client, wish())).await;
    let near = near.expect("accepted");
    let far = within(receiver.recv()).await.expect("accepted");
    stop.send(()).expect("the server waits");
    within(near.draining()).await;
    within(far.draining()).await;
    // The session goes on, and no other one begins.
    let mut send = within(near.open_uni()).await.expect("open");
    send.write_all(b"the rest").await.expect("open");
    drop(send);
    let mut receive = within(far.accept_uni()).await.expect("open");
    let rest = within(receive.read_to_end(100)).await.expect("whole");
    assert_eq!(rest, b"the rest");
    let error = within(connect(&pair.client, wish())).await;
    assert!(matches!(
        error,
        Err(ConnectError::Unavailable(Unavailable::GoingAway))
    ));
    assert!(!serving.is_finished());
    near.close(0, "");
    let served = within(serving).await.expect("no panic");
    assert!(served.is_ok(), "{served:?}");
}

#[tokio::test]
async fn a_lost_connection_ends_the_session() {
    let (pair, near, far) = session().await;
    pair.client.quic().close(0_u32.into(), b"");
    assert_eq!(within(near.closed()).await, Closed::ConnectionLost);
    assert_eq!(within(far.closed()).await, Closed::ConnectionLost);
}

/// Bytes and streams beyond the first limits of a session wait for credit, and get it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flow_control_of_sessions_is_renewed() {
    let mut config = Config::new();
    config.limits = Limits {
        max_data: 1000,
        max_streams_bidi: 1,
        max_streams_uni: 2,
    };
    let (_pair, near, far) = session_with([config.clone(), config]).await;
    let session = far.clone();
    let reader = tokio::spawn(async move {
        let mut total = 0;
        for _ in 0..20 {
            let mut receive = session.accept_uni().await.expect("open");
            total += receive.read_to_end(10_000).await.expect("whole").len();
        }
        total
    });
    for _ in 0..20 {
        let mut send = within(near.open_uni()).await.expect("open");
        within(send.write_all(&[7; 3000])).await.expect("open");
        send.finish().expect("open");
    }
    assert_eq!(within(reader).await.expect("no panic"), 60_000);
    // A stream beyond the limit waits, and giving up loses no credit.
    let (_send, _receive) = within(near.open_bi()).await.expect("open");
    let waiting = std::time::Duration::from_millis(50);
    assert!(tokio::time::timeout(waiting, near.open_bi()).await.is_err());
}

/// The bytes of a stream that nobody reads occupy most of the window of the session, and another one goes on.
#[tokio::test]
async fn streams_that_nobody_reads_leave_credit_to_others() {
    let mut config = Config::new();
    config.limits = Limits {
        max_data: 4000,
        max_streams_bidi: 8,
        max_streams_uni: 8,
    };
    let (_pair, near, far) = session_with([config.clone(), config]).await;
    let mut unread = within(near.open_uni()).await.expect("open");
    within(unread.write_all(&[1; 3000])).await.expect("open");
    let mut send = within(near.open_uni()).await.expect("open");
    let writer = tokio::spawn(async move {
        send.write_all(&[2; 20_000]).await.expect("open");
    });
    let _waiting = within(far.accept_uni()).await.expect("open");
    let mut receive = within(far.accept_uni()).await.expect("open");
    let read = within(receive.read_to_end(20_000)).await.expect("whole");
    assert_eq!(read, [2; 20_000]);
    within(writer).await.expect("no panic");
}

const LITTLE_DATA: Limits = Limits {
    max_data: 4000,
    max_streams_bidi: 100,
    max_streams_uni: 100,
};

async fn session_with_little_data() -> (crate::Pair, Session, Session) {
    let mut config = Config::new();
    config.limits = LITTLE_DATA;
    session_with([config.clone(), config]).await
}

/// The peer counts the final size of a stream (RFC 9000 §4.5), which is less than what was written before the reset.
#[tokio::test]
async fn bytes_that_a_reset_withdraws_use_no_credit() {
    let (_pair, near, far) = session_with_little_data().await;
    let reader = tokio::spawn(async move {
        for _ in 0..20 {
            let mut receive = far.accept_uni().await.expect("open");
            let error = receive.read_to_end(10_000).await;
            assert!(error.is_err(), "{error:?}");
        }
        far
    });
    for _ in 0..20 {
        let mut send = within(near.open_uni()).await.expect("open");
        within(send.write_all(&[7; 1500])).await.expect("credit");
        send.reset(1).expect("open");
    }
    let _far = within(reader).await.expect("no panic");
}

/// draft-ietf-webtrans-http3-16 §5.4.
#[tokio::test]
async fn unread_bytes_of_a_reset_stream_are_credited() {
    let (_pair, near, far) = session_with_little_data().await;
    for _ in 0..20 {
        let mut send = within(near.open_uni()).await.expect("open");
        within(send.write_all(&[7; 100])).await.expect("credit");
        let mut receive = within(far.accept_uni()).await.expect("open");
        let read = within(receive.read_chunk(100)).await.expect("open");
        assert_eq!(read.map(|read| read.len()), Some(100));
        within(send.write_all(&[7; 1400])).await.expect("credit");
        within(near.quic().ping()).await.expect("open");
        send.reset(1).expect("open");
        // The reset has arrived when what follows it is acknowledged.
        within(near.quic().ping()).await.expect("open");
        let error = within(receive.read_chunk(100)).await.expect_err("reset");
        assert_eq!(error, ReadError::Reset(Some(ApplicationCode(1))));
    }
}

/// Both halves of what has arrived and what is still on its way count, although nobody reads them.
#[tokio::test]
async fn bytes_of_streams_that_are_left_are_credited() {
    let (_pair, near, far) = session_with_little_data().await;
    for round in 0..40 {
        let mut send = within(near.open_uni()).await.expect("open");
        within(send.write_all(&[7; 1500])).await.expect("credit");
        let mut receive = within(far.accept_uni()).await.expect("open");
        if round % 2 == 0 {
            within(receive.read_chunk(100)).await.expect("open");
        }
        match round % 4 {
            // The size is known, or follows with the reset that answers the stop.
            0 => drop(receive),
            1 => {
                receive.stop(3).expect("open");
                assert_eq!(receive.stop(3), Err(ReadError::ClosedStream));
                let error = within(receive.read_chunk(1)).await.expect_err("stopped");
                assert_eq!(error, ReadError::ClosedStream);
            }
            2 => {
                send.finish().expect("open");
                drop(receive);
            }
            _ => {
                // More arrives after the stop.
                receive.stop(3).expect("open");
                let stopped = within(async { while send.write(&[7; 100]).await.is_ok() {} });
                stopped.await;
            }
        }
    }
}

/// Streams that stay open take most of the limit of the session, and the rest is renewed for each that ends.
#[tokio::test]
async fn streams_that_stay_open_leave_credit_to_others() {
    let mut config = Config::new();
    config.limits = Limits {
        max_data: 4000,
        max_streams_bidi: 40,
        max_streams_uni: 40,
    };
    let (_pair, near, far) = session_with([config.clone(), config]).await;
    let mut open = Vec::new();
    for _ in 0..39 {
        let stream = within(near.open_uni()).await.expect("open");
        open.push((stream, within(far.accept_uni()).await.expect("open")));
    }
    for _ in 0..5 {
        drop(within(near.open_uni()).await.expect("open"));
        drop(within(far.accept_uni()).await.expect("open"));
    }
}

/// The headers of streams are read by several tasks, which end in any order. Nobody reads what would come back, so that the
/// halves are stopped while the headers are on their way.
#[tokio::test]
async fn streams_that_have_arrived_are_accepted_in_the_order_of_opening() {
    let (_pair, near, far) = session().await;
    for opener in [&near, &far] {
        let accepter = if std::ptr::eq(opener, &near) {
            &far
        } else {
            &near
        };
        let mut open = Vec::new();
        for _ in 0..100 {
            open.push(within(opener.open_uni()).await.expect("open"));
            open.push(within(opener.open_bi()).await.expect("open").0);
        }
        // All have arrived when the last bytes of each are acknowledged.
        for send in &mut open {
            send.write_all(b"x").await.expect("open");
            send.finish().expect("open");
        }
        for send in &open {
            assert_eq!(within(send.stopped()).await, Ok(None));
        }
        let mut last = None;
        for _ in 0..100 {
            let uni = within(accepter.accept_uni()).await.expect("open").id();
            let bi = within(accepter.accept_bi()).await.expect("open").0.id();
            let before = last.replace((uni, bi));
            assert!(before.is_none_or(|before| before.0 < uni && before.1 < bi));
        }
    }
}

/// K589, WT-h3-012. The streams arrive with the response, before the task that waits for it runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn streams_of_a_server_may_arrive_with_its_response() {
    let pair = serve([Config::new(), Config::new()], |mut request| async move {
        let upgrade = upgrade(&mut request);
        let accepted = upgrade.accept(|session| async move {
            for _ in 0..300 {
                let mut send = session.open_uni().await.expect("open");
                send.write_all(b"x").await.expect("open");
            }
            session.closed().await
        });
        accepted.await
    })
    .await;
    for _ in 0..10 {
        let session = within(connect(&pair.client, wish())).await;
        let session = session.expect("accepted");
        for _ in 0..300 {
            let mut receive = within(session.accept_uni()).await.expect("open");
            let all = within(receive.read_to_end(10)).await.expect("whole");
            assert_eq!(all, b"x");
        }
        session.close(0, "");
        within(session.closed()).await;
    }
}

/// K587. The newest datagrams are kept.
#[tokio::test]
async fn datagrams_that_nobody_receives_are_bounded() {
    let (_pair, near, far) = session().await;
    let dropped = || far.datagrams().dropped();
    let waiting = async {
        let mut sent = 0_u32;
        while dropped() == 0 {
            near.datagrams().send(&sent.to_be_bytes()).expect("sent");
            sent += 1;
            tokio::task::yield_now().await;
        }
        sent
    };
    assert!(within(waiting).await > 1024);
    let mut received = Vec::new();
    within(far.datagrams().receive_many(&mut received, 10_000))
        .await
        .expect("open");
    assert!(received.len() <= 1024, "{}", received.len());
}
