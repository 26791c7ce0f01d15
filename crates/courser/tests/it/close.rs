//! The end of connections and endpoints, as both sides see it.

use std::time::Duration;

use crate::common::{loopback, pair, pair_with, until, within};
use courser::{ConnectError, ConnectionError, Endpoint, ReadError, TransportConfig, WriteError};

#[tokio::test]
async fn peer_receives_code_and_reason_of_a_close() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    client.close(42u32.into(), b"enough");
    assert_eq!(client.close_reason(), Some(ConnectionError::LocallyClosed));
    match within(10, server.closed()).await {
        ConnectionError::ApplicationClosed { code, reason } => {
            assert_eq!((code.value(), &reason[..]), (42, &b"enough"[..]));
        }
        other => panic!("closed with {other:?}"),
    }
}

#[tokio::test]
async fn pending_calls_fail_when_we_close() {
    let pair = pair();
    let (client, _server) = pair.connect().await;
    let (_send, mut receive) = client.open_bi().await.expect("open");
    let mut full = client.open_uni().await.expect("open");
    let mut idle = client.open_uni().await.expect("open");
    idle.write_all(b"never finished").await.expect("written");
    let stopped = idle.stopped();
    let other = client.clone();
    let waiting = async {
        let block = vec![0; 1 << 20];
        tokio::join!(
            receive.read_chunk(1),
            async {
                loop {
                    if let Err(error) = full.write_all(&block).await {
                        break error;
                    }
                }
            },
            client.accept_uni(),
            client.accept_bi(),
            client.closed(),
            stopped,
            async {
                // Let the other tasks run first.
                tokio::task::yield_now().await;
                other.close(0u32.into(), b"");
            },
        )
    };
    let (read, write, uni, bi, closed, stopped, ()) = within(10, waiting).await;
    let lost = ConnectionError::LocallyClosed;
    assert_eq!(read, Err(ReadError::ConnectionLost(lost.clone())));
    assert_eq!(write, WriteError::ConnectionLost(lost.clone()));
    assert_eq!(uni.err(), Some(lost.clone()));
    assert_eq!(bi.err(), Some(lost.clone()));
    assert_eq!(closed, lost);
    assert!(stopped.is_err());
    assert!(client.open_uni().await.is_err());
    assert!(idle.finish().is_err());
}

#[tokio::test]
async fn pending_calls_fail_when_the_peer_closes() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    let (_send, mut receive) = client.open_bi().await.expect("open");
    let waiting = async {
        tokio::join!(
            receive.read_chunk(1),
            client.accept_uni(),
            client.closed(),
            async {
                // The others have been polled before, and wait.
                tokio::task::yield_now().await;
                server.close(7u32.into(), b"");
            }
        )
    };
    let (read, uni, closed, ()) = within(10, waiting).await;
    assert!(matches!(closed, ConnectionError::ApplicationClosed { .. }));
    assert_eq!(uni.err(), Some(closed.clone()));
    assert_eq!(read, Err(ReadError::ConnectionLost(closed)));
}

#[tokio::test]
async fn wait_idle_takes_a_round_trip_after_close() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    pair.client.close(0u32.into(), b"");
    // Far less than the idle timeout.
    within(10, pair.client.wait_idle()).await;
    assert!(
        within(10, server.closed())
            .await
            .to_string()
            .contains("code 0")
    );
    drop(client);
    within(10, pair.server.wait_idle()).await;
}

#[tokio::test]
async fn wait_idle_of_an_unused_endpoint_is_immediate() {
    let endpoint = Endpoint::client(loopback()).expect("a port");
    within(1, endpoint.wait_idle()).await;
}

#[tokio::test]
async fn wait_idle_ends_though_the_peer_is_gone() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    // The state of the server's runtime is dropped silently: no packet answers the close.
    let silent = std::net::UdpSocket::bind(loopback()).expect("a port");
    let address = silent.local_addr().expect("bound");
    let lost = pair
        .client
        .connect(address, "localhost")
        .expect("configured");
    pair.client.close(0u32.into(), b"");
    within(20, pair.client.wait_idle()).await;
    drop((lost, client, server));
}

#[tokio::test]
async fn closed_endpoint_neither_accepts_nor_connects() {
    let pair = pair();
    let accepting = crate::common::spawn({
        let server = pair.server.clone();
        async move { server.accept().await.is_none() }
    });
    tokio::task::yield_now().await;
    pair.server.close(0u32.into(), b"");
    assert!(within(10, accepting).await.expect("no panic"));
    assert!(within(10, pair.server.accept()).await.is_none());
    // Later clients are refused.
    let refused = pair
        .client
        .connect(pair.address, "localhost")
        .expect("configured");
    match within(10, refused).await {
        Err(ConnectionError::ConnectionClosed(close)) => {
            assert_eq!(close.code, courser::TransportErrorCode::CONNECTION_REFUSED);
        }
        other => panic!("{other:?}"),
    }
    pair.client.close(0u32.into(), b"");
    let late = pair.client.connect(pair.address, "localhost");
    assert_eq!(late.err(), Some(ConnectError::EndpointStopping));
}

#[tokio::test]
async fn silent_connection_ends_with_the_idle_timeout() {
    let transport = TransportConfig {
        max_idle_timeout: Some(Duration::from_millis(200)),
        ..TransportConfig::default()
    };
    let pair = pair_with(transport, |config| config);
    let (client, server) = pair.connect().await;
    let (ours, theirs) = within(10, async { tokio::join!(client.closed(), server.closed()) }).await;
    assert!(ours.is_timeout(), "{ours:?}");
    assert!(theirs.is_timeout(), "{theirs:?}");
    let error = WriteError::from(ours);
    assert!(error.is_timeout());
    assert_eq!(
        std::io::Error::from(error).kind(),
        std::io::ErrorKind::TimedOut
    );
    within(5, pair.client.wait_idle()).await;
}

#[tokio::test]
async fn keep_alive_prevents_the_timeout() {
    let transport = TransportConfig {
        max_idle_timeout: Some(Duration::from_secs(2)),
        keep_alive_interval: Some(Duration::from_millis(200)),
        ..TransportConfig::default()
    };
    let pair = pair_with(transport, |config| config);
    let (client, server) = pair.connect().await;
    let ended = tokio::time::timeout(Duration::from_secs(5), client.closed()).await;
    assert!(ended.is_err(), "{ended:?}");
    assert_eq!(server.close_reason(), None);
}

#[tokio::test]
async fn connecting_to_a_silent_port_times_out() {
    let transport = TransportConfig {
        handshake_timeout: Duration::from_millis(300),
        ..TransportConfig::default()
    };
    let pair = pair_with(transport, |config| config);
    let silent = std::net::UdpSocket::bind(loopback()).expect("a port");
    let address = silent.local_addr().expect("bound");
    let error = within(
        10,
        pair.client
            .connect(address, "localhost")
            .expect("configured"),
    )
    .await;
    assert!(
        error.as_ref().is_err_and(ConnectionError::is_timeout),
        "{error:?}"
    );
}

#[tokio::test]
async fn data_written_before_the_receiver_closes_is_read() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    let mut send = client.open_uni().await.expect("open");
    send.write_all(b"last words").await.expect("written");
    send.finish().expect("not finished");
    let mut receive = within(10, server.accept_uni()).await.expect("opened");
    assert_eq!(receive.read_to_end(100).await.expect("read"), b"last words");
    assert_eq!(within(10, send.stopped()).await, Ok(None));
    server.close(0u32.into(), b"");
    within(10, client.closed()).await;
}

/// The server's application is slow: it reads only after the transport has discarded the
/// connection.
#[tokio::test]
async fn data_that_arrived_before_the_peer_closed_is_still_read() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    let data = vec![7; 100_000];
    let mut whole = client.open_uni().await.expect("open");
    whole.write_all(&data).await.expect("written");
    whole.finish().expect("not finished");
    let mut half = client.open_uni().await.expect("open");
    half.write_all(b"and then").await.expect("written");
    let mut first = within(10, server.accept_uni()).await.expect("opened");
    assert_eq!(within(10, whole.stopped()).await, Ok(None));
    // By then it has arrived, like everything that was sent before it.
    let mut last = client.open_uni().await.expect("open");
    last.finish().expect("not finished");
    assert_eq!(within(10, last.stopped()).await, Ok(None));
    client.close(3u32.into(), b"bye");
    let closed = within(10, server.closed()).await;
    until(|| pair.server.open_connections() == 0).await;
    assert_eq!(first.read_to_end(1 << 20).await.expect("complete"), data);
    let mut second = within(10, server.accept_uni()).await.expect("arrived");
    let mut read = [0; 8];
    second.read_exact(&mut read).await.expect("arrived");
    assert_eq!(&read, b"and then");
    let lost = Err(ReadError::ConnectionLost(closed.clone()));
    assert_eq!(within(10, second.read_chunk(1)).await, lost);
    let mut third = within(10, server.accept_uni()).await.expect("arrived");
    assert_eq!(within(10, third.read_chunk(1)).await, Ok(None));
    assert_eq!(within(10, server.accept_uni()).await.err(), Some(closed));
}

#[tokio::test]
async fn statistics_remain_available_after_the_close() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    let mut send = client.open_uni().await.expect("open");
    send.write_all(&[1; 10_000]).await.expect("written");
    let mut receive = within(10, server.accept_uni()).await.expect("opened");
    receive.read_exact(&mut [0; 10_000]).await.expect("read");
    client.close(0u32.into(), b"");
    server.closed().await;
    within(10, pair.client.wait_idle()).await;
    until(|| pair.client.open_connections() == 0).await;
    let stats = client.stats();
    assert_eq!(stats.data_sent, 10_000);
    assert_eq!(client.remote_address(), pair.address);
    assert_eq!(
        client.handshake_data().expect("known").protocol.as_deref(),
        Some(&b"test"[..])
    );
    assert!(client.peer_identity().is_some());
    assert!(client.rtt() > Duration::ZERO);
}

#[test]
fn handles_outlive_the_runtime() {
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    let (pair, client, server) = runtime.block_on(async {
        let pair = pair();
        let (client, server) = pair.connect().await;
        (pair, client, server)
    });
    let mut stream = runtime.block_on(client.open_uni()).expect("open");
    drop(runtime);
    // Nothing is driven any more; calls return errors instead of hanging.
    let waiting = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    waiting.block_on(async {
        assert!(within(5, stream.write_all(&[0; 1 << 20])).await.is_err());
        assert!(within(5, server.accept_uni()).await.is_err());
        assert!(within(5, pair.server.accept()).await.is_none());
        within(5, pair.client.wait_idle()).await;
        assert!(pair.client.connect(pair.address, "localhost").is_err());
    });
    client.close(0u32.into(), b"");
}

#[test]
fn an_endpoint_without_a_runtime_is_an_error() {
    let error = Endpoint::client(loopback()).expect_err("no runtime");
    assert!(error.to_string().contains("tokio"), "{error}");
}
