//! Tests servers that forbid migration. RFC 9000 §9, §18.2.

use super::*;

fn forbidding() -> Pair {
    with_server(|server| server.migration = false)
}

#[test]
fn client_of_a_server_that_forbids_migration_does_not_move() {
    let mut pair = forbidding();
    let sent = pair.client.sent.len();
    for path in [to_second_ip(), to_second_socket()] {
        assert_eq!(begin(&mut pair, &path), Err(MigrateError::Forbidden));
    }
    pair.run_for(RTT);
    assert_eq!(pair.client.sent.len(), sent, "nothing is sent for it");
    pair.upload(10_000);
}

#[test]
fn packets_from_another_host_are_dropped_without_an_answer() {
    let mut pair = forbidding();
    let other = SocketAddr::from(([192, 168, 7, 7], 40_000));
    pair.client.address = other;
    let (sent, dropped) = (
        pair.server.sent.len(),
        pair.server.connection().stats().packets_dropped,
    );
    ping(&mut pair);
    pair.run_for(RTT);
    assert_eq!(server_peer(&mut pair), client_address());
    assert!(pair.server.connection().stats().packets_dropped > dropped);
    assert_eq!(
        pair.server.sent.len(),
        sent,
        "no reset, no close, no challenge"
    );
    assert_eq!((pair.server_error(), pair.client_error()), (None, None));
    pair.client.address = client_address();
    pair.upload(100_000);
}

#[test]
fn client_behind_a_rebinding_nat_is_followed() {
    let mut pair = forbidding();
    pair.client.address.set_port(50_001);
    pair.run_for(RTT);
    pair.upload(100_000);
    assert_eq!(server_peer(&mut pair).port(), 50_001);
}
