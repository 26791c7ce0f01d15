//! Every arrival wakes a task. With delayed acknowledgements and no idle timeout, no timer hides a missed one.

use std::sync::mpsc;
use std::time::Duration;

use crate::common::{Pair, loopback, pair_with, within};
use courser::{Connection, Endpoint, RecvStream, TransportConfig};
use tokio::sync::mpsc as async_mpsc;

const ROUNDS: usize = 50;

/// The driver receives, wakes several tasks and will send when they have run. A datagram that
/// arrives before wakes no task, because the driver is awake; the driver must check for it.
#[test]
fn datagram_that_arrives_in_the_middle_of_a_turn_is_received() {
    let transport = TransportConfig {
        max_ack_delay: Duration::from_secs(16),
        max_idle_timeout: None,
        ..TransportConfig::default()
    };
    let (send_go, go) = async_mpsc::unbounded_channel();
    let (send_gone, gone) = mpsc::channel();
    // This runtime polls the socket between any two tasks, so that it notices the datagram at once.
    let here = tokio::runtime::Builder::new_current_thread()
        .event_interval(1)
        .enable_all()
        .build();
    here.expect("a thread").block_on(async {
        let Pair {
            server,
            client_config,
            address,
            ..
        } = pair_with(transport, |config| config);
        let client = std::thread::spawn(move || {
            let there = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            there.expect("a thread").block_on(async {
                let endpoint = Endpoint::client(loopback()).expect("a port");
                let connecting = endpoint.connect_with(client_config, address, "localhost");
                let connection = connecting.expect("configured").await.expect("handshake");
                send_pairs(connection, go, send_gone).await;
            });
        });
        let connection = server
            .accept()
            .await
            .expect("open")
            .await
            .expect("handshake");
        let one = connection.accept_uni().await.expect("opened");
        let other = connection.accept_uni().await.expect("opened");
        let one = crate::common::spawn(read_bytes(one, || ()));
        let other = crate::common::spawn(read_bytes(other, move || {
            send_go.send(()).expect("client lives");
            gone.recv().expect("client lives");
        }));
        // The client's own timer finds a missed datagram only after 48 s.
        within(20, one).await.expect("no panic");
        within(20, other).await.expect("no panic");
        connection.close(0u32.into(), b"");
        client.join().expect("no panic");
    });
}

/// Reads byte by byte, and calls `then` before anything else can happen on this thread.
async fn read_bytes(mut receive: RecvStream, then: impl Fn()) {
    for _ in 0..ROUNDS {
        receive.read_exact(&mut [0]).await.expect("sent");
        then();
    }
}

/// Sends a byte on each of two streams, and again at each notification.
async fn send_pairs(
    connection: Connection,
    mut go: async_mpsc::UnboundedReceiver<()>,
    gone: mpsc::Sender<()>,
) {
    let mut one = connection.open_uni().await.expect("allowed");
    let mut other = connection.open_uni().await.expect("allowed");
    let mut send = async || {
        one.write_all(b"!").await.expect("enough credit");
        other.write_all(b"!").await.expect("enough credit");
        other.flush();
    };
    send().await;
    while go.recv().await.is_some() {
        send().await;
        gone.send(()).expect("server lives");
    }
}
