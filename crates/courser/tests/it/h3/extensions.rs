//! Extensions of HTTP/3 that the application implements, RFC 9114 §9.

use std::collections::HashMap;

use courser::{Connection, RecvStream, SendStream, Side, h3};
use futures_util::{StreamExt as _, stream::FuturesUnordered};
use http::Response;

use super::{Pair, full, get, pair, text, within};

const SETTING: u64 = 0x7a11;
const UNI: u64 = 0x54;
const BIDI: u64 = 0x41;
const CONTROL_FRAME: u64 = 0x1000;
const REQUEST_FRAME: u64 = 0x1001;
const REFUSED: h3::Code = h3::Code::from_value(0x3994_bd84);

fn config(side: Side) -> h3::Config {
    let mut config = h3::Config::new(side);
    config.extensions = h3::Extensions::new()
        .setting(SETTING, 7)
        .and_then(|it| it.unidirectional_stream(UNI))
        .and_then(|it| it.bidirectional_stream(BIDI))
        .and_then(|it| it.frame(CONTROL_FRAME, h3::FrameStream::Control, 1000))
        .and_then(|it| it.frame(REQUEST_FRAME, h3::FrameStream::Request, 1000))
        .expect("unused numbers")
        .announced_by(SETTING)
        .refuse_with(REFUSED);
    config
}

/// Two ends with the same extension. The server answers requests with their path.
async fn ends() -> (Pair, h3::Client, h3::Extension) {
    let pair = pair();
    let (client, server) = pair.connect().await;
    let client = h3::Client::with_config(client, config(Side::Client));
    let extension = serve(server);
    (pair, client, extension.await.expect("a server"))
}

fn serve(server: Connection) -> tokio::sync::oneshot::Receiver<h3::Extension> {
    let service = super::tower_of(|request| async move {
        let has_extension = request.extensions().get::<h3::Extension>().is_some();
        assert!(has_extension, "services get it");
        let mut response = Response::new(full(request.uri().path().to_owned()));
        let frames = h3::LeadingFrames(vec![(REQUEST_FRAME, "of the response".into())]);
        response.extensions_mut().insert(frames);
        response
    });
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let begin = move |extension| drop(sender.send(extension));
    let serve = h3::serve(server, service).config(config(Side::Server));
    crate::common::spawn(serve.extension(begin).into_future());
    receiver
}

async fn read_all(mut receive: h3::ClaimedReceive) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(chunk) = within(receive.read_chunk(3)).await.expect("no reset") {
        all.extend_from_slice(&chunk);
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claimed_streams_reach_the_application_of_both_ends() {
    let (_pair, client, server) = ends().await;
    let client = (client.extension(), client);
    for (from, to) in [(&client.0, &server), (&server, &client.0)] {
        let mut send = within(from.open_uni(UNI)).await.expect("supported");
        send.write_all(&[0x40, 4]).await.expect("open");
        send.write_all(b"of one way").await.expect("open");
        send.finish().expect("open");
        let mut stream = within(to.accept()).await.expect("a stream");
        assert_eq!((stream.stream_type, stream.id()), (UNI, send.id()));
        assert!(stream.send.is_none());
        // The session of WebTransport, for example.
        assert_eq!(within(stream.receive.read_varint()).await, Ok(Some(4)));
        assert_eq!(read_all(stream.receive).await, b"of one way");

        let (mut send, mut receive) = within(from.open_bi(BIDI)).await.expect("supported");
        send.write_all(b"question").await.expect("open");
        send.finish().expect("open");
        let mut stream = within(to.accept()).await.expect("a stream");
        assert_eq!((stream.stream_type, stream.id()), (BIDI, send.id()));
        let mut answer = stream.send.take().expect("bidirectional");
        assert_eq!(read_all(stream.receive).await, b"question");
        answer.write_all(b"answer").await.expect("open");
        answer.finish().expect("open");
        assert_eq!(
            within(receive.read_to_end(100)).await.expect("complete"),
            b"answer"
        );
    }
    // Requests are still served.
    let response = within(client.1.send(get("/beside"))).await.expect("served");
    assert_eq!(text(response).await, "/beside");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_ends_read_the_settings_of_the_other() {
    let (_pair, client, server) = ends().await;
    for end in [client.extension(), server] {
        let settings = within(end.settings()).await.expect("settings");
        assert!(settings.contains(&(SETTING, 7)), "{settings:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claimed_frames_reach_the_application_of_both_ends() {
    let (_pair, client, server) = ends().await;
    let extension = client.extension();
    for (from, to) in [(&extension, &server), (&server, &extension)] {
        within(from.send_frame(CONTROL_FRAME, b"control"))
            .await
            .expect("supported");
        let frame = within(to.next_frame()).await.expect("a frame");
        assert_eq!((frame.stream, frame.frame_type), (None, CONTROL_FRAME));
        assert_eq!(frame.payload, "control");
    }
    let mut request = get("/frames");
    let frames = h3::LeadingFrames(vec![(REQUEST_FRAME, "of the request".into())]);
    request.extensions_mut().insert(frames);
    let response = within(client.send(request)).await.expect("served");
    assert_eq!(text(response).await, "/frames");
    for (end, payload) in [(&server, "of the request"), (&extension, "of the response")] {
        let frame = within(end.next_frame()).await.expect("a frame");
        assert_eq!(frame.stream.map(|stream| stream.value()), Some(0));
        assert_eq!(
            (frame.frame_type, &frame.payload[..]),
            (REQUEST_FRAME, payload.as_bytes())
        );
    }
}

/// RFC 9114 §9, 9114-074: nothing of the extension is sent to a peer that has not announced it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn extension_is_not_used_unless_the_peer_announces_it() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    let client = h3::Client::with_config(client, config(Side::Client));
    let server = h3::ServerConnection::new(server, h3::Config::new(Side::Server));
    let extension = client.extension();
    let is_unsupported = |error: Option<h3::Error>| matches!(error, Some(h3::Error::Unsupported));
    assert!(is_unsupported(within(extension.open_uni(UNI)).await.err()));
    assert!(is_unsupported(within(extension.open_bi(BIDI)).await.err()));
    assert!(is_unsupported(within(extension.accept()).await.err()));
    let frame = within(extension.send_frame(CONTROL_FRAME, b"")).await;
    assert!(is_unsupported(frame.err()));
    // No stream was opened for it.
    let (send, _receive) = within(client.quic().open_bi()).await.expect("allowed");
    assert_eq!(send.id().value(), 0);
    drop(server);
}

/// Opens a raw stream beside HTTP/3 of an honest client.
async fn raw(quic: &Connection, bytes: &[u8]) -> (SendStream, RecvStream) {
    let (mut send, receive) = within(quic.open_bi()).await.expect("allowed");
    send.write_all(bytes).await.expect("open");
    (send, receive)
}

/// A122, K202: streams that no task accepts. Each one is read by a task of its own, so any of them
/// can be the last to arrive.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_beyond_the_queue_are_refused_with_the_code_of_the_extension() {
    let (_pair, client, server) = ends().await;
    let quic = client.quic().clone();
    let mut receiving = HashMap::new();
    let mut stops = FuturesUnordered::new();
    for _ in 0..65 {
        let (send, receive) = raw(&quic, &[0x40, 0x41]).await;
        receiving.insert(send.id(), receive);
        stops.push(async move { (send.id(), send.stopped().await, send) });
    }
    let (refused, stopped, _send) = within(stops.next()).await.expect("one stream is refused");
    let code = stopped.expect("open").map(|code| code.into_inner());
    assert_eq!(code, Some(REFUSED.value()));
    let mut receive = receiving.remove(&refused).expect("one of them");
    let reset = within(receive.read(&mut [0; 10])).await;
    let code = u32::try_from(REFUSED.value()).expect("fits").into();
    assert_eq!(reset, Err(courser::ReadError::Reset(code)));
    // The others wait.
    for _ in 0..64 {
        let waiting = within(server.accept()).await.expect("waiting").id();
        assert!(receiving.remove(&waiting).is_some(), "{waiting} came twice");
    }
}

/// A122: a flood of them ends the connection (K17).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_claimed_streams_ends_the_connection() {
    let (_pair, client, server) = ends().await;
    let quic = client.quic().clone();
    let flood = async {
        while let Ok(mut send) = quic.open_uni().await {
            let _ = send.write_all(&[0x40, 0x54]).await;
            let _ = send.finish();
        }
    };
    within(flood).await;
    let error = h3::Error::from(within(quic.closed()).await);
    assert_eq!(error.code(), Some(h3::Code::EXCESSIVE_LOAD), "{error}");
    drop(server);
}

/// A signal inside a message is no frame, draft-ietf-webtrans-http3-12 §4.2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_behind_another_frame_ends_the_connection() {
    let (_pair, client, _server) = ends().await;
    let quic = client.quic().clone();
    let _streams = raw(&quic, &[0x21, 0x00, 0x40, 0x41, 0x00]).await;
    let error = h3::Error::from(within(quic.closed()).await);
    assert_eq!(error.code(), Some(h3::Code::FRAME_ERROR), "{error}");
}

/// RFC 9114 §5.2: a GOAWAY excludes requests, and no streams of extensions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn extension_streams_continue_after_a_goaway() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    let client = h3::Client::with_config(client, config(Side::Client));
    let server = h3::ServerConnection::new(server, config(Side::Server));
    server.go_away();
    let accepting = crate::common::spawn({
        let server = server.clone();
        async move {
            // Neither the stream of the extension nor the excluded request is returned.
            let none = server.accept().await;
            assert!(none.is_err(), "{none:?}");
        }
    });
    let (send, _receive) = within(client.extension().open_bi(BIDI))
        .await
        .expect("supported");
    let stream = within(server.extension().accept()).await.expect("a stream");
    assert_eq!(stream.id(), send.id());
    // A request that does not know of the GOAWAY: GET with the static table.
    let head = [0x01, 0x08, 0x00, 0x00, 0xd1, 0xd7, 0x50, 0x01, b'a', 0xc1];
    let (_send, mut receive) = raw(client.quic(), &head).await;
    let code = u32::try_from(h3::Code::REQUEST_REJECTED.value()).expect("fits");
    let reset = within(receive.read(&mut [0; 10])).await;
    assert_eq!(reset, Err(courser::ReadError::Reset(code.into())));
    server.close();
    within(accepting).await.expect("no panic");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_for_streams_ends_with_the_connection() {
    let (_pair, client, server) = ends().await;
    let waiting = crate::common::spawn({
        let server = server.clone();
        async move { (server.accept().await.err(), server.next_frame().await.err()) }
    });
    within(server.settings()).await.expect("settings");
    // A rule of the extension that the peer has broken.
    client
        .extension()
        .fail(h3::Code::ID_ERROR, "no such session");
    let (accept, frame) = within(waiting).await.expect("no panic");
    for error in [accept, frame] {
        assert_eq!(
            error.and_then(|error| error.code()),
            Some(h3::Code::ID_ERROR)
        );
    }
}
