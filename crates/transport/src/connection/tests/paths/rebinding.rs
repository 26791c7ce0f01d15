//! Tests NATs that assign another port to a client before the handshake is complete.

use super::*;

/// Creates a pair whose client has all keys and whose Finished is lost.
fn unfinished() -> (Pair, Eye) {
    let (mut pair, eye) = Pair::watched();
    pair.link.filter = Some(Box::new(|_, datagram| {
        datagram.from != client_address() || !has_kind(datagram, PacketKind::Handshake)
    }));
    pair.start();
    assert!(pair.run_until(RTT * 3, |pair| pair.client.has(&Event::Connected)));
    assert!(!pair.server.has(&Event::Confirmed));
    (pair, eye)
}

#[test]
fn client_with_another_port_completes_its_handshake() {
    let (mut pair, eye) = unfinished();
    rebind(&mut pair, other_port());
    let is_done = |pair: &mut Pair| pair.client.has(&Event::Confirmed);
    assert!(pair.run_until(Duration::from_secs(5), is_done));
    assert_eq!(server_peer(&mut pair), other_port());
    assert_eq!(moves(&pair), [other_port()]);
    pair.run_for(RTT * 2);
    let challenged = sent_with(&pair, &eye, is_challenge);
    assert!(
        !challenged.is_empty(),
        "RFC 9000 §9: the peer has changed its address"
    );
    let asked = |place| challenged.iter().any(|(to, _)| *to == place);
    assert!(
        asked(other_port()) && asked(client_address()),
        "{challenged:?}"
    );
    assert!(is_validated(&mut pair));
    pair.download(200_000);
    pair.upload(200_000);
}

#[test]
fn client_at_another_host_is_not_followed_before_the_handshake_is_complete() {
    let (mut pair, _) = unfinished();
    rebind(&mut pair, other_host());
    pair.run_for(Duration::from_secs(4));
    assert_eq!(server_peer(&mut pair), client_address());
    assert!(!pair.server.has(&Event::Confirmed));
    assert!(moves(&pair).is_empty());
}

/// Observers of the first Initial can forge others (RFC 9001 §5.2).
#[test]
fn initial_packets_do_not_move_a_client() {
    let mut pair = Pair::new();
    pair.link.filter = Some(Box::new(|_, datagram| datagram.to == server_address()));
    pair.start();
    pair.run_for(RTT);
    rebind(&mut pair, other_port());
    pair.run_for(Duration::from_secs(3));
    assert_eq!(server_peer(&mut pair), client_address());
    assert!(moves(&pair).is_empty());
}

/// A copy of the client's packet from another port has no effect after the original.
#[test]
fn late_copy_of_a_packet_does_not_move_a_client() {
    let (mut pair, _) = unfinished();
    pair.link.filter = None;
    let is_finished = |datagram: &Datagram| {
        datagram.from == client_address() && has_kind(datagram, PacketKind::Handshake)
    };
    pair.run_until(Duration::from_secs(3), |pair| {
        pair.client.sent.iter().filter(|it| is_finished(it)).count() > 1
    });
    let mut copy = pair
        .client
        .sent
        .iter()
        .rfind(|it| is_finished(it))
        .cloned()
        .expect("sent again");
    copy.from = other_port();
    pair.run_for(RTT);
    pair.deliver(copy);
    pair.drive();
    assert_eq!(server_peer(&mut pair), client_address());
}

/// A request in 1-RTT packets arrives from the old port and is buffered until the Finished arrives from the
/// new one. The response is sent to the new one.
#[test]
fn buffered_packets_do_not_move_the_path_back() {
    let (mut pair, _) = unfinished();
    let request = Transfer::up(&mut pair, 1000);
    pair.run_for(RTT);
    assert!(!pair.server.has(&Event::Confirmed));
    rebind(&mut pair, other_port());
    let is_done = |pair: &mut Pair| pair.client.has(&Event::Confirmed);
    assert!(pair.run_until(Duration::from_secs(5), is_done));
    assert_eq!(moves(&pair), [other_port()]);
    assert!(request.finish(&mut pair, RTT * 2).is_some());
}

/// An attacker makes the Finished of a client arrive from another port of its host, and drops the rest.
#[test]
fn amplification_limit_holds_for_a_port_that_never_answers() {
    let (mut pair, _) = Pair::watched();
    pair.link.filter = Some(Box::new(|_, datagram| {
        let is_finished = has_kind(datagram, PacketKind::Handshake);
        if datagram.from == client_address() && is_finished {
            datagram.from = other_port();
        }
        datagram.to != other_port()
            && (datagram.to == client_address()
                || is_finished
                || has_kind(datagram, PacketKind::Initial))
    }));
    pair.start();
    assert!(pair.run_until(RTT * 3, |pair| pair.server.has(&Event::Confirmed)));
    pair.link.filter = Some(Box::new(|_, datagram| datagram.to == client_address()));
    // The client received its keys there.
    pair.ledger.exempt(client_address());
    let mut download = Transfer::down(&mut pair, 200_000);
    for _ in 0..100 {
        download.step(&mut pair);
        pair.run_for(Duration::from_millis(20));
    }
    let (received, sent) = pair.ledger.of(other_port());
    assert!(
        received > 0 && sent <= 3 * received,
        "{sent} for {received}"
    );
    pair.run_for(Duration::from_secs(5));
    assert_eq!(server_peer(&mut pair), client_address(), "RFC 9000 §9.3.2");
}
