//! Measurements of datagrams with peers that do not follow the protocol.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use courser::{Algorithm, Connection, Endpoint, QuicVersion, ReadError, ServerConfig};
use courser_measure::CpuClock;
use courser_measure::target::transport;
use courser_measure::tls::{self, Identity, Trust};
use courser_perf::{
    Amount, Direction, Event, Mixed, Over, PROTOCOL, Plan, Remote, Scenario, Server, ServerOptions,
    Watch, measure,
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

const LOOPBACK: SocketAddr = SocketAddr::V4(std::net::SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));

/// Starts a server, and returns its address and the errors of its clients.
async fn server() -> (SocketAddr, UnboundedReceiver<String>) {
    let options = ServerOptions {
        listen: LOOPBACK,
        identity: Identity::in_memory().expect("a key"),
        transport: transport(Algorithm::Cubic, None),
        versions: None,
        early_data: false,
        tcp: false,
        webtransport: false,
        shards: 1,
        clock: CpuClock::Process,
    };
    let (sender, errors) = unbounded_channel();
    let on_event = move |event| {
        if let Event::Failed { error, .. } = event {
            let _ = sender.send(error);
        }
    };
    let server = Server::bind(options, on_event).await.expect("bound");
    let (address, _) = server.addresses().expect("bound");
    tokio::spawn(server.run(std::future::pending()));
    (address, errors)
}

fn remote(address: SocketAddr) -> Remote {
    Remote {
        target: address.to_string(),
        address,
        name: "localhost".to_owned(),
        over: Over::Quic,
        congestion: Algorithm::Cubic,
        capacity_rise: true,
        versions: vec![QuicVersion::V1],
        mtu: None,
        segmentation_offload: true,
        rebind_every: None,
        paths: Vec::new(),
        via: None,
        connect_timeout: Duration::from_secs(30),
        clock: CpuClock::Process,
        tls: Arc::new(tls::client(&Trust::AnyServer, PROTOCOL).expect("usable")),
        sinks: None,
    }
}

async fn connect(address: SocketAddr) -> (Endpoint, Connection) {
    let endpoint = Endpoint::client(LOOPBACK).expect("a socket");
    let tls = tls::client(&Trust::AnyServer, PROTOCOL).expect("usable");
    let config = courser::ClientConfig::with_rustls(Arc::new(tls));
    let connecting = endpoint.connect_with(config, address, "localhost");
    let connection = connecting.expect("valid").await.expect("connected");
    (endpoint, connection)
}

/// Returns the next error of a client.
async fn next(errors: &mut UnboundedReceiver<String>) -> String {
    let error = tokio::time::timeout(Duration::from_secs(20), errors.recv()).await;
    error.expect("in time").expect("the server runs")
}

/// Requests a measurement with `text` in place of the request.
async fn ask(connection: &Connection, text: &[u8]) -> Result<Vec<u8>, ReadError> {
    let (mut send, mut receive) = connection.open_bi().await.expect("allowed");
    send.write_all(b"courser!").await.expect("room");
    send.write_all(text).await.expect("room");
    let mut answer = Vec::new();
    while !answer.contains(&b'\n') {
        match receive.read_chunk(4096).await? {
            Some(bytes) => answer.extend_from_slice(&bytes),
            None => break,
        }
    }
    Ok(answer)
}

#[tokio::test]
async fn overlong_line_ends_the_measurement() {
    let (address, mut errors) = server().await;
    let (_endpoint, connection) = connect(address).await;
    let answer = ask(&connection, &[b'x'; 5000]).await;
    assert_ne!(answer.as_deref().map(<[u8]>::is_empty), Ok(false));
    let error = next(&mut errors).await;
    assert_eq!(error, "the peer sent a message that is too long");
    let answer = ask(&connection, b"{\"version\":\n").await;
    assert_ne!(answer.as_deref().map(<[u8]>::is_empty), Ok(false));
    let error = next(&mut errors).await;
    assert_eq!(error, "the peer sent an unknown message");
    // A later measurement on the connection succeeds.
    let start =
        br#"{"version":1,"direction":"download","size":16,"rate":null,"millis":null,"number":1}"#;
    // The limit counts the end of the line.
    let line_of = |len: usize| {
        let mut line = start.to_vec();
        line.resize(len - 1, b' ');
        line.push(b'\n');
        line
    };
    let answer = ask(&connection, &line_of(4097)).await;
    assert_ne!(answer.as_deref().map(<[u8]>::is_empty), Ok(false));
    let error = next(&mut errors).await;
    assert_eq!(error, "the peer sent a message that is too long");
    let answer = ask(&connection, &line_of(4096)).await;
    assert_eq!(answer.as_deref(), Ok(&b"{\"version\":1}\n"[..]));
}

#[tokio::test]
async fn newer_client_gets_the_version_of_the_server() {
    let (address, _errors) = server().await;
    let (_endpoint, connection) = connect(address).await;
    let start = br#"{"version":2,"direction":"both","size":16,"rate":1,"millis":5,"number":null}"#;
    let answer = ask(&connection, &[start, &b"\n"[..]].concat()).await;
    let text = String::from_utf8(answer.expect("an answer")).expect("UTF-8");
    assert_eq!(
        text,
        "{\"version\":1,\"refused\":\"version 2 of datagram measurements is not supported, only version 1\"}\n"
    );
}

#[tokio::test]
async fn one_measurement_runs_at_a_time_on_a_connection() {
    let (address, mut errors) = server().await;
    let (_endpoint, connection) = connect(address).await;
    let start =
        br#"{"version":1,"direction":"upload","size":16,"rate":null,"millis":60000,"number":null}"#;
    let start = [start, &b"\n"[..]].concat();
    let (mut send, mut receive) = connection.open_bi().await.expect("allowed");
    send.write_all(&[b"courser!", &start[..]].concat())
        .await
        .expect("room");
    assert_eq!(
        receive.read_chunk(100).await.expect("an answer").as_deref(),
        Some(&b"{\"version\":1}\n"[..])
    );
    let second = ask(&connection, &start).await;
    assert!(second.is_err_and(|error| error.is_reset()));
    let error = next(&mut errors).await;
    assert_eq!(
        error,
        "another measurement of datagrams runs on this connection"
    );
}

/// Reports counters as a server does that predates measurements of datagrams.
async fn serve_old(endpoint: Endpoint) {
    while let Some(incoming) = endpoint.accept().await {
        let connection = incoming.await.expect("connected");
        tokio::spawn(async move {
            while let Ok((mut send, mut receive)) = connection.accept_bi().await {
                let request = receive.read_to_end(100).await.expect("a request");
                assert_eq!(request, b"courser?");
                send.write_all(br#"{"courser":"0.0.9","cpu_seconds":1.0}"#)
                    .await
                    .expect("room");
                send.finish().expect("open");
            }
        });
    }
}

#[tokio::test]
async fn older_server_is_refused_with_the_versions() {
    let tls = tls::server(Identity::in_memory().expect("a key"), PROTOCOL).expect("usable");
    let endpoint = Endpoint::server(ServerConfig::with_rustls(tls), LOOPBACK).expect("bound");
    let address = endpoint.local_addr().expect("bound");
    tokio::spawn(serve_old(endpoint));
    let datagram = Scenario::Datagram {
        direction: Direction::Both,
        size: 100,
        rate: None,
    };
    let mixed = Scenario::Mixed(Mixed {
        direction: Direction::Both,
        streams: 1,
        in_flight: 1,
        request_size: 1,
        response_size: 1,
        datagram_size: 100,
        datagram_rate: None,
    });
    for (scenario, name) in [(datagram, "datagram"), (mixed, "mixed")] {
        let plan = Plan {
            scenario,
            amount: Amount::Time(Duration::from_secs(1)),
            warm_up: None,
            interval: None,
        };
        let watch = Watch {
            progress: &|_| {},
            interval: None,
            on_interval: &|_| {},
            is_stopped: &|| false,
        };
        let error = measure(&remote(address), &plan, watch)
            .await
            .expect_err("too old");
        assert_eq!(
            error.to_string(),
            format!(
                "the server is too old for --scenario {name}: it supports version 0 of datagrams, this client \
                 needs version 1"
            )
        );
    }
}
