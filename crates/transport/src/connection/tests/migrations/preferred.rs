//! Tests servers that prefer another address. RFC 9000 §9.6, §21.5.3, attack A57.

use std::net::{Ipv4Addr, SocketAddrV4};

use super::*;
use crate::testing::eye::Eye;
use crate::testing::{client_address, server_address};

const PREFERRED: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 9), 4433);

fn preferred() -> SocketAddr {
    PREFERRED.into()
}

/// Creates an unconnected pair whose server prefers an address, which is its own if `is_there`.
fn preferring(is_there: bool, migration: bool) -> (Pair, Eye) {
    let (setup, eye) = setup(|server| {
        server.preferred_address_v4 = Some(PREFERRED);
        server.migration = migration;
    })
    .with_eye();
    let mut pair = unconnected(setup);
    pair.server.reports_local = true;
    if is_there {
        pair.server.other_addresses = vec![preferred()];
    }
    (pair, eye)
}

/// Drops datagrams to the preferred address if no server is there.
fn lose_preferred(pair: &mut Pair) {
    pair.link.filter = Some(Box::new(|_, datagram| datagram.to != preferred()));
}

#[test]
fn client_moves_to_the_preferred_address_once_it_has_answered() {
    let (mut pair, eye) = preferring(true, true);
    pair.connect();
    pair.run_for(RTT * 3);
    assert!(pair.client.has(&Event::Migrated));
    assert_eq!(pair.client.connection().path().peer, preferred());
    let local = pair.server.connection().path().local;
    assert_eq!(local, Some(preferred().ip()));
    assert!(pair.server.connection().parts.paths.active().is_validated());
    let is_probe = |frames: Vec<Frame<'_>>| frames.iter().all(Frame::is_probing);
    let to_preferred: Vec<_> = eye
        .client_sent(&pair)
        .into_iter()
        .filter(|seen| pair.client.sent[seen.datagram].to == preferred())
        .collect();
    let first = &to_preferred[0];
    assert!(first.has(|frame| matches!(frame, Frame::PathChallenge(_))));
    assert!(is_probe(first.frames().collect()), "RFC 9000 §9.6.2");
    assert_eq!(first.datagram_len, 1200);
    let from_preferred: Vec<_> = eye
        .server_sent(&pair)
        .into_iter()
        .filter(|seen| pair.server.sent[seen.datagram].from == preferred())
        .collect();
    let first = &from_preferred[0];
    assert!(first.has(|frame| matches!(frame, Frame::PathResponse(_))));
    assert!(
        first.has(|frame| matches!(frame, Frame::PathChallenge(_))),
        "§9.6.2"
    );
    assert!(is_probe(first.frames().collect()));
    pair.upload(100_000);
    pair.download(100_000);
    let sent = pair.server.sent.len();
    pair.run_for(Duration::from_secs(10));
    pair.upload(100_000);
    let late = pair.server.sent[sent..].iter();
    assert!(late.clone().count() > 0 && late.clone().all(|it| it.from == preferred()));
    assert_unlinkable(&pair);
}

/// RFC 9000 §9.6.2: a preferred address is that of one connection.
#[test]
fn resumed_connection_begins_at_the_original_address_of_the_server() {
    let (mut pair, _) = preferring(true, true);
    pair.connect();
    pair.run_for(RTT * 3);
    assert_eq!(pair.client.connection().path().peer, preferred());
    let now = pair.now;
    pair.client.connection().close(now, 0, b"");
    pair.client.touch();
    pair.run_for(Duration::from_secs(5));
    for end in [&mut pair.client, &mut pair.server] {
        end.events.clear();
        end.sent.clear();
        end.handle = None;
    }
    pair.start();
    assert!(pair.run_until(RTT * 3, |pair| pair.client.has(&Event::Connected)));
    let data = pair.client.connection().handshake_data().expect("complete");
    assert!(data.resumed);
    assert_eq!(pair.client.connection().path().peer, server_address());
    let to_server = |datagram: &Datagram| datagram.to == server_address();
    assert!(pair.client.sent.iter().all(to_server));
    // It moves once the new handshake has named the address again.
    assert!(pair.run_until(RTT * 6, |pair| pair.client.has(&Event::Migrated)));
    assert_eq!(pair.client.connection().path().peer, preferred());
}

/// The preferred address may be unreachable (fault F24).
#[test]
fn client_stays_if_the_preferred_address_does_not_answer() {
    let (mut pair, _) = preferring(false, true);
    lose_preferred(&mut pair);
    pair.connect();
    pair.upload(100_000);
    pair.run_for(Duration::from_secs(10));
    assert!(pair.client.has(&Event::MigrationFailed));
    assert_eq!(pair.client.connection().path().peer, server_address());
    pair.upload(100_000);
    pair.download(100_000);
    assert_eq!(pair.client.connection().parts.paths.len(), 1);
}

#[test]
fn uninvolved_host_receives_three_probes_at_most() {
    let (mut pair, eye) = preferring(false, true);
    lose_preferred(&mut pair);
    pair.connect();
    pair.upload(300_000);
    pair.run_for(Duration::from_secs(30));
    let there =
        |seen: &&crate::testing::eye::Seen| pair.client.sent[seen.datagram].to == preferred();
    let seen = eye.client_sent(&pair);
    let probes: Vec<_> = seen.iter().filter(there).collect();
    assert!((1..=3).contains(&probes.len()), "{}", probes.len());
    for probe in probes {
        assert_eq!(probe.datagram_len, 1200);
        assert!(
            probe.frames().all(|frame| frame.is_probing()),
            "RFC 9000 §21.5.3"
        );
    }
}

/// Packets to the preferred address arrive from another host, to which replies are lost: the source is
/// forged, or the client uses another network for that address. RFC 9000 §9.6.3.
#[test]
fn another_source_at_the_preferred_address_gets_three_times_its_bytes_and_is_challenged() {
    let elsewhere: SocketAddr = "192.168.7.7:40000".parse().expect("an address");
    let (mut pair, eye) = preferring(true, true);
    pair.link.filter = Some(Box::new(move |_, datagram| {
        if datagram.to == preferred() {
            datagram.from = elsewhere;
        }
        datagram.to != elsewhere
    }));
    pair.connect();
    pair.run_for(Duration::from_secs(1));
    pair.download(300_000);
    pair.run_for(Duration::from_secs(10));
    let (received, sent) = pair.ledger.of(elsewhere);
    assert!(received >= 1200, "{received}");
    assert!(0 < sent && sent <= 3 * received, "{sent} for {received}");
    let is_challenge = |frame: &Frame<'_>| matches!(frame, Frame::PathChallenge(_));
    let sent = eye.server_sent(&pair);
    let mut there = sent
        .iter()
        .filter(|seen| pair.server.sent[seen.datagram].to == elsewhere);
    assert!(there.clone().any(|seen| seen.has(is_challenge)), "§9.3");
    assert!(
        there.all(|seen| seen.frames().all(|frame| frame.is_probing())),
        "data is sent to the validated address"
    );
    assert_eq!(server_peer(&mut pair), client_address());
    pair.upload(100_000);
}

/// A response from the original address with guessed data must not validate the preferred one.
#[test]
fn guessed_response_does_not_move_the_client() {
    let (mut pair, _) = preferring(false, true);
    lose_preferred(&mut pair);
    pair.connect();
    for guess in 0..50 {
        let response = courser_wire::frame::PathResponse { data: [guess; 8] };
        pair.frame_to_client(&Frame::PathResponse(response));
    }
    pair.drive();
    assert_eq!(pair.client.connection().path().peer, server_address());
    assert_eq!(pair.client_error(), None);
}

#[test]
fn disabled_migration_holds_for_the_first_address_only() {
    let (mut pair, _) = preferring(true, false);
    lose_preferred(&mut pair);
    pair.connect();
    assert_eq!(
        begin(&mut pair, &to_second_ip()),
        Err(MigrateError::Forbidden)
    );
    pair.link.filter = None;
    pair.run_for(Duration::from_secs(5));
    assert_eq!(pair.client.connection().path().peer, preferred());
    assert_eq!(begin(&mut pair, &to_second_ip()), Ok(()), "RFC 9000 §18.2");
    pair.run_for(Duration::from_secs(2));
    assert_eq!(server_peer(&mut pair).ip(), second_ip());
    pair.upload(100_000);
}

#[test]
fn client_may_ignore_the_preferred_address() {
    let (mut pair, _) = preferring(true, true);
    pair.client_config.follow_preferred_address = false;
    pair.connect();
    pair.upload(100_000);
    pair.run_for(Duration::from_secs(5));
    assert!(
        pair.client
            .sent
            .iter()
            .all(|sent| sent.to == server_address())
    );
}

#[test]
fn server_without_ids_offers_no_preferred_address() {
    let (mut pair, _) = preferring(true, true);
    let mut config = crate::EndpointConfig::from_seed([5; 32]);
    config.connection_id_len = 0;
    let server = Some(std::sync::Arc::clone(&pair.server_config));
    pair.server.endpoint = crate::Endpoint::new(config, server, [6; 32]);
    pair.connect();
    let parameters = pair.client.connection().parts.handshake.peer_parameters();
    let offered = parameters.expect("connected").preferred_address;
    assert_eq!(offered, None, "RFC 9000 §18.2");
    pair.run_for(Duration::from_secs(5));
    assert!(
        pair.client
            .sent
            .iter()
            .all(|sent| sent.to == server_address())
    );
}

/// The ID of the offer is one of the server's, with sequence number 1 (RFC 9000 §5.1.1).
#[test]
fn offered_id_is_routed_until_it_is_retired() {
    let (mut pair, _) = preferring(true, true);
    pair.connect();
    pair.upload(100_000);
    pair.run_for(Duration::from_secs(10));
    let now = pair.now;
    pair.client.connection().close(now, 0, b"");
    pair.client.touch();
    pair.run_for(Duration::from_secs(10));
    assert_eq!(pair.server.endpoint.connections(), 0);
    assert_eq!(pair.client.endpoint.connections(), 0);
}
