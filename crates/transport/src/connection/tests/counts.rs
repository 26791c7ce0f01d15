//! Counts of frames and marks, and the delivery rate.

use super::*;
use crate::datagram::SendOptions;
use crate::testing::traffic::Transfer;

#[test]
fn frames_sent_are_those_that_the_other_end_receives() {
    let mut pair = Pair::connected();
    let download = Transfer::down(&mut pair, 300_000);
    pair.client.connection().pings().request();
    pair.client.touch();
    assert!(download.finish(&mut pair, Duration::from_secs(5)).is_some());
    pair.run_for(RTT * 5);
    let (client, server) = (
        pair.client.connection().stats(),
        pair.server.connection().stats(),
    );
    assert_eq!(client.frames_sent, server.frames_received);
    assert_eq!(server.frames_sent, client.frames_received);
    assert!(server.frames_sent.stream >= 300_000 / 1200);
    assert_eq!(server.frames_sent.handshake_done, 1);
    assert_eq!(client.frames_sent.ping, 1);
    assert_eq!(client.frames_sent.ack, client.acks_sent);
    assert!(server.frames_sent.crypto > 0 && server.frames_sent.new_connection_id > 0);
}

#[test]
fn datagrams_and_the_close_are_counted() {
    let mut pair = Pair::connected();
    pair.client.releases = false;
    let now = pair.now;
    for is_tracked in [true, false, false] {
        let options = SendOptions {
            is_tracked,
            ..SendOptions::default()
        };
        let data = Bytes::from_static(b"news");
        let sent = pair.client.connection().send_datagram(now, data, options);
        assert!(sent.is_ok());
    }
    pair.client.touch();
    pair.run_for(RTT);
    let received = pair.server.connection().stats().frames_received;
    assert_eq!(received.datagram, 3);
    pair.client.connection().close(pair.now, 0, b"");
    pair.client.touch();
    pair.run_for(RTT * 20);
    let stats = pair.client.connection().stats();
    assert_eq!(stats.frames_sent.datagram, 3);
    assert_eq!(stats.frames_sent.connection_close, 1);
    let before = stats.frames_sent;
    pair.run_for(Duration::from_secs(5));
    assert!(pair.client.connection().is_drained());
    let after = pair.client.connection().stats().frames_sent;
    assert_eq!(after, before, "they stay after the end");
}

#[test]
fn marks_are_counted_at_both_ends() {
    let mut pair = Pair::connected();
    let client = pair.client.connection().stats();
    let server = pair.server.connection().stats();
    assert_eq!(client.ecn_sent, server.ecn_received);
    assert!(client.ecn_sent.ect0 > 0 && client.ecn_sent.ect0 <= client.packets_sent);
    assert_eq!((client.ecn_sent.ect1, client.ecn_sent.ce), (0, 0));
    assert_eq!(server.ce_received, server.ecn_received.ce);
}

#[test]
fn delivery_rate_is_that_of_the_transfer() {
    let mut pair = Pair::connected();
    let begun = pair.now;
    let download = Transfer::down(&mut pair, 3_000_000);
    assert!(
        download
            .finish(&mut pair, Duration::from_secs(30))
            .is_some()
    );
    let average = 3_000_000 * 1000 / (pair.now - begun).as_millis() as u64;
    let path = pair.server.connection().stats().path;
    let bandwidth = path.bandwidth.expect("many samples").as_bytes_per_second();
    assert!(bandwidth >= average, "{bandwidth} below {average}");
    assert!(path.delivery_rate.expect("many samples") <= path.bandwidth.expect("as above"));
}
