//! Peers that speak the draft of browsers only, and whose QUIC has no RESET_STREAM_AT.

use courser_http3_tokio as h3;
use courser_quic::{Connection, Endpoint, ReadError, Side, TransportConfig};
use courser_webtransport_tokio::{self as webtransport, Config, Dialect, Session, WriteError};
use tokio::io::AsyncReadExt as _;

use crate::{connections, within};

/// A session of a client whose streams of QUIC are visible.
struct Scene {
    connection: Connection,
    number: courser_quic::StreamId,
    streams: h3::SessionStreams,
    session: Session,
    _client: (h3::Client, h3::Upgraded),
    _endpoints: [Endpoint; 2],
}

async fn scene() -> Scene {
    let transport = TransportConfig {
        reset_stream_at: false,
        ..TransportConfig::default()
    };
    let (near, far, endpoints) = connections(transport).await;
    let mut settings = h3::Config::new(Side::Server);
    webtransport::enable(&mut settings, Side::Server, Config::new()).expect("free numbers");
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let service = tower::service_fn(move |mut request| {
        let sender = sender.clone();
        async move {
            let upgrade = webtransport::upgrade(&mut request);
            let accepted = upgrade.accept(|session| async move { sender.send(session).is_ok() });
            Ok::<_, std::convert::Infallible>(accepted.await as http::Response<h3::Empty>)
        }
    });
    tokio::spawn(h3::serve(far, service).config(settings).into_future());

    let client = h3::Client::with_config(near.clone(), browser());
    let token = h3::Protocol::new("webtransport").expect("a token");
    let request = http::Request::connect("https://localhost/").extension(token);
    let request = request.body(()).expect("valid");
    let upgraded = within(client.connect(request)).await.expect("accepted");
    let upgraded = upgraded.into_body();
    let number = upgraded.stream();
    let group = client.extension().group("webtransport").expect("a group");
    let streams = group.session(number).expect("not registered");
    let session = within(receiver.recv()).await.expect("accepted");
    assert_eq!(session.dialect(), Dialect::Draft02);
    Scene {
        connection: near,
        number,
        streams,
        session,
        _client: (client, upgraded),
        _endpoints: endpoints,
    }
}

/// draft-ietf-webtrans-http3 §6: WT_SESSION_GONE.
#[tokio::test]
async fn the_end_of_a_session_resets_and_stops_its_streams() {
    let scene = scene().await;
    let mut kept = within(scene.session.open_uni()).await.expect("open");
    kept.write_all(b"x").await.expect("open");
    let arrived = within(scene.streams.accept_uni()).await.expect("open");
    let mut from_server = arrived.expect("open").receive;
    let first = within(from_server.read_chunk(1)).await;
    assert_eq!(first.expect("open").expect("no end"), "x");

    let mut to_server = within(scene.connection.open_uni()).await.expect("open");
    let number = u8::try_from(scene.number.value()).expect("an early request");
    let header = [0x40, 0x54, number, b'y'];
    to_server.write_all(&header).await.expect("open");
    let mut unread = within(scene.session.accept_uni()).await.expect("open");
    let mut byte = [0];
    within(unread.read_exact(&mut byte)).await.expect("open");

    scene.session.close(0, "");
    let code = courser_quic::VarInt::from(0x170d_7b68_u32);
    let read = within(from_server.read_chunk(1)).await;
    assert_eq!(read, Err(ReadError::Reset(code)));
    assert_eq!(within(to_server.stopped()).await, Ok(Some(code)));
    drop((kept, unread));
}

/// The header of a stream is delivered before its reset, because the stream would belong to no session otherwise.
#[tokio::test]
async fn resets_wait_for_the_header_of_their_stream() {
    let scene = scene().await;
    let (session, streams) = (&scene.session, &scene.streams);
    let mut send = within(session.open_uni()).await.expect("open");
    send.reset(0).expect("open");
    // It is reset as far as its application can see.
    assert_eq!(send.reset(4), Err(WriteError::ClosedStream));
    assert_eq!(send.finish(), Err(WriteError::ClosedStream));
    let written = within(send.write(b"x")).await;
    assert_eq!(written, Err(WriteError::ClosedStream));
    drop(send);
    let code = ReadError::Reset(0x52e4_a40f_a8db_u64.try_into().expect("in range"));
    let arrived = within(streams.accept_uni()).await.expect("open");
    let mut stream = arrived.expect("open");
    assert_eq!(
        within(stream.receive.read_chunk(1)).await,
        Err(code.clone())
    );

    // Once the header has arrived, the reset leaves at once.
    let mut send = within(session.open_uni()).await.expect("open");
    send.write_all(b"x").await.expect("open");
    let arrived = within(streams.accept_uni()).await.expect("open");
    let mut stream = arrived.expect("open");
    let first = within(stream.receive.read_chunk(1)).await;
    assert_eq!(first.expect("open").expect("no end"), "x");
    send.reset(0).expect("open");
    assert_eq!(within(stream.receive.read_chunk(1)).await, Err(code));
}

/// The configuration of a client that announces draft 02 as browsers do.
fn browser() -> h3::Config {
    let codes = h3::SessionCodes {
        unknown: h3::Code::from_value(0x3994_bd84),
        over: h3::Code::from_value(0x170d_7b68),
    };
    let mut settings = h3::Config::new(Side::Client);
    settings.datagrams = true;
    settings.extensions = h3::Extensions::new()
        .named("webtransport")
        .setting(0x2b60_3742, 1)
        .and_then(|group| group.announced_by(0x2b60_3742).unidirectional_stream(0x54))
        .and_then(|group| group.bidirectional_stream(0x41))
        .expect("free numbers")
        .by_session(codes);
    settings
}
