//! Tests bursts of many honest clients.

use super::*;
use crate::space::SpaceId;
use crate::testing::first_datagram::FirstDatagram;
use crate::testing::forge::forge;

/// Returns the first datagrams of these clients behind one address.
fn storm(clients: std::ops::Range<u16>) -> impl Iterator<Item = Datagram> {
    clients.map(|number| {
        let address = SocketAddr::from(([172, 16, 0, 1], 20_000 + number));
        FirstDatagram {
            address,
            ..FirstDatagram::new(number)
        }
        .initial()
    })
}

/// Returns the numbers of waiting clients, Retry packets, datagrams and clients without an answer.
fn outcome(pair: &Pair) -> (usize, u64, u64, u64) {
    let stats = pair.server.endpoint.stats();
    (
        stats.waiting,
        stats.retries_sent,
        stats.datagrams_dropped,
        stats.ignored,
    )
}

#[test]
fn burst_from_one_address_waits_without_retry() {
    for clients in [1_000, 10_000] {
        let mut pair = waiting_pair(|_| {});
        for datagram in storm(0..clients) {
            pair.deliver(datagram);
        }
        assert_eq!(
            outcome(&pair),
            (clients.into(), 0, 0, 0),
            "{clients} clients"
        );
        let order: Vec<_> = std::iter::from_fn(|| pair.server.endpoint.poll_incoming())
            .map(|incoming| incoming.peer().port())
            .collect();
        assert!(order.is_sorted(), "in the order of arrival");
        assert_eq!(order.len(), usize::from(clients));
    }
}

#[test]
fn handshakes_that_wait_for_clients_do_not_block_others() {
    let mut pair = pair_with(|_| {});
    for datagram in storm(0..1_000) {
        pair.deliver(datagram);
        pair.drive();
    }
    let stats = pair.server.endpoint.stats();
    assert_eq!((stats.half_open, stats.retries_sent), (1_000, 0));
}

#[test]
fn new_clients_get_a_retry_while_others_wait_too_long() {
    let mut pair = waiting_pair(|_| {});
    for datagram in storm(0..100) {
        pair.deliver(datagram);
    }
    pair.now += Duration::from_millis(199);
    assert!(answers(&mut pair, FirstDatagram::new(200).initial()).is_empty());
    pair.now += Duration::from_millis(1);
    let answer = answers(&mut pair, FirstDatagram::new(201).initial());
    assert_eq!(
        answer.iter().map(kind_of).collect::<Vec<_>>(),
        [PacketKind::Retry]
    );
    while let Some(incoming) = pair.server.endpoint.poll_incoming() {
        pair.server.endpoint.ignore(incoming);
    }
    assert!(answers(&mut pair, FirstDatagram::new(202).initial()).is_empty());
    assert_eq!(pair.server.endpoint.stats().waiting, 1);
}

/// Limit K11: clients that cannot be accepted in time are ignored if their own network is the cause.
#[test]
fn clients_that_would_wait_too_long_are_ignored() {
    let mut pair = waiting_pair(|_| {});
    for datagram in storm(0..100) {
        pair.deliver(datagram);
    }
    pair.now += Duration::from_secs(2);
    for datagram in storm(100..110) {
        assert!(answers(&mut pair, datagram).is_empty());
    }
    assert_eq!(outcome(&pair), (100, 0, 0, 10));
    // A client of another network would be the second: it gets a Retry, as always under pressure.
    let first = pair.server.endpoint.poll_incoming().expect("a client");
    pair.server.endpoint.ignore(first);
    let elsewhere = FirstDatagram {
        address: SocketAddr::from(([198, 51, 100, 1], 20_000)),
        ..FirstDatagram::new(201)
    };
    let answer = answers(&mut pair, elsewhere.initial());
    assert_eq!(
        answer.iter().map(kind_of).collect::<Vec<_>>(),
        [PacketKind::Retry]
    );
    while let Some(incoming) = pair.server.endpoint.poll_incoming() {
        pair.server.endpoint.ignore(incoming);
    }
    for datagram in storm(110..120) {
        pair.deliver(datagram);
    }
    assert_eq!(pair.server.endpoint.stats().waiting, 10);
}

#[test]
fn flood_beyond_the_limits_is_bounded() {
    let mut pair = waiting_pair(|_| {});
    for datagram in storm(0..20_000) {
        pair.deliver(datagram);
    }
    // Three quarters of the limit (limit K10); the rest is for clients with a validated address.
    assert_eq!(pair.server.endpoint.stats().waiting, 12_288);
    assert_eq!(waiting_bytes(&pair.server.endpoint), 12_288 * 1200);
    assert_eq!(pair.server.endpoint.router.len(), 12_288);
    assert_eq!(pair.server.endpoint.stateless.queued(), MAX_REPLIES);
    let stats = pair.server.endpoint.stats();
    let unanswered = 20_000 - 12_288 - MAX_REPLIES as u64;
    assert_eq!(stats.replies_over_room, unanswered, "counted by reason");
}

#[test]
fn replies_over_their_rate_are_counted() {
    let mut pair = pair_with(|server| server.retry = crate::config::RetryPolicy::Always);
    slow_replies(&mut pair);
    for datagram in storm(0..60) {
        answers(&mut pair, datagram);
    }
    let stats = pair.server.endpoint.stats();
    assert_eq!((stats.retries_sent, stats.replies_over_rate), (50, 10));
    assert_eq!(stats.datagrams_dropped, 10);
}

/// Limit K117: the endpoint drops datagrams unread, and counts them, only while the socket is never
/// empty.
#[test]
fn datagrams_of_the_heaviest_network_are_dropped_unread_from_a_standing_queue() {
    let mut pair = waiting_pair(|_| {});
    let honest = FirstDatagram {
        address: SocketAddr::from(([198, 51, 100, 1], 20_000)),
        ..FirstDatagram::new(5000)
    };
    let mut flood = storm(0..3_000);
    for _ in 0..300 {
        let endpoint = &mut pair.server.endpoint;
        endpoint.on_socket_read(pair.now, true);
        for datagram in flood.by_ref().take(10) {
            pair.deliver(datagram);
        }
        pair.deliver(honest.initial());
        pair.now += Duration::from_micros(100);
    }
    let stats = pair.server.endpoint.stats();
    assert!(stats.datagrams_over_share > 1_500, "{stats:?}");
    assert!(
        stats.waiting + stats.datagrams_over_share as usize <= 3_001,
        "only datagrams of the flood: {stats:?}"
    );
    let before = stats.datagrams_over_share;
    pair.server.endpoint.on_socket_read(pair.now, false);
    for datagram in storm(3_000..3_010) {
        pair.deliver(datagram);
    }
    assert_eq!(pair.server.endpoint.stats().datagrams_over_share, before);
}

/// Attack A246: source addresses may be forged, so a flood must not cut off those who have them.
#[test]
fn forged_datagrams_do_not_cut_off_connections_of_a_network() {
    let mut pair = Pair::connected();
    let forged = |number: u16| FirstDatagram {
        // The network of the client.
        address: SocketAddr::from(([10, 0, 0, 9], 20_000 + number)),
        ..FirstDatagram::new(number)
    };
    let elsewhere = FirstDatagram {
        address: SocketAddr::from(([198, 51, 100, 1], 20_000)),
        ..FirstDatagram::new(5000)
    };
    let client = pair.client.address;
    let send_ping = |pair: &mut Pair, from: SocketAddr| {
        let bytes = forge(&mut pair.client, SpaceId::Application, &[1]);
        let to = pair.server.address;
        let ecn = Ecn::NotEct;
        pair.deliver(Datagram {
            from,
            to,
            ecn,
            bytes,
        });
    };
    let before = pair.server.connection().stats().packets_received;
    for turn in 0..300 {
        let now = pair.now;
        pair.server.endpoint.on_socket_read(now, true);
        for number in 0..10 {
            pair.deliver(forged(turn * 10 + number).initial());
        }
        pair.deliver(elsewhere.initial());
        send_ping(&mut pair, client);
        pair.now += Duration::from_micros(100);
    }
    let received = pair.server.connection().stats().packets_received - before;
    assert_eq!(received, 300);
    let dropped = pair.server.endpoint.stats().datagrams_over_share;
    assert!((1_500..=3_000).contains(&dropped), "{dropped}");
    // An address that the connection has not validated may be forged as well.
    send_ping(&mut pair, SocketAddr::from(([10, 0, 0, 77], 50_000)));
    let stats = pair.server.endpoint.stats();
    assert_eq!(stats.datagrams_over_share, dropped + 1);
    let received = pair.server.connection().stats().packets_received - before;
    assert_eq!(received, 300);
}
