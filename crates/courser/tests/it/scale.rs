//! Many connections on one socket.

use crate::common::{pair, within};

const CONNECTIONS: usize = 2000;
const AT_ONCE: usize = 100;

async fn ask_on_many_connections() {
    let pair = pair();
    let server = pair.server.clone();
    crate::common::spawn(async move {
        while let Some(incoming) = server.accept().await {
            crate::common::spawn(async move {
                let connection = incoming.await.expect("handshake");
                while let Ok((mut send, mut receive)) = connection.accept_bi().await {
                    let question = receive.read_to_end(100).await.expect("read");
                    send.write_all(&question).await.expect("written");
                }
            });
        }
    });
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(AT_ONCE));
    let tasks: Vec<_> = (0..CONNECTIONS)
        .map(|index| {
            let (client, address, gate) = (pair.client.clone(), pair.address, gate.clone());
            crate::common::spawn(async move {
                let permit = gate.acquire().await.expect("never closed");
                let connection = client.connect(address, "localhost").expect("configured");
                let connection = connection.await.expect("handshake");
                drop(permit);
                let question = index.to_be_bytes();
                let (mut send, mut receive) = connection.open_bi().await.expect("open");
                send.write_all(&question).await.expect("written");
                send.finish().expect("not finished");
                assert_eq!(receive.read_to_end(100).await.expect("answer"), question);
                connection
            })
        })
        .collect();
    let mut connections = Vec::new();
    for task in tasks {
        connections.push(task.await.expect("no panic"));
    }
    assert_eq!(pair.client.open_connections(), CONNECTIONS);
    assert_eq!(pair.server.open_connections(), CONNECTIONS);
    pair.client.close(0u32.into(), b"");
    pair.client.wait_idle().await;
    drop(connections);
    pair.server.wait_idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_connections() {
    within(120, ask_on_many_connections()).await;
}
