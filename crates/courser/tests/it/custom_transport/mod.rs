//! Endpoints on tokio whose datagrams travel through a transport of the user.

mod faulty;
mod switch;

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use courser::runtime::UdpSocket;
use courser::{ClientConfig, ConnectionError, Endpoint, Identity, ServerConfig, TransportConfig};

use self::faulty::{Fault, FaultyTransport};
use self::switch::{LARGEST, Switch};
use crate::common::{pattern, spawn, within};

const CLIENT: &str = "192.0.2.1:1";
const SERVER: &str = "192.0.2.2:2";

/// The idle timeout of connections that cannot be established.
const IDLE: Duration = Duration::from_millis(400);

/// Time after which a test fails instead of hanging, for a machine under load.
const PATIENCE: Duration = Duration::from_secs(30);

struct Ends {
    server: Endpoint,
    client: Endpoint,
    config: ClientConfig,
}

/// Returns a server on `switch`, and a client on `transport`.
fn ends(switch: &Switch, transport: impl UdpSocket, settings: TransportConfig) -> Ends {
    let settings = Arc::new(settings);
    let identity = Identity::dev().expect("random numbers");
    let config = ServerConfig::with_identity(&identity)
        .expect("matching key")
        .alpn(["h3"])
        .transport_config(settings.clone());
    let builder = Endpoint::builder().server(config);
    let server = builder.transport(switch.port(SERVER)).expect("a runtime");
    let client = Endpoint::builder().transport(transport).expect("a runtime");
    let config = ClientConfig::with_roots([identity.certificate()])
        .expect("a certificate")
        .alpn(["h3"])
        .transport_config(settings);
    Ends {
        server,
        client,
        config,
    }
}

impl Ends {
    fn connect(&self) -> courser::Connecting {
        let peer = SERVER.parse().expect("an address");
        let connecting = self
            .client
            .connect_with(self.config.clone(), peer, "localhost");
        connecting.expect("configured")
    }
}

/// A megabyte goes to and fro over HTTP/3, in batches of which parts fit, with ECN marks, and in
/// datagrams that leave room for the header of the transport.
#[cfg(feature = "http3")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http3_runs_over_a_transport_of_the_user() {
    use courser::h3;
    use http_body_util::{BodyExt as _, Full};

    let switch = Switch::default();
    let ends = ends(&switch, switch.port(CLIENT), TransportConfig::default());
    let server = ends.server.clone();
    spawn(async move {
        let connection = server
            .accept()
            .await
            .expect("open")
            .await
            .expect("handshake");
        let echo = tower::service_fn(|request: http::Request<h3::Body>| async move {
            Ok::<_, std::convert::Infallible>(http::Response::new(request.into_body()))
        });
        let _ = h3::serve(connection, echo).await;
    });
    let connection = within(20, ends.connect()).await.expect("handshake");
    let client = h3::Client::new(connection.clone());
    let content = pattern(5, 1 << 20);
    let request = http::Request::post("https://localhost/echo")
        .body(Full::new(bytes::Bytes::from(content.clone())))
        .expect("a request");
    let response = within(20, client.send(request)).await.expect("answered");
    let body = within(20, response.into_body().collect())
        .await
        .expect("a body");
    assert!(body.to_bytes() == content, "the echo differs");

    let stats = switch.stats();
    assert!(stats.datagrams > 1600, "{stats:?}");
    assert!(
        stats.partial > 0 && stats.merged > 0 && stats.marked > 0,
        "{stats:?}"
    );
    assert!((1201..=LARGEST).contains(&stats.largest), "{stats:?}");
    assert_eq!(usize::from(connection.stats().path.mtu), LARGEST);
    let sum = |count: fn(&courser::Counters) -> u64| {
        [&ends.client, &ends.server]
            .map(|it| count(&it.socket_counters()))
            .iter()
            .sum::<u64>()
    };
    assert_eq!(sum(|it| it.sent_datagrams), switch.stats().datagrams);
    assert!(
        sum(|it| it.send_calls) < sum(|it| it.sent_datagrams),
        "batches"
    );
    assert!(sum(|it| it.received_datagrams) > 1600, "they are counted");
}

/// A connection moves from one transport to another: from the network to a relay.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connection_moves_to_another_transport() {
    let switch = Switch::default();
    let ends = ends(&switch, switch.port(CLIENT), TransportConfig::default());
    let accept = async { ends.server.accept().await.expect("open").await };
    let (client, server) = within(20, async { tokio::join!(ends.connect(), accept) }).await;
    let (client, server) = (client.expect("handshake"), server.expect("handshake"));
    let ask = async || {
        let mut send = client.open_uni().await.expect("open");
        send.write_all(b"here").await.expect("open");
        send.finish().expect("open");
        let mut receive = server.accept_uni().await.expect("open");
        receive.read_to_end(10).await.expect("complete")
    };
    assert_eq!(within(20, ask()).await, b"here");
    // The client knows that the handshake is confirmed, and has spare connection IDs.
    crate::common::until(|| client.stats().frames_received.handshake_done > 0).await;
    ends.client
        .rebind_transport(switch.port("192.0.2.9:9"))
        .expect("a transport");
    assert_eq!(within(20, ask()).await, b"here");
    let new = "192.0.2.9:9".parse().expect("an address");
    crate::common::until(|| server.remote_address() == new).await;
    assert_eq!(ends.client.local_addr().expect("known"), new);
}

/// Faults that prevent a connection. Each attempt ends with the idle timeout, without a panic
/// and without more calls than a few per timer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transport_with_false_results_ends_only_its_own_connection() {
    let faults = [
        Fault::TooLong,
        Fault::From("192.0.2.2:0"),
        Fault::From("0.0.0.0:2"),
        Fault::From("255.255.255.255:2"),
        Fault::From("224.0.0.1:2"),
        Fault::From("[::]:2"),
        Fault::From("[ff02::1]:2"),
        Fault::EmptyDatagrams,
        Fault::ReceiveErrors(ErrorKind::ConnectionRefused),
        Fault::ReceiveErrors(ErrorKind::WouldBlock),
        Fault::SendErrors(ErrorKind::HostUnreachable),
        Fault::NeverReady,
        Fault::WritableAndFull,
        Fault::SendsNothing,
    ];
    let attempts = faults.map(|fault| {
        spawn(async move {
            let (error, calls) = refused(fault).await;
            assert_eq!(error, ConnectionError::TimedOut, "{fault:?}");
            assert!(calls < 40_000, "{fault:?}: {calls} calls");
        })
    });
    for attempt in attempts {
        within(60, attempt).await.expect("no panic");
    }
}

/// No other error ends an endpoint: connections end with their timeouts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transport_that_is_broken_ends_connections_with_their_timeouts() {
    let kinds = [
        ErrorKind::BrokenPipe,
        ErrorKind::Other,
        ErrorKind::NotConnected,
    ];
    let faults = kinds.map(Fault::SendErrors).into_iter();
    let faults = faults
        .chain(kinds.map(Fault::ReceiveErrors))
        .chain([Fault::BreaksOnReceive]);
    let attempts = faults.map(|fault| {
        spawn(async move {
            let (error, calls) = refused(fault).await;
            assert_eq!(error, ConnectionError::TimedOut, "{fault:?}");
            assert!(calls < 40_000, "{fault:?}: {calls} calls");
        })
    });
    for attempt in attempts.collect::<Vec<_>>() {
        within(60, attempt).await.expect("no panic");
    }
}

/// The code of a closed descriptor ends the endpoint: only its user can open the transport again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transport_with_a_closed_descriptor_stops_its_endpoint() {
    for fault in [Fault::ClosedOnReceive, Fault::ClosedOnSend] {
        let (error, calls) = refused(fault).await;
        let text = error.to_string();
        assert!(
            text.contains("the endpoint has stopped: the socket failed"),
            "{fault:?}: {text}"
        );
        assert!(text.contains("cannot be opened again"), "{fault:?}: {text}");
        assert!(calls < 10, "{fault:?}: {calls} calls");
    }
}

/// Tries to connect with a faulty transport. Returns the error and the calls of the transport.
async fn refused(fault: Fault) -> (ConnectionError, u64) {
    let (switch, calls) = (Switch::default(), Arc::new(AtomicU64::new(0)));
    let faulty = FaultyTransport {
        fault,
        port: switch.port(CLIENT),
        calls: calls.clone(),
    };
    let settings = TransportConfig {
        max_idle_timeout: Some(IDLE),
        ..TransportConfig::default()
    };
    let ends = ends(&switch, faulty, settings);
    let server = ends.server.clone();
    spawn(async move { server.accept().await.expect("open").await });
    let peer = SERVER.parse().expect("an address");
    let connecting = match ends
        .client
        .connect_with(ends.config.clone(), peer, "localhost")
    {
        Ok(connecting) => connecting,
        Err(error) => panic!("{fault:?}: {error}"),
    };
    let error = match tokio::time::timeout(PATIENCE, connecting).await {
        Ok(Ok(_)) => panic!("{fault:?}: connected"),
        Ok(Err(error)) => error,
        Err(_) => panic!("{fault:?}: {} calls without an end", calls.load(Relaxed)),
    };
    // `wait_idle` does not wait for the transport.
    let idle = tokio::time::timeout(PATIENCE, ends.client.wait_idle()).await;
    assert!(idle.is_ok(), "{fault:?}: {:?}", ends.client.stats());
    (error, calls.load(Relaxed))
}

/// The endpoint corrects these faults: data still arrives.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transport_with_correctable_results_still_carries_data() {
    let faults = [
        Fault::NoSegments,
        Fault::FromAnywhere,
        Fault::SendsTooMuch,
        Fault::SendsHalves,
        Fault::Mtu(0),
        Fault::Mtu(u32::MAX),
        Fault::LosesAddress,
    ];
    for fault in faults {
        let (switch, calls) = (Switch::default(), Arc::new(AtomicU64::new(0)));
        let faulty = FaultyTransport {
            fault,
            port: switch.port(CLIENT),
            calls: calls.clone(),
        };
        let ends = ends(&switch, faulty, TransportConfig::default());
        let accept = async { ends.server.accept().await.expect("open").await };
        let both = async { tokio::join!(ends.connect(), accept) };
        let (client, server) = within(30, both).await;
        let (client, server) = match (client, server) {
            (Ok(client), Ok(server)) => (client, server),
            other => panic!("{fault:?}: {other:?}"),
        };
        let content = pattern(9, 50_000);
        let mut send = client.open_uni().await.expect("open");
        send.write_all(&content).await.expect("open");
        send.finish().expect("open");
        let mut receive = within(30, server.accept_uni()).await.expect("open");
        let received = within(30, receive.read_to_end(1 << 20))
            .await
            .expect("complete");
        assert!(received == content, "{fault:?}: the data differs");
    }
}

/// A transport may claim batches of any length; none is longer than 128 datagrams (limit K193).
#[tokio::test]
async fn batches_have_at_most_128_datagrams() {
    let switch = Switch::default();
    let faulty = FaultyTransport {
        fault: Fault::EndlessBatches,
        port: switch.port(CLIENT),
        calls: Arc::default(),
    };
    let client = Endpoint::builder().transport(faulty).expect("a runtime");
    assert_eq!(client.capabilities().gso_segments, usize::MAX);
    assert_eq!(client.open_connections(), 0);
}
