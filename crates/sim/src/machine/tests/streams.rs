use courser::runtime::{sleep, spawn, timeout};
use courser::{Endpoint, ServerConfig};

use super::*;

fn question(number: usize) -> Vec<u8> {
    (0..10_000)
        .map(|index| (index * number % 251) as u8)
        .collect()
}

/// The result of an echo of several streams over a lossy wire.
fn echo_run(seed: u64) -> (Vec<Seen>, [u64; 2]) {
    let mut pair = Pair::new(seed).losing_every(11);
    pair.server.spawn(serve_echo());
    pair.run_client(async {
        let endpoint = client_endpoint();
        let connection = connect(&endpoint).await;
        let tasks: Vec<_> = (1..20)
            .map(|number| {
                let connection = connection.clone();
                spawn(async move {
                    let question = question(number);
                    assert_eq!(echo(&connection, &question).await, question);
                })
            })
            .collect();
        for task in tasks {
            task.await.expect("the echo is received");
        }
        endpoint.close(0u32.into(), b"");
        endpoint.wait_idle().await;
    });
    pair.run();
    assert!(pair.seen.len() > 200, "{} packets", pair.seen.len());
    let prints = [pair.client.fingerprint(), pair.server.fingerprint()];
    (pair.seen, prints)
}

#[test]
fn echo_over_a_lossy_wire_is_repeated_packet_by_packet_with_the_same_seed() {
    let (packets, prints) = echo_run(1);
    let (again, prints_again) = echo_run(1);
    let first_difference = packets.iter().zip(&again).position(|(a, b)| a != b);
    assert_eq!(first_difference, None);
    assert_eq!(packets.len(), again.len());
    assert_eq!(prints, prints_again);

    let (other, other_prints) = echo_run(2);
    assert_ne!(packets, other);
    assert_ne!(prints[0], other_prints[0]);
    assert_ne!(prints[1], other_prints[1]);
}

#[test]
fn handshake_and_answer_take_one_round_trip_each() {
    let mut pair = Pair::new(1);
    pair.server.spawn(serve_echo());
    let (handshake, answer) = pair.run_client(async {
        let endpoint = client_endpoint();
        let begin = courser::runtime::now();
        let connection = connect(&endpoint).await;
        let connected = courser::runtime::now();
        echo(&connection, b"here?").await;
        (connected - begin, courser::runtime::now() - connected)
    });
    // Only the wire takes time.
    assert_eq!((handshake, answer), (2 * DELAY, 2 * DELAY));
}

#[test]
fn thousand_streams_run_at_once() {
    let mut pair = Pair::new(3).losing_every(50);
    pair.server.spawn(serve_echo());
    let sum = pair.run_client(async {
        let endpoint = client_endpoint();
        let connection = connect(&endpoint).await;
        let tasks: Vec<_> = (0..1000u32)
            .map(|number| {
                let connection = connection.clone();
                spawn(async move {
                    let answer = echo(&connection, &number.to_be_bytes()).await;
                    u32::from_be_bytes(answer.try_into().expect("the answer has four bytes"))
                })
            })
            .collect();
        let mut sum = 0;
        for task in tasks {
            sum += task.await.expect("the echo is received");
        }
        sum
    });
    assert_eq!(sum, 999 * 1000 / 2);
}

#[test]
fn dropped_endpoint_releases_its_task_and_port() {
    let mut pair = Pair::new(4);
    pair.server.spawn(serve_echo());
    pair.run_client(async {
        for _ in 0..3 {
            let config = courser::EndpointConfig::from_seed([1; 32]);
            let endpoint = Endpoint::bind(config, None, SocketAddr::from((CLIENT, 5000)));
            let mut endpoint = endpoint.expect("the port is free again");
            let config = courser::ClientConfig::with_roots([identity().certificate()]);
            endpoint.set_default_client_config(
                config.expect("the configuration is valid").alpn(["test"]),
            );
            let connection = connect(&endpoint).await;
            echo(&connection, b"x").await;
            drop(connection);
            endpoint.wait_idle().await;
            drop(endpoint);
            // The driver still drains the connection, for three probe timeouts.
            sleep(Duration::from_secs(5)).await;
        }
    });
    pair.run();
    assert_eq!(pair.client.pending_tasks(), []);
    // The server's endpoint and the task that accepts on it, each identified by a line in tests.rs.
    let left = pair.server.pending_tasks();
    assert_eq!(left.len(), 2, "{left:?}");
    for task in left {
        let file = task.origin.file();
        assert!(
            file.ends_with("tests.rs") || file.ends_with("streams.rs"),
            "{task}"
        );
    }
}

#[test]
fn identity_created_on_a_machine_is_repeatable_and_valid() {
    let make = |seed| {
        let machine = Machine::new([CLIENT], seed);
        machine.enter(|| courser::Identity::dev().expect("random numbers are available"))
    };
    assert_eq!(make(1).certificate(), make(1).certificate());
    assert_ne!(make(1).certificate(), make(2).certificate());
    let lens: Vec<usize> = (0..50).map(|seed| make(seed).certificate().len()).collect();
    assert!(lens.iter().all(|len| *len == lens[0]), "{lens:?}");

    let own = make(1);
    let mut pair = Pair::new(7);
    let trusted = own.certificate();
    pair.server.spawn(async move {
        let config = ServerConfig::with_identity(&own)
            .expect("the identity is valid")
            .alpn(["test"]);
        let endpoint = Endpoint::server(config, server_address()).expect("the port is free");
        let connection = endpoint.accept().await.expect("the endpoint is open").await;
        connection.expect("the handshake completes").closed().await;
    });
    pair.run_client(async move {
        let endpoint = client_endpoint();
        let config =
            courser::ClientConfig::with_roots([trusted]).expect("the certificate is valid");
        let connecting =
            endpoint.connect_with(config.alpn(["test"]), server_address(), "localhost");
        connecting
            .expect("the endpoint has a configuration")
            .await
            .expect("the certificate is trusted");
    });
}

#[test]
fn unanswered_attempt_ends_at_the_handshake_timeout() {
    let mut pair = Pair::new(5).losing_every(1);
    let waited = pair.run_client(async {
        let begin = courser::runtime::now();
        let endpoint = client_endpoint();
        let connecting = endpoint.connect(server_address(), SERVER_NAME);
        let error = connecting
            .expect("the endpoint has a configuration")
            .await
            .expect_err("the peer does not answer");
        assert!(error.to_string().contains("timed out"), "{error}");
        courser::runtime::now() - begin
    });
    let limit = courser::TransportConfig::default().handshake_timeout;
    assert_eq!(waited, limit);
}

#[test]
fn both_ends_can_run_on_one_machine() {
    let mut pair = Pair::new(6);
    let answer = pair.run_client(async {
        let config = ServerConfig::with_identity(&identity()).expect("the configuration is valid");
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        let server = Endpoint::server(config.alpn(["test"]), here).expect("the port is free");
        let address = server.local_addr().expect("the endpoint is bound");
        spawn(async move {
            let connection = server
                .accept()
                .await
                .expect("the endpoint is open")
                .await
                .expect("a client connects");
            let (mut send, mut receive) = connection
                .accept_bi()
                .await
                .expect("the client opens a stream");
            tokio::io::copy(&mut receive, &mut send)
                .await
                .expect("the peer reads the stream");
            send.finish().expect("the stream is not finished");
            connection.closed().await;
        });
        let client = Endpoint::client(here).expect("the port is free");
        let config = courser::ClientConfig::with_roots([identity().certificate()]);
        let config = config.expect("the configuration is valid").alpn(["test"]);
        let connecting = client.connect_with(config, address, SERVER_NAME);
        let connection = connecting
            .expect("the endpoint has a configuration")
            .await
            .expect("the handshake completes");
        timeout(ms(10), echo(&connection, b"near")).await
    });
    assert_eq!(answer, Ok(b"near".to_vec()));
    assert_eq!(pair.seen, []);
}
