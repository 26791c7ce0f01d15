//! Reports that the first packets of a client do not reach its server. RFC 8085 §5.2.

use std::net::SocketAddr;

use courser_base::Unreachable;

use super::*;
use crate::endpoint::UnreachableReport;
use crate::testing::Setup;

const LIMIT: Duration = Duration::from_secs(60);

/// Returns a client whose first flight gets no answer, and its first datagram.
fn unanswered(client_cid_len: usize) -> (Pair, Datagram) {
    let mut pair = Pair::with(Setup {
        client_cid_len,
        ..Setup::default()
    });
    pair.link.loss = 1000;
    pair.start();
    pair.run_for(Duration::from_millis(100));
    let first = pair.client.sent[0].clone();
    (pair, first)
}

fn report(pair: &mut Pair, peer: SocketAddr, quote: &[u8]) -> bool {
    let cause = Unreachable::Port;
    let report = UnreachableReport { peer, cause, quote };
    let is_believed = pair.client.endpoint.on_unreachable(&report);
    pair.run_for(Duration::from_millis(1));
    is_believed
}

fn is_reported(pair: &Pair) -> bool {
    pair.client.has(&Event::Unreachable(Unreachable::Port))
}

#[test]
fn quote_of_the_first_packet_is_reported_and_the_handshake_continues() {
    for client_cid_len in [8, 0, 20] {
        let (mut pair, first) = unanswered(client_cid_len);
        assert!(report(&mut pair, first.to, &first.bytes[..64]));
        assert!(is_reported(&pair), "{client_cid_len}");
        pair.link.loss = 0;
        assert!(pair.run_until(LIMIT, |pair| pair.client.has(&Event::Confirmed)));
    }
}

#[test]
fn flood_of_reports_is_one_event() {
    let (mut pair, first) = unanswered(8);
    let believed = (0..1000).filter(|_| report(&mut pair, first.to, &first.bytes[..64]));
    assert_eq!(believed.count(), 1);
    let is_report = |event: &&Event| matches!(event, Event::Unreachable(_));
    assert_eq!(pair.client.events.iter().filter(is_report).count(), 1);
}

#[test]
fn quotes_without_the_random_id_are_ignored() {
    let (mut pair, first) = unanswered(8);
    let quote = &first.bytes[..64];
    // First byte, version, destination ID and source ID with their lengths.
    let ids_end = 6 + usize::from(quote[5]);
    let ids_end = ids_end + 1 + usize::from(quote[ids_end]);
    for len in 0..ids_end {
        assert!(!report(&mut pair, first.to, &quote[..len]), "{len}");
    }
    for place in (0..ids_end).filter(|place| !(1..5).contains(place)) {
        let mut forged = quote.to_vec();
        forged[place] ^= 0x80;
        assert!(!report(&mut pair, first.to, &forged), "{place}");
    }
    let elsewhere = courser_base::with_port(first.to, first.to.port() + 1);
    assert!(!report(&mut pair, elsewhere, quote));
    assert!(!is_reported(&pair));
    assert!(report(&mut pair, first.to, quote), "the genuine one");
}

#[test]
fn server_that_has_answered_is_reachable() {
    let mut pair = Pair::connected();
    let first = pair.client.sent[0].clone();
    assert!(!report(&mut pair, first.to, &first.bytes[..64]));
    let handle = pair.client.handle.expect("a connection");
    pair.client
        .endpoint
        .on_send_refused(handle, Unreachable::Port);
    pair.client.touch();
    pair.run_for(Duration::from_secs(1));
    assert!(!is_reported(&pair) && !pair.client.connection().is_closed());
}

#[test]
fn server_ignores_reports_about_its_clients() {
    let mut pair = Pair::connected();
    let first = pair.server.sent[0].clone();
    let report = UnreachableReport {
        peer: first.to,
        cause: Unreachable::Port,
        quote: &first.bytes[..64],
    };
    assert!(!pair.server.endpoint.on_unreachable(&report));
    let handle = pair.server.handle.expect("a connection");
    pair.server
        .endpoint
        .on_send_refused(handle, Unreachable::Host);
    pair.server.touch();
    pair.run_for(Duration::from_secs(1));
    assert!(
        !pair
            .server
            .events
            .iter()
            .any(|event| matches!(event, Event::Unreachable(_)))
    );
}

#[test]
fn error_of_the_system_is_reported_until_the_server_answers() {
    let (mut pair, _) = unanswered(8);
    let handle = pair.client.handle.expect("a connection");
    pair.client
        .endpoint
        .on_send_refused(handle, Unreachable::Network);
    pair.client.touch();
    pair.run_for(Duration::from_millis(1));
    assert!(pair.client.has(&Event::Unreachable(Unreachable::Network)));
}
