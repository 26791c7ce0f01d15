//! Tests the life cycle of connections: routes, records, timers, handles.

use super::*;
use crate::config::TransportConfig;

/// Connects, closes from the client, and waits until both ends have removed the connection.
fn one_life(pair: &mut Pair) {
    pair.client.events.clear();
    pair.server.events.clear();
    pair.connect();
    let now = pair.now;
    pair.client.connection().close(now, 7, b"done");
    pair.client.touch();
    pair.run_for(Duration::from_secs(2));
}

#[test]
fn closed_connection_leaves_no_state() {
    let mut pair = Pair::connected();
    assert!(pair.server.endpoint.router.len() > 1);
    assert!(pair.client.endpoint.router.len() > 1);
    let handles = (pair.client.handle, pair.server.handle);
    let now = pair.now;
    pair.server.connection().close(now, 7, b"done");
    pair.server.touch();
    pair.run_for(Duration::from_secs(5));
    assert_clean(&pair.client, "client");
    assert_clean(&pair.server, "server");
    assert!(
        pair.client
            .endpoint
            .connection(handles.0.expect("one"))
            .is_none()
    );
    assert!(
        pair.server
            .endpoint
            .connection_mut(handles.1.expect("one"))
            .is_none()
    );
}

#[test]
fn connection_that_timed_out_leaves_no_state() {
    let mut pair = Pair::connected();
    pair.link.loss = 1000;
    pair.run_for(Duration::from_secs(60));
    assert_clean(&pair.client, "client");
    assert_clean(&pair.server, "server");
    assert_eq!(pair.client.endpoint.next_timeout(), None);
    assert_eq!(pair.server.endpoint.next_timeout(), None);
}

#[test]
fn failed_handshake_leaves_no_state() {
    for (name, lost_to) in [("no answer", 4433), ("answers are lost", 50_000)] {
        let mut pair = Pair::new();
        pair.link.filter = Some(Box::new(move |_, datagram| datagram.to.port() != lost_to));
        pair.start();
        pair.run_for(Duration::from_secs(30));
        assert_eq!(
            lost(&pair.client),
            Some(&ConnectionError::HandshakeTimedOut),
            "{name}"
        );
        assert_clean(&pair.client, name);
        assert_clean(&pair.server, name);
    }
}

#[test]
fn records_are_reused_and_old_handles_are_invalid() {
    let mut pair = Pair::new();
    let mut handles = Vec::new();
    for life in 0..30 {
        one_life(&mut pair);
        assert_clean(&pair.client, "client");
        assert_clean(&pair.server, "server");
        let handle = pair.client.handle.expect("one");
        assert!(!handles.contains(&handle), "life {life}");
        handles.push(handle);
    }
    assert_eq!(
        (
            pair.client.endpoint.table.entries().len(),
            pair.server.endpoint.table.entries().len()
        ),
        (0, 0)
    );
    pair.connect();
    for &old in &handles {
        assert!(pair.client.endpoint.connection(old).is_none());
        pair.client.endpoint.mark_ready(old);
    }
    assert_eq!(pair.client.endpoint.next_ready(), None);
}

#[test]
fn events_can_be_read_until_a_connection_is_released() {
    let mut pair = Pair::connected();
    let handle = pair.client.handle.expect("one");
    pair.link.loss = 1000;
    let mut buffer = TransmitBuffer::new(1);
    while let Some(at) = pair.client.endpoint.next_timeout() {
        pair.client.endpoint.handle_timeout(at);
        while let Some(ready) = pair.client.endpoint.next_ready() {
            while pair
                .client
                .endpoint
                .poll_transmit(at, ready, &mut buffer)
                .is_some()
            {}
        }
    }
    let connection = pair
        .client
        .endpoint
        .connection_mut(handle)
        .expect("not read yet");
    assert!(connection.is_drained());
    while connection.poll_event().is_some() {}
    pair.client.touch();
    pair.drive();
    assert_clean(&pair.client, "client");
}

#[test]
fn number_of_obsolete_deadlines_is_bounded() {
    let mut setup = Setup::default();
    setup.client.keep_alive_interval = Some(Duration::from_secs(5));
    let mut pair = Pair::with(setup);
    pair.connect();
    let mut most = 0;
    for _ in 0..3000 {
        pair.client.connection().pings().request();
        pair.client.touch();
        pair.run_for(Duration::from_millis(60));
        most = most
            .max(pair.client.endpoint.table.timers())
            .max(pair.server.endpoint.table.timers());
    }
    assert!(most <= 70, "{most} deadlines of one connection");
    assert_eq!((lost(&pair.client), lost(&pair.server)), (None, None));
}

#[test]
fn many_short_connections_leave_no_deadlines() {
    let mut pair = Pair::new();
    for _ in 0..20 {
        one_life(&mut pair);
    }
    pair.run_for(Duration::from_secs(60));
    let timers = |end: &End| end.endpoint.table.timers();
    assert_eq!((timers(&pair.client), timers(&pair.server)), (0, 0));
}

#[test]
fn late_copy_of_a_first_flight_is_no_new_client() {
    let mut pair = Pair::connected();
    for datagram in pair.client.sent.clone() {
        pair.deliver(datagram);
    }
    pair.drive();
    let stats = pair.server.endpoint.stats();
    assert_eq!(
        (stats.accepted, stats.connections, stats.half_open),
        (1, 1, 0)
    );
}

#[test]
fn replayed_session_has_no_effect() {
    // Attack A35, in both directions, a hundred times, in another order each time.
    let mut pair = Pair::connected();
    let (client, server) = (pair.client.sent.clone(), pair.server.sent.clone());
    let before = (
        pair.client.connection().stats(),
        pair.server.connection().stats(),
    );
    for round in 0..100 {
        let mut all: Vec<_> = client.iter().chain(&server).cloned().collect();
        let len = all.len();
        all.rotate_left(round % len);
        if round % 2 == 1 {
            all.reverse();
        }
        all.into_iter().for_each(|datagram| pair.deliver(datagram));
        pair.drive();
    }
    let after = (
        pair.client.connection().stats(),
        pair.server.connection().stats(),
    );
    assert_eq!(before.0.packets_received, after.0.packets_received);
    assert_eq!(before.1.packets_received, after.1.packets_received);
    assert_eq!(pair.server.endpoint.stats().accepted, 1);
    assert_eq!((lost(&pair.client), lost(&pair.server)), (None, None));
}

#[test]
fn several_connections_of_one_client_do_not_mix() {
    let mut pair = Pair::new();
    let mut handles = Vec::new();
    for _ in 0..20 {
        pair.start();
        handles.push(pair.client.handle.expect("started"));
    }
    pair.run_for(Duration::from_secs(3));
    assert_eq!(pair.client.endpoint.connections(), 20);
    assert_eq!(pair.server.endpoint.connections(), 20);
    for handle in &handles {
        assert!(
            pair.client
                .endpoint
                .connection(*handle)
                .expect("alive")
                .is_confirmed()
        );
    }
    let now = pair.now;
    for handle in handles.iter().step_by(2) {
        pair.client
            .endpoint
            .connection_mut(*handle)
            .expect("alive")
            .close(now, 0, b"");
        pair.client.endpoint.mark_ready(*handle);
    }
    pair.run_for(Duration::from_secs(3));
    assert_eq!(
        (
            pair.client.endpoint.connections(),
            pair.server.endpoint.connections()
        ),
        (10, 10)
    );
    pair.run_for(Duration::from_secs(60));
    assert_clean(&pair.client, "client");
    assert_clean(&pair.server, "server");
}

#[test]
fn buffer_of_several_datagrams_is_split() {
    let mut pair = Pair::connected();
    let id = pair
        .client
        .connection()
        .streams()
        .open(courser_wire::Direction::Unidirectional);
    let data = vec![7; 4000];
    let written = pair
        .client
        .connection()
        .streams()
        .write(id.expect("room"), &data);
    assert_eq!(written, Ok(4000));
    pair.link.filter = Some(Box::new(|_, _| false));
    let before = pair.client.sent.len();
    pair.client.touch();
    pair.drive();
    let sent = &pair.client.sent[before..];
    let size = sent[0].bytes.len();
    assert!(
        sent.len() > 2
            && sent[..sent.len() - 1]
                .iter()
                .all(|it| it.bytes.len() == size)
    );
    let mut buffer = sent
        .iter()
        .flat_map(|it| it.bytes.clone())
        .collect::<Vec<_>>();
    let path = FourTuple::to(pair.client.address);
    let meta = ReceiveMeta {
        path,
        ecn: Ecn::NotEct,
        segment_size: size,
    };
    let received = pair.server.connection().stats().udp_received;
    pair.server
        .endpoint
        .handle_datagrams(pair.now, &mut buffer, &meta);
    let stats = pair.server.connection().stats();
    assert_eq!(stats.udp_received.batches, received.batches + 1);
    assert_eq!(stats.data_received, 4000);
}

#[test]
fn addresses_that_no_host_can_have_are_refused() {
    let mut pair = Pair::new();
    let config = pair.client_config.clone();
    for peer in ["10.0.0.2:0", "0.0.0.0:443", "[::]:443"] {
        let peer: SocketAddr = peer.parse().expect("an address");
        let result = pair
            .client
            .endpoint
            .connect(pair.now, &config, peer, "localhost");
        assert_eq!(result, Err(ConnectError::InvalidAddress(peer)));
    }
    let mut bad = config.clone();
    bad.transport = Arc::new(TransportConfig {
        mtu: 7,
        ..TransportConfig::default()
    });
    let result = pair
        .client
        .endpoint
        .connect(pair.now, &bad, pair.server.address, "localhost");
    assert!(matches!(result, Err(ConnectError::Config(error)) if error.field == "mtu"));
    let result = pair
        .client
        .endpoint
        .connect(pair.now, &config, pair.server.address, "not a name");
    assert!(matches!(result, Err(ConnectError::Tls(_))));
    assert_clean(&pair.client, "client");
}

#[test]
fn garbage_of_any_length_is_dropped() {
    // Attack A01, at an idle server, at a busy one and at a client.
    let mut pair = Pair::connected();
    let mut rng = Rng::new([9; 32]);
    let (id, _) = pair.client.connection().forging_ids();
    for round in 0..20_000u64 {
        let len = usize::try_from(if round % 10 == 0 {
            rng.below(3000)
        } else {
            rng.below(80)
        });
        let mut bytes = vec![0; len.expect("small")];
        rng.fill(&mut bytes);
        if round % 3 == 0 && bytes.len() > 9 {
            bytes[0] &= 0x7f;
            bytes[1..9].copy_from_slice(&id);
        }
        let from = if round % 2 == 0 {
            pair.client.address
        } else {
            pair.server.address
        };
        let to = if round % 2 == 0 {
            pair.server.address
        } else {
            pair.client.address
        };
        pair.deliver(Datagram {
            from,
            to,
            ecn: Ecn::NotEct,
            bytes,
        });
        if round % 100 == 0 {
            pair.drive();
        }
    }
    pair.drive();
    assert_eq!((lost(&pair.client), lost(&pair.server)), (None, None));
    let stats = pair.server.endpoint.stats();
    assert_eq!(
        (stats.connections, stats.waiting, stats.half_open),
        (1, 0, 0)
    );
    pair.client.connection().pings().request();
    pair.client.touch();
    let before = pair.client.connection().stats().acks_received;
    pair.run_for(Duration::from_secs(1));
    assert!(
        pair.client.connection().stats().acks_received > before,
        "the endpoint still works"
    );
}

#[test]
fn drained_connection_is_kept_until_it_is_released() {
    let mut pair = Pair::connected();
    pair.server.releases = false;
    let handle = pair.server.handle.expect("one");
    let now = pair.now;
    pair.server.connection().close(now, 7, b"done");
    pair.server.touch();
    pair.run_for(Duration::from_secs(5));
    let endpoint = &mut pair.server.endpoint;
    let stats = endpoint.stats();
    assert_eq!((stats.connections, stats.memory_used), (0, 0));
    assert!(endpoint.router.len() == 0 && endpoint.is_idle());
    assert_eq!(endpoint.table.timers(), 0);
    assert!(endpoint.connection(handle).expect("kept").is_drained());
    assert_eq!(
        endpoint.close_error(handle),
        Some(&ConnectionError::LocallyClosed)
    );
    endpoint.release(handle);
    assert!(endpoint.connection(handle).is_none());
    assert_eq!(endpoint.close_error(handle), None);
    assert_clean(&pair.server, "server");
}

#[test]
fn released_connection_still_sends_its_close() {
    let mut pair = Pair::connected();
    pair.server.releases = false;
    let handle = pair.server.handle.expect("one");
    let now = pair.now;
    pair.server.connection().close(now, 7, b"done");
    pair.server.touch();
    pair.server.endpoint.release(handle);
    assert!(!pair.server.endpoint.is_idle());
    pair.run_for(Duration::from_secs(5));
    assert!(matches!(
        lost(&pair.client),
        Some(ConnectionError::ApplicationClosed { .. })
    ));
    assert_clean(&pair.server, "server");
}

#[test]
fn records_of_drained_connections_are_reused_only_after_release() {
    let mut pair = Pair::new();
    pair.client.releases = false;
    let mut handles = Vec::new();
    for _ in 0..3 {
        one_life(&mut pair);
        handles.push(pair.client.handle.expect("one"));
    }
    let endpoint = &mut pair.client.endpoint;
    assert_eq!(
        (endpoint.table.entries().len(), endpoint.connections()),
        (3, 0)
    );
    for handle in handles {
        assert!(endpoint.connection(handle).is_some());
        endpoint.release(handle);
        endpoint.release(handle);
    }
    one_life(&mut pair);
    assert_eq!(pair.client.endpoint.table.entries().len(), 1);
}

/// Time passes while the socket of the driver accepts no datagrams, for connections that have sent one batch
/// or none.
#[test]
fn connections_that_cannot_send_still_time_out() {
    for batches in [1, 0] {
        let mut pair = Pair::with(Setup::default());
        let (config, peer) = (pair.client_config.clone(), pair.server.address);
        let endpoint = &mut pair.client.endpoint;
        let mut now = pair.now;
        let handle = endpoint.connect(now, &config, peer, "localhost");
        let handle = handle.expect("it can connect");
        let mut buffer = TransmitBuffer::new(1);
        for _ in 0..batches {
            let batch = endpoint.poll_transmit(now, handle, &mut buffer);
            assert!(batch.is_some(), "a first flight");
        }
        assert_eq!(
            endpoint.next_timeout(),
            None,
            "timers are set after sending"
        );
        let (mut error, mut steps) = (None, 0);
        while endpoint.connections() > 0 {
            while let Some(ready) = endpoint.next_ready() {
                while let Some(event) = endpoint
                    .connection_mut(ready)
                    .and_then(Connection::poll_event)
                {
                    if let Event::Lost(reason) = event {
                        error = Some(reason);
                    }
                }
                endpoint.queue_sender(ready);
            }
            endpoint.settle_senders(now);
            if let Some(next) = endpoint.next_timeout() {
                now = now.max(next);
                endpoint.handle_timeout(now);
            }
            steps += 1;
            assert!(steps < 100, "{batches}: it does not end");
        }
        assert_eq!(error, Some(ConnectionError::HandshakeTimedOut), "{batches}");
    }
}

#[test]
fn first_destination_is_the_one_that_the_program_makes() {
    let mut pair = Pair::new();
    pair.accepts = false;
    let made = id(b"ten bytes.");
    pair.client_config.initial_destination = Some(Arc::new(move || made));
    pair.start();
    pair.run_for(RTT);
    let incoming = pair.server.endpoint.poll_incoming().expect("it waits");
    assert_eq!(*incoming.original_destination(), made);
    pair.server
        .endpoint
        .accept(pair.now, incoming, None)
        .expect("accepted");
}

#[test]
fn first_destination_of_less_than_eight_bytes_is_refused() {
    let mut pair = Pair::new();
    let short = id(&[1; 7]);
    pair.client_config.initial_destination = Some(Arc::new(move || short));
    let (now, peer, config) = (pair.now, pair.server.address, pair.client_config.clone());
    let client = &mut pair.client.endpoint;
    let error = client.connect(now, &config, peer, "localhost");
    let error = error.expect_err("RFC 9000 §7.2").to_string();
    let expected = "initial_destination: is 7 bytes long, allowed is 8 to 20";
    assert!(error.contains(expected), "{error}");
    assert_eq!(client.connections(), 0);
}
