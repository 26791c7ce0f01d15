//! Records of the events on a connection.

use std::sync::{Arc, Mutex};

use crate::common;
use courser::telemetry::Record;

#[tokio::test]
async fn sink_receives_packet_records_until_it_is_removed() {
    let pair = common::pair();
    let (client, server) = pair.connect().await;
    let records: Arc<Mutex<Vec<Record>>> = Arc::default();
    let records_of_sink = Arc::clone(&records);
    client.set_sink(Some(Box::new(move |_now, record: &Record| {
        records_of_sink
            .lock()
            .expect("not poisoned")
            .push(record.clone());
    })));

    let (mut send, _receive) = client.open_bi().await.expect("allowed");
    send.write_all(b"hello").await.expect("open");
    send.finish().expect("open");
    let (mut reply, mut request) = server.accept_bi().await.expect("a stream");
    request.read_to_end(10).await.expect("five bytes");
    reply.write_all(b"there").await.expect("open");
    reply.finish().expect("open");
    send.stopped().await.expect("acknowledged");
    client.set_sink(None);

    assert_eq!(Arc::strong_count(&records), 1, "the sink is gone");
    let records = records.lock().expect("not poisoned");
    let sent = records.iter().any(|it| matches!(it, Record::PacketSent(_)));
    let received = records
        .iter()
        .any(|it| matches!(it, Record::PacketReceived(_)));
    assert!(sent && received, "{records:?}");
}
