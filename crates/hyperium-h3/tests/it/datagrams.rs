//! HTTP datagrams with the traits of `h3-datagram`, between courser and quinn, and with courser's
//! own HTTP/3.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use courser::{TransportConfig, h3 as own};
use h3::quic::{self, ConnectionErrorIncoming, StreamId};
use h3_datagram::datagram::Datagram;
use h3_datagram::datagram_handler::{DatagramReader, DatagramSender, HandleDatagramsExt as _};
use h3_datagram::quic_traits::{
    DatagramConnectionExt, RecvDatagram, SendDatagram, SendDatagramErrorIncoming,
};
use http::{Request, Response};
use tokio::sync::oneshot;

use super::setup::{Pair, quinn_client, quinn_server, within};

/// Answers one request and echoes its datagrams until the connection ends.
async fn echo<C>(connection: C)
where
    C: quic::Connection<Bytes> + DatagramConnectionExt<Bytes>,
    C::RecvDatagramHandler: RecvDatagram<Buffer = Bytes>,
{
    let mut builder = h3::server::builder();
    let builder = builder.enable_datagram(true);
    let mut connection: h3::server::Connection<C, Bytes> =
        builder.build(connection).await.expect("a connection");
    let resolver = connection.accept().await.expect("open").expect("a request");
    let (_, mut stream) = resolver
        .resolve_request()
        .await
        .expect("a complete message");
    let mut reader = connection.get_datagram_reader();
    let mut sender = connection.get_datagram_sender(stream.id());
    stream
        .send_response(Response::new(()))
        .await
        .expect("the client still reads");
    let echo = async {
        while let Ok(datagram) = reader.read_datagram().await {
            assert_eq!(datagram.stream_id(), stream.id());
            // The last one may arrive after the client has closed the connection.
            let _ = sender.send_datagram(datagram.into_payload());
        }
    };
    let drive = async { while let Ok(Some(_)) = connection.accept().await {} };
    tokio::join!(echo, drive);
}

/// Sends a request with datagrams and checks their echoes.
async fn ask<C>(connection: C)
where
    C: quic::Connection<Bytes> + DatagramConnectionExt<Bytes> + Send + 'static,
    C::RecvDatagramHandler: RecvDatagram<Buffer = Bytes>,
    C::RecvStream: Send,
    C::SendStream: Send,
    C::BidiStream: Send,
    C::OpenStreams: Send,
{
    let mut builder = h3::client::builder();
    let built = builder.enable_datagram(true).build(connection).await;
    let (mut driver, mut client) = built.expect("a connection");
    let mut stream = client.send_request(request()).await.expect("sent");
    let mut reader = driver.get_datagram_reader();
    let mut sender = driver.get_datagram_sender(stream.id());
    let (stop, stopped) = oneshot::channel::<()>();
    let driven = tokio::spawn(async move {
        tokio::select! {
            _ = driver.wait_idle() => {}
            _ = stopped => {}
        }
    });
    let response = within(stream.recv_response()).await.expect("answered");
    assert_eq!(response.status(), 200);
    for number in 0..100_usize {
        // From empty to about the largest size before path MTU discovery.
        let payload = Bytes::from(vec![b'x'; number * 11]);
        let back = within(exchange((&mut sender, &mut reader), &payload)).await;
        assert_eq!(back.stream_id(), stream.id());
        assert!(*back.payload() == payload, "datagram {number} differs");
    }
    drop(stop);
    driven.await.expect("no panic");
}

/// Sends a datagram repeatedly until its echo arrives, because any datagram may be lost.
async fn exchange<S, R>(
    (sender, reader): (&mut DatagramSender<S, Bytes>, &mut DatagramReader<R>),
    payload: &Bytes,
) -> Datagram<Bytes>
where
    S: SendDatagram<Bytes>,
    R: RecvDatagram<Buffer = Bytes>,
{
    loop {
        sender
            .send_datagram(payload.clone())
            .expect("within the datagram size limit");
        let back = async {
            loop {
                let back = reader.read_datagram().await.expect("open");
                // Echoes of earlier repetitions are skipped.
                if back.payload().len() == payload.len() {
                    return back;
                }
            }
        };
        if let Ok(back) = tokio::time::timeout(Duration::from_secs(1), back).await {
            return back;
        }
    }
}

fn request() -> Request<()> {
    let request = Request::get("https://localhost/").body(());
    request.expect("a request")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_are_echoed_with_courser_at_both_ends() {
    let pair = Pair::new();
    let (client, server) = pair.connect().await;
    let serving = tokio::spawn(echo(courser_hyperium_h3::Connection::new(server)));
    ask(courser_hyperium_h3::Connection::new(client)).await;
    within(serving).await.expect("no panic");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_are_echoed_between_a_quinn_client_and_a_courser_server() {
    let pair = Pair::new();
    let (client, server) = tokio::join!(
        quinn_client(pair.address(), pair.certificate.clone()),
        pair.accept()
    );
    let serving = tokio::spawn(echo(courser_hyperium_h3::Connection::new(server)));
    ask(h3_quinn::Connection::new(client.1)).await;
    within(serving).await.expect("no panic");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_are_echoed_between_a_courser_client_and_a_quinn_server() {
    let (server, client) = quinn_server();
    let address = server.local_addr().expect("bound");
    let serving = tokio::spawn(async move {
        let connection = server.accept().await.expect("open").await;
        echo(h3_quinn::Connection::new(connection.expect("handshake"))).await;
    });
    let connection = client.connect(address, "localhost").expect("configured");
    let connection = connection.await.expect("handshake");
    ask(courser_hyperium_h3::Connection::new(connection)).await;
    within(serving).await.expect("no panic");
}

/// courser's own HTTP/3 sends datagrams of every request. Each arrives with the stream ID of its
/// request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_of_all_requests_are_received() {
    let pair = Pair::new();
    let (client, server) = pair.connect().await;
    let service = tower::service_fn(|request: Request<own::Body>| async move {
        let datagrams = request.extensions().get::<own::Datagrams>();
        let datagrams = datagrams.expect("enabled");
        // The client's SETTINGS may arrive after its request.
        while !datagrams.is_negotiated() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        datagrams
            .send(request.uri().path().as_bytes())
            .expect("within the datagram size limit");
        Ok::<_, Infallible>(Response::new(own::Empty))
    });
    let mut config = own::Config::new(courser::Side::Server);
    config.datagrams = true;
    tokio::spawn(own::serve(server, service).config(config).into_future());
    let mut builder = h3::client::builder();
    let built = builder
        .enable_datagram(true)
        .build::<_, _, Bytes>(courser_hyperium_h3::Connection::new(client))
        .await;
    let (mut driver, mut client) = built.expect("a connection");
    let mut reader = driver.get_datagram_reader();
    tokio::spawn(async move { driver.wait_idle().await });
    // The quarter stream ID takes two bytes from request 64 on.
    for number in 0..70_u64 {
        let path = format!("/{number}");
        let request = Request::get(format!("https://localhost{path}"))
            .body(())
            .expect("a request");
        let mut stream = client.send_request(request).await.expect("sent");
        within(stream.recv_response()).await.expect("answered");
        let datagram = within(reader.read_datagram()).await.expect("a datagram");
        assert_eq!(datagram.stream_id(), stream.id());
        assert_eq!(stream.id().into_inner(), number * 4);
        assert_eq!(*datagram.payload(), path);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn send_errors_state_the_reason() {
    let send = |connection: &courser_hyperium_h3::Connection, len: usize| {
        let mut handler = DatagramConnectionExt::<Bytes>::send_datagram_handler(connection);
        let id = StreamId::try_from(0).expect("an ID");
        handler.send_datagram(Datagram::new(id, Bytes::from(vec![0; len])).encode())
    };
    let pair = Pair::new();
    let (client, server) = pair.connect().await;
    let client = courser_hyperium_h3::Connection::new(client);
    send(&client, 1000).expect("within the datagram size limit");
    let error = send(&client, 70_000).expect_err("too large");
    assert!(matches!(error, SendDatagramErrorIncoming::TooLarge));
    let mut reader = DatagramConnectionExt::<Bytes>::recv_datagram_handler(&client);
    server.close(0x101_u32.into(), b"");
    let next = std::future::poll_fn(|cx| reader.poll_incoming_datagram(cx));
    let error = within(next).await.expect_err("closed");
    let is_code = |error: &ConnectionErrorIncoming| {
        matches!(
            error,
            ConnectionErrorIncoming::ApplicationClose { error_code: 0x101 }
        )
    };
    assert!(is_code(&error), "{error:?}");
    match send(&client, 1) {
        Err(SendDatagramErrorIncoming::ConnectionError(error)) => {
            assert!(is_code(&error), "{error:?}");
        }
        other => panic!("{other:?}"),
    }

    let without = TransportConfig {
        datagram_receive_buffer_size: None,
        ..TransportConfig::default()
    };
    let pair = Pair::with(without);
    let (client, _server) = pair.connect().await;
    let error = send(&courser_hyperium_h3::Connection::new(client), 1).expect_err("disabled");
    assert!(matches!(error, SendDatagramErrorIncoming::NotAvailable));
}
