//! Streams of extensions that name a session, and groups of extensions.

use std::time::{Duration, Instant};

use courser::{Connection, ReadError, SendStream, Side, StreamId, h3};

use super::{Pair, get, pair, within};

const UNI: u64 = 0x54;
const BIDI: u64 = 0x41;
const OTHER: u64 = 0x7a11;
const UNKNOWN: h3::Code = h3::Code::from_value(0x3994_bd84);
const OVER: h3::Code = h3::Code::from_value(0x170d_7b68);
const SESSION: StreamId = StreamId::from_value(0);

fn config(side: Side) -> h3::Config {
    let sessions = h3::Extensions::new()
        .named("sessions")
        .setting(0x2c7c_f000, 1)
        .and_then(|it| it.unidirectional_stream(UNI))
        .and_then(|it| it.bidirectional_stream(BIDI))
        .expect("unused numbers")
        .announced_by(0x2c7c_f000)
        .announced_by(0x2b60_3742)
        .by_session(h3::SessionCodes {
            unknown: UNKNOWN,
            over: OVER,
        })
        .grant_streams(1024, 1024);
    let other = h3::Extensions::new()
        .named("other")
        .unidirectional_stream(OTHER)
        .expect("unused number");
    let mut config = h3::Config::new(side);
    config.extensions = sessions.and(other).expect("unused numbers");
    config
}

/// Both ends with the same groups, and a session of the first request.
struct Ends {
    _pair: Pair,
    client: h3::Client,
    server: h3::ServerConnection,
}

async fn ends() -> Ends {
    let pair = pair();
    let (client, server) = pair.connect().await;
    let client = h3::Client::with_config(client, config(Side::Client));
    let server = h3::ServerConnection::new(server, config(Side::Server));
    // Reads the bidirectional streams of the client.
    crate::common::spawn({
        let server = server.clone();
        async move {
            while let Ok(unresolved) = server.accept().await {
                crate::common::spawn(async move { drop(unresolved.resolve().await) });
            }
        }
    });
    Ends {
        _pair: pair,
        client,
        server,
    }
}

impl Ends {
    fn quic(&self) -> &Connection {
        self.client.quic()
    }

    fn sessions(&self) -> h3::Extension {
        let group = self.server.extension().group("sessions");
        group.expect("a group of this name")
    }

    /// Opens a unidirectional stream with these bytes.
    async fn raw(&self, bytes: &[u8]) -> SendStream {
        let mut send = within(self.quic().open_uni()).await.expect("allowed");
        send.write_all(bytes).await.expect("open");
        send
    }

    fn is_open(&self) -> bool {
        self.quic().close_reason().is_none()
    }
}

async fn stopped(send: &SendStream) -> Option<u64> {
    let code = within(send.stopped()).await.expect("open");
    code.map(|code| code.into_inner())
}

/// A browser opens streams before the task that accepts them runs: none is lost or counted (K17).
/// draft-ietf-webtrans-http3-16 §4.6; WT-h3-071.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_streams_wait_for_a_task_that_accepts_late() {
    let ends = ends().await;
    let session = ends.sessions().session(SESSION).expect("new");
    within(ends.client.extension().announced())
        .await
        .expect("supported");
    let mut open = Vec::new();
    for n in 0..1000_u32 {
        let mut send = ends.raw(&[0x40, 0x54, 0x00]).await;
        send.write_all(&n.to_be_bytes()).await.expect("open");
        send.finish().expect("open");
        let (mut send, receive) = within(ends.quic().open_bi()).await.expect("allowed");
        let bytes = [&[0x40, 0x41, 0x00][..], &n.to_be_bytes()].concat();
        send.write_all(&bytes).await.expect("open");
        open.push((send, receive));
    }
    for is_bidirectional in [false, true] {
        let mut seen = [false; 1000];
        for _ in 0..1000 {
            let accepted = match is_bidirectional {
                true => within(session.accept_bi()).await,
                false => within(session.accept_uni()).await,
            };
            let mut stream = accepted.expect("open").expect("a stream");
            assert_eq!(stream.send.is_some(), is_bidirectional);
            let mut number = Vec::new();
            while number.len() < 4 {
                let chunk = within(stream.receive.read_chunk(4)).await;
                number.extend(chunk.expect("no reset").expect("more bytes"));
            }
            let number: [u8; 4] = number.try_into().expect("four bytes");
            let index = u32::from_be_bytes(number) as usize;
            assert!(!std::mem::replace(&mut seen[index], true), "{index} twice");
        }
    }
    assert!(ends.is_open());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_do_not_take_the_streams_of_each_other() {
    let ends = ends().await;
    let client = ends.client.extension();
    let other = client.group("other").expect("a group of this name");
    assert!(client.group("nobody").is_none());
    let announced = within(ends.sessions().announced()).await;
    assert_eq!(announced.expect("supported"), [(0x2c7c_f000, 1)]);
    assert_eq!(within(other.announced()).await.expect("supported"), []);
    let server = ends.server.extension().group("other").expect("a group");
    let first = ends.sessions().session(SESSION).expect("new");
    let second = ends
        .sessions()
        .session(StreamId::from_value(4))
        .expect("new");
    assert!(ends.sessions().session(SESSION).is_none(), "twice");
    // A session that the client has registered, whose number its streams name.
    let near = client.session(StreamId::from_value(4)).expect("new");
    let send = within(near.open_uni(UNI)).await.expect("supported");
    let (bidi, _receive) = within(near.open_bi(BIDI)).await.expect("supported");
    let send_other = within(other.open_uni(OTHER)).await.expect("supported");
    let first_send = ends.raw(&[0x40, 0x54, 0x00]).await;
    let accepted = within(server.accept()).await.expect("a stream");
    assert_eq!(accepted.id(), send_other.id());
    for (session, expected) in [(&second, &send), (&first, &first_send)] {
        let accepted = within(session.accept_uni()).await.expect("open");
        assert_eq!(accepted.expect("a stream").id(), expected.id());
    }
    let accepted = within(second.accept_bi()).await.expect("open");
    assert_eq!(accepted.expect("a stream").id(), bidi.id());
    // Streams of the server.
    let far = within(second.open_uni(UNI)).await.expect("supported");
    let accepted = within(near.accept_uni()).await.expect("open");
    assert_eq!(accepted.expect("a stream").id(), far.id());
}

/// The number of a session arrives byte by byte, or never, and delays no other stream.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_may_arrive_byte_by_byte_and_late() {
    let ends = ends().await;
    let sessions = ends.sessions();
    let session = sessions.session(StreamId::from_value(1000)).expect("new");
    let mut endless = Vec::new();
    for _ in 0..50 {
        endless.push(ends.raw(&[0x40, 0x54, 0xc0, 0x00]).await);
    }
    let mut send = within(ends.quic().open_uni()).await.expect("allowed");
    for byte in [0x40, 0x54, 0xc0, 0, 0, 0, 0, 0, 0x03, 0xe8, 7] {
        send.write_all(&[byte]).await.expect("open");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let accepted = within(session.accept_uni()).await.expect("open");
    let mut stream = accepted.expect("a stream");
    assert_eq!(stream.id(), send.id());
    let rest = within(stream.receive.read_chunk(10)).await.expect("open");
    assert_eq!(rest.as_deref(), Some(&[7][..]));
    // A stream that ends before its number is dropped.
    let mut cut = ends.raw(&[0x40, 0x54, 0x43]).await;
    cut.finish().expect("open");
    let mut reset = ends.raw(&[0x40, 0x54, 0x43]).await;
    reset.reset(1_u32.into()).expect("open");
    // The others are still read.
    ends.raw(&[0x40, 0x54, 0x43, 0xe8]).await;
    assert!(within(session.accept_uni()).await.expect("open").is_some());
    assert!(ends.is_open());
}

/// K585: streams of unknown sessions wait, at most 16 of them and for 5 s. draft-ietf-webtrans-http3-16 §4, §4.6; WT-h3-012,
/// WT-h3-050, WT-h3-069, MT-003.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_of_unknown_sessions_wait_in_a_bounded_place() {
    let ends = ends().await;
    let began = Instant::now();
    let mut waiting = Vec::new();
    for _ in 0..16 {
        waiting.push(ends.raw(&[0x40, 0x54, 0x08]).await);
    }
    // They are read by tasks of their own; all have arrived when a later answer has.
    within(async {
        loop {
            let extra = ends.raw(&[0x40, 0x54, 0x0c]).await;
            let refused = tokio::time::timeout(Duration::from_millis(300), stopped(&extra));
            if let Ok(code) = refused.await {
                break assert_eq!(code, Some(UNKNOWN.value()));
            }
            waiting.push(extra);
        }
    })
    .await;
    let session = ends
        .sessions()
        .session(StreamId::from_value(8))
        .expect("new");
    let accepted = within(session.accept_uni()).await.expect("open");
    assert!(accepted.is_some(), "it has waited for its session");
    // There is room again, until the time is over.
    let late = ends.raw(&[0x40, 0x54, 0x14]).await;
    assert_eq!(stopped(&late).await, Some(UNKNOWN.value()));
    assert!(began.elapsed() >= Duration::from_secs(5), "too early");
    assert!(ends.is_open());
}

/// draft-ietf-webtrans-http3-16 §3.2, §4, §6; WT-h3-039, WT-h3-049, WT-h3-104.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_a_session_refuses_its_streams() {
    let ends = ends().await;
    let session = ends.sessions().session(SESSION).expect("new");
    let first = ends.raw(&[0x40, 0x54, 0x00]).await;
    let accepted = within(session.accept_uni()).await.expect("open");
    let mut accepted = accepted.expect("a stream");
    // A stream that waits, with both directions.
    let (bidi, mut receive) = within(ends.quic().open_bi()).await.expect("allowed");
    let mut bidi = bidi;
    bidi.write_all(&[0x40, 0x41, 0x00]).await.expect("open");
    let waiting = within(ends.quic().open_bi()).await.expect("allowed");
    let session = std::sync::Arc::new(session);
    let pending = crate::common::spawn({
        let session = session.clone();
        async move { session.accept_uni().await }
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    session.end();
    let ended = within(pending).await.expect("no panic").expect("open");
    assert!(ended.is_none(), "the queue has ended");
    assert_eq!(stopped(&bidi).await, Some(OVER.value()));
    let code = u32::try_from(OVER.value()).expect("fits").into();
    let reset = within(receive.read(&mut [0; 10])).await;
    assert_eq!(reset, Err(ReadError::Reset(code)));
    // Those that follow, more than the burst of K17.
    for _ in 0..600 {
        let late = ends.raw(&[0x40, 0x54, 0x00]).await;
        assert_eq!(stopped(&late).await, Some(OVER.value()));
    }
    // A request that is refused before it is a session.
    ends.sessions().refuse_session(StreamId::from_value(12));
    let refused = ends.raw(&[0x40, 0x54, 0x0c]).await;
    assert_eq!(stopped(&refused).await, Some(OVER.value()));
    assert!(ends.sessions().session(SESSION).is_none(), "over");
    // Accepted streams continue.
    let mut first = first;
    first.write_all(b"on").await.expect("open");
    let chunk = within(accepted.receive.read_chunk(10)).await;
    assert_eq!(chunk.expect("open").as_deref(), Some(&b"on"[..]));
    assert!(ends.is_open());
    drop(waiting);
}

/// A340: streams of sessions that never come.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_streams_of_unknown_sessions_ends_the_connection() {
    let ends = ends().await;
    let quic = ends.quic().clone();
    let flood = async {
        let mut opened = 0_u32;
        while opened < 100_000 {
            let Ok(mut send) = quic.open_uni().await else {
                break;
            };
            let _ = send.write_all(&[0x40, 0x54, 0x08]).await;
            let _ = send.finish();
            opened += 1;
        }
        opened
    };
    let opened = within(flood).await;
    let error = h3::Error::from(within(quic.closed()).await);
    assert_eq!(error.code(), Some(h3::Code::EXCESSIVE_LOAD), "{error}");
    assert!(opened < 10_000, "{opened} streams");
}

/// A341: streams that are reset while they wait give no credit, so that their number is bounded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_that_end_while_they_wait_give_no_credit() {
    let ends = ends().await;
    let session = ends.sessions().session(SESSION).expect("new");
    let quic = ends.quic().clone();
    let mut opened = 0_u32;
    while let Ok(Ok(mut send)) =
        tokio::time::timeout(Duration::from_millis(500), quic.open_uni()).await
    {
        send.write_all(&[0x40, 0x54, 0x00]).await.expect("open");
        tokio::task::yield_now().await;
        if opened.is_multiple_of(2) {
            send.finish().expect("open");
        } else {
            // Only some have sent their header by now.
            let _ = send.reset_at(1_u32.into(), 3);
        }
        opened += 1;
    }
    assert!((1000..3000).contains(&opened), "{opened} streams");
    assert!(ends.is_open());
    drop(session);
}

/// Session numbers are those of requests. draft-ietf-webtrans-http3-16 §4; WT-h3-009, WT-h3-048, A258.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_of_another_stream_ends_the_connection() {
    // The last is the number of a request beyond those that QUIC allows.
    for number in [&[1][..], &[2], &[3], &[0x80, 0x10, 0, 0]] {
        let ends = ends().await;
        let _send = ends.raw(&[&[0x40, 0x54], number].concat()).await;
        let error = h3::Error::from(within(ends.quic().closed()).await);
        assert_eq!(error.code(), Some(h3::Code::ID_ERROR), "{error}");
    }
}

/// A connection without extensions has no groups.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_without_claims_ends_with_the_connection() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    let client = h3::Client::new(client);
    let extension = client.extension();
    assert!(extension.group("").is_none());
    let waiting = crate::common::spawn(async move { extension.accept().await.err() });
    let server = h3::ServerConnection::new(server, h3::Config::new(Side::Server));
    let pending = client.send(get("/"));
    server.close();
    assert!(within(pending).await.is_err());
    assert!(within(waiting).await.expect("no panic").is_some());
}
