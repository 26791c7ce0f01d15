//! Tests the shares of single addresses and networks.

use courser_wire::TransportErrorCode;

use super::*;

const REFUSED: u64 = TransportErrorCode::CONNECTION_REFUSED.value();

/// Returns a client with this address; each number is a different client.
fn client(address: [u8; 4], number: u16) -> FirstDatagram {
    FirstDatagram {
        address: SocketAddr::from((address, 20_000 + number)),
        ..FirstDatagram::new(number)
    }
}

/// Returns the same client with a token that validates its address.
fn validated(pair: &mut Pair, client: FirstDatagram) -> FirstDatagram {
    let endpoint = &mut pair.server.endpoint;
    let ip = courser_base::ScopedIp::of(client.address);
    let (tokens, rng) = (endpoint.admission.tokens(), &mut endpoint.rng);
    let version = courser_wire::Version::V1;
    let token = tokens.validation(pair.now, ip, version, 1, rng).remove(0);
    FirstDatagram {
        token: token.to_vec(),
        ..client
    }
}

/// The result of an attempt to connect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    LetIn,
    Retry,
    Refused,
}

fn outcome(pair: &mut Pair, client: &FirstDatagram) -> Outcome {
    let before = pair.server.endpoint.stats();
    let answers = answers(pair, client.initial());
    let after = pair.server.endpoint.stats();
    if after.retries_sent > before.retries_sent {
        return Outcome::Retry;
    }
    if (after.waiting, after.accepted) != (before.waiting, before.accepted) {
        return Outcome::LetIn;
    }
    let codes = answers
        .iter()
        .filter_map(|it| close_code(it, &client.destination));
    assert_eq!(codes.collect::<Vec<_>>(), [REFUSED]);
    Outcome::Refused
}

/// Returns the number of these clients with validated addresses that are admitted before a refusal.
fn admitted(pair: &mut Pair, clients: impl Iterator<Item = FirstDatagram>) -> usize {
    let mut count = 0;
    for client in clients {
        let client = validated(pair, client);
        match outcome(pair, &client) {
            Outcome::LetIn => count += 1,
            Outcome::Refused => return count,
            Outcome::Retry => panic!("its address is validated"),
        }
    }
    panic!("none of {count} was refused");
}

const ONE: [u8; 4] = [192, 0, 2, 1];
const OTHER: [u8; 4] = [198, 51, 100, 1];

/// An address may hold three times the amount left (limit K100, attack A101).
#[test]
fn one_address_cannot_fill_the_queue_of_waiting_clients() {
    let mut pair = waiting_pair(|server| server.max_incoming = 100);
    let count = admitted(&mut pair, (0..).map(|number| client(ONE, number)));
    assert_eq!(count, 75, "three times the amount left");
    assert_eq!(pair.server.endpoint.stats().refused_for_share, 1);
    let other = validated(&mut pair, client(OTHER, 1000));
    assert_eq!(outcome(&mut pair, &other), Outcome::LetIn);
    assert_eq!(
        outcome(&mut pair, &client(OTHER, 1001)),
        Outcome::Retry,
        "under pressure"
    );
    while let Some(incoming) = pair.server.endpoint.poll_incoming() {
        pair.server.endpoint.ignore(incoming);
    }
    assert_clean(&pair.server, "server");
}

#[test]
fn one_network_cannot_fill_the_queue_of_waiting_clients() {
    let mut pair = waiting_pair(|server| server.max_incoming = 100);
    let clients = (0..).map(|number| client([192, 0, 2, number as u8], number));
    assert_eq!(
        admitted(&mut pair, clients),
        88,
        "seven times the amount left"
    );
    let other = validated(&mut pair, client(OTHER, 1000));
    assert_eq!(outcome(&mut pair, &other), Outcome::LetIn);
}

/// Clients that abandon the handshake (attack A38) hold memory for five seconds.
#[test]
fn one_address_cannot_use_all_memory_for_handshakes() {
    let mut pair = pair_with(|server| retry_from(server, 100));
    let count = admitted(&mut pair, (0..).map(|number| client(ONE, number)));
    assert_eq!(count, 75);
    assert_eq!(pair.server.endpoint.stats().half_open, 75);
    let other = validated(&mut pair, client(OTHER, 1000));
    assert_eq!(outcome(&mut pair, &other), Outcome::LetIn);
    pair.run_for(Duration::from_secs(20));
    assert_clean(&pair.server, "server");
    let again = validated(&mut pair, client(ONE, 2000));
    assert_eq!(outcome(&mut pair, &again), Outcome::LetIn);
}

/// The clients were admitted while memory was free, and are accepted together.
#[test]
fn waiting_clients_get_a_retry_when_their_share_is_used_up() {
    let mut pair = waiting_pair(|server| retry_from(server, 40));
    for number in 0..35 {
        let waiting = validated(&mut pair, client(ONE, number));
        assert_eq!(outcome(&mut pair, &waiting), Outcome::LetIn, "{number}");
    }
    let mut accepted = 0;
    while let Some(incoming) = pair.server.endpoint.poll_incoming() {
        accepted += usize::from(
            pair.server
                .endpoint
                .accept(pair.now, incoming, None)
                .is_ok(),
        );
    }
    assert_eq!(accepted, 30, "three times the amount left");
    let stats = pair.server.endpoint.stats();
    assert_eq!(
        (stats.half_open, stats.waiting, stats.refused_for_share),
        (30, 0, 5)
    );
}

#[test]
fn forged_addresses_do_not_reduce_the_share_of_their_owners() {
    let mut pair = waiting_pair(|server| server.max_incoming = 100);
    let forged = (0..200)
        .map(|number| outcome(&mut pair, &client(ONE, number)))
        .filter(|outcome| *outcome == Outcome::LetIn);
    assert_eq!(forged.count(), 75);
    let owner = validated(&mut pair, client(ONE, 1000));
    assert_eq!(outcome(&mut pair, &owner), Outcome::LetIn);
}

#[test]
fn shares_are_forgotten_with_their_handshakes() {
    let mut pair = pair_with(|_| {});
    for number in 0..50 {
        outcome(&mut pair, &client([10, 0, number as u8, 1], number));
    }
    pair.run_for(Duration::from_secs(20));
    assert_clean(&pair.server, "server");
    assert_eq!(
        pair.server
            .endpoint
            .admission
            .shared()
            .handshakes
            .lock()
            .sources(),
        0
    );
}

/// The limiter applies to addresses and networks (limit K102).
#[test]
fn new_connections_of_an_address_are_limited_in_rate() {
    let mut pair = waiting_pair(|server| server.connection_rate = Some(5));
    let outcomes: Vec<_> = (0..10)
        .map(|number| outcome(&mut pair, &client(ONE, number)))
        .collect();
    assert_eq!(outcomes[..5], [Outcome::LetIn; 5]);
    assert_eq!(
        outcomes[5..],
        [Outcome::Retry; 5],
        "the address may be forged"
    );
    let count = admitted(&mut pair, (100..).map(|number| client(ONE, number)));
    assert_eq!(count, 5);
    assert_eq!(pair.server.endpoint.stats().refused_for_rate, 1);
    let other = validated(&mut pair, client(OTHER, 1000));
    assert_eq!(outcome(&mut pair, &other), Outcome::LetIn);
    pair.now += Duration::from_secs(1);
    let count = admitted(&mut pair, (200..).map(|number| client(ONE, number)));
    assert_eq!(count, 5, "a second later");
}

/// An attacker on the path can copy a token, so a packet that does not open is not counted.
#[test]
fn damaged_copies_do_not_count_towards_the_rate_of_an_address() {
    let mut pair = waiting_pair(|server| server.connection_rate = Some(5));
    let honest = validated(&mut pair, client(ONE, 1));
    let mut damaged = honest.initial();
    let last = damaged.bytes.last_mut().expect("not empty");
    *last ^= 1;
    for _ in 0..20 {
        assert!(answers(&mut pair, damaged.clone()).is_empty());
    }
    assert_eq!(pair.server.endpoint.stats().datagrams_dropped, 20);
    assert_eq!(outcome(&mut pair, &honest), Outcome::LetIn);
}

#[test]
fn complete_handshake_counts_towards_the_rate_of_the_address() {
    let mut pair = pair_with(|server| server.connection_rate = Some(2));
    pair.connect();
    let SocketAddr::V4(address) = pair.client.address else {
        panic!("IPv4");
    };
    let address = address.ip().octets();
    let count = admitted(&mut pair, (100..).map(|number| client(address, number)));
    assert_eq!(count, 1, "the second of two");
}

#[test]
fn loaded_rate_applies_only_under_pressure() {
    let mut pair = waiting_pair(|server| server.loaded_connection_rate = Some(1));
    for number in 0..50 {
        let early = validated(&mut pair, client(ONE, number));
        assert_eq!(outcome(&mut pair, &early), Outcome::LetIn, "{number}");
    }
    // No client is accepted for two seconds (limit K11).
    pair.now += Duration::from_millis(200);
    let count = admitted(&mut pair, (100..).map(|number| client(ONE, number)));
    assert_eq!(count, 1);
    assert_eq!(pair.server.endpoint.stats().refused_for_rate, 1);
}

/// Networks take turns (limit K101).
#[test]
fn client_of_another_network_does_not_wait_behind_a_burst() {
    let mut pair = waiting_pair(|_| {});
    for number in 0..1000 {
        pair.deliver(client(ONE, number).initial());
    }
    pair.deliver(client(OTHER, 1000).initial());
    let order: Vec<_> = std::iter::from_fn(|| pair.server.endpoint.poll_incoming())
        .map(|incoming| incoming.peer().port())
        .collect();
    assert_eq!(order[..3], [20_000, 21_000, 20_001]);
    assert_eq!(order.len(), 1001);
}

/// Blocks these addresses.
fn block(pair: &mut Pair, list: &str) {
    let block = AddressPrefix::parse_list(list).expect("a list");
    let filter = Arc::new(AddressFilter::new(&block, &[]));
    pair.server.endpoint.set_address_filter(pair.now, filter);
}

#[test]
fn datagrams_of_a_blocked_address_are_dropped_unread() {
    let mut pair = waiting_pair(|_| {});
    block(&mut pair, "192.0.2.0/24");
    assert!(answers(&mut pair, client(ONE, 1).initial()).is_empty());
    let mut unknown_version = client(ONE, 2).initial();
    unknown_version.bytes[1..5].copy_from_slice(&[0xba; 4]);
    assert!(answers(&mut pair, unknown_version).is_empty());
    let stats = pair.server.endpoint.stats();
    assert_eq!(
        (
            stats.waiting,
            stats.datagrams_blocked,
            stats.datagrams_dropped
        ),
        (0, 2, 0)
    );
    assert_eq!(outcome(&mut pair, &client(OTHER, 3)), Outcome::LetIn);
    block(&mut pair, "");
    assert_eq!(outcome(&mut pair, &client(ONE, 4)), Outcome::LetIn);
}

#[test]
fn blocked_datagrams_of_one_buffer_are_counted_each() {
    let mut pair = waiting_pair(|_| {});
    block(&mut pair, "192.0.2.1");
    let meta = ReceiveMeta {
        path: FourTuple::to(client(ONE, 1).address),
        ecn: Ecn::NotEct,
        segment_size: 1200,
    };
    pair.server
        .endpoint
        .handle_datagrams(pair.now, &mut [0; 3000], &meta);
    assert_eq!(pair.server.endpoint.stats().datagrams_blocked, 3);
}

#[test]
fn connections_of_an_address_that_is_blocked_end() {
    let mut pair = Pair::connected();
    let address = pair.client.address.ip().to_string();
    block(&mut pair, "203.0.113.0/24");
    pair.run_for(RTT);
    assert!(lost(&pair.client).is_none(), "another address");
    block(&mut pair, &address);
    pair.run_for(RTT);
    match lost(&pair.client) {
        Some(ConnectionError::ConnectionClosed(close)) => assert_eq!(close.code.value(), REFUSED),
        other => panic!("{other:?}"),
    }
    assert_eq!(pair.server.endpoint.stats().closed_for_block, 1);
    pair.run_for(Duration::from_secs(10));
    assert_clean(&pair.server, "server");
}

#[test]
fn waiting_clients_are_removed_when_they_are_blocked() {
    let mut pair = waiting_pair(|_| {});
    pair.deliver(client(ONE, 1).initial());
    pair.deliver(client(OTHER, 2).initial());
    block(&mut pair, "192.0.2.1");
    let next = pair.server.endpoint.poll_incoming().expect("the other");
    assert_eq!(next.peer(), client(OTHER, 2).address);
    pair.server.endpoint.ignore(next);
    assert!(pair.server.endpoint.poll_incoming().is_none());
    assert_clean(&pair.server, "server");
}

#[test]
fn busy_endpoint_refuses_new_clients_and_keeps_its_connections() {
    let mut pair = Pair::connected();
    pair.server.endpoint.set_busy(true);
    assert_eq!(outcome(&mut pair, &client(ONE, 1)), Outcome::Refused);
    let stats = pair.server.endpoint.stats();
    assert_eq!((stats.refused_while_busy, stats.half_open), (1, 0));
    pair.client.connection().pings().request();
    pair.client.touch();
    let before = pair.server.connection().stats().packets_received;
    pair.run_for(RTT);
    assert!(pair.server.connection().stats().packets_received > before);
    pair.server.endpoint.set_busy(false);
    assert_eq!(outcome(&mut pair, &client(ONE, 2)), Outcome::LetIn);
}
