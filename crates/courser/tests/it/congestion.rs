//! Changing the congestion controller during a connection.

use crate::common;
use courser::Algorithm;

#[tokio::test]
async fn controller_changes_at_one_end_and_data_flows_on() {
    let pair = common::pair();
    let (client, server) = pair.connect().await;
    assert_eq!(client.stats().path.controller, "cubic");

    for &algorithm in Algorithm::ALL {
        client.set_congestion_controller(algorithm);
        assert_eq!(client.stats().path.controller, algorithm.to_string());
        let mut send = client.open_uni().await.expect("allowed");
        send.write_all(&[7; 100_000]).await.expect("open");
        send.finish().expect("open");
        let mut receive = server.accept_uni().await.expect("a stream");
        let data = receive.read_to_end(100_000).await.expect("complete");
        assert_eq!(data, [7; 100_000]);
    }
    assert_eq!(server.stats().path.controller, "cubic");
}

#[tokio::test]
async fn closed_connection_refuses_another_controller() {
    let pair = common::pair();
    let (client, _server) = pair.connect().await;
    client.close(0u32.into(), b"");
    client.set_congestion_controller(Algorithm::Bbr);
    assert_eq!(client.stats().path.controller, "cubic");
}
