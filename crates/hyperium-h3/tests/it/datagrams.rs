//! HTTP datagrams by the traits of `h3-datagram`: on courser and quinn, and with courser's own
//! HTTP/3.

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

/// Answers one request and sends its datagrams back until the connection is over.
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
    let (_, mut stream) = resolver.resolve_request().await.expect("whole");
    let mut reader = connection.get_datagram_reader();
    let mut sender = connection.get_datagram_sender(stream.id());
    stream
        .send_response(Response::new(()))
        .await
        .expect("asked for");
    let echo = async {
        while let Ok(datagram) = reader.read_datagram().await {
            assert_eq!(datagram.stream_id(), stream.id());
            // The last one may come when the client is gone.
            let _ = sender.send_datagram(datagram.into_payload());
        }
    };
    let drive = async { while let Ok(Some(_)) = connection.accept().await {} };
    tokio::join!(echo, drive);
}

/// A request, and datagrams on it that come back.
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
        // Empty ones too, and some as large as may be sent at first.
        let payload = Bytes::from(vec![b'x'; number * 11]);
        let back = within(exchange((&mut sender, &mut reader), &payload)).await;
        assert_eq!(back.stream_id(), stream.id());
        assert!(*back.payload() == payload, "datagram {number} differs");
    }
    drop(stop);
    driven.await.expect("no panic");
}

/// Sends a datagram until it comes back: the network may lose any.
async fn exchange<S, R>(
    (sender, reader): (&mut DatagramSender<S, Bytes>, &mut DatagramReader<R>),
    payload: &Bytes,
) -> Datagram<Bytes>
where
    S: SendDatagram<Bytes>,
    R: RecvDatagram<Buffer = Bytes>,
{
    loop {
        sender.send_datagram(payload.clone()).expect("it fits");
        let back = async {
            loop {
                let back = reader.read_datagram().await.expect("open");
                // One that was sent twice may come twice.
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
async fn datagrams_come_back_on_courser_at_both_ends() {
    let pair = Pair::new();
    let (client, server) = pair.connect().await;
    let serving = tokio::spawn(echo(courser_hyperium_h3::Connection::new(server)));
    ask(courser_hyperium_h3::Connection::new(client)).await;
    within(serving).await.expect("no panic");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_come_back_between_a_client_on_quinn_and_a_server_on_courser() {
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
async fn datagrams_come_back_between_a_client_on_courser_and_a_server_on_quinn() {
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

/// courser's own HTTP/3 sends those of every request, and each is read as that request's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_of_all_requests_are_read_as_theirs() {
    let pair = Pair::new();
    let (client, server) = pair.connect().await;
    let service = tower::service_fn(|request: Request<own::Body>| async move {
        let datagrams = request.extensions().get::<own::Datagrams>();
        let datagrams = datagrams.expect("switched on");
        // The client's settings may come after its request.
        while !datagrams.is_negotiated() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        datagrams
            .send(request.uri().path().as_bytes())
            .expect("it fits");
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
    // Two bytes of quarter stream ID in the end.
    for number in 0..70_u64 {
        let path = format!("/{number}");
        let request = Request::get(format!("https://localhost{path}"))
            .body(())
            .expect("a request");
        let mut stream = client.send_request(request).await.expect("sent");
        within(stream.recv_response()).await.expect("answered");
        let datagram = within(reader.read_datagram()).await.expect("one");
        assert_eq!(datagram.stream_id(), stream.id());
        assert_eq!(stream.id().into_inner(), number * 4);
        assert_eq!(*datagram.payload(), path);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_sent_is_told_apart() {
    let send = |connection: &courser_hyperium_h3::Connection, len: usize| {
        let mut handler = DatagramConnectionExt::<Bytes>::send_datagram_handler(connection);
        let id = StreamId::try_from(0).expect("an ID");
        handler.send_datagram(Datagram::new(id, Bytes::from(vec![0; len])).encode())
    };
    let pair = Pair::new();
    let (client, server) = pair.connect().await;
    let client = courser_hyperium_h3::Connection::new(client);
    send(&client, 1000).expect("it fits");
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
    let error = send(&courser_hyperium_h3::Connection::new(client), 1).expect_err("switched off");
    assert!(matches!(error, SendDatagramErrorIncoming::NotAvailable));
}
