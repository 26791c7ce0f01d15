//! Tests the budget for all memory that peers make an endpoint hold (limit K81).

use courser_wire::{Direction, TransportErrorCode};

use super::super::admission::handshakes::limits_of;
use super::super::memory::Memory;
use super::super::table::settle::{CHECKS_AT_ONCE, CHECKS_PAUSE};
use super::*;
use crate::flow::WindowBudget;
use crate::stream::WriteError;
use crate::testing::{client_address, server_address};

/// Creates a server with this budget and one connected client.
fn pair_within(budget: u64) -> Pair {
    let mut pair = Pair::connected();
    let shared = pair.server.endpoint.admission.shared().clone();
    let memory = Memory::new(budget, pair.server.endpoint.shard.id(), shared);
    pair.server.endpoint.table.set_memory(memory);
    pair
}

/// Lets the client send data that the server does not read, until it takes `memory` bytes. Returns
/// the bytes sent.
fn fill(pair: &mut Pair, memory: u64) -> u64 {
    let mut sent = 0;
    while pair.server.endpoint.table.memory().used() < memory
        && !pair.client.connection().is_closed()
    {
        sent += fill_once(pair);
    }
    sent
}

/// Lets the client send 10 000 bytes on a new stream. Returns the bytes sent.
fn fill_once(pair: &mut Pair) -> u64 {
    let streams = pair.client.connection().streams();
    let id = streams.open(Direction::Unidirectional).expect("room");
    let sent = streams.write(id, &[7; 10_000]).expect("there is credit");
    pair.client.touch();
    pair.run_for(RTT);
    sent as u64
}

#[test]
fn memory_that_a_peer_occupies_is_counted_and_freed() {
    let mut pair = pair_within(10 << 20);
    let sent = fill(&mut pair, 400_000);
    let stats = pair.server.endpoint.stats();
    assert!(stats.memory_used >= sent, "{sent} bytes: {stats:?}");
    // The connection and its streams of 10 000 bytes count in addition to the data (limit K116).
    let beside = (16 << 10) + sent.div_ceil(10_000) * (2 << 10);
    assert!(
        stats.memory_used < 2 * sent + beside,
        "{sent} bytes: {stats:?}"
    );
    assert_eq!(stats.memory_budget, 10 << 20);
    pair.client.connection().close(pair.now, 0, b"");
    pair.client.touch();
    pair.run_for(Duration::from_secs(10));
    pair.server.events.clear();
    assert_eq!(pair.server.endpoint.stats().memory_used, 0);
}

#[test]
fn idle_connections_and_streams_count() {
    let mut pair = pair_within(10 << 20);
    let used = |pair: &mut Pair| {
        pair.client.touch();
        pair.server.touch();
        pair.run_for(RTT);
        pair.server.endpoint.table.memory().used()
    };
    let idle = used(&mut pair);
    assert!((16 << 10..20 << 10).contains(&idle), "{idle} bytes");
    for _ in 0..50 {
        let streams = pair.client.connection().streams();
        let id = streams.open(Direction::Unidirectional).expect("room");
        streams.write(id, &[7]).expect("there is credit");
    }
    let with_streams = used(&mut pair);
    assert!(with_streams >= idle + (100 << 10), "{with_streams} bytes");
}

#[test]
fn connections_accept_less_from_the_application_when_memory_is_short() {
    for (budget, most) in [
        // Four windows, and the reserve for streams that hold little.
        (1 << 30, 576 << 10),
        (1 << 20, 256 << 10),
        (200 << 10, 64 << 10),
    ] {
        let mut pair = pair_within(budget);
        pair.link.filter = Some(Box::new(|_, datagram| datagram.to != server_address()));
        let mut written = 0;
        for _ in 0..50 {
            pair.server.touch();
            pair.run_for(Duration::from_millis(1));
            let streams = pair.server.connection().streams();
            streams.on_congestion_window(128 << 10);
            let id = streams.open(Direction::Unidirectional).expect("room");
            match streams.write(id, &[1; 30_000]) {
                Ok(len) => written += len,
                Err(error) => assert_eq!(error, WriteError::Blocked),
            }
        }
        assert!(written > most / 4 && written <= most, "{written} of {most}");
    }
}

#[test]
fn windows_do_not_grow_when_memory_is_tight() {
    let mut pair = pair_within(400 << 10);
    fill(&mut pair, 305 << 10);
    let mut draw = Autotuned::new(pair.server.endpoint.table.memory().windows());
    assert!(!draw.grows());
    pair.server.endpoint.table.memory().windows().freeze(false);
    assert!(draw.grows());
}

/// Draws growth from a budget like a window.
struct Autotuned(crate::flow::Draw);

impl Autotuned {
    fn new(budget: &WindowBudget) -> Self {
        Self(crate::flow::Draw::new(budget.clone(), client_address()))
    }

    fn grows(&mut self) -> bool {
        self.0.take(Time::ZERO, 1000) > 0
    }
}

#[test]
fn new_clients_are_refused_when_memory_is_short() {
    let mut pair = pair_within(400 << 10);
    fill(&mut pair, 365 << 10);
    let first_datagram = FirstDatagram::new(1);
    let answers = answers(&mut pair, first_datagram.initial());
    let codes: Vec<_> = answers
        .iter()
        .filter_map(|it| close_code(it, &first_datagram.destination))
        .collect();
    assert_eq!(codes, [TransportErrorCode::CONNECTION_REFUSED.value()]);
    assert_eq!(pair.server.endpoint.stats().refused_for_memory, 1);
}

#[test]
fn connection_with_the_most_memory_is_closed_when_none_is_left() {
    let mut pair = pair_within(400 << 10);
    fill(&mut pair, 450 << 10);
    assert_eq!(pair.server.endpoint.stats().closed_for_memory, 1);
    let code = TransportErrorCode::INTERNAL_ERROR.value();
    assert_eq!(pair.server_error(), Some(code));
    pair.run_for(RTT);
    assert_eq!(pair.close_received_by_client(), Some(code));
}

/// The handles of a connection at the client and at the server.
type Handles = (Option<ConnectionHandle>, Option<ConnectionHandle>);

/// Creates a server with this budget and two connections of one client.
fn two_within(budget: u64) -> (Pair, [Handles; 2]) {
    let mut pair = Pair::connected();
    let first = (pair.client.handle, pair.server.handle);
    pair.client.events.clear();
    pair.server.events.clear();
    pair.connect();
    let second = (pair.client.handle, pair.server.handle);
    assert_ne!(first.1, second.1, "two connections");
    let shared = pair.server.endpoint.admission.shared().clone();
    let memory = Memory::new(budget, pair.server.endpoint.shard.id(), shared);
    pair.server.endpoint.table.set_memory(memory);
    (pair, [first, second])
}

/// Sets the connection that the pair uses.
fn choose(pair: &mut Pair, (client, server): Handles) {
    pair.client.handle = client;
    pair.server.handle = server;
    pair.server.touch();
    pair.drive();
}

/// Lets the client of this connection send, until the server closes a connection for lack of memory.
fn fill_until_one_is_closed(pair: &mut Pair, handles: Handles) {
    choose(pair, handles);
    for _ in 0..50 {
        if pair.server.endpoint.stats().closed_for_memory > 0 {
            return;
        }
        fill_once(pair);
    }
    panic!("none was closed: {:?}", pair.server.endpoint.stats());
}

fn is_closed(pair: &Pair, (_, server): Handles) -> bool {
    let handle = server.expect("a connection exists");
    let connection = pair.server.endpoint.connection(handle);
    connection.is_none_or(Connection::is_closed)
}

#[test]
fn connection_with_the_most_memory_of_two_is_closed() {
    for large_is_first in [true, false] {
        let (mut pair, [first, second]) = two_within(400 << 10);
        let (large, small) = match large_is_first {
            true => (first, second),
            false => (second, first),
        };
        choose(&mut pair, large);
        fill(&mut pair, 340 << 10);
        // It is idle, and the other one takes the rest.
        pair.run_for(Duration::from_secs(1));
        fill_until_one_is_closed(&mut pair, small);
        assert!(is_closed(&pair, large), "first: {large_is_first}");
        assert!(!is_closed(&pair, small), "first: {large_is_first}");
        assert_eq!(pair.server.endpoint.stats().closed_for_memory, 1);
        pair.run_for(RTT);
        assert!(
            !pair.client.connection().is_closed(),
            "the smaller one stays open"
        );
    }
}

#[test]
fn connection_that_makes_progress_may_hold_more_than_an_idle_one() {
    let (mut pair, [idle, busy]) = two_within(400 << 10);
    choose(&mut pair, idle);
    fill(&mut pair, 160 << 10);
    choose(&mut pair, busy);
    let id = pair
        .client
        .connection()
        .streams()
        .open(Direction::Unidirectional);
    let id = id.expect("room");
    for _ in 0..100 {
        let streams = pair.client.connection().streams();
        streams.write(id, &[7; 10_000]).expect("there is credit");
        pair.client.touch();
        pair.run_for(RTT);
        let streams = pair.server.connection().streams();
        streams.accept(Direction::Unidirectional);
        while let Ok(Some(_)) = streams.read_chunk(id, usize::MAX) {}
        pair.server.touch();
    }
    let before = pair.server.endpoint.table.memory().used();
    fill_until_one_is_closed(&mut pair, busy);
    let held = (400 << 10) - before;
    assert!(held > 170 << 10, "{held} bytes, more than the idle one");
    assert!(is_closed(&pair, idle));
    assert!(!is_closed(&pair, busy));
}

#[test]
fn budget_has_a_minimum() {
    let mut config = EndpointConfig::from_seed([1; 32]);
    assert_eq!(config.validate(), Ok(()));
    config.memory_budget = 0;
    let error = config.validate().expect_err("zero is below the minimum");
    assert_eq!(error.field, "memory_budget");
    assert!(
        error.message.contains("is 0, allowed is 1048576 to"),
        "{error}"
    );
}

#[test]
fn idle_connection_frees_memory_for_the_next_packets() {
    let mut pair = pair_within(10 << 20);
    let streams = pair.client.connection().streams();
    let id = streams.open(Direction::Unidirectional).expect("room");
    streams.write(id, &[7; 100_000]).expect("there is credit");
    streams.finish(id).expect("open");
    pair.client.touch();
    pair.run_for(RTT / 2);
    let busy = pair.client.endpoint.table.memory().used();
    let streams = pair.server.connection().streams();
    let id = streams.accept(Direction::Unidirectional).expect("sent");
    while streams
        .read_chunk(id, usize::MAX)
        .is_ok_and(|it| it.is_some())
    {}
    pair.run_for(RTT * 20);
    while let Ok(Some(_)) = pair
        .server
        .connection()
        .streams()
        .read_chunk(id, usize::MAX)
    {}
    pair.run_for(Duration::from_secs(2));
    let idle = pair.client.endpoint.table.memory().used();
    assert!(busy > idle + 60_000, "{busy} bytes, then {idle}");
    // A connection counts 16 KiB, and its records of packets nothing any more.
    assert!(idle < (16 << 10) + 200, "{idle} bytes");
    for end in [&mut pair.client, &mut pair.server] {
        assert_eq!(end.connection().streams().kept_entries(), 0);
    }
}

/// Returns true if both ends of the pair have reduced their keys to secrets.
fn hold_secrets(pair: &Pair) -> bool {
    [&pair.client, &pair.server].into_iter().all(|end| {
        let entry = end
            .endpoint
            .table
            .entries()
            .first()
            .expect("one connection");
        let connection = entry.connection.as_ref().expect("open");
        connection.keys_until().is_none()
    })
}

/// The idle time before this grows while keys are needed again soon.
#[test]
fn idle_connection_stores_secrets_instead_of_keys_and_continues() {
    let mut pair = pair_within(10 << 20);
    let silences = [
        (3, true),
        (3, true),
        (3, false),
        (6, true),
        (10, false),
        (20, true),
    ];
    for (silence, holds_secrets) in silences {
        pair.run_for(Duration::from_secs(silence));
        assert_eq!(hold_secrets(&pair), holds_secrets, "{silence} s");
        let dropped = pair.server.connection().stats().packets_dropped;
        let streams = pair.client.connection().streams();
        let id = streams.open(Direction::Unidirectional).expect("room");
        streams.write(id, b"hello").expect("there is credit");
        streams.finish(id).expect("open");
        pair.client.touch();
        pair.run_for(RTT * 2);
        let streams = pair.server.connection().streams();
        let id = streams.accept(Direction::Unidirectional).expect("arrived");
        assert_eq!(
            streams.read_chunk(id, 100).as_ref().map(Option::as_deref),
            Ok(Some(&b"hello"[..]))
        );
        assert_eq!(pair.server.connection().stats().packets_dropped, dropped);
        assert!(!hold_secrets(&pair) && !pair.client.connection().is_closed());
    }
}

/// Each group is processed after a pause for each group before it (limit K256).
#[test]
fn connections_that_become_idle_together_free_memory_in_groups() {
    let mut pair = pair_within(10 << 20);
    pair.run_for(Duration::from_millis(800));
    assert!(!hold_secrets(&pair));
    let handle = pair.client.handle.expect("connected");
    let now = pair.now + Duration::from_secs(1);
    let endpoint = &mut pair.client.endpoint;
    endpoint.table.check_idle(now, handle, 3 * CHECKS_AT_ONCE);
    let keys_until = |endpoint: &Endpoint| {
        let connection = endpoint.table.entries()[0]
            .connection
            .as_ref()
            .expect("open");
        connection.keys_until()
    };
    assert!(keys_until(endpoint).is_some());
    let at = now + CHECKS_PAUSE * 3;
    assert_eq!(endpoint.table.entries()[0].scheduled, Some(at));
    endpoint.handle_timeout(at);
    assert!(keys_until(endpoint).is_none());
    assert_eq!(CHECKS_AT_ONCE, 64);
}

#[test]
fn handshakes_may_hold_at_most_the_budget() {
    let mut config = EndpointConfig::from_seed([1; 32]);
    config.memory_budget = 10 << 20;
    let mut server = Setup::default().server;
    for (bytes, most) in [
        (None, 5 << 20),
        (Some(0), 0),
        (Some(1 << 20), 1 << 20),
        (Some(u64::MAX), 10 << 20),
    ] {
        server.half_open_bytes = bytes;
        let limits = limits_of(&config, Some(&server));
        assert_eq!(limits.max_half_open_bytes, most, "{bytes:?}");
    }
}
