//! Tests peers that break the rules of early data, and attackers that replay it. Attacks A61 and A62.

use super::*;

/// Returns a setup that reveals the 0-RTT keys.
fn revealing() -> (Setup, Secrets) {
    let mut setup = setup();
    let (tls, secrets) = Tampered::keys(setup.server.tls);
    setup.server.tls = tls;
    (setup, secrets)
}

/// Sends the server a 0-RTT packet with these frames and this number, as its client would seal it.
fn forge(pair: &mut Pair, secrets: &Secrets, number: u64, payload: &[u8]) {
    const NUMBER_LEN: usize = 4;
    let (destination, source) = pair.client.connection().forging_ids();
    let mut bytes = vec![0; 64 + payload.len() + TAG_LEN];
    let mut writer = Writer::new(&mut bytes);
    let header = LongHeader {
        kind: PacketKind::ZeroRtt,
        version: VERSION_1,
        destination,
        source,
        token: &[],
    };
    let length_field = header.encode(&mut writer, NUMBER_LEN);
    let number_offset = writer.position();
    packet_number::write(&mut writer, number, NUMBER_LEN);
    let header_len = writer.position();
    writer.bytes(payload);
    bytes.truncate(header_len + payload.len() + TAG_LEN);
    let len = bytes.len() - number_offset;
    patch_length(&mut bytes, length_field, len);
    let secrets = secrets.lock().expect("not poisoned");
    let keys = secrets.early.as_ref().expect("early data was accepted");
    keys.packet.seal_packet(number, &mut bytes, header_len);
    header_protection::protect(&keys.header, &mut bytes, number_offset, NUMBER_LEN);
    drop(secrets);
    pair.deliver(Datagram {
        from: pair.client.address,
        to: pair.server.address,
        ecn: courser_base::Ecn::NotEct,
        bytes,
    });
    pair.drive();
}

#[test]
fn frames_that_0_rtt_packets_must_not_contain_end_the_connection() {
    let cases: [(&str, &[u8]); 6] = [
        ("ACK", &[0x02, 0, 0, 0, 0]),
        ("CRYPTO", &[0x06, 0, 1, 1]),
        ("NEW_TOKEN", &[0x07, 1, 1]),
        ("RETIRE_CONNECTION_ID", &[0x19, 0]),
        ("PATH_RESPONSE", &[0x1b, 0, 0, 0, 0, 0, 0, 0, 0]),
        ("HANDSHAKE_DONE", &[0x1e]),
    ];
    for (frame, payload) in cases {
        let (setup, secrets) = revealing();
        let mut pair = met(setup);
        start_with(&mut pair, b"request");
        assert!(pair.run_until(RTT, has_arrived), "{frame}");
        forge(&mut pair, &secrets, 100, payload);
        assert_eq!(pair.server_error(), Some(0x0a), "{frame}, RFC 9000 §12.5");
    }
}

#[test]
fn early_data_beyond_a_remembered_limit_is_an_error_of_that_limit() {
    // STREAM frames: the client's stream number 25 600, and an offset of 2^30 on the second one.
    let cases: [(&[u8], u64); 2] = [
        (&[0x08, 0x80, 0x01, 0x90, 0x00, b'x'], 0x04),
        (&[0x0c, 0x04, 0xc0, 0, 0, 0, 0x40, 0, 0, 0, b'x'], 0x03),
    ];
    for (payload, code) in cases {
        let (setup, secrets) = revealing();
        let mut pair = met(setup);
        start_with(&mut pair, b"request");
        assert!(pair.run_until(RTT, has_arrived));
        forge(&mut pair, &secrets, 100, payload);
        assert_eq!(pair.server_error(), Some(code), "RFC 9000 §17.2.3");
    }
}

#[test]
fn server_sends_no_0_rtt_packets() {
    let mut pair = met(setup());
    let id = start_with(&mut pair, b"request");
    assert!(pair.run_until(RTT, has_arrived));
    pair.server
        .connection()
        .streams()
        .accept(Direction::Bidirectional);
    let written = pair.server.connection().streams().write(id, &[1; 2_000]);
    assert_eq!(written, Ok(2_000));
    pair.server.touch();
    pair.run_for(RTT * 3);
    let kinds = |sent: &[Datagram]| {
        let mut kinds = Vec::new();
        for datagram in sent {
            let mut start = 0;
            while let Ok(packet) = courser_wire::packet::decode(&datagram.bytes, start, 8) {
                kinds.push(packet.kind);
                start = packet.end;
            }
        }
        kinds
    };
    assert!(kinds(&pair.client.sent).contains(&PacketKind::ZeroRtt));
    let of_server = kinds(&pair.server.sent);
    assert!(!of_server.contains(&PacketKind::ZeroRtt), "RFC 9001 §5.6");
    assert!(of_server.contains(&PacketKind::OneRtt), "0.5-RTT data");
}

#[test]
fn a_0_rtt_packet_after_a_1_rtt_packet_ends_the_connection() {
    let (setup, secrets) = revealing();
    let mut pair = met(setup);
    start_with(&mut pair, b"request");
    pair.run_for(RTT * 3);
    let next = pair
        .client
        .connection()
        .packets
        .recovery
        .first_unused_number();
    forge(&mut pair, &secrets, next + 100, &[0x01]);
    assert_eq!(pair.server_error(), Some(0x0a), "RFC 9001 §5.6");
}

#[test]
fn client_drops_0_rtt_packets() {
    let (setup, secrets) = revealing();
    let mut pair = met(setup);
    start_with(&mut pair, b"request");
    pair.run_for(RTT * 3);
    let dropped = pair.client.connection().stats().packets_dropped;
    let address = std::mem::replace(&mut pair.server.address, pair.client.address);
    pair.client.address = address;
    std::mem::swap(&mut pair.client.endpoint, &mut pair.server.endpoint);
    std::mem::swap(&mut pair.client.handle, &mut pair.server.handle);
    forge(&mut pair, &secrets, 1000, &[0x01]);
    assert_eq!(
        pair.server.connection().stats().packets_dropped,
        dropped + 1
    );
    assert!(!pair.server.connection().is_closed());
}

#[test]
fn server_that_accepts_early_data_and_lowers_a_limit_is_refused() {
    const MAX_DATA: u64 = 0x04;
    const MAX_STREAMS_BIDI: u64 = 0x08;
    const MAX_DATAGRAM_FRAME_SIZE: u64 = 0x20;
    const RESET_STREAM_AT: u64 = 0x1d;
    for (raised, content) in [
        (MAX_DATA, varint(1 << 40)),
        (MAX_STREAMS_BIDI, varint(1 << 40)),
        (MAX_DATAGRAM_FRAME_SIZE, varint(1 << 40)),
        (RESET_STREAM_AT, Vec::new()),
    ] {
        let mut setup = setup();
        setup.server.transport = Arc::new(TransportConfig {
            reset_stream_at: raised != RESET_STREAM_AT,
            ..steady()
        });
        // The client remembers more than the server has granted.
        setup.client_tls = Tampered::remembered(setup.client_tls, move |bytes| {
            let mut parameters = split_parameters(&bytes);
            parameters.retain(|(id, _)| *id != raised);
            parameters.push((raised, content.clone()));
            join_parameters(&parameters)
        });
        let mut pair = met(setup);
        start_with(&mut pair, b"request");
        pair.run_for(RTT * 2);
        assert_eq!(
            pair.client_error(),
            Some(0x0a),
            "{raised:#x}, RFC 9000 §7.4.1"
        );
        assert_eq!(pair.close_received_by_server(), Some(0x0a), "{raised:#x}");
    }
}

#[test]
fn replayed_first_flight_delivers_no_early_data() {
    let mut pair = met(setup());
    start_with(&mut pair, b"pay");
    assert!(pair.run_until(RTT, has_arrived));
    let flight: Vec<_> = pair.client.sent.clone();
    pair.run_for(RTT * 3);
    // The server forgets the connection, so that the same packets begin another one.
    let now = pair.now;
    pair.client.connection().close(now, 0, b"");
    pair.client.touch();
    pair.run_for(Duration::from_secs(5));
    pair.server.handle = None;
    let replayed = flight.len();
    for mut datagram in flight {
        datagram.from.set_port(6666);
        pair.deliver(datagram);
    }
    pair.drive();
    assert!(replayed >= 2 && pair.server.handle.is_some());
    let server = pair.server.connection();
    assert_eq!(server.stats().early_data, EarlyData::None);
    assert_eq!(server.stats().data_received, 0);
    assert_eq!(server.streams().accept(Direction::Bidirectional), None);
}

#[test]
fn early_data_from_a_forged_address_respects_the_amplification_limit() {
    let mut pair = met(setup());
    pair.client_config.tokens = None;
    let id = start_with(&mut pair, b"give me much");
    assert!(pair.run_until(RTT, has_arrived));
    // The client is silent from now on.
    let client = pair.client.address;
    pair.link.filter = Some(Box::new(move |_, datagram| datagram.from != client));
    let server = pair.server.connection();
    server.streams().accept(Direction::Bidirectional);
    let written = server.streams().write(id, &[0; 100_000]);
    assert!(written.is_ok_and(|len| len > 10_000));
    pair.server.touch();
    pair.run_for(Duration::from_secs(5));
    let bytes = |sent: &[Datagram]| sent.iter().map(|it| it.bytes.len()).sum::<usize>();
    let (sent, received) = (bytes(&pair.server.sent), bytes(&pair.client.sent));
    assert!(sent > 0 && sent <= received * 3, "{sent} for {received}");
}

#[test]
fn acknowledgement_of_refused_early_data_ends_the_connection() {
    let mut pair = met(setup());
    let mut config = ServerConfig::clone(&pair.server_config);
    config.tls = server_tls_with_early_data(&[b"test"]);
    let config = Some(Arc::new(config));
    pair.server.endpoint.set_server_config(config);
    start_with(&mut pair, b"refused");
    pair.run_for(RTT * 4);
    assert!(pair.client.has(&Event::EarlyDataRejected));
    pair.forge_to_client(SpaceId::Application, &[0x02, 0, 0, 0, 0]);
    assert_eq!(pair.client_error(), Some(0x0a), "RFC 9001 §4.6.2");
}
