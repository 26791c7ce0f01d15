//! Early data that the server refuses. RFC 9001 §4.6.2, fault F58.

use super::*;

/// Replaces the session keys of the server, so that it cannot decrypt earlier tickets.
fn forget_sessions(pair: &mut Pair) {
    let mut config = ServerConfig::clone(&pair.server_config);
    config.tls = server_tls_with_early_data(&[b"test"]);
    pair.server
        .endpoint
        .set_server_config(Some(Arc::new(config)));
}

#[test]
fn early_streams_are_removed_and_the_connection_continues() {
    let mut pair = met(setup());
    forget_sessions(&mut pair);
    let id = start_with(&mut pair, b"early");
    assert!(pair.run_until(RTT * 2, |pair| pair.client.has(&Event::Connected)));
    assert!(pair.client.has(&Event::EarlyDataRejected));
    let client = pair.client.connection();
    assert_eq!(client.stats().early_data, EarlyData::Rejected);
    let streams = client.streams();
    assert_eq!(streams.write(id, b"more"), Err(WriteError::ClosedStream));
    assert_eq!(streams.read_chunk(id, 10), Err(ReadError::ClosedStream));
    let again = send(&mut pair.client, b"once more");
    assert_eq!(again, id, "stream numbers restart");
    assert!(!pair.client.connection().streams().is_early(id));
    pair.run_for(RTT * 3);
    let server = pair.server.connection();
    assert_eq!(server.stats().early_data, EarlyData::None);
    assert!(!server.streams().is_early(id));
    server.streams().accept(Direction::Bidirectional);
    assert_eq!(read(&mut pair.server, id), b"once more");
    assert_eq!(pair.client_error(), None);
}

#[test]
fn refused_packets_do_not_count_as_congestion() {
    let mut pair = met(setup());
    forget_sessions(&mut pair);
    start_with(&mut pair, &[1; 20_000]);
    assert!(pair.run_until(RTT * 2, |pair| pair.client.has(&Event::Connected)));
    pair.run_for(RTT * 3);
    let client = pair.client.connection();
    assert_eq!(client.packets.recovery.bytes_in_flight_of_all_paths(), 0);
    let stats = client.stats();
    assert_eq!((stats.packets_lost, stats.congestion_events), (0, 0));
    let stats = pair.server.connection().stats();
    assert_eq!(stats.data_received, 0);
    assert!(stats.early_packets_dropped > 5, "{stats:?}");
}

#[test]
fn refused_packets_that_overtake_the_client_hello_are_dropped_and_counted() {
    let mut pair = met(setup());
    forget_sessions(&mut pair);
    start_with(&mut pair, &[9; 4_000]);
    let mut count = 0;
    let held = hold(&mut pair, move |datagram| {
        count += usize::from(datagram.to.port() == 4433);
        datagram.to.port() == 4433 && count == 1
    });
    pair.run_for(RTT * 3 / 5);
    let first = held.borrow_mut().pop().expect("a datagram was held back");
    let dropped = |pair: &mut Pair| pair.server.connection().stats().early_packets_dropped;
    assert_eq!(dropped(&mut pair), 0, "they wait for the ClientHello");
    pair.link.filter = None;
    pair.deliver(first);
    pair.drive();
    assert!(dropped(&mut pair) > 1, "their keys are never available");
    assert!(pair.run_until(RTT * 3, |pair| pair.server.has(&Event::Connected)));
    assert_eq!(pair.server.connection().stats().data_received, 0);
}

#[test]
fn datagrams_are_dropped_with_the_streams() {
    let mut pair = met(setup());
    forget_sessions(&mut pair);
    pair.start();
    let now = pair.now;
    let data = bytes::Bytes::from_static(b"tick");
    let client = pair.client.connection();
    let sent = client.send_datagram(now, data, SendOptions::default());
    assert_eq!(sent, Ok(None));
    pair.client.touch();
    pair.run_for(RTT * 4);
    assert!(pair.server.has(&Event::Connected));
    assert_eq!(pair.server.connection().stats().datagrams.received, 0);
}

#[test]
fn server_without_early_data_drops_it_unread() {
    let mut pair = met(setup());
    let mut config = ServerConfig::clone(&pair.server_config);
    config.tls = crate::testing::identity::server_tls(&[b"test"]);
    pair.server
        .endpoint
        .set_server_config(Some(Arc::new(config)));
    start_with(&mut pair, &[1; 20_000]);
    assert!(pair.run_until(RTT * 3, |pair| pair.server.has(&Event::Connected)));
    assert!(pair.client.has(&Event::EarlyDataRejected));
    assert_eq!(pair.server.connection().stats().data_received, 0);
}

#[test]
fn limits_below_those_of_the_session_make_the_server_refuse() {
    let mut pair = met(setup());
    let mut config = ServerConfig::clone(&pair.server_config);
    let mut transport = steady();
    transport.max_bidi_streams = 1;
    config.transport = Arc::new(transport);
    pair.server
        .endpoint
        .set_server_config(Some(Arc::new(config)));
    pair.start();
    for _ in 0..5 {
        send(&mut pair.client, b"early");
    }
    assert!(pair.run_until(RTT * 2, |pair| pair.client.has(&Event::Connected)));
    assert_eq!(
        pair.client.connection().stats().early_data,
        EarlyData::Rejected
    );
    let streams = pair.client.connection().streams();
    assert!(streams.open(Direction::Bidirectional).is_some());
    assert_eq!(
        streams.open(Direction::Bidirectional),
        None,
        "the new limit"
    );
    assert_eq!((pair.client_error(), pair.server_error()), (None, None));
}

/// Meets a server, changes the parameters that it sends, and connects again with early data.
fn met_with(change: impl Fn(&mut Vec<(u64, Vec<u8>)>) + Send + Sync + 'static) -> Pair {
    let mut pair = met(setup());
    let mut config = ServerConfig::clone(&pair.server_config);
    config.tls = Tampered::parameters(config.tls, move |bytes| {
        let mut parameters = split_parameters(&bytes);
        change(&mut parameters);
        join_parameters(&parameters)
    });
    pair.server
        .endpoint
        .set_server_config(Some(Arc::new(config)));
    start_with(&mut pair, b"early");
    assert!(pair.run_until(RTT * 2, |pair| pair.client.has(&Event::Connected)));
    pair
}

/// Checks all remembered limits (RFC 9000 §7.4.1, RFC 9221 §3).
#[test]
fn each_limit_lowered_by_one_makes_the_server_refuse() {
    // initial_max_data, the three limits on the data of a stream, both counts of streams,
    // active_connection_id_limit and max_datagram_frame_size.
    for id in [0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0e, 0x20] {
        for (change, expected) in [
            (-1, EarlyData::Rejected),
            (0, EarlyData::Accepted),
            (1, EarlyData::Accepted),
        ] {
            let mut pair = met_with(move |parameters| {
                let found = parameters.iter_mut().find(|(it, _)| *it == id);
                let (_, content) = found.expect("it is sent");
                let value = courser_wire::Reader::new(content).varint();
                let value = value.expect("a number").checked_add_signed(change);
                *content = varint(value.expect("in range"));
            });
            let client = pair.client.connection();
            let seen = client.stats().early_data;
            assert_eq!(seen, expected, "{id:#x} by {change}");
            let is_told = pair.client.has(&Event::EarlyDataRejected);
            assert_eq!(is_told, expected == EarlyData::Rejected);
            let errors = (pair.client_error(), pair.server_error());
            assert_eq!(errors, (None, None), "{id:#x} by {change}");
        }
    }
}

/// The extension must not be withdrawn (draft-ietf-quic-reliable-stream-reset-10 §3).
#[test]
fn server_that_no_longer_accepts_reset_stream_at_refuses_early_data() {
    let mut pair = met(setup());
    let mut config = ServerConfig::clone(&pair.server_config);
    config.transport = Arc::new(TransportConfig {
        reset_stream_at: false,
        ..steady()
    });
    pair.server
        .endpoint
        .set_server_config(Some(Arc::new(config)));
    let id = start_with(&mut pair, b"early");
    let streams = pair.client.connection().streams();
    assert_eq!(streams.reset_at(id, 9, 3), Ok(()), "remembered");
    pair.client.touch();
    assert!(pair.run_until(RTT * 2, |pair| pair.client.has(&Event::Connected)));
    let client = pair.client.connection();
    assert_eq!(client.stats().early_data, EarlyData::Rejected);
    let id = send(&mut pair.client, b"later");
    let streams = pair.client.connection().streams();
    let later = streams.reset_at(id, 9, 3);
    assert_eq!(later, Err(ResetAtError::Unsupported));
    pair.run_for(RTT * 3);
    assert!(pair.server.has(&Event::Connected));
    assert_eq!((pair.client_error(), pair.server_error()), (None, None));
}

/// Remembered values do not outlive the handshake (RFC 9000 §7.4.1).
#[test]
fn absent_parameters_return_to_their_defaults() {
    // initial_max_streams_bidi, reset_stream_at and max_datagram_frame_size.
    let mut pair = met_with(|parameters| {
        parameters.retain(|(id, _)| ![0x08, 0x1d, 0x20].contains(id));
    });
    let now = pair.now;
    let client = pair.client.connection();
    assert_eq!(client.stats().early_data, EarlyData::Rejected);
    let data = bytes::Bytes::from_static(b"tick");
    let sent = client.send_datagram(now, data, SendOptions::default());
    assert_eq!(sent, Err(SendDatagramError::UnsupportedByPeer));
    let streams = client.streams();
    assert_eq!(streams.open(Direction::Bidirectional), None);
    let id = streams.open(Direction::Unidirectional).expect("room");
    assert_eq!(streams.write(id, b"text"), Ok(4));
    let reset = streams.reset_at(id, 9, 3);
    assert_eq!(reset, Err(ResetAtError::Unsupported));
}

#[test]
fn higher_limits_of_the_server_apply_once_it_has_accepted() {
    let mut pair = met(setup());
    let mut config = ServerConfig::clone(&pair.server_config);
    let mut transport = steady();
    transport.max_bidi_streams = 150;
    config.transport = Arc::new(transport);
    pair.server
        .endpoint
        .set_server_config(Some(Arc::new(config)));
    pair.start();
    let open = |pair: &mut Pair| {
        let streams = pair.client.connection().streams();
        std::iter::from_fn(|| streams.open(Direction::Bidirectional)).count()
    };
    assert_eq!(open(&mut pair), 100, "remembered");
    pair.client.touch();
    assert!(pair.run_until(RTT * 2, |pair| pair.client.has(&Event::Connected)));
    assert_eq!(
        pair.client.connection().stats().early_data,
        EarlyData::Accepted
    );
    assert_eq!(open(&mut pair), 50);
}

/// The ticket is one of version 1, and a connection of version 2 must not accept early data with it.
/// RFC 9368 §7.2, RFC 9369 §4.1 and §5.
#[test]
fn early_data_is_refused_and_sent_again_if_the_version_changes() {
    let mut pair = Pair::with(setup());
    pair.client_config.versions = [Version::V1, Version::V2].into_iter().collect();
    meet(&mut pair);
    let mut config = ServerConfig::clone(&pair.server_config);
    config.versions = [Version::V2, Version::V1].into_iter().collect();
    config.moves_clients = true;
    pair.server
        .endpoint
        .set_server_config(Some(Arc::new(config)));
    start_with(&mut pair, b"early");
    assert!(pair.run_until(RTT * 4, |pair| pair.client.has(&Event::Connected)));
    assert_eq!(pair.client.connection().stats().version, Version::V2);
    assert!(pair.client.has(&Event::EarlyDataRejected));
    let streams = pair.server.connection().streams();
    assert_eq!(streams.accept(Direction::Bidirectional), None);
    let id = send(&mut pair.client, b"once more");
    pair.run_for(RTT * 3);
    let streams = pair.server.connection().streams();
    assert_eq!(streams.accept(Direction::Bidirectional), Some(id));
    assert!(!pair.server.connection().streams().is_early(id));
    assert_eq!(read(&mut pair.server, id), b"once more");
    let mut early = 0;
    for datagram in &pair.client.sent {
        let mut rest = &datagram.bytes[..];
        while let Ok(packet) = courser_wire::packet::decode(rest, 0, 8) {
            if packet.kind == PacketKind::ZeroRtt {
                assert_eq!(packet.version, VERSION_1, "RFC 9369 §4.1");
                early += 1;
            }
            rest = &rest[packet.end..];
        }
    }
    assert!(early > 0);
    assert_eq!(pair.client_error(), None);
    assert_eq!(pair.server_error(), None);
}
