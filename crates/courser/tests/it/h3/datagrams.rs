//! HTTP Datagrams and capsules (RFC 9297).

use std::convert::Infallible;

use bytes::Bytes;
use courser::h3::{Capsules, Code, Datagrams, Protocol, Received};
use courser::telemetry::{Http3Record, Record};
use courser::{ReadError, ReadToEndError, Side, TransportConfig, h3};
use http::{Request, Response};

use super::{Pair, full, get, within};
use crate::common::{pair, pair_with};

fn config(side: Side, datagrams: bool) -> h3::Config {
    let mut config = h3::Config::new(side);
    config.datagrams = datagrams;
    config.extended_connect = side == Side::Server;
    config
}

fn test_protocol() -> Protocol {
    Protocol::new("test").expect("a token")
}

fn connect_request() -> Request<()> {
    Request::connect("https://localhost/")
        .extension(test_protocol())
        .body(())
        .expect("a request")
}

/// Echoes everything on the stream of a CONNECT, datagrams as datagrams and capsules as capsules,
/// until the client has finished.
async fn echo(mut request: Request<h3::Body>) -> Response<h3::Empty> {
    let upgrade = h3::upgrade(&mut request).expect("a CONNECT");
    crate::common::spawn(async move {
        let mut capsules = Capsules::new(upgrade.await?).accept(7, 10);
        while let Some(received) = capsules.next().await? {
            match received {
                Received::Datagram(payload) => capsules.send_datagram(&payload).await?,
                Received::Capsule(capsule) => capsules.send(capsule.kind, &capsule.value).await?,
            }
        }
        Ok::<_, h3::Error>(())
    });
    Response::new(h3::Empty)
}

/// Creates a client and the echoing server, with or without support for datagrams.
async fn echoing(pair: &Pair, (client_has, server_has): (bool, bool)) -> h3::Client {
    let (client, server) = pair.connect().await;
    let service = tower::service_fn(|request| async { Ok::<_, Infallible>(echo(request).await) });
    let serving = h3::serve(server, service).config(config(Side::Server, server_has));
    crate::common::spawn(serving.into_future());
    h3::Client::with_config(client, config(Side::Client, client_has))
}

async fn capsules(client: &h3::Client) -> Capsules {
    let response = within(client.connect(connect_request())).await;
    Capsules::new(response.expect("accepted").into_body()).accept(7, 10)
}

/// Makes one more round trip, so that both ends have received each other's settings.
async fn exchange(capsules: &mut Capsules, received: Received) {
    match &received {
        Received::Datagram(payload) => capsules.send_datagram(payload).await.expect("open"),
        Received::Capsule(capsule) => {
            let sent = capsules.send(capsule.kind, &capsule.value).await;
            sent.expect("open");
        }
    }
    let back = within(capsules.next()).await.expect("open");
    assert_eq!(back, Some(received));
}

fn datagram(text: &'static str) -> Received {
    Received::Datagram(Bytes::from_static(text.as_bytes()))
}

fn capsule(kind: u64, text: &'static str) -> Received {
    let value = Bytes::from_static(text.as_bytes());
    Received::Capsule(h3::Capsule { kind, value })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_travel_in_frames_where_both_have_them() {
    let pair = pair();
    let client = echoing(&pair, (true, true)).await;
    let mut capsules = capsules(&client).await;
    for text in ["", "one", "two"] {
        exchange(&mut capsules, datagram(text)).await;
    }
    exchange(&mut capsules, capsule(7, "between")).await;
    let stats = client.quic().stats().datagrams;
    assert_eq!((stats.sent, stats.received), (3, 3));
}

/// RFC 9297 §2.1.1: not before both ends have sent the setting; §3.5: capsules instead.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_travel_in_capsules_where_one_has_none() {
    for has in [(false, true), (true, false), (false, false)] {
        let pair = pair();
        let client = echoing(&pair, has).await;
        let mut capsules = capsules(&client).await;
        for text in ["", "one", "two"] {
            exchange(&mut capsules, datagram(text)).await;
        }
        assert_eq!(client.quic().stats().datagrams.sent, 0, "{has:?}");
        assert_eq!(client.quic().stats().datagrams.received, 0, "{has:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_travel_in_capsules_where_quic_has_none() {
    let transport = TransportConfig {
        datagram_receive_buffer_size: None,
        ..TransportConfig::default()
    };
    let pair = pair_with(transport, |config| config.alpn(["test"]));
    let client = echoing(&pair, (true, true)).await;
    let mut capsules = capsules(&client).await;
    exchange(&mut capsules, datagram("over the stream")).await;
}

/// RFC 9297 §3.3: a capsule that is too long or truncated ends only its stream.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_capsules_end_their_stream() {
    let pair = pair();
    let client = echoing(&pair, (true, true)).await;
    for (bytes, code) in [
        (&[7, 11][..], Code::EXCESSIVE_LOAD),
        (&[7, 5, 0], Code::MESSAGE_ERROR),
    ] {
        let response = within(client.connect(connect_request())).await;
        let mut stream = response.expect("accepted").into_body();
        let bytes = Bytes::from_static(bytes);
        stream.write_chunk(bytes).await.expect("open");
        tokio::io::AsyncWriteExt::shutdown(&mut stream)
            .await
            .expect("open");
        let error = within(stream.read_chunk()).await.expect_err("ended");
        assert_eq!(error.code(), Some(code));
    }
    // 10 bytes are allowed, and the connection continues.
    let mut capsules = capsules(&client).await;
    exchange(&mut capsules, capsule(7, "ten  bytes")).await;
}

/// RFC 9297 §2: the request ends, the connection does not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagram_for_a_request_without_a_use_for_it_ends_that_request() {
    let pair = pair();
    let (raw, server) = pair.connect().await;
    let service = super::boxed(|request: Request<h3::Body>| async move {
        // The service does not touch datagrams, and reads the body to its end.
        let body = http_body_util::BodyExt::collect(request.into_body()).await;
        let len = body.map_or(0, |body| body.to_bytes().len());
        Ok::<_, Infallible>(Response::new(full(format!("{len}"))))
    });
    let serving = h3::serve(server, service).config(config(Side::Server, true));
    crate::common::spawn(serving.into_future());
    // GET https://localhost/ by the static table; the stream stays open.
    let (mut send, mut receive) = raw.open_bi().await.expect("allowed");
    let mut head = vec![0x00, 0x00, 0xd1, 0xd7, 0xc1, 0x50, 0x09];
    head.extend_from_slice(b"localhost");
    let mut bytes = vec![0x01, u8::try_from(head.len()).expect("fits")];
    bytes.extend_from_slice(&head);
    send.write_all(&bytes).await.expect("open");
    raw.send_datagram(Bytes::from_static(&[0, b'x']))
        .expect("small enough");
    let ended = within(receive.read_to_end(100)).await;
    let expected = Code::DATAGRAM_ERROR.value();
    match ended {
        Err(ReadToEndError::Read(ReadError::Reset(code))) => {
            assert_eq!(code.into_inner(), expected);
        }
        other => panic!("{other:?}"),
    }
    let stopped = within(send.stopped()).await.expect("alive");
    assert_eq!(stopped.map(courser::VarInt::into_inner), Some(expected));
    let client = h3::Client::new(raw);
    let response = within(client.send(get("/"))).await.expect("continues");
    assert_eq!(response.status(), 200);
}

/// RFC 9297 §2.1.1: no datagram before the peer's setting, which may arrive after its request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_can_wait_for_settings_that_are_late() {
    for (setting, negotiated) in [
        (&[0x04, 0x02, 0x33, 0x01][..], true),
        (&[0x04, 0x00], false),
    ] {
        let pair = pair();
        let (raw, server) = pair.connect().await;
        let (has_tried, mut tried) = tokio::sync::mpsc::channel(1);
        let service = super::boxed(move |mut request: Request<h3::Body>| {
            let has_tried = has_tried.clone();
            async move {
                let datagrams = request.extensions_mut().remove::<Datagrams>();
                let datagrams = datagrams.expect("enabled");
                let early = datagrams.send(b"early");
                assert_eq!(early, Err(h3::DatagramError::NotNegotiated));
                has_tried.send(()).await.expect("receiver waits");
                let is_negotiated = datagrams.negotiated().await;
                assert_eq!(datagrams.send(b"x").is_ok(), is_negotiated);
                Ok::<_, Infallible>(Response::new(full(format!("{is_negotiated}"))))
            }
        });
        let serving = h3::serve(server, service).config(config(Side::Server, true));
        crate::common::spawn(serving.into_future());
        let (mut send, mut receive) = raw.open_bi().await.expect("allowed");
        let head = [
            b"\x01\x10\x00\x00\xd1\xd7\xc1\x50\x09".as_slice(),
            b"localhost",
        ];
        send.write_all(&head.concat()).await.expect("open");
        send.finish().expect("open");
        within(tried.recv()).await.expect("the service has begun");
        let mut control = raw.open_uni().await.expect("allowed");
        control
            .write_all(&[&[0x00], setting].concat())
            .await
            .expect("open");
        let answer = within(receive.read_to_end(1000)).await.expect("an answer");
        let expected = negotiated.to_string();
        assert!(answer.ends_with(expected.as_bytes()), "{answer:x?}");
    }
}

/// RFC 9297 §2.1: these are connection errors.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_of_impossible_streams_end_the_connection() {
    for (bytes, code) in [
        (&[][..], Code::DATAGRAM_ERROR),
        (&[0xd0, 0, 0, 0, 0, 0, 0, 0, 1], Code::DATAGRAM_ERROR),
        // The hundredth is the last stream that may be opened.
        (&[0x40, 100, 1], Code::ID_ERROR),
    ] {
        let pair = pair();
        let (raw, server) = pair.connect().await;
        let service = tower::service_fn(|_: Request<h3::Body>| async {
            Ok::<_, Infallible>(Response::new(h3::Empty))
        });
        let serving = h3::serve(server, service).config(config(Side::Server, true));
        crate::common::spawn(serving.into_future());
        raw.send_datagram(Bytes::from_static(&[0x40, 99, 1]))
            .expect("early ones are held or dropped");
        raw.send_datagram(Bytes::from_static(bytes))
            .expect("small enough");
        let error = h3::Error::from(within(raw.closed()).await);
        assert_eq!(error.code(), Some(code), "{bytes:x?}: {error}");
    }
}

/// "And others": a plain request whose service uses datagrams.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plain_request_may_have_datagrams_too() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    let service = super::boxed(|mut request: Request<h3::Body>| async move {
        let datagrams = request.extensions_mut().remove::<Datagrams>();
        let datagrams = datagrams.expect("enabled");
        // The request may overtake the settings of its client.
        assert!(datagrams.negotiated().await);
        datagrams.send(b"from the server").expect("negotiated");
        let received = datagrams.receive().await.expect("a datagram");
        Ok::<_, Infallible>(Response::new(full(received)))
    });
    let serving = h3::serve(server, service).config(config(Side::Server, true));
    crate::common::spawn(serving.into_future());
    let client = h3::Client::with_config(client, config(Side::Client, true));
    within(client.settings()).await.expect("alive");
    let (feed, rest) = tokio::sync::mpsc::channel::<Bytes>(1);
    let body = super::frames(futures_util::stream::unfold(rest, |mut rest| async {
        let bytes = rest.recv().await?;
        Some((Ok(http_body::Frame::data(bytes)), rest))
    }));
    let request = Request::post("https://localhost/")
        .body(body)
        .expect("a request");
    let sending = crate::common::spawn({
        let client = client.clone();
        async move { client.send(request).await }
    });
    // The first request has stream 0, and a datagram that arrives before it waits for it.
    let quic = client.quic().clone();
    quic.send_datagram(Bytes::from_static(b"\0from the client"))
        .expect("small enough");
    let response = within(sending).await.expect("no panic").expect("answered");
    let datagrams = response.extensions().get::<Datagrams>().cloned();
    let received = within(datagrams.expect("enabled").receive()).await;
    assert_eq!(received, Some(Bytes::from_static(b"from the server")));
    assert_eq!(super::text(response).await, "from the client");
    drop(feed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unsendable_datagrams_have_an_error() {
    let pair = pair();
    let client = echoing(&pair, (true, true)).await;
    let response = within(client.connect(connect_request())).await;
    let mut stream = response.expect("accepted").into_body();
    let datagrams = stream.datagrams().cloned().expect("enabled");
    let max = datagrams.max_size().expect("negotiated");
    let error = datagrams
        .send(&vec![0; max + 20_000])
        .expect_err("too large");
    assert!(error.to_string().contains("max_size"), "{error}");
    datagrams.send(&vec![0; max]).expect("just fits");
    tokio::io::AsyncWriteExt::shutdown(&mut stream)
        .await
        .expect("open");
    // RFC 9297 §2.1: only while the sending half is open.
    assert_eq!(datagrams.send(b"x"), Err(h3::DatagramError::StreamOver));
}

#[tokio::test]
async fn datagrams_are_recorded_with_their_stream_and_length() {
    let pair = pair();
    let client = echoing(&pair, (true, true)).await;
    let (records, received) = std::sync::mpsc::channel();
    client
        .quic()
        .set_sink(Some(Box::new(move |_, record: &Record| {
            if let Record::Http3(record) = record {
                let _ = records.send(record.clone());
            }
        })));
    let mut capsules = capsules(&client).await;
    capsules.send_datagram(b"ping").await.expect("open");
    let echoed = within(capsules.next()).await.expect("no error");
    assert_eq!(
        echoed,
        Some(Received::Datagram(Bytes::from_static(b"ping")))
    );
    let records = received.try_iter().filter(|record| {
        let (stream, len) = match record {
            Http3Record::DatagramCreated { stream, len } => (*stream, *len),
            Http3Record::DatagramParsed { stream, len } => (*stream, *len),
            _ => return false,
        };
        assert_eq!((stream, len), (0, 4));
        true
    });
    assert_eq!(records.count(), 2);
    pair.finish().await;
}

/// A97, K584: a peer that does not read takes the credit of the writer, and the reader goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_without_credit_does_not_stop_the_reader() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    let (sender, halves) = tokio::sync::oneshot::channel();
    let sender = std::sync::Arc::new(std::sync::Mutex::new(Some(sender)));
    let service = tower::service_fn(move |mut request: Request<h3::Body>| {
        let upgrade = h3::upgrade(&mut request).expect("a CONNECT");
        let sender = sender.lock().expect("no panic").take();
        crate::common::spawn(async move {
            let capsules = Capsules::new(upgrade.await.expect("accepted")).accept(7, 10);
            drop(sender.expect("one request").send(capsules.split()));
        });
        async { Ok::<_, Infallible>(Response::new(h3::Empty)) }
    });
    let serving = h3::serve(server, service).config(config(Side::Server, true));
    crate::common::spawn(serving.into_future());
    let client = h3::Client::with_config(client, config(Side::Client, true));
    let mut near = capsules(&client).await;
    let (mut sender, mut receiver) = within(halves).await.expect("accepted");
    assert_eq!(sender.stream(), receiver.stream());
    // The client reads nothing, until its window is full.
    let full = async {
        loop {
            sender.send(9, &[0; 60_000]).await.expect("open");
        }
    };
    let blocked = tokio::time::timeout(std::time::Duration::from_millis(500), full);
    assert!(blocked.await.is_err(), "the window has an end");
    for n in 0..8_u8 {
        sender.queue(7, &[n]).expect("room for eight");
    }
    assert_eq!(sender.queue(7, &[8]), Err(h3::CapsulesWait));
    // A newer limit replaces the first that waits.
    sender
        .queue_latest(7, &[77])
        .expect("in the place of another");
    assert!(sender.is_waiting());
    for n in 0..100_u8 {
        within(near.send(7, &[n])).await.expect("open");
        let received = within(receiver.next()).await.expect("open");
        let Some(Received::Capsule(capsule)) = received else {
            panic!("{received:?}");
        };
        assert_eq!(capsule.value, [n][..]);
    }
    // Once the client reads, the capsules arrive in order.
    let reading = crate::common::spawn(async move {
        let mut seen = Vec::new();
        while let Some(received) = near.next().await.expect("open") {
            if let Received::Capsule(capsule) = received {
                seen.push(capsule.value[0]);
            }
        }
        (seen, near)
    });
    within(sender.finish()).await.expect("open");
    let (seen, near) = within(reading).await.expect("no panic");
    assert_eq!(seen, [77, 1, 2, 3, 4, 5, 6, 7]);
    // An invalid capsule ends both directions, although the halves are apart.
    let mut near = near;
    within(near.send(7, &[0; 11])).await.expect("open");
    let error = within(receiver.next()).await.expect_err("too long");
    assert_eq!(error.code(), Some(Code::EXCESSIVE_LOAD), "{error}");
}

/// Batches in both directions, which are not copied, and the datagram that is too large.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_are_exchanged_in_batches() {
    let pair = pair();
    let client = echoing(&pair, (true, true)).await;
    let near = capsules(&client).await;
    let (mut sender, receiver) = near.split();
    let (receiver, datagrams) = receiver.without_datagrams();
    let datagrams = datagrams.expect("enabled");
    assert!(within(datagrams.negotiated()).await);
    datagrams.set_receive_limits(1024, 1024 * 1024);
    let mut total = 0;
    let mut batch = Vec::new();
    for round in 0..20_u8 {
        let mut sent: Vec<_> = (0..20_u8).map(|n| Bytes::from(vec![n, round])).collect();
        datagrams.send_many(&mut sent).expect("room");
        assert!(sent.is_empty());
        let mut back = 0;
        while back < 20 {
            let got = within(datagrams.receive_many(&mut batch, 7)).await;
            let got = got.expect("open");
            assert!((1..=7).contains(&got), "{got}");
            back += got;
        }
        total += back;
    }
    assert_eq!((total, batch.len(), datagrams.dropped()), (400, 400, 0));
    for (index, payload) in batch.iter().enumerate() {
        let (round, n) = (index / 20, index % 20);
        assert_eq!(
            payload[..],
            [n, round].map(|it| u8::try_from(it).expect("small"))
        );
    }
    // The bytes before the payload count for the largest size.
    let max = datagrams.max_size().expect("negotiated");
    let mut mixed = vec![
        Bytes::from(vec![1; max]),
        Bytes::from(vec![2; max + 1]),
        Bytes::from_static(b"behind"),
    ];
    let error = datagrams.send_many(&mut mixed).expect_err("too large");
    assert_eq!(error, h3::DatagramError::TooLarge { size: max + 1, max });
    assert_eq!((mixed.len(), mixed[0].len()), (2, max + 1));
    let whole = within(datagrams.receive()).await.expect("open");
    assert_eq!(whole, vec![1; max]);
    let options = courser::DatagramOptions::new();
    datagrams.send_bytes("last".into(), options).expect("fits");
    assert_eq!(within(datagrams.receive()).await, Some("last".into()));
    sender.send(7, b"still open").await.expect("open");
    drop(receiver);
}
