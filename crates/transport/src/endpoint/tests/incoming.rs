//! Tests new clients that are accepted, refused, ignored, or exceed a limit.

use courser_wire::TransportErrorCode;

use super::*;
use crate::config::{RetryPolicy, TransportConfig};
use crate::testing::identity::server_tls;

const REFUSED: u64 = TransportErrorCode::CONNECTION_REFUSED.value();

#[test]
fn client_waits_until_it_is_accepted() {
    let mut pair = waiting_pair(|_| {});
    pair.start();
    pair.run_for(Duration::from_secs(2));
    assert_eq!(pair.server.endpoint.stats().waiting, 1);
    assert!(pair.server.sent.is_empty());
    let incoming = pair.server.endpoint.poll_incoming().expect("it waits");
    assert_eq!(incoming.peer(), pair.client.address);
    assert_eq!(incoming.local_ip(), None);
    let handle = pair
        .server
        .endpoint
        .accept(pair.now, incoming, None)
        .expect("fine");
    pair.server.handle = Some(handle);
    assert!(pair.run_until(Duration::from_secs(1), |pair| {
        pair.client.has(&Event::Confirmed)
    }));
    let stats = pair.server.endpoint.stats();
    assert_eq!((stats.accepted, stats.waiting, stats.half_open), (1, 0, 0));
}

#[test]
fn refused_client_gets_the_reason_at_once() {
    let mut pair = waiting_pair(|_| {});
    pair.start();
    pair.run_for(RTT / 2);
    let incoming = pair.server.endpoint.poll_incoming().expect("it waits");
    pair.server.endpoint.refuse(pair.now, incoming);
    pair.run_for(RTT);
    match lost(&pair.client) {
        Some(ConnectionError::ConnectionClosed(close)) => assert_eq!(close.code.value(), REFUSED),
        other => panic!("{other:?}"),
    }
    // Late parts of its first flight do not count as a new client.
    assert_eq!(pair.server.endpoint.stats().refused, 1);
    assert_clean(&pair.server, "server");
    pair.run_for(Duration::from_secs(10));
    assert_clean(&pair.client, "client");
}

#[test]
fn refusal_is_smaller_than_its_trigger() {
    let mut pair = waiting_pair(|_| {});
    let first_datagram = FirstDatagram::new(1);
    answers(&mut pair, first_datagram.initial());
    let incoming = pair.server.endpoint.poll_incoming().expect("it waits");
    pair.server.endpoint.refuse(pair.now, incoming);
    pair.drive();
    let [answer] = &pair.server.sent[..] else {
        panic!("one answer")
    };
    assert_eq!(
        close_code(answer, &first_datagram.destination),
        Some(REFUSED)
    );
    assert!(answer.bytes.len() < 1200);
}

#[test]
fn ignored_client_gets_no_answer_and_is_new_on_its_next_attempt() {
    let mut pair = waiting_pair(|_| {});
    pair.start();
    pair.run_for(RTT);
    let incoming = pair.server.endpoint.poll_incoming().expect("it waits");
    pair.server.endpoint.ignore(incoming);
    assert_clean(&pair.server, "server");
    assert!(pair.server.sent.is_empty());
    pair.accepts = true;
    assert!(pair.run_until(Duration::from_secs(5), |pair| {
        pair.client.has(&Event::Confirmed)
    }));
    assert_eq!(pair.server.endpoint.stats().ignored, 1);
}

#[test]
fn number_of_waiting_clients_is_limited() {
    for policy in [RetryPolicy::Never, RetryPolicy::Auto] {
        let mut pair = waiting_pair(|server| {
            server.max_incoming = 3;
            server.retry = policy;
        });
        let answered: Vec<_> = (0..6)
            .map(|number| answers(&mut pair, FirstDatagram::new(number).initial()).len())
            .collect();
        let retries = usize::from(policy == RetryPolicy::Auto);
        assert_eq!(answered, [0, 0, 0, retries, retries, retries], "{policy:?}");
        let stats = pair.server.endpoint.stats();
        assert_eq!((stats.waiting, stats.half_open), (3, 3), "{policy:?}");
        while let Some(incoming) = pair.server.endpoint.poll_incoming() {
            pair.server.endpoint.ignore(incoming);
        }
        assert_clean(&pair.server, "server");
    }
}

#[test]
fn bytes_of_waiting_clients_are_limited() {
    let mut pair = waiting_pair(|server| {
        server.max_incoming_bytes = 5000;
        server.retry = RetryPolicy::Never;
    });
    for number in 0..10 {
        for _ in 0..3 {
            answers(&mut pair, FirstDatagram::new(number).initial());
        }
    }
    let kept = waiting_bytes(&pair.server.endpoint);
    assert!(kept <= 5000 && kept > 5000 - 1200, "{kept}");
}

#[test]
fn waiting_client_can_have_eight_datagrams() {
    let mut pair = waiting_pair(|_| {});
    for _ in 0..100 {
        answers(&mut pair, FirstDatagram::new(1).initial());
    }
    assert_eq!(waiting_bytes(&pair.server.endpoint), 8 * 1200);
    assert_eq!(pair.server.endpoint.stats().datagrams_dropped, 92);
}

#[test]
fn waiting_client_can_have_the_bytes_that_the_program_allows() {
    for (bytes, count) in [(1200, 1), (5000, 4), (100 * 1200, 100)] {
        let mut pair = waiting_pair(|server| server.incoming_bytes_per_client = Some(bytes));
        for _ in 0..100 {
            answers(&mut pair, FirstDatagram::new(1).initial());
        }
        assert_eq!(waiting_bytes(&pair.server.endpoint), count * 1200);
    }
}

#[test]
fn bytes_of_all_waiting_clients_bound_those_of_one() {
    let mut pair = waiting_pair(|server| {
        server.incoming_bytes_per_client = Some(usize::MAX);
        server.max_incoming_bytes = 12_000;
        server.retry = RetryPolicy::Never;
    });
    for _ in 0..100 {
        answers(&mut pair, FirstDatagram::new(1).initial());
    }
    let kept = waiting_bytes(&pair.server.endpoint);
    assert!(kept <= 12_000, "{kept}");
}

#[test]
fn datagrams_from_other_addresses_are_not_stored_for_a_waiting_client() {
    let mut pair = waiting_pair(|_| {});
    answers(&mut pair, FirstDatagram::new(1).initial());
    let other = FirstDatagram {
        address: FirstDatagram::new(2).address,
        ..FirstDatagram::new(1)
    };
    answers(&mut pair, other.initial());
    assert_eq!(waiting_bytes(&pair.server.endpoint), 1200);
}

#[test]
fn first_datagrams_that_break_a_rule_are_dropped() {
    let mut pair = waiting_pair(|_| {});
    let mut forged = FirstDatagram::new(3).initial();
    *forged.bytes.last_mut().expect("bytes") ^= 1;
    let mut handshake = FirstDatagram::new(4).initial();
    handshake.bytes[0] |= 0x20;
    let cases = [
        (
            "too small",
            FirstDatagram {
                len: 1199,
                ..FirstDatagram::new(1)
            }
            .initial(),
        ),
        (
            "short ID",
            FirstDatagram {
                destination: id(&[1; 7]),
                ..FirstDatagram::new(2)
            }
            .initial(),
        ),
        ("not authentic", forged),
        ("no Initial", handshake),
    ];
    for (name, datagram) in cases {
        assert!(answers(&mut pair, datagram).is_empty(), "{name}");
        assert_clean(&pair.server, name);
    }
}

#[test]
fn padding_behind_the_initial_counts_for_its_size() {
    // Coalesced with bytes of any kind, because the datagram must be large.
    let mut pair = waiting_pair(|_| {});
    let mut datagram = FirstDatagram {
        len: 600,
        ..FirstDatagram::new(1)
    }
    .initial();
    datagram.bytes.resize(1200, 0);
    answers(&mut pair, datagram);
    assert_eq!(pair.server.endpoint.stats().waiting, 1);
}

#[test]
fn unusable_configuration_is_an_error_without_state() {
    let mut pair = waiting_pair(|_| {});
    answers(&mut pair, FirstDatagram::new(1).initial());
    let incoming = pair.server.endpoint.poll_incoming().expect("it waits");
    let mut config = ServerConfig::new(server_tls(&[b"test"]));
    config.transport = Arc::new(TransportConfig {
        mtu: 1000,
        ..TransportConfig::default()
    });
    let error = pair
        .server
        .endpoint
        .accept(pair.now, incoming, Some(Arc::new(config)));
    assert!(error.expect_err("mtu").to_string().contains("mtu"));
    assert_clean(&pair.server, "server");
}

#[test]
fn client_that_breaks_a_rule_at_once_is_closed() {
    let mut pair = Pair::new();
    // HANDSHAKE_DONE is not allowed in an Initial.
    let first_datagram = FirstDatagram {
        payload: vec![0x1e],
        ..FirstDatagram::new(1)
    };
    let answers = answers(&mut pair, first_datagram.initial());
    let codes: Vec<_> = answers
        .iter()
        .filter_map(|it| close_code(it, &first_datagram.destination))
        .collect();
    assert_eq!(codes, [TransportErrorCode::PROTOCOL_VIOLATION.value()]);
    pair.run_for(Duration::from_secs(10));
    assert_clean(&pair.server, "server");
}

#[test]
fn stopped_server_admits_no_client_and_keeps_its_connections() {
    let mut pair = Pair::connected();
    pair.server.endpoint.set_server_config(None);
    assert!(answers(&mut pair, FirstDatagram::new(1).initial()).is_empty());
    assert_eq!(pair.server.endpoint.stats().waiting, 0);
    pair.client.connection().pings().request();
    pair.client.touch();
    let before = pair.server.connection().stats().packets_received;
    pair.run_for(RTT);
    assert!(pair.server.connection().stats().packets_received > before);
}

#[test]
fn new_limits_apply_at_once() {
    let mut pair = waiting_pair(|server| server.retry = RetryPolicy::Never);
    answers(&mut pair, FirstDatagram::new(1).initial());
    let mut config = ServerConfig::clone(&pair.server_config);
    config.max_incoming = 2;
    pair.server
        .endpoint
        .set_server_config(Some(Arc::new(config)));
    for number in 2..5 {
        answers(&mut pair, FirstDatagram::new(number).initial());
    }
    assert_eq!(pair.server.endpoint.stats().waiting, 2);
}

#[test]
fn half_open_connections_without_progress_end_after_five_seconds() {
    // Attack A38: no client continues the handshake.
    let mut pair = pair_with(|server| server.retry = RetryPolicy::Never);
    for number in 0..50 {
        answers(&mut pair, FirstDatagram::new(number).initial());
    }
    assert_eq!(pair.server.endpoint.stats().half_open, 50);
    pair.run_for(Duration::from_millis(4_900));
    assert_eq!(pair.server.endpoint.stats().half_open, 50);
    pair.run_for(Duration::from_millis(200));
    assert_clean(&pair.server, "server");
}

#[test]
fn memory_is_bounded_in_a_flood_of_first_packets() {
    // Attack A02: beyond the limit each client costs at most a Retry, and those are limited as
    // well.
    let mut pair = waiting_pair(|server| retry_from(server, 16));
    slow_replies(&mut pair);
    for number in 0..2000 {
        let datagram = FirstDatagram::new(number).initial();
        pair.deliver(datagram);
    }
    let endpoint = &pair.server.endpoint;
    assert_eq!(endpoint.stats().waiting, 16);
    assert_eq!(endpoint.router.len(), 16);
    assert!(endpoint.stateless.queued() <= MAX_REPLIES);
    pair.drive();
    assert!(
        pair.server.endpoint.stats().retries_sent <= 8 * 50,
        "limit K19"
    );
}
