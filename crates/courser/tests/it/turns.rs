//! Packets that leave while the driver lets the tasks run that it has woken.

use crate::common::{Pair, pair_with, within};
use courser::{Connection, TransportConfig};

const REQUESTS: usize = 100;

/// Answers `REQUESTS` streams at once, after all have arrived.
async fn answer_all(server: &Connection) {
    let mut streams = Vec::new();
    for _ in 0..REQUESTS {
        let (send, mut receive) = server.accept_bi().await.expect("a request");
        receive.read_to_end(10).await.expect("all of it");
        streams.push(send);
    }
    for send in &mut streams {
        send.write_all(b"a").await.expect("room");
        send.finish().expect("open");
    }
}

/// Sends `REQUESTS` requests. Each task that has an answer sends another request. Returns the calls that
/// sent those.
async fn ask_again(pair: &Pair, client: &Connection, server: &Connection) -> u64 {
    let mut tasks = Vec::new();
    for _ in 0..REQUESTS {
        let (mut send, mut receive) = client.open_bi().await.expect("room");
        send.write_all(b"q").await.expect("room");
        send.finish().expect("open");
        let client = client.clone();
        tasks.push(tokio::spawn(async move {
            receive.read_to_end(10).await.expect("an answer");
            let (mut send, receive) = client.open_bi().await.expect("room");
            send.write_all(b"q").await.expect("room");
            send.finish().expect("open");
            receive
        }));
    }
    // All tasks wait for their answers.
    tokio::task::yield_now().await;
    answer_all(server).await;
    let before = pair.client.socket_counters().send_calls;
    for task in tasks {
        task.await.expect("no panic");
    }
    pair.client.socket_counters().send_calls - before
}

/// The peer has work while the other tasks run, instead of both ends waiting for each other in turn.
#[tokio::test]
async fn the_first_of_many_writes_leave_before_the_last_task_has_run() {
    within(60, async {
        let pair = pair_with(TransportConfig::default(), |config| config);
        let (client, server) = pair.connect().await;
        let calls = ask_again(&pair, &client, &server).await;
        // At the 64th, the 128th and the 256th use of the connection, of some 300.
        assert!((3..20).contains(&calls), "{calls} calls");
        pair.finish().await;
    })
    .await;
}
